// DSV4_HC_COMB: the matrix by which hyper-connections mix their n residual streams, from a token's (2 + n) n logits: those
// from index 2 n on, made doubly stochastic by Sinkhorn's iteration (Xie et al. 2025, arXiv 2512.24880).
#include <string.h>

#include "kern/recur.h"
#include "ops/recur_int.h"

enum { EPS, N_ITER };

static int64_t streams(const struct ggml_tensor *mixes) {
    int64_t n = 1;
    while ((2 + n) * n < mixes->ne[0]) n++;
    return n;
}

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *mixes = t->src[0], *scale = t->src[1], *base = t->src[2];
    TRY(recur_check_rows("dsv4_hc_comb", "mixes", mixes));
    TRY(recur_check_contiguous("dsv4_hc_comb", "scale", scale));
    TRY(recur_check_contiguous("dsv4_hc_comb", "base", base));
    const int64_t n = mixes->ne[0] <= 1 << 16 ? streams(mixes) : 0;
    if ((2 + n) * n != mixes->ne[0] || mixes->ne[2] != 1 || mixes->ne[3] != 1)
        return err_set(ERR_INVALID,
                       "dsv4_hc_comb: mixes must be [(2 + n) n, n_token] for n streams; they are [%lld, %lld, %lld]",
                       (long long) mixes->ne[0], (long long) mixes->ne[1], (long long) mixes->ne[2]);
    if (ggml_nelements(scale) != 3 || ggml_nelements(base) != mixes->ne[0])
        return err_set(ERR_INVALID, "dsv4_hc_comb: scale has %lld values, 3 are needed; base has %lld, %lld are needed",
                       (long long) ggml_nelements(scale), (long long) ggml_nelements(base), (long long) mixes->ne[0]);
    if (tensor_param_i32(t, N_ITER) < 1)
        return err_set(ERR_INVALID, "dsv4_hc_comb: %d iterations asked for; at least 1 is needed",
                       tensor_param_i32(t, N_ITER));
    *shape = (struct op_shape){.type = GGML_TYPE_F32, .ne = {n, n, mixes->ne[1], 1}};
    return ERR_OK;
}

static void run(struct task *k, struct ggml_tensor *t) {
    const int64_t n = t->ne[0];
    const float *scale = (const float *) t->src[1]->data, *base = (const float *) t->src[2]->data;
    int64_t i0, i1;
    task_range(k, t->ne[2], &i0, &i1);
    for (int64_t i = i0; i < i1; i++)
        kern_recur()->sinkhorn(recur_at(t->src[0], i, 0, 0) + 2 * n, base + 2 * n, scale[2], tensor_param_f32(t, EPS),
                               (int) n, tensor_param_i32(t, N_ITER), recur_at(t, 0, i, 0));
}

struct ggml_tensor *ggml_dsv4_hc_comb(struct ggml_context *ctx, struct ggml_tensor *mixes, struct ggml_tensor *scale,
                                      struct ggml_tensor *base, float eps, int32_t n_iter) {
    struct ggml_tensor *src[] = {mixes, scale, base};
    int32_t params[2] = {[N_ITER] = n_iter};
    memcpy(&params[EPS], &eps, sizeof eps);
    return op_build(ctx, GGML_OP_DSV4_HC_COMB, false, params, 2, src, 3);
}

const struct op op_dsv4_hc_comb = {
    .id = GGML_OP_DSV4_HC_COMB, .name = "DSV4_HC_COMB", .symbol = "dsv4_hc_comb(x)", .n_src = 3, .infer = infer, .run = run};
