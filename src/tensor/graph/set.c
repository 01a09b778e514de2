// The set of tensors that a graph has seen: open addressing with linear probing; which slots are taken is kept in a
// bitmap apart, so that clearing a set touches an eighth of a byte per slot.
#include "graph/graph.h"

#include <string.h>

size_t tensor_set_find(const struct tensor_set *s, const struct ggml_tensor *key) {
    bool there;
    return tensor_set_probe(s, key, &there);
}

bool tensor_set_contains(const struct tensor_set *s, const struct ggml_tensor *key) {
    bool there;
    (void) tensor_set_probe(s, key, &there);
    return there;
}

size_t tensor_set_insert(struct tensor_set *s, struct ggml_tensor *key) {
    bool there;
    const size_t i = tensor_set_probe(s, key, &there);
    if (!there && i != TENSOR_SET_FULL) tensor_set_put(s, i, key);
    return i;
}

void tensor_set_clear(struct tensor_set *s) { memset(s->used, 0, (s->size + 31) / 32 * sizeof *s->used); }
