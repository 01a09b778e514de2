// lamina embed: the embedding of each input text.
#include "cli/console.h"
#include "cli/session.h"
#include "tools/tool.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void normalize(float *x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double) x[i] * (double) x[i];
    const double scale = sum > 0 ? 1 / sqrt(sum) : 0;
    for (int i = 0; i < n; i++) x[i] = (float) ((double) x[i] * scale);
}

// Embedding of one text into out [n_embd]. 0, or the exit status.
static int embed(struct session *s, const struct params *p, const char *text, size_t size, float *out) {
    struct tokens t = {0};
    const int32_t n_embd = llama_model_n_embd_out(s->model);
    int status = tokens_make(&t, s->vocab, text, size, true, true);
    if (!status && t.n == 0) status = console_error("a text without tokens has no embedding");
    if (!status && (uint32_t) t.n > llama_n_ctx(s->ctx))
        status =
            console_error("a text has %d tokens, more than the context of %u; a larger one: -c N", t.n, llama_n_ctx(s->ctx));
    const float *e = NULL;
    if (!status) {
        llama_memory_t mem = llama_get_memory(s->ctx);
        if (mem) llama_memory_clear(mem, true);
        struct llama_batch b = llama_batch_init(t.n, 0, 1);
        b.n_tokens = t.n;
        for (int32_t i = 0; i < t.n; i++) {
            b.token[i] = t.data[i];
            b.pos[i] = i;
            b.n_seq_id[i] = 1;
            b.seq_id[i][0] = 0;
            b.logits[i] = 1;
        }
        const bool encoder = llama_model_has_encoder(s->model) && !llama_model_has_decoder(s->model);
        const int32_t r = encoder ? llama_encode(s->ctx, b) : llama_decode(s->ctx, b);
        if (r != 0)
            status = console_library_error();
        else
            e = llama_pooling_type(s->ctx) == LLAMA_POOLING_TYPE_NONE ? llama_get_embeddings_ith(s->ctx, -1)
                                                                      : llama_get_embeddings_seq(s->ctx, 0);
        if (!status && !e) status = console_library_error();
        llama_batch_free(b);
    }
    if (!status) {
        memcpy(out, e, sizeof(float) * (size_t) n_embd);
        if (p->normalize) normalize(out, n_embd);
    }
    free(t.data);
    return status;
}

static void print(const float *x, int n, int index, bool json, bool first) {
    if (json) {
        printf("%s{\"index\": %d, \"embedding\": [", first ? "" : ",\n", index);
        for (int i = 0; i < n; i++) printf(i ? ", %.9g" : "%.9g", (double) x[i]);
        fputs("]}", stdout);
        return;
    }
    for (int i = 0; i < n; i++) printf(i ? " %.6f" : "%.6f", (double) x[i]);
    fputc('\n', stdout);
}

static int run(struct params *p) {
    struct text text = {0};
    struct session s = {0};
    int status = text_prompt(&text, p);
    p->embeddings = true;
    if (!status) status = session_load(&s, p, false);
    if (!status) {
        if (p->n_ubatch < p->n_batch) p->n_ubatch = p->n_batch;  // models that see the whole text need it in one piece
        status = session_context(&s, p);
    }
    const int32_t n_embd = status ? 0 : llama_model_n_embd_out(s.model);
    float *out = malloc(sizeof(float) * (size_t) (n_embd + 1));
    if (!status && p->json) fputs("[", stdout);
    // Each line of a file is a text of its own; -p is one text.
    size_t at = 0;
    int index = 0;
    while (!status && at < text.size) {
        const char *start = text.data + at, *nl = p->prompt ? NULL : memchr(start, '\n', text.size - at);
        const size_t size = nl ? (size_t) (nl - start) : text.size - at;
        at += size + (nl ? 1 : 0);
        if (size == 0) continue;
        status = out ? embed(&s, p, start, size, out) : console_error("no memory");
        if (!status && console_interrupted()) status = 130;
        if (!status) print(out, n_embd, index, p->json, index == 0);
        index++;
    }
    if (p->json && n_embd) fputs("]\n", stdout);
    if (!status && index == 0) status = console_error("the text is empty: there is nothing to embed");
    free(out);
    session_close(&s);
    free(text.data);
    return status;
}

const struct tool tool_embed = {
    .name = "embed",
    .alias = "llama-embedding",
    .summary = "Writes the embedding of a text, or of every line of a file",
    .args = "",
    .groups = G_MODEL | G_LOAD | G_CTX | G_PROMPT | G_EMBED | G_JSON,
    .run = run,
};
