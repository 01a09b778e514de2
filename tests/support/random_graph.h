// Random graphs of operations that planners find hard: chains, branches, views, results read late, results in place of
// their sources.
#pragma once

#include "ggml.h"

#include <stdint.h>

struct random_graph {
    struct ggml_context *c;
    struct ggml_cgraph *g;
    struct ggml_tensor *inputs[4], *last;
    int n_inputs;
    uint64_t state;
};

static inline uint32_t random_below(struct random_graph *r, uint32_t n) {
    r->state = r->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t) ((r->state >> 33) % n);
}

// One more result from what is there. All tensors are [16, rows] F32.
static inline struct ggml_tensor *random_node(struct random_graph *r, struct ggml_tensor **all, int n) {
    struct ggml_context *c = r->c;
    // mostly recent ones, so that lifetimes are short, sometimes any
    struct ggml_tensor *a = all[random_below(r, 3) ? n - 1 - (int) random_below(r, n < 3 ? (uint32_t) n : 3)
                                                   : (int) random_below(r, (uint32_t) n)];
    struct ggml_tensor *b = all[random_below(r, (uint32_t) n)];
    const bool same = ggml_are_same_shape(a, b);
    switch (random_below(r, 14)) {
        case 0:
        case 1: return same ? ggml_add(c, a, b) : ggml_scale(c, a, 0.5f);
        case 2: return same ? ggml_mul(c, a, b) : ggml_neg(c, a);
        case 3: return ggml_rms_norm(c, a, 1e-5f);
        case 4: return ggml_soft_max(c, a);
        case 5: return ggml_cont(c, ggml_transpose(c, ggml_reshape_2d(c, a, a->ne[1], 16)));
        case 6: return ggml_tanh(c, a);
        case 7: return same ? ggml_swiglu_split(c, a, b) : ggml_clamp(c, a, -1, 1);
        case 8: return ggml_norm(c, a, 1e-5f);
        case 9:
            return ggml_scale(c, ggml_view_2d(c, a, 16, (a->ne[1] + 1) / 2, a->nb[1], a->nb[1] * (size_t) (a->ne[1] / 2)),
                              2.0f);
        case 10: return a->ne[1] + b->ne[1] <= 64 ? ggml_concat(c, a, b, 1) : ggml_sqr(c, a);
        case 11: return ggml_scale_inplace(c, ggml_dup(c, a), 1.5f);
        case 12:
            return ggml_mul_mat(c, ggml_cont(c, ggml_view_2d(c, a, 16, 1, a->nb[1], 0)), b)->ne[0] == 1 ? ggml_cos(c, b) : b;
        default: return ggml_add(c, ggml_scale(c, a, 0.25f), a);
    }
}

static inline void random_graph_build(struct random_graph *r, uint64_t seed, int n_nodes) {
    struct ggml_tensor *all[512];
    int n = 0;
    r->state = seed * 2654435761u + 12345;
    r->c = ggml_init((struct ggml_init_params){4 << 20, NULL, true});
    r->g = ggml_new_graph_custom(r->c, 2048, false);
    r->n_inputs = 1 + (int) random_below(r, 4);
    for (int i = 0; i < r->n_inputs; i++) {
        r->inputs[i] = ggml_new_tensor_2d(r->c, GGML_TYPE_F32, 16, 1 + random_below(r, 24));
        ggml_set_input(r->inputs[i]);
        all[n++] = r->inputs[i];
    }
    for (int i = 0; i < n_nodes && n < 512; i++) {
        all[n] = random_node(r, all, n);
        if (all[n]->op == GGML_OP_NONE) continue;
        ggml_build_forward_expand(r->g, all[n]);
        if (random_below(r, 25) == 0) ggml_set_output(all[n]);
        n++;
    }
    r->last = all[n - 1];
    ggml_set_output(r->last);
}

static inline void random_graph_set(struct random_graph *r) {
    for (int i = 0; i < r->n_inputs; i++) {
        if (!r->inputs[i]->data) continue;  // nothing reads it
        float x[16 * 24];
        uint64_t s = (uint64_t) i + 99;
        for (int k = 0; k < ggml_nelements(r->inputs[i]); k++) {
            s = s * 6364136223846793005u + 1442695040888963407u;
            x[k] = (float) ((double) (s >> 40) / 8388608.0 - 1.0);
        }
        ggml_backend_tensor_set(r->inputs[i], x, 0, ggml_nbytes(r->inputs[i]));
    }
}
