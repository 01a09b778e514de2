// lamina embed: the embedding of each input text, or how well a document answers a question (pooling rank).
#include "cli/console.h"
#include "cli/session.h"
#include "tools/tool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum format { RAW, ARRAY, JSON, JSON_PLUS, OWN_JSON };

struct embeddings {
    struct session s;
    const struct params *p;
    int width;    // values of a text
    float *rows;  // [n][width]
    int n, room;
};

// To length 1 by the norm that was asked for (field's numbers: see --embd-normalize).
static void normalize(float *x, int n, int how) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        const double v = fabs((double) x[i]);
        if (how == 0)
            sum = fmax(sum, v / 32760);
        else
            sum += how == 1 ? v : how == 2 ? v * v : pow(v, how);
    }
    if (how == 2) sum = sqrt(sum);
    if (how > 2) sum = pow(sum, 1.0 / how);
    for (int i = 0; i < n; i++) x[i] = sum > 0 ? (float) ((double) x[i] / sum) : 0;
}

static int add_token(struct tokens *t, llama_token id) {
    return id == LLAMA_TOKEN_NULL ? 0 : tokens_append(t, &(struct tokens){.data = &id, .n = 1});
}

static int add_text(struct tokens *t, const struct llama_vocab *vocab, const char *text, size_t size) {
    struct tokens more = {0};
    int status = tokens_make(&more, vocab, text, size, false, false);
    if (!status) status = tokens_append(t, &more);
    free(more.data);
    return status;
}

// A question and a document as rerankers were trained on them: BOS question EOS SEP document EOS, of those that the vocabulary adds.
static int pair_tokens(struct tokens *t, const struct llama_vocab *v, const char *text, size_t size, const char *cut,
                       size_t n_cut) {
    const llama_token eos = llama_vocab_eos(v) == LLAMA_TOKEN_NULL ? llama_vocab_sep(v) : llama_vocab_eos(v);
    const size_t head = (size_t) (cut - text);
    int status = llama_vocab_get_add_bos(v) ? add_token(t, llama_vocab_bos(v)) : 0;
    if (!status) status = add_text(t, v, text, head);
    if (!status && llama_vocab_get_add_eos(v)) status = add_token(t, eos);
    if (!status && llama_vocab_get_add_sep(v)) status = add_token(t, llama_vocab_sep(v));
    if (!status) status = add_text(t, v, cut + n_cut, size - head - n_cut);
    if (!status && llama_vocab_get_add_eos(v)) status = add_token(t, eos);
    return status;
}

static int text_tokens(struct embeddings *e, struct tokens *t, const char *text, size_t size) {
    const char *sep = e->p->cls_separator ? e->p->cls_separator : "\t";
    const char *cut =
        llama_pooling_type(e->s.ctx) == LLAMA_POOLING_TYPE_RANK && sep[0] ? memmem(text, size, sep, strlen(sep)) : NULL;
    int status =
        cut ? pair_tokens(t, e->s.vocab, text, size, cut, strlen(sep)) : tokens_make(t, e->s.vocab, text, size, true, true);
    if (!status && t->n == 0) status = console_error("a text without tokens has no embedding");
    if (!status && (uint32_t) t->n > llama_n_ctx(e->s.ctx))
        status = console_error("a text has %d tokens, more than the context of %u; a larger one: -c N", t->n,
                               llama_n_ctx(e->s.ctx));
    return status;
}

static int append(struct embeddings *e, const float *row) {
    if (e->n == e->room) {
        const int room = e->room ? 2 * e->room : 16;
        float *grown = realloc(e->rows, sizeof(float) * (size_t) room * (size_t) e->width);
        if (!grown) return console_error("no memory for %d embeddings", room);
        e->rows = grown;
        e->room = room;
    }
    float *to = e->rows + (size_t) e->n++ * (size_t) e->width;
    memcpy(to, row, sizeof(float) * (size_t) e->width);
    const int how = e->p->normalize ? e->p->embd_normalize : -1;
    if (how >= 0 && llama_pooling_type(e->s.ctx) != LLAMA_POOLING_TYPE_RANK) normalize(to, e->width, how);
    return 0;
}

// Adds the embedding of one text. 0, or the exit status.
static int embed(struct embeddings *e, const char *text, size_t size) {
    struct tokens t = {0};
    int status = text_tokens(e, &t, text, size);
    if (!status) {
        llama_memory_t mem = llama_get_memory(e->s.ctx);
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
        const bool encoder = llama_model_has_encoder(e->s.model) && !llama_model_has_decoder(e->s.model);
        const bool pooled = llama_pooling_type(e->s.ctx) != LLAMA_POOLING_TYPE_NONE,
                   ok = (encoder ? llama_encode(e->s.ctx, b) : llama_decode(e->s.ctx, b)) == 0;
        // asked for no pooling, every token has its own; a model that has none gives its last token's
        const int32_t first = pooled || e->p->pooling != LLAMA_POOLING_TYPE_NONE ? t.n - 1 : 0;
        for (int32_t i = first; i < t.n && !status; i++) {
            const float *x = !ok      ? NULL
                             : pooled ? llama_get_embeddings_seq(e->s.ctx, 0)
                                      : llama_get_embeddings_ith(e->s.ctx, i);
            status = x ? append(e, x) : console_interrupted() ? 130 : console_library_error();
        }
        llama_batch_free(b);
    }
    free(t.data);
    return status;
}

static double similarity(const struct embeddings *e, int a, int b) {
    const float *x = e->rows + (size_t) a * (size_t) e->width, *y = e->rows + (size_t) b * (size_t) e->width;
    double xy = 0, xx = 0, yy = 0;
    for (int i = 0; i < e->width; i++) {
        xy += (double) x[i] * (double) y[i];
        xx += (double) x[i] * (double) x[i];
        yy += (double) y[i] * (double) y[i];
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : xx == yy;
}

static void print_row(const struct embeddings *e, int i, const char *format, const char *between) {
    const float *x = e->rows + (size_t) i * (size_t) e->width;
    for (int k = 0; k < e->width; k++) {
        if (k) fputs(between, stdout);
        printf(format, (double) x[k]);
    }
}

static void print_json(const struct embeddings *e, bool similarities) {
    fputs("{\n  \"object\": \"list\",\n  \"data\": [", stdout);
    for (int i = 0; i < e->n; i++) {
        printf("%s\n    {\n      \"object\": \"embedding\",\n      \"index\": %d,\n      \"embedding\": [", i ? "," : "", i);
        print_row(e, i, "%.9g", ", ");
        fputs("]\n    }", stdout);
    }
    fputs("\n  ]", stdout);
    if (similarities) {
        fputs(",\n  \"cosineSimilarity\": [", stdout);
        for (int i = 0; i < e->n; i++) {
            fputs(i ? ",\n    [" : "\n    [", stdout);
            for (int k = 0; k < e->n; k++) printf(k ? ", %.6f" : "%.6f", similarity(e, i, k));
            fputc(']', stdout);
        }
        fputs("\n  ]", stdout);
    }
    fputs("\n}\n", stdout);
}

static void print(const struct embeddings *e, enum format format) {
    if (format == JSON || format == JSON_PLUS) {
        print_json(e, format == JSON_PLUS);
        return;
    }
    if (format != RAW) fputc('[', stdout);
    for (int i = 0; i < e->n; i++) {
        if (format == OWN_JSON)
            printf("%s{\"index\": %d, \"embedding\": [", i ? ",\n" : "", i);
        else if (format == ARRAY)
            fputs(i ? ",\n[" : "[", stdout);
        print_row(e, i, format == RAW ? "%.6f" : "%.9g", format == RAW ? " " : ", ");
        fputs(format == RAW ? "\n" : format == ARRAY ? "]" : "]}", stdout);
    }
    if (format != RAW) fputs("]\n", stdout);
}

static int find_format(const struct params *p, enum format *out) {
    static const char *const names[] = {"raw", "array", "json", "json+"};
    *out = p->json ? OWN_JSON : RAW;
    if (!p->embd_format || !p->embd_format[0]) return 0;
    for (int i = 0; i < 4; i++) {
        if (strcmp(p->embd_format, names[i]) != 0) continue;
        *out = (enum format) i;
        return 0;
    }
    console_error("--embd-output-format is '%s', but should be array, json, json+ or raw", p->embd_format);
    return 2;
}

// Each part between separators (of a file: each line) is a text of its own. -p is one text, unless a separator is given.
static int embed_all(struct embeddings *e, const struct text *text) {
    const char *sep = e->p->embd_separator ? e->p->embd_separator : e->p->prompt ? "" : "\n";
    const size_t n_sep = strlen(sep);
    int status = 0;
    for (size_t at = 0; at < text->size && !status;) {
        const char *start = text->data + at, *end = n_sep ? memmem(start, text->size - at, sep, n_sep) : NULL;
        const size_t size = end ? (size_t) (end - start) : text->size - at;
        at += size + (end ? n_sep : 0);
        if (size == 0) continue;
        status = embed(e, start, size);
        console_progress("embedding", (float) at / (float) text->size);
        if (!status && console_interrupted()) status = 130;
    }
    console_progress_end();
    return status;
}

static int run(struct params *p) {
    struct text text = {0};
    struct embeddings e = {.p = p};
    enum format format;
    int status = find_format(p, &format);
    if (!status) status = text_prompt(&text, p);
    p->embeddings = true;
    if (!status) status = session_load(&e.s, p, false);
    if (!status) {
        // a text is one batch, as long as the context is; models that see all of it at once need it in one piece
        const uint32_t n_ctx = session_context_options(p, llama_model_n_ctx_train(e.s.model)).n_ctx;
        if (p->n_batch < n_ctx) p->n_batch = n_ctx;
        if (llama_model_has_encoder(e.s.model)) p->n_ubatch = p->n_batch;
        status = session_context(&e.s, p);
    }
    if (!status) {
        const bool rank = llama_pooling_type(e.s.ctx) == LLAMA_POOLING_TYPE_RANK;
        e.width = rank ? (int) llama_model_n_cls_out(e.s.model) : llama_model_n_embd_out(e.s.model);
        status = embed_all(&e, &text);
    }
    if (!status && e.n == 0) status = console_error("the text is empty: there is nothing to embed");
    if (!status) print(&e, format);
    free(e.rows);
    session_close(&e.s);
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
