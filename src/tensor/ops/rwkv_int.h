// What RWKV_WKV6, GATED_LINEAR_ATTN and RWKV_WKV7 have in common: per-token operands [n, n_head, n_token], a state of n x n
// per head and sequence, and a result of rows n * n_head long: the outputs of all tokens, then the states.
#pragma once

#include <string.h>

#include "ops/recur_int.h"

struct rwkv {
    int64_t n, n_head, n_token, n_seq, seq_token;  // seq_token: tokens of a sequence
};

static inline struct rwkv rwkv_of(const struct ggml_tensor *operand, const struct ggml_tensor *state) {
    const int64_t n_seq = state->ne[1];
    return (struct rwkv){operand->ne[0], operand->ne[1], operand->ne[2], n_seq, n_seq ? operand->ne[2] / n_seq : 0};
}

// operands: the sources that have one row per head and token.
static inline enum err rwkv_infer(const char *op, const struct ggml_tensor *t, int n_operand, const char *const *names,
                                  const struct ggml_tensor *state, struct op_shape *shape) {
    const struct rwkv p = rwkv_of(t->src[0], state);
    for (int i = 0; i < n_operand; i++) {
        TRY(recur_check_contiguous(op, names[i], t->src[i]));
        TRY(recur_check_shape(op, names[i], t->src[i], p.n, p.n_head, p.n_token, 1));
    }
    TRY(recur_check_contiguous(op, "state", state));
    if (p.n_seq < 1 || p.n_token % p.n_seq != 0)
        return err_set(ERR_INVALID, "%s: %lld tokens do not divide by %lld sequences", op, (long long) p.n_token,
                       (long long) p.n_seq);
    TRY(recur_check_shape(op, "state", state, p.n * p.n * p.n_head, p.n_seq, 1, 1));
    *shape = (struct op_shape){.type = GGML_TYPE_F32, .ne = {p.n * p.n_head, p.n_token + p.n * p.n_seq, 1, 1}};
    return ERR_OK;
}

// First state value of head `at` (sequence * n_head + head) in the result.
static inline float *rwkv_state(const struct ggml_tensor *t, const struct rwkv *p, int64_t at) {
    return (float *) t->data + p->n * p->n_head * p->n_token + at * p->n * p->n;
}
