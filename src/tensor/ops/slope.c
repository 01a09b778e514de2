// See slope.h. Each derivative is written with the builders, so that it runs wherever the functions themselves run, at the
// same precision. Where a function has a corner, its derivative there is one of the two sides'.
#include "ops/slope.h"

#include <math.h>
#include <string.h>

typedef struct ggml_context C;
typedef struct ggml_tensor T;

// 1 - x and s * x + b
static T *one_minus(C *c, T *x) { return ggml_scale_bias(c, x, -1.0f, 1.0f); }
static T *line(C *c, T *x, float s, float b) { return ggml_scale_bias(c, x, s, b); }

T *slope_inside(C *ctx, T *x, float lo, float hi) {
    T *above = isinf(lo) ? NULL : ggml_step(ctx, line(ctx, x, 1.0f, -lo));
    T *below = isinf(hi) ? NULL : ggml_step(ctx, line(ctx, x, -1.0f, hi));
    if (above && below) return ggml_mul(ctx, above, below);
    if (above || below) return above ? above : below;
    return line(ctx, x, 0.0f, 1.0f);
}

static T *of_tanh(C *c, T *y) { return one_minus(c, ggml_sqr(c, y)); }

static T *of_sigmoid(C *c, T *y) { return ggml_mul(c, y, one_minus(c, y)); }

// x s(k x) with s the sigmoid: s + k x s (1 - s)
static T *of_swish(C *c, T *x, float k) {
    T *s = ggml_sigmoid(c, k == 1.0f ? x : ggml_scale(c, x, k));
    return ggml_add(c, s, ggml_mul(c, ggml_scale(c, x, k), of_sigmoid(c, s)));
}

// 0.5 x (1 + tanh u), u = a (x + b x^3): 0.5 (1 + tanh u) + 0.5 x (1 - tanh^2 u) u'
static T *of_gelu(C *c, T *x) {
    const float a = 0.79788456080286535587989211986876f, b = 0.044715f;
    T *square = ggml_sqr(c, x);
    T *u = ggml_mul(c, ggml_scale(c, x, a), line(c, square, b, 1.0f));
    T *t = ggml_tanh(c, u);
    T *du = line(c, square, 3.0f * a * b, a);
    return ggml_add(c, line(c, t, 0.5f, 0.5f), ggml_mul(c, ggml_scale(c, ggml_mul(c, x, of_tanh(c, t)), 0.5f), du));
}

// x P(x) with P the normal distribution: P + x p. P is the function divided by x, but for x = 0, where it is a half.
static T *of_gelu_erf(C *c, T *x, T *y) {
    T *zero = one_minus(c, ggml_step(c, ggml_abs(c, x)));  // 1 where x is 0
    T *p_below = ggml_add(c, ggml_div(c, y, ggml_add(c, x, zero)), ggml_scale(c, zero, 0.5f));
    T *density = ggml_scale(c, ggml_exp(c, ggml_scale(c, ggml_sqr(c, x), -0.5f)), 0.39894228040143267793994605993438f);
    return ggml_add(c, p_below, ggml_mul(c, x, density));
}

// clamp((x + 3) / 6, 0, 1)
static T *of_hardsigmoid(C *c, T *y) { return ggml_scale(c, slope_inside(c, y, 0.0f, 1.0f), 1.0f / 6.0f); }

// x > 0: p x^2 + beta x; else n (expm1(x) - x) + beta x, with n = params[1] - beta kept as n + beta there
static T *of_xielu(C *c, T *x, const int32_t *params) {
    float p[4];
    memcpy(p, params + 1, sizeof p);
    T *negative = ggml_scale(c, ggml_expm1(c, ggml_clamp(c, x, -INFINITY, 0.0f)), p[0]);
    return ggml_add(c, line(c, ggml_relu(c, x), 2.0f * p[1], p[2]), negative);
}

T *slope_of(C *ctx, enum ggml_unary_op f, T *x, T *y, const int32_t *params) {
    if (ggml_is_error(x)) return x;
    if (!y) y = ggml_unary(ctx, x, f);
    switch (f) {
        case GGML_UNARY_OP_ABS: return ggml_sgn(ctx, x);
        case GGML_UNARY_OP_NEG: return line(ctx, x, 0.0f, -1.0f);
        case GGML_UNARY_OP_RELU: return ggml_step(ctx, x);
        case GGML_UNARY_OP_TANH: return of_tanh(ctx, y);
        case GGML_UNARY_OP_SIGMOID: return of_sigmoid(ctx, y);
        case GGML_UNARY_OP_ELU: return line(ctx, ggml_clamp(ctx, y, -1.0f, 0.0f), 1.0f, 1.0f);
        case GGML_UNARY_OP_EXP: return y;
        case GGML_UNARY_OP_EXPM1: return line(ctx, y, 1.0f, 1.0f);
        case GGML_UNARY_OP_SOFTPLUS: return ggml_sigmoid(ctx, x);
        case GGML_UNARY_OP_SILU: return of_swish(ctx, x, 1.0f);
        case GGML_UNARY_OP_GELU: return of_gelu(ctx, x);
        case GGML_UNARY_OP_GELU_QUICK: return of_swish(ctx, x, 1.702f);
        case GGML_UNARY_OP_GELU_ERF: return of_gelu_erf(ctx, x, y);
        case GGML_UNARY_OP_HARDSIGMOID: return of_hardsigmoid(ctx, y);
        case GGML_UNARY_OP_HARDSWISH: {
            T *h = ggml_hardsigmoid(ctx, x);
            return ggml_add(ctx, h, ggml_mul(ctx, x, of_hardsigmoid(ctx, h)));
        }
        case GGML_UNARY_OP_XIELU: return of_xielu(ctx, x, params);
        default: break;
    }
    (void) err_set(ERR_UNSUPPORTED, "there is no derivative of %s", ggml_unary_op_name(f));
    return tensor_error();
}
