// NORM, RMS_NORM, L2_NORM: rows (dimension 0) brought to unit variance, mean square or length. RMS_NORM_BACK: the gradient of
// RMS_NORM. GROUP_NORM: the same as NORM over groups of channels (dimension 2). F32, F16 and BF16 of any layout.
// op_params: [0] eps; GROUP_NORM: [0] number of groups, [1] eps.
#include "ops/backward.h"
#include "ops/row.h"
#include "kern/norm.h"

#include <math.h>

static enum err check_eps(const struct ggml_tensor *t, float eps) {
    if (!(eps >= 0.0f)) return err_set(ERR_INVALID, "%s: eps is %g, it must not be negative", op_what(t), (double) eps);
    return ERR_OK;
}

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check_float(t, 0));
    TRY(check_eps(t, tensor_param_f32(t, 0)));
    return shape_like(t->src[0], t->src[0]->type, shape);
}

// Rows that are not floats in one piece are decoded to scratch, computed there and encoded.
static size_t scratch(const struct ggml_tensor *t, int n_threads) {
    return row_direct(t) && row_direct(t->src[0]) ? 0 : row_scratch_bytes(t->ne[0], 1, n_threads);
}

static int threads(const struct ggml_tensor *t, int n_threads) {
    const int64_t rows = ggml_nrows(t);
    return row_threads(ggml_nelements(t), 8192, rows < n_threads ? (int) rows : n_threads);
}

enum kind { LAYER, RMS, L2 };

static void normalize(enum kind kind, int64_t n, float *y, const float *x, float eps) {
    if (kind == LAYER)
        kern_norm()->layer(n, y, x, eps);
    else if (kind == RMS)
        kern_norm()->rms(n, y, x, NULL, eps);
    else
        kern_norm()->l2(n, y, x, eps);
}

static void rows(struct task *k, struct ggml_tensor *t, enum kind kind) {
    const struct ggml_tensor *a = t->src[0];
    float *buf = scratch(t, 1) ? row_scratch(k, t->ne[0], 1, 0) : NULL;
    const float eps = tensor_param_f32(t, 0);
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    int64_t i1, i2, i3;
    if (r0 < r1) row_split(t, r0, &i1, &i2, &i3);
    for (int64_t r = r0; r < r1; r++, row_step(t->ne, &i1, &i2, &i3)) {
        char *row = row_at(t, i1, i2, i3);
        float *y = row_target(t, row, 0, buf);
        normalize(kind, t->ne[0], y, row_read(a, row_at(a, i1, i2, i3), 0, t->ne[0], buf), eps);
        row_write(t, row, 0, t->ne[0], y);
    }
}

static void run_layer(struct task *k, struct ggml_tensor *t) { rows(k, t, LAYER); }
static void run_rms(struct task *k, struct ggml_tensor *t) { rows(k, t, RMS); }
static void run_l2(struct task *k, struct ggml_tensor *t) { rows(k, t, L2); }

// ---- RMS_NORM_BACK: src[0] the gradient, src[1] the input -----------------------------------------------------------

static enum err infer_back(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check_float(t, 1));
    TRY(check_same_shape(t, 0, 1));
    return infer(t, shape);
}

static size_t scratch_back(const struct ggml_tensor *t, int n_threads) { return row_scratch_bytes(t->ne[0], 2, n_threads); }

static void run_rms_back(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *dy = t->src[0], *x = t->src[1];
    float *b0 = row_scratch(k, t->ne[0], 2, 0), *b1 = row_scratch(k, t->ne[0], 2, 1);
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        char *row = row_of(t, r);
        float *y = row_target(t, row, 0, b0);
        const float *g = row_read(dy, row_of(dy, r), 0, t->ne[0], b0);
        kern_norm()->rms_back(t->ne[0], y, g, row_read(x, row_of(x, r), 0, t->ne[0], b1), tensor_param_f32(t, 0));
        row_write(t, row, 0, t->ne[0], y);
    }
}

// ---- GROUP_NORM -----------------------------------------------------------------------------------------------------

static enum err infer_group(const struct ggml_tensor *t, struct op_shape *shape) {
    const int32_t groups = tensor_param_i32(t, 0);
    if (groups < 1) return err_set(ERR_INVALID, "GROUP_NORM: %d groups", (int) groups);
    TRY(check_float(t, 0));
    TRY(check_eps(t, tensor_param_f32(t, 1)));
    return shape_like(t->src[0], t->src[0]->type, shape);
}

// Channels [c0, c1) of image i3. The sums of rows are in 32 lanes; those of a group are added in the order of its rows.
static void group(const struct ggml_tensor *t, int64_t i3, int64_t c0, int64_t c1, float *buf) {
    const struct ggml_tensor *a = t->src[0];
    const int64_t n = t->ne[0];
    const double count = (double) (n * t->ne[1] * (c1 - c0));
    double sum = 0.0, dev = 0.0;
    for (int64_t c = c0; c < c1; c++)
        for (int64_t i1 = 0; i1 < t->ne[1]; i1++)
            sum += (double) kern_norm()->sum(n, row_read(a, row_at(a, i1, c, i3), 0, n, buf));
    const float mean = (float) (sum / count);
    for (int64_t c = c0; c < c1; c++)
        for (int64_t i1 = 0; i1 < t->ne[1]; i1++)
            dev += (double) kern_norm()->sum_dev(n, row_read(a, row_at(a, i1, c, i3), 0, n, buf), mean);
    const float s = 1.0f / sqrtf((float) (dev / count) + tensor_param_f32(t, 1));
    for (int64_t c = c0; c < c1; c++) {
        for (int64_t i1 = 0; i1 < t->ne[1]; i1++) {
            char *row = row_at(t, i1, c, i3);
            float *y = row_target(t, row, 0, buf);
            kern_norm()->shift_scale(n, y, row_read(a, row_at(a, i1, c, i3), 0, n, buf), -mean, s);
            row_write(t, row, 0, n, y);
        }
    }
}

// Channels of a group, and how many groups have any: more groups than channels leave the rest empty.
static int64_t group_size(const struct ggml_tensor *t) {
    const int64_t groups = tensor_param_i32(t, 0), per = (t->ne[2] + groups - 1) / groups;
    return per > 0 ? per : 1;
}
static int64_t group_count(const struct ggml_tensor *t) { return (t->ne[2] + group_size(t) - 1) / group_size(t); }

static void run_group(struct task *k, struct ggml_tensor *t) {
    const int64_t groups = group_count(t), per = group_size(t);
    float *buf = scratch(t, 1) ? row_scratch(k, t->ne[0], 1, 0) : NULL;
    int64_t g0, g1;
    task_range(k, groups * t->ne[3], &g0, &g1);
    for (int64_t g = g0; g < g1; g++) {
        const int64_t c0 = g % groups * per, c1 = c0 + per < t->ne[2] ? c0 + per : t->ne[2];
        group(t, g / groups, c0, c1, buf);
    }
}

static int threads_group(const struct ggml_tensor *t, int n_threads) {
    const int64_t groups = group_count(t) * t->ne[3];
    return row_threads(ggml_nelements(t), 8192, groups < n_threads ? (int) groups : n_threads);
}

// ---- builders -------------------------------------------------------------------------------------------------------

static int32_t bits(float f) {
    int32_t i;
    memcpy(&i, &f, sizeof i);
    return i;
}

#define BUILD(name, ID)                                                                                                     \
    struct ggml_tensor *ggml_##name(struct ggml_context *ctx, struct ggml_tensor *a, float eps) {                           \
        return op_build(ctx, GGML_OP_##ID, false, &(int32_t){bits(eps)}, 1, &a, 1);                                         \
    }                                                                                                                       \
    struct ggml_tensor *ggml_##name##_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float eps) {                 \
        return op_build(ctx, GGML_OP_##ID, true, &(int32_t){bits(eps)}, 1, &a, 1);                                          \
    }
BUILD(norm, NORM)
BUILD(rms_norm, RMS_NORM)
BUILD(l2_norm, L2_NORM)

struct ggml_tensor *ggml_rms_norm_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, float eps) {
    return op_build(ctx, GGML_OP_RMS_NORM_BACK, false, &(int32_t){bits(eps)}, 1, (struct ggml_tensor *[]){a, b}, 2);
}

struct ggml_tensor *ggml_group_norm(struct ggml_context *ctx, struct ggml_tensor *a, int n_groups, float eps) {
    return op_build(ctx, GGML_OP_GROUP_NORM, false, (int32_t[]){n_groups, bits(eps)}, 2, &a, 1);
}
struct ggml_tensor *ggml_group_norm_inplace(struct ggml_context *ctx, struct ggml_tensor *a, int n_groups, float eps) {
    return op_build(ctx, GGML_OP_GROUP_NORM, true, (int32_t[]){n_groups, bits(eps)}, 2, &a, 1);
}

// ---- gradients ------------------------------------------------------------------------------------------------------

static enum err back_rms(struct backward *b, struct ggml_tensor *t) {
    return backward_add(b, t->src[0], ggml_rms_norm_back(b->ctx, backward_grad(b, t), t->src[0], tensor_param_f32(t, 0)));
}

// Rows of x brought to y = (x - mean) / sd: (g - mean(g) - y mean(g y)) / sd
static struct ggml_tensor *layer_grad(struct ggml_context *ctx, struct ggml_tensor *x, struct ggml_tensor *y,
                                      struct ggml_tensor *g, float eps) {
    struct ggml_tensor *variance = ggml_mean(ctx, ggml_sqr(ctx, ggml_sub(ctx, x, ggml_mean(ctx, x))));
    struct ggml_tensor *sd = ggml_sqrt(ctx, ggml_scale_bias(ctx, variance, 1.0f, eps));
    struct ggml_tensor *along = ggml_mul(ctx, y, ggml_mean(ctx, ggml_mul(ctx, g, y)));
    return ggml_div(ctx, ggml_sub(ctx, ggml_sub(ctx, g, ggml_mean(ctx, g)), along), sd);
}

static enum err back_layer(struct backward *b, struct ggml_tensor *t) {
    return backward_add(b, t->src[0], layer_grad(b->ctx, t->src[0], t, backward_grad(b, t), tensor_param_f32(t, 0)));
}

// y = x / r, r = max(length, eps): (g - y sum(g y)) / r, without the second term where eps is the larger
static enum err back_l2(struct backward *b, struct ggml_tensor *t) {
    const float eps = tensor_param_f32(t, 0);
    struct ggml_context *ctx = b->ctx;
    struct ggml_tensor *g = backward_grad(b, t), *length = ggml_sqrt(ctx, ggml_sum_rows(ctx, ggml_sqr(ctx, t->src[0])));
    struct ggml_tensor *longer = ggml_step(ctx, ggml_scale_bias(ctx, length, 1.0f, -eps));
    struct ggml_tensor *along = ggml_mul(ctx, t, ggml_mul(ctx, ggml_sum_rows(ctx, ggml_mul(ctx, g, t)), longer));
    struct ggml_tensor *r = ggml_clamp(ctx, length, eps, INFINITY);
    return backward_add(b, t->src[0], ggml_div(ctx, ggml_sub(ctx, g, along), r));
}

// As NORM, with each group as one row.
static enum err back_group(struct backward *b, struct ggml_tensor *t) {
    const int64_t groups = tensor_param_i32(t, 0);
    if (t->ne[2] % groups != 0) {
        return err_set(ERR_UNSUPPORTED, "gradient of GROUP_NORM: %lld channels do not divide into %lld groups",
                       (long long) t->ne[2], (long long) groups);
    }
    struct ggml_context *ctx = b->ctx;
    const int64_t n = t->ne[0] * t->ne[1] * (t->ne[2] / groups);
    struct ggml_tensor *x = ggml_cont_3d(ctx, t->src[0], n, groups, t->ne[3]);
    struct ggml_tensor *y = ggml_cont_3d(ctx, t, n, groups, t->ne[3]);
    struct ggml_tensor *g = ggml_reshape_3d(ctx, backward_grad(b, t), n, groups, t->ne[3]);
    return backward_add(b, t->src[0], ggml_reshape(ctx, layer_grad(ctx, x, y, g, tensor_param_f32(t, 1)), t));
}

const struct op op_norm = {.id = GGML_OP_NORM,
                           .name = "NORM",
                           .symbol = "norm(x)",
                           .n_src = 1,
                           .flags = OP_INPLACE_WIDE,
                           .infer = infer,
                           .scratch = scratch,
                           .run = run_layer,
                           .threads = threads,
                           .backward = back_layer};
const struct op op_rms_norm = {.id = GGML_OP_RMS_NORM,
                               .name = "RMS_NORM",
                               .symbol = "rms_norm(x)",
                               .n_src = 1,
                               .flags = OP_INPLACE,
                               .infer = infer,
                               .scratch = scratch,
                               .run = run_rms,
                               .threads = threads,
                               .backward = back_rms};
const struct op op_l2_norm = {.id = GGML_OP_L2_NORM,
                              .name = "L2_NORM",
                              .symbol = "l2_norm(x)",
                              .n_src = 1,
                              .flags = OP_INPLACE_WIDE,
                              .infer = infer,
                              .scratch = scratch,
                              .run = run_l2,
                              .threads = threads,
                              .backward = back_l2};
const struct op op_rms_norm_back = {.id = GGML_OP_RMS_NORM_BACK,
                                    .name = "RMS_NORM_BACK",
                                    .symbol = "rms_norm_back(x)",
                                    .n_src = 2,
                                    .flags = OP_INPLACE,
                                    .infer = infer_back,
                                    .scratch = scratch_back,
                                    .run = run_rms_back,
                                    .threads = threads};
const struct op op_group_norm = {.id = GGML_OP_GROUP_NORM,
                                 .name = "GROUP_NORM",
                                 .symbol = "group_norm(x)",
                                 .n_src = 1,
                                 .flags = OP_INPLACE_WIDE,
                                 .infer = infer_group,
                                 .scratch = scratch,
                                 .run = run_group,
                                 .threads = threads_group,
                                 .backward = back_group};
