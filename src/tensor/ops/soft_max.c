// SOFT_MAX over rows of a * scale + slope * mask, with an optional extra logit per head (sink) in the denominator. A row whose logits
// are all -infinity gives zeros. SOFT_MAX_BACK: its gradient. F32, F16 and BF16 of any layout.
//   a [n, rows, heads, batch]; mask [n, >= rows, heads / r2, batch / r3], F16 or F32; sinks [heads] F32
// op_params: [0] scale, [1] max_bias: ALiBi slopes per head when > 0 (Press et al. 2021), else 1.
#include "ops/backward.h"
#include "ops/row.h"
#include "kern/softmax.h"

#include <math.h>

static enum err check_mask(const struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0], *m = t->src[1];
    if (m->type != GGML_TYPE_F16 && m->type != GGML_TYPE_F32)
        return err_set(ERR_INVALID, "SOFT_MAX: the mask is %s, it must be F16 or F32", ggml_type_name(m->type));
    if (m->ne[0] != a->ne[0] || m->ne[1] < a->ne[1] || m->ne[2] < 1 || m->ne[3] < 1 || a->ne[2] % m->ne[2] != 0 ||
        a->ne[3] % m->ne[3] != 0)
        return err_set(ERR_INVALID, "SOFT_MAX: the mask " SHAPE_FMT " does not fit " SHAPE_FMT, SHAPE_ARG(m), SHAPE_ARG(a));
    return ERR_OK;
}

static enum err check_sinks(const struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0], *s = t->src[2];
    TRY(check_type(t, 2, GGML_TYPE_F32));
    if (s->ne[0] != a->ne[2] || ggml_nelements(s) != a->ne[2])
        return err_set(ERR_INVALID, "SOFT_MAX: " SHAPE_FMT " sinks for %lld heads", SHAPE_ARG(s), (long long) a->ne[2]);
    return ERR_OK;
}

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check_float(t, 0));
    if (tensor_param_f32(t, 1) > 0.0f && !t->src[1])
        return err_set(ERR_INVALID, "SOFT_MAX: max_bias %g needs a mask", (double) tensor_param_f32(t, 1));
    if (t->src[1]) TRY(check_mask(t));
    if (t->src[2]) TRY(check_sinks(t));
    return shape_like(t->src[0], t->src[0]->type, shape);
}

static size_t scratch(const struct ggml_tensor *t, int n_threads) { return row_scratch_bytes(t->ne[0], 2, n_threads); }

static int threads(const struct ggml_tensor *t, int n_threads) {
    const int64_t rows = ggml_nrows(t);
    return row_threads(ggml_nelements(t), 4096, rows < n_threads ? (int) rows : n_threads);
}

static float alibi_slope(float max_bias, int64_t heads, int64_t h) {
    if (!(max_bias > 0.0f)) return 1.0f;
    int64_t n = 1;
    while (n * 2 <= heads) n *= 2;
    const double e = h < n ? -(double) max_bias * (double) (h + 1) / (double) n
                           : -(double) max_bias / 2.0 * (double) (2 * (h - n) + 1) / (double) n;
    return (float) exp2(e);
}

static void soft_max_row(const struct ggml_tensor *t, int64_t i1, int64_t i2, int64_t i3, float *buf, float *mask_buf) {
    const struct ggml_tensor *a = t->src[0], *m = t->src[1], *s = t->src[2];
    const int64_t n = t->ne[0];
    const struct kern_softmax *kern = kern_softmax();
    char *row = row_at(t, i1, i2, i3);
    float *y = row_target(t, row, 0, buf);
    const float *x = row_read(a, row_at(a, i1, i2, i3), 0, n, buf);
    const float *mask = m ? row_read(m, row_at(m, i1, i2 % m->ne[2], i3 % m->ne[3]), 0, n, mask_buf) : NULL;
    float max = kern->logits(n, y, x, tensor_param_f32(t, 0), mask, alibi_slope(tensor_param_f32(t, 1), t->ne[2], i2));
    float sink = -INFINITY;
    if (s) {
        memcpy(&sink, (const char *) s->data + (size_t) i2 * s->nb[0], sizeof sink);
        if (sink > max) max = sink;
    }
    if (max == -INFINITY) {
        memset(y, 0, (size_t) n * sizeof(float));
    } else {
        float sum = kern->exp_sum(n, y, y, max);
        if (s) sum += kern->exp_sum(1, &sink, &sink, max);
        kern->scale(n, y, 1.0f / sum);
    }
    row_write(t, row, 0, n, y);
}

static void run(struct task *k, struct ggml_tensor *t) {
    float *buf = row_scratch(k, t->ne[0], 2, 0), *mask_buf = row_scratch(k, t->ne[0], 2, 1);
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        int64_t i1, i2, i3;
        row_split(t, r, &i1, &i2, &i3);
        soft_max_row(t, i1, i2, i3, buf, mask_buf);
    }
}

// ---- SOFT_MAX_BACK: src[0] the gradient, src[1] the result of SOFT_MAX ----------------------------------------------

static enum err infer_back(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check_float(t, 0));
    TRY(check_float(t, 1));
    TRY(check_same_shape(t, 0, 1));
    return shape_like(t->src[0], t->src[0]->type, shape);
}

static void run_back(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *dy = t->src[0], *y = t->src[1];
    float *b0 = row_scratch(k, t->ne[0], 2, 0), *b1 = row_scratch(k, t->ne[0], 2, 1);
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        char *row = row_of(t, r);
        float *dx = row_target(t, row, 0, b0);
        const float *g = row_read(dy, row_of(dy, r), 0, t->ne[0], b0);
        kern_softmax()->back(t->ne[0], dx, g, row_read(y, row_of(y, r), 0, t->ne[0], b1), tensor_param_f32(t, 0));
        row_write(t, row, 0, t->ne[0], dx);
    }
}

// ---- builders -------------------------------------------------------------------------------------------------------

static struct ggml_tensor *build(struct ggml_context *ctx, enum ggml_op id, bool inplace, struct ggml_tensor *a,
                                 struct ggml_tensor *b, float scale, float max_bias) {
    int32_t params[2];
    memcpy(params, (const float[2]){scale, max_bias}, sizeof params);
    return op_build(ctx, id, inplace, params, 2, (struct ggml_tensor *[]){a, b}, 2);
}

struct ggml_tensor *ggml_soft_max(struct ggml_context *ctx, struct ggml_tensor *a) {
    return build(ctx, GGML_OP_SOFT_MAX, false, a, NULL, 1.0f, 0.0f);
}
struct ggml_tensor *ggml_soft_max_inplace(struct ggml_context *ctx, struct ggml_tensor *a) {
    return build(ctx, GGML_OP_SOFT_MAX, true, a, NULL, 1.0f, 0.0f);
}
struct ggml_tensor *ggml_soft_max_ext(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *mask, float scale,
                                      float max_bias) {
    return build(ctx, GGML_OP_SOFT_MAX, false, a, mask, scale, max_bias);
}
struct ggml_tensor *ggml_soft_max_ext_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *mask,
                                              float scale, float max_bias) {
    return build(ctx, GGML_OP_SOFT_MAX, true, a, mask, scale, max_bias);
}
struct ggml_tensor *ggml_soft_max_ext_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                           float scale, float max_bias) {
    return build(ctx, GGML_OP_SOFT_MAX_BACK, false, a, b, scale, max_bias);
}
struct ggml_tensor *ggml_soft_max_ext_back_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                                   float scale, float max_bias) {
    return build(ctx, GGML_OP_SOFT_MAX_BACK, true, a, b, scale, max_bias);
}

void ggml_soft_max_add_sinks(struct ggml_tensor *a, struct ggml_tensor *sinks) {
    if (!a || ggml_is_error(a) || (sinks && ggml_is_error(sinks))) return;
    if (a->op != GGML_OP_SOFT_MAX) {
        (void) err_set(ERR_INVALID, "ggml_soft_max_add_sinks: the tensor is a %s, not a SOFT_MAX", ggml_op_name(a->op));
        return;
    }
    struct ggml_tensor *before = a->src[2];
    a->src[2] = sinks;
    if (sinks && check_sinks(a) != ERR_OK) a->src[2] = before;
}

// A sink takes its share of the probability but is no part of the row, so the rows' own formula holds with it as well.
static enum err backward(struct backward *b, struct ggml_tensor *t) {
    if (backward_wants(b, t->src[1]) || backward_wants(b, t->src[2])) {
        return err_set(ERR_UNSUPPORTED, "SOFT_MAX: there is no gradient with respect to the mask or the sinks");
    }
    if (!backward_wants(b, t->src[0])) return ERR_OK;
    return backward_add(
        b, t->src[0],
        ggml_soft_max_ext_back(b->ctx, backward_grad(b, t), t, tensor_param_f32(t, 0), tensor_param_f32(t, 1)));
}

const struct op op_soft_max = {.id = GGML_OP_SOFT_MAX,
                               .name = "SOFT_MAX",
                               .symbol = "soft_max(x)",
                               .n_src = 1,
                               .flags = OP_INPLACE,
                               .infer = infer,
                               .scratch = scratch,
                               .run = run,
                               .threads = threads,
                               .backward = backward};
const struct op op_soft_max_back = {.id = GGML_OP_SOFT_MAX_BACK,
                                    .name = "SOFT_MAX_BACK",
                                    .symbol = "soft_max_back(x)",
                                    .n_src = 2,
                                    .flags = OP_INPLACE,
                                    .infer = infer_back,
                                    .scratch = scratch,
                                    .run = run_back,
                                    .threads = threads};
