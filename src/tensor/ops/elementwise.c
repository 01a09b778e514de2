// Element-wise functions that are operations of their own: SQR, SQRT, LOG, SIN, COS, SCALE (with bias), CLAMP, LEAKY_RELU,
// and SILU_BACK. On F32, F16 and BF16 of any layout.
#include "ops/backward.h"
#include "ops/row.h"
#include "ops/slope.h"
#include "kern/binary.h"
#include "kern/unary.h"

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check_float(t, 0));
    return shape_like(t->src[0], t->src[0]->type, shape);
}

struct call {
    kern_unary_fn fn;
    const float *p;
};

static void apply(int64_t n, float *y, const float *const *x, const void *ctx) {
    const struct call *c = ctx;
    c->fn(n, y, x[0], c->p);
}

static void map(struct task *k, struct ggml_tensor *t, kern_unary_fn fn) {
    float p[2];
    memcpy(p, t->op_params, sizeof p);
    row_map(k, t, (const struct ggml_tensor *const *) t->src, 1, apply, &(struct call){fn, p});
}

#define RUN(name)                                                                                                           \
    static void run_##name(struct task *k, struct ggml_tensor *t) { map(k, t, kern_unary()->name); }
RUN(sqr)
RUN(sqrt)
RUN(log)
RUN(sin)
RUN(cos)
RUN(clamp)
RUN(leaky_relu)

static void run_scale(struct task *k, struct ggml_tensor *t) {
    map(k, t, tensor_param_f32(t, 1) == 0.0f ? kern_unary()->scale : kern_unary()->scale_bias);
}

// ---- SILU_BACK: src[0] the gradient, src[1] the input --------------------------------------------------------------

static enum err infer_silu_back(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check_float(t, 1));
    TRY(check_same_shape(t, 0, 1));
    return infer(t, shape);
}

static void apply_silu_back(int64_t n, float *y, const float *const *x, const void *ctx) {
    (void) ctx;
    kern_binary()->silu_back(n, y, x[0], x[1]);
}

static void run_silu_back(struct task *k, struct ggml_tensor *t) {
    row_map(k, t, (const struct ggml_tensor *const *) t->src, 2, apply_silu_back, NULL);
}

// ---- builders -----------------------------------------------------------------------------------------------------

#define BUILD(name, ID)                                                                                                     \
    struct ggml_tensor *ggml_##name(struct ggml_context *ctx, struct ggml_tensor *a) {                                      \
        return op_build(ctx, GGML_OP_##ID, false, NULL, 0, &a, 1);                                                          \
    }                                                                                                                       \
    struct ggml_tensor *ggml_##name##_inplace(struct ggml_context *ctx, struct ggml_tensor *a) {                            \
        return op_build(ctx, GGML_OP_##ID, true, NULL, 0, &a, 1);                                                           \
    }
BUILD(sqr, SQR)
BUILD(sqrt, SQRT)
BUILD(log, LOG)
BUILD(sin, SIN)
BUILD(cos, COS)

static struct ggml_tensor *build2(struct ggml_context *ctx, enum ggml_op id, bool inplace, struct ggml_tensor *a, float p0,
                                  float p1) {
    int32_t params[2];
    memcpy(params, (const float[2]){p0, p1}, sizeof params);
    return op_build(ctx, id, inplace, params, 2, &a, 1);
}

struct ggml_tensor *ggml_scale(struct ggml_context *ctx, struct ggml_tensor *a, float s) {
    return build2(ctx, GGML_OP_SCALE, false, a, s, 0.0f);
}
struct ggml_tensor *ggml_scale_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float s) {
    return build2(ctx, GGML_OP_SCALE, true, a, s, 0.0f);
}
struct ggml_tensor *ggml_scale_bias(struct ggml_context *ctx, struct ggml_tensor *a, float s, float b) {
    return build2(ctx, GGML_OP_SCALE, false, a, s, b);
}
struct ggml_tensor *ggml_scale_bias_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float s, float b) {
    return build2(ctx, GGML_OP_SCALE, true, a, s, b);
}
struct ggml_tensor *ggml_clamp(struct ggml_context *ctx, struct ggml_tensor *a, float min, float max) {
    return build2(ctx, GGML_OP_CLAMP, false, a, min, max);
}
struct ggml_tensor *ggml_clamp_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float min, float max) {
    return build2(ctx, GGML_OP_CLAMP, true, a, min, max);
}
struct ggml_tensor *ggml_leaky_relu(struct ggml_context *ctx, struct ggml_tensor *a, float negative_slope, bool inplace) {
    return build2(ctx, GGML_OP_LEAKY_RELU, inplace, a, negative_slope, 0.0f);
}
struct ggml_tensor *ggml_silu_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b) {
    return op_build(ctx, GGML_OP_SILU_BACK, false, NULL, 0, (struct ggml_tensor *[]){a, b}, 2);
}

// ---- gradients ------------------------------------------------------------------------------------------------------

#define TIMES(g, slope) backward_add(b, t->src[0], ggml_mul(b->ctx, (g), (slope)))

static enum err back_sqr(struct backward *b, struct ggml_tensor *t) {
    return TIMES(ggml_scale(b->ctx, backward_grad(b, t), 2.0f), t->src[0]);
}
static enum err back_sqrt(struct backward *b, struct ggml_tensor *t) {
    return backward_add(b, t->src[0], ggml_scale(b->ctx, ggml_div(b->ctx, backward_grad(b, t), t), 0.5f));
}
static enum err back_log(struct backward *b, struct ggml_tensor *t) {
    return backward_add(b, t->src[0], ggml_div(b->ctx, backward_grad(b, t), t->src[0]));
}
static enum err back_sin(struct backward *b, struct ggml_tensor *t) {
    return TIMES(backward_grad(b, t), ggml_cos(b->ctx, t->src[0]));
}
static enum err back_cos(struct backward *b, struct ggml_tensor *t) {
    return TIMES(ggml_neg(b->ctx, backward_grad(b, t)), ggml_sin(b->ctx, t->src[0]));
}
static enum err back_scale(struct backward *b, struct ggml_tensor *t) {
    return backward_add(b, t->src[0], ggml_scale(b->ctx, backward_grad(b, t), tensor_param_f32(t, 0)));
}
static enum err back_clamp(struct backward *b, struct ggml_tensor *t) {
    return TIMES(backward_grad(b, t), slope_inside(b->ctx, t->src[0], tensor_param_f32(t, 0), tensor_param_f32(t, 1)));
}
static enum err back_leaky_relu(struct backward *b, struct ggml_tensor *t) {
    const float slope = tensor_param_f32(t, 0);
    return TIMES(backward_grad(b, t), ggml_scale_bias(b->ctx, ggml_step(b->ctx, t->src[0]), 1.0f - slope, slope));
}

#define ELEMENTWISE(ID, lower, sym, more, inf, thr)                                                                         \
    const struct op op_##lower = {.id = GGML_OP_##ID,                                                                       \
                                  .name = #ID,                                                                              \
                                  .symbol = sym,                                                                            \
                                  .n_src = 1,                                                                               \
                                  .flags = OP_ELEMENTWISE | (more),                                                         \
                                  .infer = inf,                                                                             \
                                  .run = run_##lower,                                                                       \
                                  .threads = thr,                                                                           \
                                  .backward = back_##lower};
ELEMENTWISE(SQR, sqr, "x^2", OP_INPLACE, infer, row_threads_map)
ELEMENTWISE(SQRT, sqrt, "√x", OP_INPLACE, infer, row_threads_map)
ELEMENTWISE(LOG, log, "log(x)", OP_INPLACE, infer, row_threads_func)
ELEMENTWISE(SIN, sin, "sin(x)", OP_INPLACE_WIDE, infer, row_threads_func)
ELEMENTWISE(COS, cos, "cos(x)", OP_INPLACE_WIDE, infer, row_threads_func)
ELEMENTWISE(SCALE, scale, "x*v", OP_INPLACE, infer, row_threads_map)
ELEMENTWISE(CLAMP, clamp, "clamp(x)", OP_INPLACE_WIDE, infer, row_threads_map)
ELEMENTWISE(LEAKY_RELU, leaky_relu, "leaky_relu(x)", OP_INPLACE_WIDE, infer, row_threads_map)

const struct op op_silu_back = {.id = GGML_OP_SILU_BACK,
                                .name = "SILU_BACK",
                                .symbol = "silu_back(x)",
                                .n_src = 2,
                                .flags = OP_INPLACE | OP_ELEMENTWISE,
                                .infer = infer_silu_back,
                                .run = run_silu_back,
                                .threads = row_threads_func};
