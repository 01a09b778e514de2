// The inside of contexts and graphs, and what the rest of the library needs of tensors beyond the public calls.
#pragma once

#include "ggml.h"
#include "base/err.h"

#include <string.h>

// Open-addressing set of tensor pointers; its size is any number fixed at creation.
struct tensor_set {
    size_t size;
    uint32_t *used;  // bit i: slot i is taken
    struct ggml_tensor **keys;
};

#define TENSOR_SET_FULL ((size_t) -1)

// The slot of key (*there) or of a free place for it; TENSOR_SET_FULL if there is neither. Tensors lie at least 16 bytes apart; the
// multiplication spreads what is left of the address over the high bits.
static inline size_t tensor_set_probe(const struct tensor_set *s, const struct ggml_tensor *key, bool *there) {
    const uint64_t h = ((uint64_t) (uintptr_t) key >> 4) * 0x9e3779b97f4a7c15ull;
    size_t i = (size_t) ((h >> 32) * s->size >> 32);
    for (size_t n = 0; n < s->size; n++) {
        *there = false;
        if (!(s->used[i / 32] >> (i % 32) & 1)) return i;
        *there = s->keys[i] == key;
        if (*there) return i;
        if (++i == s->size) i = 0;
    }
    return TENSOR_SET_FULL;
}
static inline void tensor_set_put(struct tensor_set *s, size_t slot, struct ggml_tensor *key) {
    s->used[slot / 32] |= 1u << (slot % 32);
    s->keys[slot] = key;
}
size_t tensor_set_find(const struct tensor_set *s, const struct ggml_tensor *key);  // slot of key or of a free place
bool tensor_set_contains(const struct tensor_set *s, const struct ggml_tensor *key);
size_t tensor_set_insert(struct tensor_set *s, struct ggml_tensor *key);  // slot, or TENSOR_SET_FULL
void tensor_set_clear(struct tensor_set *s);

enum graph_order { GRAPH_LEFT_TO_RIGHT = 0, GRAPH_RIGHT_TO_LEFT = 1 };

struct ggml_cgraph {
    int size;  // room for nodes, and as much for leafs
    int n_nodes, n_leafs;
    struct ggml_tensor **nodes;      // results of operations, in evaluation order
    struct ggml_tensor **grads;      // per hash slot: gradient of that tensor, or NULL array
    struct ggml_tensor **grad_accs;  // per hash slot: accumulator of that gradient, or NULL array
    struct ggml_tensor **leafs;      // constants, weights and inputs
    int32_t *use_counts;             // per hash slot: how many nodes read that tensor
    struct tensor_set visited;
    enum graph_order order;
    uint64_t uid;     // changes whenever the content changes; equal uid means same graph
    uint64_t placed;  // epoch of the allocator (gallocr.h) that gave its tensors their memory; 0: none since the last change
    uint8_t *cursor;  // [size] scratch of the walk: next source of each node on its stack
    // [size] of the last node that a call to expand the graph added: one more than the calls after it that added none; else 0
    uint8_t *ends;
    struct ggml_context
        *again;  // not NULL: being built again there (rebuild.c), `at` nodes so far and `calls` that add none to come
    int at, calls;
    char *failure;  // [GRAPH_FAILURE_SIZE] why the graph cannot be computed, "" if it can
};

#define GRAPH_FAILURE_SIZE 256

// Marks the graph as one that computes to FAILED, with the sentence of the last error; the first mark stays.
void graph_set_failed(struct ggml_cgraph *g);
// Gives the graph a new uid; whoever changes its arrays calls this.
void graph_touch(struct ggml_cgraph *g);
// What was made in ctx before in the place of the next tensor, if the context is filled again and nothing differed so far; then a
// builder that would make the same gives it back by tensor_keep. Else NULL.
struct ggml_tensor *tensor_before(struct ggml_context *ctx);
struct ggml_tensor *tensor_keep(struct ggml_context *ctx, struct ggml_tensor *t);
// The same, where more is to be said of t before the next tensor is made: it is compared then, with what it is now.
void tensor_reopen(struct ggml_context *ctx, struct ggml_tensor *t);
// A number that was never given before.
uint64_t graph_serial(void);
// Number of uses of a tensor by the graph's nodes; 0 if it is not part of it.
int graph_use_count(const struct ggml_cgraph *g, const struct ggml_tensor *t);

// A copy of the range [i0, i1) of nodes that shares g's arrays; has no leafs and no gradients of its own.
struct ggml_cgraph graph_view(struct ggml_cgraph *g, int i0, int i1);

// The error tensor: constant, outside every context. Builders return it when they are misused.
struct ggml_tensor *tensor_error(void);

// New tensor in ctx (view_src may be NULL). NULL-safe against the error tensor: gives it back.
struct ggml_tensor *tensor_new(struct ggml_context *ctx, enum ggml_type type, int n_dims, const int64_t *ne,
                               struct ggml_tensor *view_src, size_t view_offs);

// Sets the name to a, b and c joined (NULL ends the list), cut to fit: building graphs formats many names, and printf is
// a third of the time it takes.
void tensor_name_from(struct ggml_tensor *t, const char *a, const char *b, const char *c);
// The same with a short prefix and a number >= 0: "node_17".
void tensor_name_number(struct ggml_tensor *t, const char *prefix, int number);

// The name of another tensor with a suffix of n bytes, its end included: views are named so.
static inline void tensor_name_suffix(struct ggml_tensor *t, const char *of, const char *suffix, size_t n) {
    const size_t k = of[0] ? strnlen(of, GGML_MAX_NAME - 1) : 0;
    if (k + n > GGML_MAX_NAME) {
        tensor_name_from(t, of, suffix, NULL);
        return;
    }
    if (k) memcpy(t->name, of, k);
    memcpy(t->name + k, suffix, n);
}

// op_params as integers and floats; i counts 4-byte words.
static inline int32_t tensor_param_i32(const struct ggml_tensor *t, int i) { return t->op_params[i]; }
static inline void tensor_set_param_i32(struct ggml_tensor *t, int i, int32_t v) { t->op_params[i] = v; }
static inline float tensor_param_f32(const struct ggml_tensor *t, int i) {
    float f;
    __builtin_memcpy(&f, &t->op_params[i], 4);
    return f;
}
static inline void tensor_set_param_f32(struct ggml_tensor *t, int i, float v) { __builtin_memcpy(&t->op_params[i], &v, 4); }
