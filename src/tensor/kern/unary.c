// Element-wise functions (see unary.h): a line each over the vocabulary of simd/.
#include "kern/unary.h"
#include "simd/simd.h"
#include "simd/math.h"

#define MAP(name, expr)                                                                                                     \
    static inline vf name##_v(vf v, const float *p) {                                                                       \
        (void) p;                                                                                                           \
        return expr;                                                                                                        \
    }                                                                                                                       \
    static void map_##name(int64_t n, float *y, const float *x, const float *p) {                                           \
        int64_t i = 0;                                                                                                      \
        for (; i + VF_N <= n; i += VF_N) vf_store(y + i, name##_v(vf_load(x + i), p));                                      \
        const int m = vf_lanes(i, n);                                                                                       \
        if (m > 0) vf_store_n(y + i, name##_v(vf_load_n(x + i, m), p), m);                                                  \
    }

#define ZERO vf_set1(0.0f)
#define ONE vf_set1(1.0f)

// min(1, max(0, (x + 3) / 6))
static inline vf hard(vf v) { return vf_min(ONE, vf_max(ZERO, vf_div(vf_add(v, vf_set1(3.0f)), vf_set1(6.0f)))); }

// To the nearest integer, ties away from zero.
static inline vf round_away(vf v) {
    const vf a = vf_abs(v), t = vf_trunc(a);
    const vf r = vf_sel(vf_ge(vf_sub(a, t), vf_set1(0.5f)), vf_add(t, ONE), t);
    return vf_from_bits(vi_or(vf_bits(r), vi_and(vf_bits(v), vi_set1(INT32_MIN))));
}

static inline vf xielu_of(vf v, const float *p) {
    const vf lin = vf_mul(v, vf_set1(p[2]));
    const vf pos = vf_fma(vf_mul(v, v), vf_set1(p[1]), lin);
    const vf neg = vf_fma(vf_sub(vf_expm1(vf_min(vf_set1(p[3]), v)), v), vf_set1(p[0]), lin);
    return vf_sel(vf_gt(v, ZERO), pos, neg);
}

MAP(abs, vf_abs(v))
MAP(sgn, vf_sel(vf_gt(v, ZERO), ONE, vf_sel(vf_lt(v, ZERO), vf_set1(-1.0f), vf_sel(vf_isnan(v), v, ZERO))))
MAP(neg, vf_neg(v))
MAP(step, vf_sel(vf_gt(v, ZERO), ONE, vf_sel(vf_isnan(v), v, ZERO)))
MAP(tanh, vf_tanh(v))
MAP(elu, vf_sel(vf_gt(v, ZERO), v, vf_expm1(v)))
MAP(relu, vf_max(ZERO, v))
MAP(sigmoid, vf_sigmoid(v))
MAP(gelu, vf_gelu(v))
MAP(gelu_quick, vf_gelu_quick(v))
MAP(silu, vf_silu(v))
MAP(hardswish, vf_mul(v, hard(v)))
MAP(hardsigmoid, hard(v))
MAP(exp, vf_exp(v))
MAP(expm1, vf_expm1(v))
MAP(softplus, vf_softplus(v))
MAP(gelu_erf, vf_gelu_erf(v))
MAP(xielu, xielu_of(v, p))
MAP(floor, vf_floor(v))
MAP(ceil, vf_ceil(v))
MAP(round, round_away(v))
MAP(trunc, vf_trunc(v))
MAP(sqr, vf_mul(v, v))
MAP(sqrt, vf_sqrt(v))
MAP(log, vf_log(v))
MAP(sin, vf_sin(v))
MAP(cos, vf_cos(v))
MAP(erf, vf_erf(v))
MAP(leaky_relu, vf_sel(vf_gt(v, ZERO), v, vf_mul(v, vf_set1(p[0]))))
MAP(clamp, vf_min(vf_set1(p[1]), vf_max(vf_set1(p[0]), v)))
MAP(scale, vf_mul(v, vf_set1(p[0])))
MAP(scale_bias, vf_fma(v, vf_set1(p[0]), vf_set1(p[1])))

const struct kern_unary ISA_SYM(kern_unary) = {
#define X(name) .name = map_##name,
    KERN_UNARY(X)
#undef X
};
