// The tables of a vocabulary while it is being converted.
#include "convert/vocab_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum err vocab_out_init(struct vocab_out *v, int64_t n) {
    *v = (struct vocab_out){.n = n};
    if (n < 1 || n > 1 << 24) return err_set(ERR_FORMAT, "a vocabulary of %" PRId64 " tokens cannot be converted", n);
    v->text = calloc((size_t) n, sizeof(*v->text));
    v->score = calloc((size_t) n, sizeof(*v->score));
    v->type = calloc((size_t) n, sizeof(*v->type));
    return v->text && v->score && v->type ? ERR_OK : err_set(ERR_NOMEM, "no memory for %" PRId64 " tokens", n);
}

void vocab_out_free(struct vocab_out *v) {
    free(v->text);
    free(v->score);
    free(v->type);
    free(v->merges);
    arena_free(&v->arena);
    *v = (struct vocab_out){0};
}

enum err vocab_out_set(struct vocab_out *v, int64_t id, const char *text, size_t n, float score,
                       enum llama_token_type type) {
    if (id < 0 || id >= v->n)
        return err_set(ERR_FORMAT, "token '%.60s' has the id %" PRId64 ", but the model has %" PRId64 " rows for tokens",
                       text, id, v->n);
    v->text[id] = arena_copy(&v->arena, text, n);
    if (!v->text[id]) return err_set(ERR_NOMEM, "no memory for token %" PRId64, id);
    v->score[id] = score;
    v->type[id] = (int32_t) type;
    return ERR_OK;
}

enum err vocab_out_write(struct vocab_out *v, struct gguf_context *out) {
    for (int64_t i = 0; i < v->n; i++) {
        char pad[32];
        if (v->text[i]) continue;
        const int n = snprintf(pad, sizeof(pad), "[PAD%" PRId64 "]", i);
        TRY(vocab_out_set(v, i, pad, (size_t) n, -1e4f, LLAMA_TOKEN_TYPE_UNUSED));
    }
    gguf_set_arr_str(out, "tokenizer.ggml.tokens", v->text, (size_t) v->n);
    gguf_set_arr_data(out, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, v->type, (size_t) v->n);
    if (v->has_scores) gguf_set_arr_data(out, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, v->score, (size_t) v->n);
    if (v->n_merges) gguf_set_arr_str(out, "tokenizer.ggml.merges", v->merges, v->n_merges);
    return ERR_OK;
}
