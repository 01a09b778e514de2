// DSV4_HC_PRE: the input of a branch under hyper-connections, a weighted sum of the residual streams: with one weight per
// stream and token, or gated, each value of each stream by the sigmoid of its own gate.
#include <string.h>

#include "kern/recur.h"
#include "ops/recur_int.h"

enum { GATED, SCALE };

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *x = t->src[0], *w = t->src[1];
    TRY(recur_check_rows("dsv4_hc_pre", "x", x));
    if (x->ne[3] != 1)
        return err_set(ERR_INVALID, "dsv4_hc_pre: x must be [n_embd, n_stream, n_token]; its ne[3] is %lld",
                       (long long) x->ne[3]);
    if (tensor_param_i32(t, GATED)) {
        TRY(recur_check_contiguous("dsv4_hc_pre_gated", "gate", w));
        if (ggml_nelements(w) != ggml_nelements(x))
            return err_set(ERR_INVALID, "dsv4_hc_pre_gated: %lld gates for %lld values", (long long) ggml_nelements(w),
                           (long long) ggml_nelements(x));
    } else {
        TRY(recur_check_rows("dsv4_hc_pre", "weights", w));
        TRY(recur_check_shape("dsv4_hc_pre", "weights", w, x->ne[1], x->ne[2], 1, 1));
    }
    *shape = (struct op_shape){.type = GGML_TYPE_F32, .ne = {x->ne[0], x->ne[2], 1, 1}};
    return ERR_OK;
}

static void run(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *x = t->src[0], *w = t->src[1];
    const int64_t n = x->ne[0];
    int64_t i0, i1;
    task_range(k, x->ne[2], &i0, &i1);
    for (int64_t i = i0; i < i1; i++) {
        float *y = recur_at(t, i, 0, 0);
        if (tensor_param_i32(t, GATED)) {
            memset(y, 0, (size_t) n * sizeof(float));
            for (int64_t s = 0; s < x->ne[1]; s++)
                kern_recur()->gated(recur_at(x, s, i, 0), (const float *) w->data + (i * x->ne[1] + s) * n,
                                    tensor_param_f32(t, SCALE), y, n);
        } else {
            kern_recur()->weighted(recur_at(x, 0, i, 0), recur_step(x, 1), recur_at(w, i, 0, 0), 1, x->ne[1], y, n, false);
        }
    }
}

static struct ggml_tensor *build(struct ggml_context *ctx, struct ggml_tensor *x, struct ggml_tensor *w, bool gated,
                                 float scale) {
    struct ggml_tensor *src[] = {x, w};
    int32_t params[2] = {[GATED] = gated};
    memcpy(&params[SCALE], &scale, sizeof scale);
    return op_build(ctx, GGML_OP_DSV4_HC_PRE, false, params, 2, src, 2);
}

struct ggml_tensor *ggml_dsv4_hc_pre(struct ggml_context *ctx, struct ggml_tensor *x, struct ggml_tensor *weights) {
    return build(ctx, x, weights, false, 1.0f);
}

struct ggml_tensor *ggml_dsv4_hc_pre_gated(struct ggml_context *ctx, struct ggml_tensor *x, struct ggml_tensor *gate,
                                           float scale) {
    return build(ctx, x, gate, true, scale);
}

const struct op op_dsv4_hc_pre = {
    .id = GGML_OP_DSV4_HC_PRE, .name = "DSV4_HC_PRE", .symbol = "dsv4_hc_pre(x)", .n_src = 2, .infer = infer, .run = run};
