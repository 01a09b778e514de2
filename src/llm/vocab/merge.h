// Merging neighbours by priority, as BPE and SPM do: always the pair with the smallest number, the leftmost of equals.
// A macro-free template: include it after defining
//     static inline uint32_t pair_order(const struct llama_vocab *v, const char *p, size_t left, size_t right)
// (p: the bytes of both, UINT32_MAX: they do not merge). It gives merge_word, which leaves the symbols in s->merge.
//
// Short words (nearly all) are merged by scanning an array that fits in the cache; long ones by a heap, so that a megabyte
// of one character takes n log n.
#pragma once

#include "vocab/vocab_int.h"
#include <stdlib.h>

#define MERGE_SHORT 48

struct merge_symbol {
    uint32_t at, len, prev, next;  // prev, next: indexes, UINT32_MAX at the ends; len 0: gone
};

struct merge_pair {
    uint32_t order, left, len;
};

static enum err merge_reserve(struct session *s, size_t n) {
    size_t bytes = n * (sizeof(struct merge_symbol) + 3 * sizeof(struct merge_pair)) + 64;
    if (bytes <= s->merge_cap) return ERR_OK;
    if (bytes < 2 * s->merge_cap) bytes = 2 * s->merge_cap;
    void *p = realloc(s->merge, bytes);
    if (!p) return err_set(ERR_NOMEM, "vocab: no memory to merge a word of %zu symbols", n);
    s->merge = p;
    s->merge_cap = bytes;
    return ERR_OK;
}

// Symbols end to end, in place; returns how many are left.
static uint32_t merge_short(const struct llama_vocab *v, const char *p, struct merge_symbol *sym, uint32_t n) {
    uint32_t order[MERGE_SHORT];
    for (uint32_t i = 0; i + 1 < n; i++) order[i] = pair_order(v, p + sym[i].at, sym[i].len, sym[i + 1].len);
    while (n > 1) {
        uint32_t best = 0;
        for (uint32_t i = 1; i + 1 < n; i++) best = order[i] < order[best] ? i : best;
        if (order[best] == UINT32_MAX) break;
        sym[best].len += sym[best + 1].len;
        n--;
        for (uint32_t i = best + 1; i < n; i++) sym[i] = sym[i + 1];
        for (uint32_t i = best + 1; i + 1 < n; i++) order[i] = order[i + 1];
        if (best > 0) order[best - 1] = pair_order(v, p + sym[best - 1].at, sym[best - 1].len, sym[best].len);
        if (best + 1 < n) order[best] = pair_order(v, p + sym[best].at, sym[best].len, sym[best + 1].len);
    }
    return n;
}

static inline bool merge_before(const struct merge_pair *a, const struct merge_pair *b) {
    return a->order < b->order || (a->order == b->order && a->left < b->left);
}

static void merge_push(struct merge_pair *heap, size_t *n, struct merge_pair x) {
    size_t i = (*n)++;
    while (i > 0 && merge_before(&x, &heap[(i - 1) / 2])) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = x;
}

static struct merge_pair merge_pop(struct merge_pair *heap, size_t *n) {
    struct merge_pair top = heap[0], x = heap[--*n];
    size_t i = 0;
    for (;;) {
        size_t k = 2 * i + 1;
        if (k >= *n) break;
        if (k + 1 < *n && merge_before(&heap[k + 1], &heap[k])) k++;
        if (!merge_before(&heap[k], &x)) break;
        heap[i] = heap[k];
        i = k;
    }
    heap[i] = x;
    return top;
}

static void merge_offer(const struct llama_vocab *v, const char *p, const struct merge_symbol *sym, uint32_t left,
                        struct merge_pair *heap, size_t *n_heap) {
    if (left == UINT32_MAX || sym[left].next == UINT32_MAX) return;
    const struct merge_symbol *r = &sym[sym[left].next];
    uint32_t order = pair_order(v, p + sym[left].at, sym[left].len, r->len);
    if (order != UINT32_MAX) merge_push(heap, n_heap, (struct merge_pair){order, left, sym[left].len + r->len});
}

static uint32_t merge_long(const struct llama_vocab *v, const char *p, struct merge_symbol *sym, uint32_t n,
                           struct merge_pair *heap) {
    size_t n_heap = 0;  // at most n - 1 at first and two for each of n - 1 merges
    for (uint32_t i = 0; i < n; i++) {
        sym[i].prev = i - 1;
        sym[i].next = i + 1 < n ? i + 1 : UINT32_MAX;
    }
    for (uint32_t i = 0; i < n; i++) merge_offer(v, p, sym, i, heap, &n_heap);
    while (n_heap > 0) {
        struct merge_pair x = merge_pop(heap, &n_heap);
        struct merge_symbol *l = &sym[x.left];
        if (l->len == 0 || l->next == UINT32_MAX || l->len + sym[l->next].len != x.len) continue;  // out of date
        struct merge_symbol *r = &sym[l->next];
        l->len = x.len;
        l->next = r->next;
        r->len = 0;
        if (l->next != UINT32_MAX) sym[l->next].prev = x.left;
        merge_offer(v, p, sym, l->prev, heap, &n_heap);
        merge_offer(v, p, sym, x.left, heap, &n_heap);
    }
    uint32_t k = 0;
    for (uint32_t i = 0; i != UINT32_MAX; i = sym[i].next) sym[k++] = sym[i];
    return k;
}

// Cuts [p, p + len) into symbols (bytes, or characters) and merges them. *n: how many are left in *symbols.
static enum err merge_word(struct session *s, const char *p, size_t len, bool characters, struct merge_symbol **symbols,
                           uint32_t *n) {
    TRY(merge_reserve(s, len));
    struct merge_symbol *sym = s->merge;
    uint32_t k = 0;
    for (size_t at = 0; at < len;) {
        int step = 1;
        if (characters) utf8_decode(p + at, p + len, &step);
        sym[k].at = (uint32_t) at;
        sym[k++].len = (uint32_t) step;
        at += (size_t) step;
    }
    *symbols = sym;
    struct merge_pair *heap = (struct merge_pair *) (void *) (sym + len);
    *n = k <= MERGE_SHORT ? merge_short(s->v, p, sym, k) : merge_long(s->v, p, sym, k, heap);
    return ERR_OK;
}
