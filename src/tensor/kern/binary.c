// Element-wise operations on two or three rows (see binary.h).
#include "kern/binary.h"
#include "simd/simd.h"
#include "simd/math.h"

#define MAP2(name, expr)                                                                                                    \
    static inline vf name##_v(vf a, vf b) { return expr; }                                                                  \
    static void map_##name(int64_t n, float *y, const float *x, const float *z) {                                           \
        int64_t i = 0;                                                                                                      \
        for (; i + VF_N <= n; i += VF_N) vf_store(y + i, name##_v(vf_load(x + i), vf_load(z + i)));                         \
        const int m = vf_lanes(i, n);                                                                                       \
        if (m > 0) vf_store_n(y + i, name##_v(vf_load_n(x + i, m), vf_load_n(z + i, m)), m);                                \
    }

MAP2(add, vf_add(a, b))
MAP2(sub, vf_sub(a, b))
MAP2(mul, vf_mul(a, b))
MAP2(div, vf_div(a, b))

// silu'(x) = s (1 + x (1 - s)), s = sigmoid(x)
static inline vf dsilu(vf x) {
    const vf s = vf_sigmoid(x), one = vf_set1(1.0f);
    return vf_mul(s, vf_fma(x, vf_sub(one, s), one));
}
MAP2(silu_back, vf_mul(a, dsilu(b)))

static void map_fma(int64_t n, float *y, const float *a, const float *b, const float *c) {
    int64_t i = 0;
    for (; i + VF_N <= n; i += VF_N) vf_store(y + i, vf_fma(vf_load(a + i), vf_load(b + i), vf_load(c + i)));
    const int m = vf_lanes(i, n);
    if (m > 0) vf_store_n(y + i, vf_fma(vf_load_n(a + i, m), vf_load_n(b + i, m), vf_load_n(c + i, m)), m);
}

static void map_axpy(int64_t n, float *y, float a, const float *x) {
    const vf k = vf_set1(a);
    int64_t i = 0;
    for (; i + VF_N <= n; i += VF_N) vf_store(y + i, vf_fma(vf_load(x + i), k, vf_load(y + i)));
    const int m = vf_lanes(i, n);
    if (m > 0) vf_store_n(y + i, vf_fma(vf_load_n(x + i, m), k, vf_load_n(y + i, m)), m);
}

#define GLU(name, expr)                                                                                                     \
    static inline vf name##_v(vf a, vf b, const float *p) {                                                                 \
        (void) p;                                                                                                           \
        return expr;                                                                                                        \
    }                                                                                                                       \
    static void map_##name(int64_t n, float *y, const float *x, const float *z, const float *p) {                           \
        int64_t i = 0;                                                                                                      \
        for (; i + VF_N <= n; i += VF_N) vf_store(y + i, name##_v(vf_load(x + i), vf_load(z + i), p));                      \
        const int m = vf_lanes(i, n);                                                                                       \
        if (m > 0) vf_store_n(y + i, name##_v(vf_load_n(x + i, m), vf_load_n(z + i, m), p), m);                             \
    }

// sigmoid(alpha x) x of the open-weight GPT models: alpha may be any number, so it is multiplied in plainly
static inline vf oai(vf a, vf b, const float *p) {
    const vf x = vf_min(vf_set1(p[1]), a), one = vf_set1(1.0f);
    const vf u = vf_clamp(b, -p[1], p[1]);
    return vf_mul(vf_mul(x, vf_sigmoid(vf_mul(x, vf_set1(p[0])))), vf_add(u, one));
}

GLU(reglu, vf_mul(vf_max(vf_set1(0.0f), a), b))
GLU(geglu, vf_mul(vf_gelu(a), b))
GLU(swiglu, vf_mul(vf_silu(a), b))
GLU(geglu_erf, vf_mul(vf_gelu_erf(a), b))
GLU(geglu_quick, vf_mul(vf_gelu_quick(a), b))
GLU(swiglu_oai, oai(a, b, p))
GLU(swiglu_clamp, vf_mul(vf_silu(vf_min(vf_set1(p[1]), a)), vf_clamp(b, -p[1], p[1])))

const struct kern_binary ISA_SYM(kern_binary) = {
    .add = map_add,
    .sub = map_sub,
    .mul = map_mul,
    .div = map_div,
    .fma = map_fma,
    .axpy = map_axpy,
    .reglu = map_reglu,
    .geglu = map_geglu,
    .swiglu = map_swiglu,
    .geglu_erf = map_geglu_erf,
    .geglu_quick = map_geglu_quick,
    .swiglu_oai = map_swiglu_oai,
    .swiglu_clamp = map_swiglu_clamp,
    .silu_back = map_silu_back,
};
