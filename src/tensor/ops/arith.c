// ADD, SUB, MUL, DIV: element-wise arithmetic with the second operand repeated to the first's shape. ADD1 adds one value.
// Any mix of F32, F16, BF16 and quantized operands: each element is decoded, computed in F32 and encoded once.
#include "ops/backward.h"
#include "ops/row.h"
#include "kern/binary.h"

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check_real(t, 0));
    TRY(check_real(t, 1));
    TRY(check_repeats(t, 1, 0));
    const enum ggml_type type = t->type == GGML_TYPE_COUNT ? t->src[0]->type : t->type;
    if (type != t->src[0]->type && type != GGML_TYPE_F32 && type != GGML_TYPE_F16 && type != GGML_TYPE_BF16)
        return err_set(ERR_UNSUPPORTED, "%s: the result can be F32, F16, BF16 or the first operand's type, not %s",
                       op_what(t), ggml_type_name(type));
    return shape_like(t->src[0], type, shape);
}

static void apply(int64_t n, float *y, const float *const *x, const void *ctx) {
    (*(const kern_binary_fn *) ctx)(n, y, x[0], x[1]);
}

#define RUN(name)                                                                                                           \
    static void run_##name(struct task *k, struct ggml_tensor *t) {                                                         \
        row_map(k, t, (const struct ggml_tensor *const *) t->src, 2, apply, &kern_binary()->name);                          \
    }
RUN(add)
RUN(sub)
RUN(mul)
RUN(div)

static enum err infer_add1(const struct ggml_tensor *t, struct op_shape *shape) {
    if (!ggml_is_scalar(t->src[1]))
        return err_set(ERR_INVALID, "ADD1: the second operand " SHAPE_FMT " must be a single value", SHAPE_ARG(t->src[1]));
    return infer(t, shape);
}

static struct ggml_tensor *build(struct ggml_context *ctx, enum ggml_op id, bool inplace, struct ggml_tensor *a,
                                 struct ggml_tensor *b) {
    return op_build(ctx, id, inplace, NULL, 0, (struct ggml_tensor *[]){a, b}, 2);
}

#define BUILD(name, ID)                                                                                                     \
    struct ggml_tensor *ggml_##name(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b) {               \
        return build(ctx, ID, false, a, b);                                                                                 \
    }                                                                                                                       \
    struct ggml_tensor *ggml_##name##_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b) {     \
        return build(ctx, ID, true, a, b);                                                                                  \
    }
BUILD(add, GGML_OP_ADD)
BUILD(sub, GGML_OP_SUB)
BUILD(mul, GGML_OP_MUL)
BUILD(div, GGML_OP_DIV)
BUILD(add1, GGML_OP_ADD1)

struct ggml_tensor *ggml_add_cast(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                  enum ggml_type type) {
    const struct op_shape want = {.type = type};
    return op_build_as(ctx, GGML_OP_ADD, &want, NULL, NULL, 0, (struct ggml_tensor *[]){a, b}, 2);
}

// ---- gradients: backward_add sums up what a repeated operand gets --------------------------------------------------------

static enum err back_add(struct backward *b, struct ggml_tensor *t) {
    TRY(backward_add(b, t->src[0], backward_grad(b, t)));
    return backward_add(b, t->src[1], backward_grad(b, t));
}

static enum err back_sub(struct backward *b, struct ggml_tensor *t) {
    TRY(backward_add(b, t->src[0], backward_grad(b, t)));
    if (!backward_wants(b, t->src[1])) return ERR_OK;
    return backward_add(b, t->src[1], ggml_neg(b->ctx, backward_grad(b, t)));
}

static enum err back_mul(struct backward *b, struct ggml_tensor *t) {
    struct ggml_tensor *g = backward_grad(b, t);
    if (backward_wants(b, t->src[0])) TRY(backward_add(b, t->src[0], ggml_mul(b->ctx, g, t->src[1])));
    if (!backward_wants(b, t->src[1])) return ERR_OK;
    return backward_add(b, t->src[1], ggml_mul(b->ctx, g, t->src[0]));
}

// t = x / y: g / y and -g t / y
static enum err back_div(struct backward *b, struct ggml_tensor *t) {
    struct ggml_tensor *part = ggml_div(b->ctx, backward_grad(b, t), t->src[1]);
    TRY(backward_add(b, t->src[0], part));
    if (!backward_wants(b, t->src[1])) return ERR_OK;
    return backward_add(b, t->src[1], ggml_neg(b->ctx, ggml_mul(b->ctx, part, t)));
}

#define ARITH(ID, lower, sym, inf, fn, back)                                                                                \
    const struct op op_##lower = {.id = GGML_OP_##ID,                                                                       \
                                  .name = #ID,                                                                              \
                                  .symbol = sym,                                                                            \
                                  .n_src = 2,                                                                               \
                                  .flags = OP_INPLACE | OP_ELEMENTWISE,                                                     \
                                  .infer = inf,                                                                             \
                                  .run = fn,                                                                                \
                                  .threads = row_threads_map,                                                               \
                                  .backward = back};
ARITH(ADD, add, "x+y", infer, run_add, back_add)
ARITH(SUB, sub, "x-y", infer, run_sub, back_sub)
ARITH(MUL, mul, "x*y", infer, run_mul, back_mul)
ARITH(DIV, div, "x/y", infer, run_div, back_div)
ARITH(ADD1, add1, "x+y", infer_add1, run_add, back_add)
