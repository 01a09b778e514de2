// UNARY: the element-wise functions of unary.def, on F32, F16 and BF16 of any layout.
// op_params: [0] the function; XIELU: [1] beta + softplus(alpha_n), [2] softplus(alpha_p), [3] beta, [4] eps.
#include "ops/backward.h"
#include "ops/row.h"
#include "ops/slope.h"
#include "kern/unary.h"

#include <math.h>
#include <stddef.h>

// Where each function stands in the kernel's table.
static const size_t place[GGML_UNARY_OP_COUNT] = {
#define UNARY(ID, name) [GGML_UNARY_OP_##ID] = offsetof(struct kern_unary, name),
#include "ops/unary.def"
#undef UNARY
};

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const int32_t f = tensor_param_i32(t, 0);
    if (f < 0 || f >= GGML_UNARY_OP_COUNT) return err_set(ERR_INVALID, "UNARY: there is no function %d", (int) f);
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

static void run(struct task *k, struct ggml_tensor *t) {
    const char *table = (const char *) kern_unary();
    struct call c;
    memcpy(&c.fn, table + place[tensor_param_i32(t, 0)], sizeof c.fn);
    float p[4];
    memcpy(p, &t->op_params[1], sizeof p);
    c.p = p;
    row_map(k, t, (const struct ggml_tensor *const *) t->src, 1, apply, &c);
}

struct ggml_tensor *ggml_unary(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_unary_op op) {
    return op_build(ctx, GGML_OP_UNARY, false, &(int32_t){(int32_t) op}, 1, &a, 1);
}
struct ggml_tensor *ggml_unary_inplace(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_unary_op op) {
    return op_build(ctx, GGML_OP_UNARY, true, &(int32_t){(int32_t) op}, 1, &a, 1);
}

#define ONE(name, ID)                                                                                                       \
    struct ggml_tensor *ggml_##name(struct ggml_context *ctx, struct ggml_tensor *a) {                                      \
        return ggml_unary(ctx, a, GGML_UNARY_OP_##ID);                                                                      \
    }
#define BOTH(name, ID)                                                                                                      \
    ONE(name, ID)                                                                                                           \
    struct ggml_tensor *ggml_##name##_inplace(struct ggml_context *ctx, struct ggml_tensor *a) {                            \
        return ggml_unary_inplace(ctx, a, GGML_UNARY_OP_##ID);                                                              \
    }
BOTH(abs, ABS)
BOTH(sgn, SGN)
BOTH(neg, NEG)
BOTH(step, STEP)
BOTH(tanh, TANH)
BOTH(elu, ELU)
BOTH(relu, RELU)
BOTH(sigmoid, SIGMOID)
BOTH(gelu, GELU)
BOTH(gelu_erf, GELU_ERF)
BOTH(gelu_quick, GELU_QUICK)
BOTH(silu, SILU)
ONE(hardswish, HARDSWISH)
ONE(hardsigmoid, HARDSIGMOID)
BOTH(exp, EXP)
BOTH(expm1, EXPM1)
BOTH(softplus, SOFTPLUS)
BOTH(floor, FLOOR)
BOTH(ceil, CEIL)
BOTH(round, ROUND)
BOTH(trunc, TRUNC)

static float softplus(float x) { return x > 20.0f ? x : (float) log1p(exp((double) x)); }

struct ggml_tensor *ggml_xielu(struct ggml_context *ctx, struct ggml_tensor *a, float alpha_n, float alpha_p, float beta,
                               float eps) {
    const float p[4] = {beta + softplus(alpha_n), softplus(alpha_p), beta, eps};
    int32_t params[5] = {GGML_UNARY_OP_XIELU};
    memcpy(params + 1, p, sizeof p);
    return op_build(ctx, GGML_OP_UNARY, false, params, 5, &a, 1);
}

static enum err backward(struct backward *b, struct ggml_tensor *t) {
    const enum ggml_unary_op f = (enum ggml_unary_op) tensor_param_i32(t, 0);
    struct ggml_tensor *g = backward_grad(b, t), *x = t->src[0];
    if (f == GGML_UNARY_OP_SILU) return backward_add(b, x, ggml_silu_back(b->ctx, g, x));
    if (f == GGML_UNARY_OP_NEG) return backward_add(b, x, ggml_neg(b->ctx, g));
    return backward_add(b, x, ggml_mul(b->ctx, g, slope_of(b->ctx, f, x, t, t->op_params)));
}

const struct op op_unary = {.id = GGML_OP_UNARY,
                            .name = "UNARY",
                            .symbol = "unary(x)",
                            .n_src = 1,
                            .flags = OP_INPLACE | OP_ELEMENTWISE,
                            .infer = infer,
                            .run = run,
                            .threads = row_threads_func,
                            .backward = backward};
