// The run of RWKV_WKV6 and GATED_LINEAR_ATTN: states cut by heads and by columns.
#pragma once

#include "kern/recur.h"
#include "ops/rwkv_int.h"

struct rwkv_linear {
    const struct ggml_tensor *k, *v, *r, *u, *w, *state;  // u NULL: gated linear attention
    float scale;
};

enum { RWKV_COLUMNS = 16 };

static inline void rwkv_linear_run(struct task *task, struct ggml_tensor *t, const struct rwkv_linear *x) {
    const struct rwkv p = rwkv_of(x->k, x->state);
    const int64_t n = p.n, n_part = (n + RWKV_COLUMNS - 1) / RWKV_COLUMNS;
    int64_t i0, i1;
    task_range(task, p.n_seq * p.n_head * n_part, &i0, &i1);
    for (int64_t i = i0; i < i1; i++) {
        const int64_t at = i / n_part, col = i % n_part * RWKV_COLUMNS, head = at % p.n_head;
        const int64_t n_col = n - col < RWKV_COLUMNS ? n - col : RWKV_COLUMNS;
        const float *from = (const float *) x->state->data + at * n * n + col;
        float *state = rwkv_state(t, &p, at) + col;
        for (int64_t row = 0; row < n; row++) memcpy(state + row * n, from + row * n, (size_t) n_col * sizeof(float));
        // First value of the head at the sequence's first token, in every operand and in the result.
        const int64_t o = (at / p.n_head * p.seq_token * p.n_head + head) * n;
        const struct recur_linear y = {
            .k = (const float *) x->k->data + o,
            .v = (const float *) x->v->data + o + col,
            .r = (const float *) x->r->data + o,
            .u = x->u ? (const float *) x->u->data + head * n : NULL,
            .w = (const float *) x->w->data + o,
            .y = (float *) t->data + o + col,
            .state = state,
            .n = n,
            .n_column = n_col,
            .n_token = p.seq_token,
            .step = p.n_head * n,
            .scale = x->scale,
        };
        kern_recur()->linear(&y);
    }
}
