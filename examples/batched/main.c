// Several continuations of one prompt at once: the prompt is read once, its memory is shared by all sequences.
//
// usage: example-batched MODEL.gguf [PROMPT] [N_SEQUENCES] [N_TOKENS]
#include "llama.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SEQ 16

struct stream {
    struct llama_sampler *sampler;
    char text[4096];
    size_t n;
    llama_token next;
    int32_t i_out;  // index in the batch whose logits are this sequence's
    bool done;
};

static void errors_only(enum ggml_log_level level, const char *text, void *data) {
    (void) data;
    if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

static void batch_add(struct llama_batch *b, llama_token token, llama_pos pos, llama_seq_id seq, bool logits) {
    const int32_t i = b->n_tokens++;
    b->token[i] = token;
    b->pos[i] = pos;
    b->n_seq_id[i] = 1;
    b->seq_id[i][0] = seq;
    b->logits[i] = logits;
}

// Takes the next token of every running stream. Gives how many go on.
static int sample_all(struct stream *s, int n_seq, struct llama_context *ctx, const struct llama_vocab *vocab,
                      struct llama_batch *b, llama_pos pos) {
    b->n_tokens = 0;
    for (int i = 0; i < n_seq; i++) {
        if (s[i].done) continue;
        s[i].next = llama_sampler_sample(s[i].sampler, ctx, s[i].i_out);
        if (llama_vocab_is_eog(vocab, s[i].next)) {
            s[i].done = true;
            continue;
        }
        const int32_t n =
            llama_token_to_piece(vocab, s[i].next, s[i].text + s[i].n, (int32_t) (sizeof(s[i].text) - s[i].n), 0, true);
        if (n > 0) s[i].n += (size_t) n;
        s[i].i_out = b->n_tokens;
        batch_add(b, s[i].next, pos, i, true);
    }
    return b->n_tokens;
}

static int run(struct llama_context *ctx, const struct llama_vocab *vocab, const llama_token *prompt, int32_t n_prompt,
               int n_seq, int n_predict) {
    static struct stream s[MAX_SEQ];
    struct llama_batch batch = llama_batch_init(n_prompt > n_seq ? n_prompt : n_seq, 0, 1);
    for (int32_t i = 0; i < n_prompt; i++) batch_add(&batch, prompt[i], i, 0, i == n_prompt - 1);
    int failed = llama_decode(ctx, batch) != 0;
    for (int i = 0; i < n_seq; i++) {
        if (i > 0) llama_memory_seq_cp(llama_get_memory(ctx), 0, i, -1, -1);
        s[i].i_out = n_prompt - 1;
        s[i].sampler = llama_sampler_chain_init(llama_sampler_chain_default_params());
        llama_sampler_chain_add(s[i].sampler, llama_sampler_init_top_k(40));
        llama_sampler_chain_add(s[i].sampler, llama_sampler_init_temp(0.8f));
        llama_sampler_chain_add(s[i].sampler, llama_sampler_init_dist((uint32_t) (1234 + i)));
    }
    for (int n = 0; n < n_predict && !failed && sample_all(s, n_seq, ctx, vocab, &batch, n_prompt + n) > 0; n++)
        failed = llama_decode(ctx, batch) != 0;
    for (int i = 0; i < n_seq; i++) {
        printf("sequence %d:%.*s\n\n", i, (int) s[i].n, s[i].text);
        llama_sampler_free(s[i].sampler);
    }
    llama_batch_free(batch);
    return failed;
}

int main(int argc, char **argv) {
    const bool help = argc > 1 && strcmp(argv[1], "-h") == 0;
    if (argc < 2 || help) {
        fprintf(help ? stdout : stderr, "usage: %s MODEL.gguf [PROMPT] [N_SEQUENCES, at most %d] [N_TOKENS]\n", argv[0],
                MAX_SEQ);
        return help ? 0 : 2;
    }
    const char *text = argc > 2 ? argv[2] : "My favourite animal is";
    const int n_seq = argc > 3 ? atoi(argv[3]) : 4, n_predict = argc > 4 ? atoi(argv[4]) : 32;
    if (n_seq < 1 || n_seq > MAX_SEQ || n_predict < 1) {
        fprintf(stderr, "error: from 1 to %d sequences and at least 1 token, please\n", MAX_SEQ);
        return 2;
    }
    llama_log_set(errors_only, NULL);
    ggml_backend_load_all();
    struct llama_model *model = llama_model_load_from_file(argv[1], llama_model_default_params());
    if (!model) return 1;
    const struct llama_vocab *vocab = llama_model_get_vocab(model);
    llama_token prompt[512];
    const int32_t n_prompt = llama_tokenize(vocab, text, (int32_t) strlen(text), prompt, 512, true, true);
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = (uint32_t) (n_prompt + 64 + n_seq * (n_predict + 64));
    params.n_seq_max = (uint32_t) n_seq;
    params.kv_unified = true;  // sequences share one pool of cells, so that the prompt is stored once
    struct llama_context *ctx = n_prompt > 0 ? llama_init_from_model(model, params) : NULL;
    const int failed = ctx ? run(ctx, vocab, prompt, n_prompt, n_seq, n_predict) : 1;
    if (ctx) llama_free(ctx);
    llama_model_free(model);
    return failed;
}
