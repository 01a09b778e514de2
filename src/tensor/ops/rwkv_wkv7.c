// RWKV_WKV7: the time mixing of RWKV-7 (Peng et al. 2025, arXiv 2503.14456): S = S diag(w) + (S a) b^T + v k^T, y = S r.
#include "kern/recur.h"
#include "ops/rwkv_int.h"

enum { R, W, K_, V, A, B, STATE };

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    static const char *const names[] = {"r", "w", "k", "v", "a", "b"};
    return rwkv_infer("rwkv_wkv7", t, 6, names, t->src[STATE], shape);
}

enum { PART = 16 };  // rows of a state that are one piece of work

static void run(struct task *k, struct ggml_tensor *t) {
    struct ggml_tensor *const *src = t->src;
    const struct rwkv p = rwkv_of(src[R], src[STATE]);
    const int64_t n = p.n, n_part = (n + PART - 1) / PART;
    int64_t i0, i1;
    task_range(k, p.n_seq * p.n_head * n_part, &i0, &i1);
    for (int64_t i = i0; i < i1; i++) {
        const int64_t at = i / n_part, row = i % n_part * PART, n_row = n - row < PART ? n - row : PART;
        float *state = rwkv_state(t, &p, at) + row * n;
        memcpy(state, (const float *) src[STATE]->data + (at * n + row) * n, (size_t) (n_row * n) * sizeof(float));
        const int64_t o = (at / p.n_head * p.seq_token * p.n_head + at % p.n_head) * n;
        const struct recur_wkv7 x = {
            .r = (const float *) src[R]->data + o,
            .w = (const float *) src[W]->data + o,
            .k = (const float *) src[K_]->data + o,
            .v = (const float *) src[V]->data + o + row,
            .a = (const float *) src[A]->data + o,
            .b = (const float *) src[B]->data + o,
            .y = (float *) t->data + o + row,
            .state = state,
            .n = n,
            .n_row = n_row,
            .n_token = p.seq_token,
            .step = p.n_head * n,
        };
        kern_recur()->wkv7(&x);
    }
}

struct ggml_tensor *ggml_rwkv_wkv7(struct ggml_context *ctx, struct ggml_tensor *r, struct ggml_tensor *w,
                                   struct ggml_tensor *k, struct ggml_tensor *v, struct ggml_tensor *a,
                                   struct ggml_tensor *b, struct ggml_tensor *state) {
    struct ggml_tensor *src[] = {r, w, k, v, a, b, state};
    return op_build(ctx, GGML_OP_RWKV_WKV7, false, NULL, 0, src, 7);
}

const struct op op_rwkv_wkv7 = {.id = GGML_OP_RWKV_WKV7,
                                .name = "RWKV_WKV7",
                                .symbol = "rwkv_wkv7(r, w, k, v, a, b, s)",
                                .n_src = 7,
                                .infer = infer,
                                .run = run};
