// Search for the scales of a block: the quantizers' common part. Minimises sum w_i (x_i - decoded_i)^2.
// The lanes of a vector hold candidates, not elements: each candidate's sums run over the elements in their order, so the
// result is the same at every ISA level, and no sum is ever taken across lanes.
#pragma once

#include "type/type_int.h"
#include "type/vec_int.h"

// Powers of two keep the search away from overflow and underflow: xn = x / s with the largest |xn| in [1, 2).
// Gives s; 0 if every value is so small that any scale of a half would round to zero; NaN if one is NaN or infinite.
static inline float block_normalize(const float *x, int n, float *xn) {
    const float a = absmax(x, n);
    if (!isfinite(a)) return NAN;
    if (!(a >= 1.490116119384765625e-8f)) return 0.0f;  // 2^-26
    const uint32_t e = f32_bits(a) & 0x7f800000u;
    const float s = f32_from_bits(e);
    const f32x8 inv = v_set(1.0f / s);
    for (int i = 0; i < n; i += 8) v_store(xn + i, v_load(x + i) * inv);
    return s;
}

// The scale of a block that block_normalize refused: zero, or NaN so that the block spoils what it is used for.
static inline uint16_t half_of_refused(float s) { return s == 0.0f ? 0 : 0x7e00; }

// Importance of n elements as weights in (0, 1]: 1 each when there is none or it is all zero. Zeros among others get a small
// weight, so that the sums of a sub-block never vanish.
static inline void block_weights(const float *imatrix, int n, float *w) {
    float top = 0.0f;
    if (imatrix) top = absmax(imatrix, n);
    if (!(top > 1e-30f)) {
        for (int i = 0; i < n; i++) w[i] = 1.0f;
        return;
    }
    const f32x8 inv = v_set(1.0f / top), least = v_set(1e-5f);
    for (int i = 0; i < n; i += 8) v_store(w + i, v_max(v_load(imatrix + i) * inv, least));
}

static inline void minmax(const float *x, int n, float *lo, float *hi) {
    f32x8 a = v_load(x), b = a;
    for (int i = 8; i < n; i += 8) {
        const f32x8 v = v_load(x + i);
        a = v_min(a, v);
        b = v_max(b, v);
    }
    *lo = v_hmin(a);
    *hi = v_hmax(b);
}

// The value of largest magnitude, with its sign; the first of equals; NaN if there is one.
static inline float extreme(const float *x, int n) {
    const float a = absmax(x, n);
    float lo, hi;
    minmax(x, n, &lo, &hi);
    if (lo == -hi)  // both signs reach it (or all is zero)
        for (int i = 0; i < n; i++)
            if (fabsf(x[i]) == a) return x[i];
    return hi == a ? hi : lo == -a ? lo : a;
}

// Index of the largest of n values; the first of equals.
static inline int best_of(const float *v, int n) {
    int b = 0;
    for (int i = 1; i < n; i++)
        if (v[i] > v[b]) b = i;
    return b;
}

// Inverse scales to try: those that map v to top * (1 - reach) .. top * (1 + reach), in n even steps; 0 if v is 0.
enum { CANDIDATES = 24 };
VEC void candidates(float v, float top, float reach, float *id, int n) {
    const float base = v != 0.0f ? top / v : 0.0f;
    for (int i = 0; i < n; i++) id[i] = base * (1.0f + reach * (float) (2 * i - (n - 1)) / (float) (n - 1));
}

// x ~ scale * q with integer q in lo .. hi: tries 8 * nv inverse scales id[], gives the best one's least-squares scale
// (0 if x is all zero). nv and the bounds should be compile-time constants.
VEC float scale_search(const float *x, const float *w, int n, float lo, float hi, const float *id, int nv) {
    float gain[64], scale[64];
    for (int v = 0; v < nv; v++) {
        const f32x8 inv = v_load(id + 8 * v);
        f32x8 xq = v_set(0.0f), qq = xq;
        for (int i = 0; i < n; i++) {
            const f32x8 q = v_clamp(v_round(inv * x[i]), lo, hi);
            const f32x8 wq = q * w[i];
            xq += wq * x[i];
            qq += wq * q;
        }
        const i32x8 some = qq > 0.0f;
        const f32x8 s = v_select(some, xq / v_select(some, qq, v_set(1.0f)), v_set(0.0f));
        v_store(scale + 8 * v, s);
        v_store(gain + 8 * v, s * xq);
    }
    return scale[best_of(gain, 8 * nv)];
}

// x ~ scale * q - min with integer q in 0 .. hi: tries 8 * nv pairs (inverse scale id[], origin -m0[]), gives the best one's
// least-squares scale and min. below: min may not be negative.
VEC void affine_search(const float *x, const float *w, int n, float hi, const float *id, const float *m0, int nv, bool below,
                       float *scale_out, float *min_out) {
    float gain[64], scale[64], min[64];
    float sw = 0.0f, sx = 0.0f;
    for (int i = 0; i < n; i++) {
        sw += w[i];
        sx += w[i] * x[i];
    }
    for (int v = 0; v < nv; v++) {
        const f32x8 inv = v_load(id + 8 * v), off = v_load(m0 + 8 * v) * inv;
        f32x8 xq = v_set(0.0f), qq = xq, sq = xq;
        for (int i = 0; i < n; i++) {
            const f32x8 q = v_clamp(v_round(inv * x[i] + off), 0.0f, hi);
            const f32x8 wq = q * w[i];
            xq += wq * x[i];
            qq += wq * q;
            sq += wq;
        }
        const f32x8 det = qq * sw - sq * sq;
        const i32x8 two = det > 1e-6f * (qq * sw), some = qq > 0.0f;
        const f32x8 det1 = v_select(two, det, v_set(1.0f)), qq1 = v_select(some, qq, v_set(1.0f));
        f32x8 s = (xq * sw - sq * sx) / det1, m = (sq * xq - qq * sx) / det1;
        i32x8 one = ~two;
        if (below) one |= m < 0.0f;
        one |= s < 0.0f;
        // One parameter: scale alone.
        f32x8 s1 = xq / qq1;
        s1 = v_select(some & (s1 > 0.0f), s1, v_set(0.0f));
        s = v_select(one, s1, s);
        m = v_select(one, v_set(0.0f), m);
        v_store(scale + 8 * v, s);
        v_store(min + 8 * v, m);
        v_store(gain + 8 * v, s * xq - m * sx);
    }
    const int b = best_of(gain, 8 * nv);
    *scale_out = scale[b];
    *min_out = min[b];
}
