// OPT_STEP_ADAMW, OPT_STEP_SGD: one step of an optimizer, which writes the new parameters over the old ones.
//   a: the parameters, F32, marked by ggml_set_param; grad, m, v: of the same shape, F32; results: a view of a
//   adamw_params [7]: alpha, beta1, beta2, eps, weight decay, 1 / (1 - beta1^t), 1 / (1 - beta2^t)
//   sgd_params [2]: alpha, weight decay
#include "ops/row.h"
#include "kern/train.h"

static enum err check(const struct ggml_tensor *t, int n_like, int64_t n_params) {
    if (!(t->src[0]->flags & GGML_TENSOR_FLAG_PARAM)) {
        return err_set(ERR_INVALID, "%s: %s is not marked as a parameter; call ggml_set_param", op_what(t), t->src[0]->name);
    }
    for (int i = 0; i < n_like; i++) {
        TRY(check_type(t, i, GGML_TYPE_F32));
        if (i > 0) TRY(check_same_shape(t, 0, i));
        if (!ggml_is_contiguous_rows(t->src[i]))
            return err_set(ERR_INVALID, "%s: source %d has rows with gaps", op_what(t), i);
    }
    const struct ggml_tensor *p = t->src[n_like];
    TRY(check_type(t, n_like, GGML_TYPE_F32));
    TRY(check_contiguous(t, n_like));
    if (ggml_nelements(p) == n_params) return ERR_OK;
    return err_set(ERR_INVALID, "%s: %lld optimizer parameters, %lld needed", op_what(t), (long long) ggml_nelements(p),
                   (long long) n_params);
}

static enum err infer_adamw(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check(t, 4, 7));
    return shape_like(t->src[0], GGML_TYPE_F32, shape);
}

static enum err infer_sgd(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check(t, 2, 2));
    return shape_like(t->src[0], GGML_TYPE_F32, shape);
}

static float *row_f32(const struct ggml_tensor *t, int64_t r) { return (float *) (void *) row_of(t, r); }

static void run_adamw(struct task *k, struct ggml_tensor *t) {
    struct ggml_tensor *const *s = t->src;
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        kern_train()->adamw(t->ne[0], row_f32(s[0], r), row_f32(s[1], r), row_f32(s[2], r), row_f32(s[3], r), s[4]->data);
    }
}

static void run_sgd(struct task *k, struct ggml_tensor *t) {
    struct ggml_tensor *const *s = t->src;
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) kern_train()->sgd(t->ne[0], row_f32(s[0], r), row_f32(s[1], r), s[2]->data);
}

struct ggml_tensor *ggml_opt_step_adamw(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *grad,
                                        struct ggml_tensor *m, struct ggml_tensor *v, struct ggml_tensor *adamw_params) {
    return op_build(ctx, GGML_OP_OPT_STEP_ADAMW, true, NULL, 0, (struct ggml_tensor *[]){a, grad, m, v, adamw_params}, 5);
}

struct ggml_tensor *ggml_opt_step_sgd(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *grad,
                                      struct ggml_tensor *sgd_params) {
    return op_build(ctx, GGML_OP_OPT_STEP_SGD, true, NULL, 0, (struct ggml_tensor *[]){a, grad, sgd_params}, 3);
}

const struct op op_opt_step_adamw = {.id = GGML_OP_OPT_STEP_ADAMW,
                                     .name = "OPT_STEP_ADAMW",
                                     .symbol = "adamw(x)",
                                     .n_src = 5,
                                     .infer = infer_adamw,
                                     .run = run_adamw,
                                     .threads = row_threads_map};
const struct op op_opt_step_sgd = {.id = GGML_OP_OPT_STEP_SGD,
                                   .name = "OPT_STEP_SGD",
                                   .symbol = "sgd(x)",
                                   .n_src = 3,
                                   .infer = infer_sgd,
                                   .run = run_sgd,
                                   .threads = row_threads_map};
