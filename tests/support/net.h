// Small networks for the tests of memory and devices, and devices made for them.
#pragma once

#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

#include <math.h>

#include <stdlib.h>
#include <string.h>

// Uniform in [-1, 1), the same for a seed everywhere.
static inline float net_value(uint64_t *state) {
    *state += 0x9E3779B97F4A7C15u;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (float) ((double) ((z ^ (z >> 31)) >> 40) / 8388608.0 - 1.0);
}

static inline void net_fill(struct ggml_tensor *t, uint64_t seed) {
    const int64_t n = ggml_nelements(t);
    float *x = malloc((size_t) n * sizeof(float));
    for (int64_t i = 0; i < n; i++) x[i] = net_value(&seed);
    ggml_backend_tensor_set(t, x, 0, (size_t) n * sizeof(float));
    free(x);
}

static inline struct ggml_context *net_context(void) { return ggml_init((struct ggml_init_params){4 << 20, NULL, true}); }

// A llama-like network without a cache: n_layer layers of attention over the batch itself and a gated feed-forward part.
struct net {
    struct ggml_context *weights, *graph_ctx;
    struct ggml_cgraph *graph;
    struct ggml_tensor *x, *pos, *mask, *out;
    int n_layer, n_embd, n_head, n_ff, n_token;
    struct ggml_tensor *w[8][8];  // per layer: norm, q, k, v, o, norm, gate/up, down (up in the next array)
    struct ggml_tensor *up[8], *head;
};

static inline void net_weights(struct net *n) {
    n->weights = net_context();
    struct ggml_context *c = n->weights;
    const int e = n->n_embd, f = n->n_ff;
    for (int il = 0; il < n->n_layer; il++) {
        struct ggml_tensor **w = n->w[il];
        w[0] = ggml_new_tensor_1d(c, GGML_TYPE_F32, e);
        for (int k = 1; k <= 4; k++) w[k] = ggml_new_tensor_2d(c, GGML_TYPE_F32, e, e);
        w[5] = ggml_new_tensor_1d(c, GGML_TYPE_F32, e);
        w[6] = ggml_new_tensor_2d(c, GGML_TYPE_F32, e, f);
        w[7] = ggml_new_tensor_2d(c, GGML_TYPE_F32, f, e);
        n->up[il] = ggml_new_tensor_2d(c, GGML_TYPE_F32, e, f);
        for (int k = 0; k < 8; k++) ggml_format_name(w[k], "blk.%d.w%d", il, k);
        ggml_format_name(n->up[il], "blk.%d.up", il);
    }
    n->head = ggml_set_name(ggml_new_tensor_2d(c, GGML_TYPE_F32, e, 2 * e), "head");
}

static inline struct ggml_tensor *net_layer(struct net *n, int il, struct ggml_tensor *x) {
    struct ggml_context *c = n->graph_ctx;
    struct ggml_tensor **w = n->w[il];
    const int64_t d = n->n_embd / n->n_head, t = n->n_token;
    struct ggml_tensor *h = ggml_mul(c, ggml_rms_norm(c, x, 1e-5f), w[0]);
    struct ggml_tensor *q = ggml_reshape_3d(c, ggml_mul_mat(c, w[1], h), d, n->n_head, t);
    struct ggml_tensor *k = ggml_reshape_3d(c, ggml_mul_mat(c, w[2], h), d, n->n_head, t);
    struct ggml_tensor *v = ggml_reshape_3d(c, ggml_mul_mat(c, w[3], h), d, n->n_head, t);
    q = ggml_rope(c, q, n->pos, (int) d, 0);
    k = ggml_rope(c, k, n->pos, (int) d, 0);
    q = ggml_permute(c, q, 0, 2, 1, 3);
    k = ggml_permute(c, k, 0, 2, 1, 3);
    v = ggml_cont(c, ggml_permute(c, v, 1, 2, 0, 3));
    struct ggml_tensor *kq = ggml_mul_mat(c, k, q);
    kq = ggml_soft_max_ext(c, kq, n->mask, 0.25f, 0.0f);
    struct ggml_tensor *kqv = ggml_permute(c, ggml_mul_mat(c, v, kq), 0, 2, 1, 3);
    struct ggml_tensor *a = ggml_mul_mat(c, w[4], ggml_cont_2d(c, kqv, n->n_embd, t));
    x = ggml_add(c, a, x);
    h = ggml_mul(c, ggml_rms_norm(c, x, 1e-5f), w[5]);
    struct ggml_tensor *g = ggml_silu(c, ggml_mul_mat(c, w[6], h));
    g = ggml_mul(c, g, ggml_mul_mat(c, n->up[il], h));
    x = ggml_add(c, x, ggml_mul_mat(c, w[7], g));
    ggml_format_name(x, "l_out-%d", il);
    return x;
}

static inline void net_build(struct net *n) {
    n->graph_ctx = net_context();
    struct ggml_context *c = n->graph_ctx;
    n->graph = ggml_new_graph_custom(c, 1024, false);
    n->x = ggml_set_name(ggml_new_tensor_2d(c, GGML_TYPE_F32, n->n_embd, n->n_token), "x");
    n->pos = ggml_set_name(ggml_new_tensor_1d(c, GGML_TYPE_I32, n->n_token), "pos");
    n->mask = ggml_set_name(ggml_new_tensor_2d(c, GGML_TYPE_F32, n->n_token, n->n_token), "mask");
    ggml_set_input(n->x);
    ggml_set_input(n->pos);
    ggml_set_input(n->mask);
    struct ggml_tensor *x = n->x;
    for (int il = 0; il < n->n_layer; il++) x = net_layer(n, il, x);
    n->out = ggml_set_name(ggml_mul_mat(c, n->head, ggml_rms_norm(c, x, 1e-5f)), "out");
    ggml_set_output(n->out);
    ggml_build_forward_expand(n->graph, n->out);
}

static inline void net_set_inputs(struct net *n, uint64_t seed) {
    net_fill(n->x, seed);
    int32_t *pos = malloc((size_t) n->n_token * sizeof(int32_t));
    float *mask = malloc((size_t) n->n_token * (size_t) n->n_token * sizeof(float));
    for (int i = 0; i < n->n_token; i++) {
        pos[i] = i;
        for (int k = 0; k < n->n_token; k++) mask[i * n->n_token + k] = k <= i ? 0.0f : -INFINITY;
    }
    ggml_backend_tensor_set(n->pos, pos, 0, (size_t) n->n_token * sizeof(int32_t));
    ggml_backend_tensor_set(n->mask, mask, 0, (size_t) n->n_token * (size_t) n->n_token * sizeof(float));
    free(pos);
    free(mask);
}

static inline void net_fill_weights(struct net *n) {
    uint64_t seed = 1;
    for (struct ggml_tensor *t = ggml_get_first_tensor(n->weights); t; t = ggml_get_next_tensor(n->weights, t))
        net_fill(t, seed++);
}

static inline float *net_values(const struct ggml_tensor *t) {
    float *x = malloc(ggml_nbytes(t));
    ggml_backend_tensor_get(t, x, 0, ggml_nbytes(t));
    return x;
}
