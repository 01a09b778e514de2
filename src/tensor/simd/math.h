// Elementary functions over the SIMD vocabulary: one formula, written once, for every ISA level. As each step is a correctly
// rounded operation, the results are the same bits at all levels and in every lane.
//
// Errors in units of the last place, over all floats in the range given (tests/unit/kern/test_math.c measures them):
//   exp 1, expm1 1.5, log 1, log1p 1.5, sin and cos 1.6, tanh 1.5, erf 1.5, softplus 2, sigmoid 2.5,
//   silu, gelu, gelu_quick 3.5, gelu_erf 4.5 (also in the far tails, where the result is subnormal).
// Infinities, NaN and signed zeros come out as IEEE 754 and C have them.
//
// Polynomials: minimax fits of our own (Remez, relative error). Methods: reduction by powers of two with a two-part ln 2 (Cody,
// Waite 1980); log by s = f / (2 + f) as in Tang 1990; the normal distribution's tail as exp(-t^2/2) times a polynomial in
// (t - 4)/(t + 4) (Shepherd, Laframboise 1981); squares and cubes that feed an exponential are kept in two parts.
#pragma once

#include "simd/simd.h"

#include <math.h>

// ---- exponentials -----------------------------------------------------------------------------------------------

// exp(r) for |r| <= ln 2 / 2.
static inline vf vf_exp_poly(vf r) {
    vf q = vf_set1(0x1.6a244ep-10f);
    q = vf_fma(q, r, vf_set1(0x1.1239e2p-7f));
    q = vf_fma(q, r, vf_set1(0x1.5558f2p-5f));
    q = vf_fma(q, r, vf_set1(0x1.555492p-3f));
    q = vf_fma(q, r, vf_set1(0x1.fffffcp-2f));
    return vf_add(vf_fma(vf_mul(r, r), q, r), vf_set1(1.0f));
}

// a * 2^k for the integer k = t - magic of the reductions below.
static inline vf vf_scale2_magic(vf a, vf t, vf k) {
#if VF_N == 16
    (void) t;
    return _mm512_scalef_ps(a, k);
#else
    (void) k;
    return vf_scale2(a, vi_sub(vf_bits(t), vf_bits(vf_set1(12582912.0f))));
#endif
}

// exp(x + lo) = p * 2^n with p in [0.7, 1.42]; x in [-126, 89] or NaN (then p is NaN), |lo| tiny beside 1.
static inline vf vf_exp_parts(vf x, vf lo, vi *n) {
    const vf magic = vf_set1(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer, which its low bits then hold
    const vf t = vf_fma(x, vf_set1(1.44269504f), magic);
    const vf k = vf_sub(t, magic);
    *n = vi_sub(vf_bits(t), vf_bits(magic));
    vf r = vf_fnma(k, vf_set1(0x1.62e430p-1f), x);
    return vf_exp_poly(vf_add(vf_fnma(k, vf_set1(-0x1.05c610p-29f), r), lo));
}

static inline vf vf_exp(vf x) {
    vi n;
    const vf c = vf_min(vf_set1(89.0f), vf_max(vf_set1(-105.0f), x));  // beyond: infinity and zero all the same
    const vf p = vf_exp_parts(c, vf_set1(0.0f), &n);
    return vf_scale2(p, n);
}

// The same values for x <= 0 or NaN, in fewer steps: what softmax needs.
static inline vf vf_exp_neg(vf x) {
    const vf magic = vf_set1(12582912.0f);
    const vf c = vf_max(vf_set1(-105.0f), x);
    const vf t = vf_fma(c, vf_set1(1.44269504f), magic);
    const vf k = vf_sub(t, magic);
    const vf r = vf_fnma(k, vf_set1(-0x1.05c610p-29f), vf_fnma(k, vf_set1(0x1.62e430p-1f), c));
    return vf_scale2_magic(vf_exp_poly(r), t, k);
}

static inline vf vf_expm1(vf x) {
    const vf magic = vf_set1(12582912.0f), one = vf_set1(1.0f);
    const vf c = vf_min(vf_set1(89.0f), vf_max(vf_set1(-30.0f), x));
    const vf t = vf_fma(c, vf_set1(1.44269504f), magic);
    const vf k = vf_sub(t, magic);
    const vi n = vi_sub(vf_bits(t), vf_bits(magic));
    vf r = vf_fnma(k, vf_set1(0x1.62e430p-1f), c);
    r = vf_fnma(k, vf_set1(-0x1.05c610p-29f), r);
    vf q = vf_set1(0x1.a032c0p-13f);
    q = vf_fma(q, r, vf_set1(0x1.6d71f2p-10f));
    q = vf_fma(q, r, vf_set1(0x1.11118ap-7f));
    q = vf_fma(q, r, vf_set1(0x1.5554b2p-5f));
    q = vf_fma(q, r, vf_set1(0x1.555554p-3f));
    q = vf_fma(q, r, vf_set1(0.5f));
    const vf p = vf_fma(vf_mul(r, r), q, r);
    // 2^n p + (2^n - 1), halved so that n = 128 does not overflow early; n = 0 keeps p as it is, with its sign of zero
    const vf half = vf_scale2(vf_set1(0.5f), n);
    const vf y = vf_fma(half, p, vf_sub(half, vf_set1(0.5f)));
    const vf big = vf_add(y, y);
    const vf small = vf_sel(vf_eq(x, vf_set1(0.0f)), x, p);
    return vf_sel(vi_eq(n, vi_set1(0)), small, vf_sel(vf_lt(x, vf_set1(-30.0f)), vf_neg(one), big));
}

// ---- logarithms -------------------------------------------------------------------------------------------------

static inline vf vf_log(vf x) {
    const vf one = vf_set1(1.0f), inf = vf_set1(INFINITY);
    const vm tiny = vf_lt(x, vf_set1(0x1p-126f));  // subnormal (or zero or negative, put right below)
    const vf y = vf_sel(tiny, vf_mul(x, vf_set1(0x1p23f)), x);
    // x = 2^e m with m in [sqrt(1/2), sqrt(2))
    const vi d = vi_sub(vf_bits(y), vi_set1(0x3f3504f3));
    const vi e = vi_sub(vi_shr(d, 23), vi_sel(tiny, vi_set1(23), vi_set1(0)));
    const vf m = vf_from_bits(vi_add(vi_and(d, vi_set1(0x7fffff)), vi_set1(0x3f3504f3)));
    const vf k = vf_from_vi(e);
    const vf f = vf_sub(m, one);
    const vf s = vf_div(f, vf_add(f, vf_set1(2.0f)));
    const vf z = vf_mul(s, s);
    vf r = vf_set1(0x1.e2ffd8p-3f);
    r = vf_fma(r, z, vf_set1(0x1.24389ep-2f));
    r = vf_fma(r, z, vf_set1(0x1.999a7cp-2f));
    r = vf_fma(r, z, vf_set1(0x1.555554p-1f));
    r = vf_mul(r, z);
    const vf h = vf_mul(vf_mul(f, f), vf_set1(0.5f));
    // log m = f - (h - s (h + r)), the large terms added last
    const vf low = vf_fma(s, vf_add(h, r), vf_mul(k, vf_set1(-0x1.05c610p-29f)));
    vf out = vf_sub(f, vf_sub(h, low));
    out = vf_fma(k, vf_set1(0x1.62e430p-1f), out);
    out = vf_sel(vf_eq(x, inf), inf, out);
    out = vf_sel(vf_eq(x, vf_set1(0.0f)), vf_neg(inf), out);
    return vf_sel(vm_or(vf_lt(x, vf_set1(0.0f)), vf_isnan(x)), vf_set1(NAN), out);
}

// log(1 + x), x >= 0
static inline vf vf_log1p_pos(vf x) {
    const vf u = vf_add(x, vf_set1(1.0f));
    const vf lost = vf_sub(x, vf_sub(u, vf_set1(1.0f)));
    const vf y = vf_add(vf_log(u), vf_div(lost, u));
    return vf_sel(vf_lt(u, vf_set1(0x1p25f)), y, vf_log(u));
}

static inline vf vf_softplus(vf x) {
    const vf y = vf_log1p_pos(vf_exp(vf_neg(vf_abs(x))));
    return vf_add(vf_max(vf_set1(0.0f), x), y);
}

// ---- hyperbolic tangent, logistic function ------------------------------------------------------------------------

static inline vf vf_tanh(vf x) {
    const vf a = vf_abs(x), z = vf_mul(x, x);
    vf q = vf_set1(-0x1.a538a2p-11f);
    q = vf_fma(q, z, vf_set1(0x1.a752a0p-9f));
    q = vf_fma(q, z, vf_set1(-0x1.1ecbf2p-7f));
    q = vf_fma(q, z, vf_set1(0x1.65ff32p-6f));
    q = vf_fma(q, z, vf_set1(-0x1.ba17e8p-5f));
    q = vf_fma(q, z, vf_set1(0x1.111106p-3f));
    q = vf_fma(q, z, vf_set1(-0x1.555556p-2f));
    const vf near = vf_fma(vf_mul(q, z), a, a);
    vi n;
    const vf c = vf_min(vf_set1(10.0f), a);  // tanh 10 rounds to 1
    const vf p = vf_exp_parts(vf_add(c, c), vf_set1(0.0f), &n);
    const vf e = vf_add(vf_scale2(p, n), vf_set1(1.0f));
    const vf t = vf_sub(vf_set1(1.0f), vf_div(vf_set1(2.0f), e));
    const vf y = vf_sel(vf_lt(a, vf_set1(0.625f)), near, t);
    return vf_from_bits(vi_or(vf_bits(y), vi_and(vf_bits(x), vi_set1(INT32_MIN))));
}

// y / (1 + exp(-|v + lo|)) for v >= 0, y exp(-|v + lo|) / (1 + exp(-|v + lo|)) for v < 0; with neg_y in y's place where v < 0.
// |v| up to 126.
static inline vf vf_gate(vf v, vf lo, vf y, vf neg_y) {
    vi n;
    const vm neg = vf_lt(v, vf_set1(0.0f));
    const vf a = vf_sel(neg, v, vf_neg(v)), l = vf_sel(neg, lo, vf_neg(lo));
    const vf p = vf_exp_parts(a, l, &n);
    const vf den = vf_add(vf_scale2(p, n), vf_set1(1.0f));
    const vf num = vf_sel(neg, vf_mul(neg_y, p), y);
    return vf_scale2(vf_div(num, den), vi_sel(neg, n, vi_set1(0)));
}
static inline vf vf_clamp(vf x, float lo, float hi) { return vf_min(vf_set1(hi), vf_max(vf_set1(lo), x)); }

static inline vf vf_sigmoid(vf x) {
    const vf one = vf_set1(1.0f);
    return vf_gate(vf_clamp(x, -120.0f, 120.0f), vf_set1(0.0f), one, one);
}
// x sigmoid(x)
static inline vf vf_silu(vf x) {
    const vf c = vf_clamp(x, -120.0f, 120.0f);
    return vf_gate(c, vf_set1(0.0f), x, c);
}

// ---- error function and the gaussian units ------------------------------------------------------------------------

// 1 - Phi(t) = erfc(t / sqrt 2) / 2 for 0 <= t <= 15 (or NaN), as p * 2^n.
static inline vf vf_phi_tail(vf t, vi *n) {
    const vf u = vf_mul(t, t), ul = vf_fma(t, t, vf_neg(u));
    const vf p = vf_exp_parts(vf_mul(u, vf_set1(-0.5f)), vf_mul(ul, vf_set1(-0.5f)), n);
    const vf v = vf_div(vf_sub(t, vf_set1(4.0f)), vf_add(t, vf_set1(4.0f)));
    vf q = vf_set1(-0x1.2cb0ccp-14f);
    q = vf_fma(q, v, vf_set1(-0x1.fdc234p-15f));
    q = vf_fma(q, v, vf_set1(0x1.6b2f0ap-11f));
    q = vf_fma(q, v, vf_set1(-0x1.3e72aap-12f));
    q = vf_fma(q, v, vf_set1(-0x1.47f60cp-8f));
    q = vf_fma(q, v, vf_set1(0x1.25eeb2p-6f));
    q = vf_fma(q, v, vf_set1(-0x1.07c29ap-5f));
    q = vf_fma(q, v, vf_set1(0x1.d495p-6f));
    q = vf_fma(q, v, vf_set1(0x1.cabd22p-7f));
    q = vf_fma(q, v, vf_set1(-0x1.8c18f0p-4f));
    q = vf_fma(q, v, vf_set1(0x1.e361eap-2f));
    return vf_div(vf_mul(p, q), vf_add(t, vf_set1(1.0f)));
}

static inline vf vf_erf(vf x) {
    const vf a = vf_abs(x), z = vf_mul(x, x);
    vf q = vf_set1(-0x1.52936ep-17f);
    q = vf_fma(q, z, vf_set1(0x1.de0746p-14f));
    q = vf_fma(q, z, vf_set1(-0x1.bda498p-11f));
    q = vf_fma(q, z, vf_set1(0x1.563a4cp-8f));
    q = vf_fma(q, z, vf_set1(-0x1.b82afep-6f));
    q = vf_fma(q, z, vf_set1(0x1.ce2f14p-4f));
    q = vf_fma(q, z, vf_set1(-0x1.812746p-2f));
    q = vf_fma(q, z, vf_set1(0x1.06eba8p-3f));
    const vf near = vf_fma(q, a, a);
    vi n;
    const vf tail = vf_phi_tail(vf_mul(vf_min(vf_set1(5.0f), a), vf_set1(1.41421356f)), &n);
    const vf t = vf_sub(vf_set1(1.0f), vf_scale2(tail, vi_add(n, vi_set1(1))));
    const vf y = vf_sel(vf_lt(a, vf_set1(0.9375f)), near, t);
    return vf_from_bits(vi_or(vf_bits(y), vi_and(vf_bits(x), vi_set1(INT32_MIN))));
}

// x Phi(x)
static inline vf vf_gelu_erf(vf x) {
    vi n;
    const vf t = vf_min(vf_set1(15.0f), vf_abs(x));
    const vf tail = vf_mul(t, vf_phi_tail(t, &n));
    const vm neg = vf_lt(x, vf_set1(0.0f));
    const vf y = vf_scale2(tail, n);
    const vf far = vf_sel(neg, vf_neg(y), vf_sub(x, y));
    const vf z = vf_mul(x, x);  // near zero, Phi(x) = 1/2 + x P(x^2)
    vf q = vf_set1(-0x1.1dcbaep-17f);
    q = vf_fma(q, z, vf_set1(0x1.e20eeep-14f));
    q = vf_fma(q, z, vf_set1(-0x1.3737b8p-10f));
    q = vf_fma(q, z, vf_set1(0x1.46d024p-7f));
    q = vf_fma(q, z, vf_set1(-0x1.105838p-4f));
    q = vf_fma(q, z, vf_set1(0x1.988454p-2f));
    const vf near = vf_mul(x, vf_fma(q, x, vf_set1(0.5f)));
    return vf_sel(vf_lt(t, vf_set1(0.6875f)), near, far);
}

// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) = x sigmoid(v), v = 2 sqrt(2/pi) (x + 0.044715 x^3); v in two parts
static inline vf vf_gelu(vf x) {
    const vf a = vf_set1(0x1.988454p+0f), al = vf_set1(-0x1.857936p-25f);
    const vf b = vf_set1(0x1.2444f2p-4f), bl = vf_set1(0x1.49b16ap-29f);
    const vf c = vf_clamp(x, -11.0f, 11.0f);  // beyond: x and -0 once rounded; v(11) = 112
    const vf w = vf_mul(c, c), wl = vf_fma(c, c, vf_neg(w));
    const vf bw = vf_mul(b, w);
    const vf bwl = vf_fma(b, wl, vf_fma(bl, w, vf_fma(b, w, vf_neg(bw))));
    const vf p = vf_add(a, bw), pb = vf_sub(p, a);
    const vf e = vf_add(vf_sub(a, vf_sub(p, pb)), vf_sub(bw, pb));  // what a + bw lost
    const vf pl = vf_add(e, vf_add(al, bwl));
    const vf v = vf_mul(c, p), vl = vf_fma(c, pl, vf_fma(c, p, vf_neg(v)));
    return vf_gate(v, vl, x, c);
}
// x sigmoid(1.702 x)
static inline vf vf_gelu_quick(vf x) {
    const vf k = vf_set1(0x1.b3b646p+0f), kl = vf_set1(-0x1.78d4fep-26f);
    const vf c = vf_clamp(x, -70.0f, 70.0f);
    const vf v = vf_mul(c, k), vl = vf_fma(c, kl, vf_fma(c, k, vf_neg(v)));
    return vf_gate(v, vl, x, c);
}

// ---- sine and cosine --------------------------------------------------------------------------------------------

#define VF_TRIG_FAR 0x1p20f

// Lanes of x beyond VF_TRIG_FAR, where three parts of pi/2 no longer suffice: the C library, in double precision.
static __attribute__((noinline, unused)) void vf_sincos_far(vf x, vf *s, vf *c) {
    float b[3][VF_N];
    vf_store(b[0], x);
    vf_store(b[1], *s);
    vf_store(b[2], *c);
    for (int i = 0; i < VF_N; i++) {
        if (fabsf(b[0][i]) <= VF_TRIG_FAR) continue;
        b[1][i] = (float) sin((double) b[0][i]);
        b[2][i] = (float) cos((double) b[0][i]);
    }
    *s = vf_load(b[1]);
    *c = vf_load(b[2]);
}

static inline void vf_sincos(vf x, vf *sine, vf *cosine) {
    const vf magic = vf_set1(12582912.0f);
    const vm far = vm_not(vf_le(vf_abs(x), vf_set1(VF_TRIG_FAR)));
    const vf xn = vf_sel(far, vf_set1(0.0f), x);
    const vf t = vf_fma(xn, vf_set1(0x1.45f306p-1f), magic);
    const vf k = vf_sub(t, magic);
    const vi q = vf_bits(t);  // its low two bits: the quadrant
    vf r = vf_fnma(k, vf_set1(0x1.921fb6p+0f), xn);
    r = vf_fnma(k, vf_set1(-0x1.777a5cp-25f), r);
    r = vf_fnma(k, vf_set1(-0x1.ee59dap-50f), r);
    const vf z = vf_mul(r, r);
    vf s = vf_set1(0x1.6ca502p-19f);
    s = vf_fma(s, z, vf_set1(-0x1.a00ec4p-13f));
    s = vf_fma(s, z, vf_set1(0x1.111108p-7f));
    s = vf_fma(s, z, vf_set1(-0x1.555556p-3f));
    s = vf_fma(vf_mul(s, z), r, r);
    vf c = vf_set1(-0x1.240508p-22f);
    c = vf_fma(c, z, vf_set1(0x1.a01068p-16f));
    c = vf_fma(c, z, vf_set1(-0x1.6c16b8p-10f));
    c = vf_fma(c, z, vf_set1(0x1.555556p-5f));
    const vf h = vf_mul(z, vf_set1(0.5f)), w = vf_sub(vf_set1(1.0f), h);
    c = vf_add(w, vf_fma(vf_mul(z, z), c, vf_sub(vf_sub(vf_set1(1.0f), w), h)));
    const vm swap = vi_eq(vi_and(q, vi_set1(1)), vi_set1(1));
    const vi neg_s = vi_shl(vi_and(q, vi_set1(2)), 30);
    const vi neg_c = vi_shl(vi_and(vi_add(q, vi_set1(1)), vi_set1(2)), 30);
    vf os = vf_from_bits(vi_xor(vf_bits(vf_sel(swap, c, s)), neg_s));
    *cosine = vf_from_bits(vi_xor(vf_bits(vf_sel(swap, s, c)), neg_c));
    os = vf_sel(vf_eq(x, vf_set1(0.0f)), x, os);
    *sine = os;
    if (__builtin_expect(vm_any(far), 0)) vf_sincos_far(x, sine, cosine);
}
static inline vf vf_sin(vf x) {
    vf s, c;
    vf_sincos(x, &s, &c);
    return s;
}
static inline vf vf_cos(vf x) {
    vf s, c;
    vf_sincos(x, &s, &c);
    return c;
}
