// The last tokens accepted, as a ring. Samplers that look back share it.
#pragma once

#include "sample/sample.h"

struct history {
    llama_token *ring;
    size_t cap, n, at;  // at: where the next goes
};

// Room for n tokens. False: no memory.
bool history_init(struct history *h, size_t n);
bool history_copy(struct history *dst, const struct history *src);  // dst: uninitialised or of the same size
void history_free(struct history *h);
// Adds a token; gives the one that falls out, LLAMA_TOKEN_NULL if none does.
llama_token history_push(struct history *h, llama_token t);
// i = 0: the latest.
static inline llama_token history_back(const struct history *h, size_t i) {
    return h->ring[h->at > i ? h->at - 1 - i : h->at + h->cap - 1 - i];
}
