// The set of tensors that a graph has seen: open addressing with linear probing; which slots are taken is kept in a
// bitmap apart, so that clearing a set touches an eighth of a byte per slot.
#include "graph/graph.h"

#include <string.h>

static bool taken(const struct tensor_set *s, size_t i) { return s->used[i / 32] >> (i % 32) & 1; }

// Tensors lie at least 16 bytes apart; the multiplication spreads what is left of the address over the high bits.
static size_t first_slot(const struct tensor_set *s, const struct ggml_tensor *key) {
    const uint64_t h = ((uint64_t) (uintptr_t) key >> 4) * 0x9e3779b97f4a7c15ull;
    return (size_t) (h >> 32) & (s->size - 1);
}

size_t tensor_set_find(const struct tensor_set *s, const struct ggml_tensor *key) {
    const size_t start = first_slot(s, key);
    size_t i = start;
    while (taken(s, i) && s->keys[i] != key) {
        i = (i + 1) & (s->size - 1);
        if (i == start) return TENSOR_SET_FULL;
    }
    return i;
}

bool tensor_set_contains(const struct tensor_set *s, const struct ggml_tensor *key) {
    const size_t i = tensor_set_find(s, key);
    return i != TENSOR_SET_FULL && taken(s, i);
}

size_t tensor_set_insert(struct tensor_set *s, struct ggml_tensor *key) {
    const size_t i = tensor_set_find(s, key);
    if (i == TENSOR_SET_FULL || taken(s, i)) return i;
    s->used[i / 32] |= 1u << (i % 32);
    s->keys[i] = key;
    return i;
}

void tensor_set_clear(struct tensor_set *s) { memset(s->used, 0, (s->size + 31) / 32 * sizeof *s->used); }
