// See history.h.
#include "sample/history.h"

bool history_init(struct history *h, size_t n) {
    *h = (struct history){.cap = n};
    h->ring = malloc((n ? n : 1) * sizeof *h->ring);
    if (!h->ring) err_set(ERR_NOMEM, "sampler: no memory for the last %zu tokens", n);
    return h->ring != NULL;
}

bool history_copy(struct history *dst, const struct history *src) {
    if (dst->cap != src->cap || !dst->ring) {
        history_free(dst);
        if (!history_init(dst, src->cap)) return false;
    }
    dst->n = src->n;
    dst->at = src->at;
    memcpy(dst->ring, src->ring, src->cap * sizeof *src->ring);
    return true;
}

void history_free(struct history *h) {
    free(h->ring);
    h->ring = NULL;
}

llama_token history_push(struct history *h, llama_token t) {
    if (h->cap == 0) return LLAMA_TOKEN_NULL;
    llama_token out = h->n == h->cap ? h->ring[h->at] : LLAMA_TOKEN_NULL;
    h->ring[h->at] = t;
    h->at = h->at + 1 == h->cap ? 0 : h->at + 1;
    if (h->n < h->cap) h->n++;
    return out;
}
