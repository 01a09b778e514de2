// SSM_CONV: the causal convolution over time in front of a state-space scan, one filter per channel.
#include "kern/recur.h"
#include "ops/recur_int.h"

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *x = t->src[0], *w = t->src[1];
    TRY(recur_check_rows("ssm_conv", "sx", x));
    TRY(recur_check_rows("ssm_conv", "c", w));
    if (x->ne[3] != 1 || w->ne[2] != 1 || w->ne[3] != 1)
        return err_set(ERR_INVALID, "ssm_conv: sx must have 3 dimensions and c 2; ne[3] of sx is %lld, ne[2] of c is %lld",
                       (long long) x->ne[3], (long long) w->ne[2]);
    if (x->ne[1] != w->ne[1])
        return err_set(ERR_INVALID, "ssm_conv: sx has %lld channels, c has %lld", (long long) x->ne[1],
                       (long long) w->ne[1]);
    if (w->ne[0] < 1 || x->ne[0] < w->ne[0] - 1)
        return err_set(ERR_INVALID, "ssm_conv: sx holds %lld positions; a filter of %lld needs at least %lld",
                       (long long) x->ne[0], (long long) w->ne[0], (long long) w->ne[0] - 1);
    *shape = (struct op_shape){.type = GGML_TYPE_F32, .ne = {x->ne[1], x->ne[0] - w->ne[0] + 1, x->ne[2], 1}};
    return ERR_OK;
}

static void run(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *x = t->src[0], *w = t->src[1];
    int64_t i0, i1;
    task_range(k, x->ne[1] * x->ne[2], &i0, &i1);
    for (int64_t i = i0; i < i1; i++) {
        const int64_t c = i % x->ne[1], s = i / x->ne[1];
        kern_recur()->conv(&(struct recur_conv){.x = recur_at(x, c, s, 0),
                                                .w = recur_at(w, c, 0, 0),
                                                .y = recur_at(t, 0, s, 0) + c,
                                                .width = w->ne[0],
                                                .n_token = t->ne[1],
                                                .y_step = t->ne[0]});
    }
}

struct ggml_tensor *ggml_ssm_conv(struct ggml_context *ctx, struct ggml_tensor *sx, struct ggml_tensor *c) {
    struct ggml_tensor *src[] = {sx, c};
    return op_build(ctx, GGML_OP_SSM_CONV, false, NULL, 0, src, 2);
}

const struct op op_ssm_conv = {
    .id = GGML_OP_SSM_CONV, .name = "SSM_CONV", .symbol = "ssm_conv(x)", .n_src = 2, .infer = infer, .run = run};
