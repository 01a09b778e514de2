// GATED_LINEAR_ATTN: S = diag(g) S + k v^T, y = scale * q S (Yang et al. 2023, arXiv 2312.06635).
#include "ops/rwkv_linear_int.h"

enum { K_, V, Q, G, STATE };

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    static const char *const names[] = {"k", "v", "q", "g"};
    return rwkv_infer("gated_linear_attn", t, 4, names, t->src[STATE], shape);
}

static void run(struct task *k, struct ggml_tensor *t) {
    rwkv_linear_run(
        k, t,
        &(struct rwkv_linear){t->src[K_], t->src[V], t->src[Q], NULL, t->src[G], t->src[STATE], tensor_param_f32(t, 0)});
}

struct ggml_tensor *ggml_gated_linear_attn(struct ggml_context *ctx, struct ggml_tensor *k, struct ggml_tensor *v,
                                           struct ggml_tensor *q, struct ggml_tensor *g, struct ggml_tensor *state,
                                           float scale) {
    struct ggml_tensor *src[] = {k, v, q, g, state};
    int32_t params[1];
    memcpy(params, &scale, sizeof scale);
    return op_build(ctx, GGML_OP_GATED_LINEAR_ATTN, false, params, 1, src, 5);
}

const struct op op_gated_linear_attn = {.id = GGML_OP_GATED_LINEAR_ATTN,
                                        .name = "GATED_LINEAR_ATTN",
                                        .symbol = "gated_linear_attn(k, v, q, gate, s)",
                                        .n_src = 5,
                                        .infer = infer,
                                        .run = run};
