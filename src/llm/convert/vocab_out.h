// The tables of a vocabulary while it is being converted.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "gguf.h"
#include "llama/enums.h"

struct vocab_out {
    int64_t n;
    const char **text;    // [n], owned by the arena; NULL: not set
    float *score;         // [n]
    int32_t *type;        // [n], enum llama_token_type
    const char **merges;  // "a b"
    size_t n_merges;
    bool has_scores;
    struct arena arena;
};

MUST_USE enum err vocab_out_init(struct vocab_out *v, int64_t n);
void vocab_out_free(struct vocab_out *v);
// Sets token id; text of n bytes is copied. Errors: id outside 0 .. v->n - 1, no memory.
MUST_USE enum err vocab_out_set(struct vocab_out *v, int64_t id, const char *text, size_t n, float score,
                                enum llama_token_type type);
// Writes tokens, types, scores and merges; ids that were not set become "[PADid]", unused.
MUST_USE enum err vocab_out_write(struct vocab_out *v, struct gguf_context *out);
