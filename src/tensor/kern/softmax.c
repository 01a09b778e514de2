// Softmax of one row (see softmax.h).
#include "kern/softmax.h"
#include "simd/simd.h"
#include "simd/math.h"
#include "simd/reduce.h"

static inline vf logit(vf x, vf scale, vf mask, vf slope, int masked) {
    const vf v = vf_mul(x, scale);
    return masked ? vf_add(v, vf_mul(mask, slope)) : v;
}

static inline float logits_of(int64_t n, float *y, const float *x, float scale, const float *mask, float slope, int masked) {
    const vf s = vf_set1(scale), b = vf_set1(slope);
    struct vr acc = vr_set1(-INFINITY);
    int64_t i = 0;
    for (; i + VR_LANES <= n; i += VR_LANES) {
        SIMD_UNROLL
        for (int k = 0; k < VR_N; k++) {
            const int64_t at = i + k * VF_N;
            const vf v = logit(vf_load(x + at), s, masked ? vf_load(mask + at) : s, b, masked);
            vf_store(y + at, v);
            acc.v[k] = vf_max(v, acc.v[k]);
        }
    }
    for (int k = 0; i < n; k++, i += VF_N) {
        const int m = vf_lanes(i, n);
        float t[VF_N];  // lanes beyond the end must not count as 0
        vf_store(t, vf_set1(-INFINITY));
        vf_store_n(t, logit(vf_load_n(x + i, m), s, masked ? vf_load_n(mask + i, m) : s, b, masked), m);
        vf_store_n(y + i, vf_load(t), m);
        acc.v[k] = vf_max(vf_load(t), acc.v[k]);
    }
    return vr_hmax(acc);
}

static float logits(int64_t n, float *y, const float *x, float scale, const float *mask, float slope) {
    return mask ? logits_of(n, y, x, scale, mask, slope, 1) : logits_of(n, y, x, scale, NULL, slope, 0);
}

static float exp_sum(int64_t n, float *y, const float *x, float max) {
    const vf c = vf_set1(max);
    struct vr acc = vr_set1(0.0f);
    int64_t i = 0;
    for (; i + VR_LANES <= n; i += VR_LANES) {
        SIMD_UNROLL
        for (int k = 0; k < VR_N; k++) {
            const vf e = vf_exp(vf_sub(vf_load(x + i + k * VF_N), c));
            vf_store(y + i + k * VF_N, e);
            acc.v[k] = vf_add(acc.v[k], e);
        }
    }
    for (int k = 0; i < n; k++, i += VF_N) {
        const int m = vf_lanes(i, n);
        vf_store_n(y + i, vf_exp(vf_sub(vf_load_n(x + i, m), c)), m);
        acc.v[k] = vf_add(acc.v[k], vf_load_n(y + i, m));  // loaded back: zero beyond the end
    }
    return vr_hsum(acc);
}

static void scale_row(int64_t n, float *y, float s) {
    const vf k = vf_set1(s);
    int64_t i = 0;
    for (; i + VF_N <= n; i += VF_N) vf_store(y + i, vf_mul(vf_load(y + i), k));
    const int m = vf_lanes(i, n);
    if (m > 0) vf_store_n(y + i, vf_mul(vf_load_n(y + i, m), k), m);
}

static void back(int64_t n, float *dx, const float *dy, const float *y, float scale) {
    struct vr acc = vr_set1(0.0f);
    int64_t i = 0;
    for (; i + VR_LANES <= n; i += VR_LANES) {
        SIMD_UNROLL
        for (int k = 0; k < VR_N; k++)
            acc.v[k] = vf_add(acc.v[k], vf_mul(vf_load(dy + i + k * VF_N), vf_load(y + i + k * VF_N)));
    }
    for (int k = 0; i < n; k++, i += VF_N) {
        const int m = vf_lanes(i, n);
        acc.v[k] = vf_add(acc.v[k], vf_mul(vf_load_n(dy + i, m), vf_load_n(y + i, m)));
    }
    const vf c = vf_set1(vr_hsum(acc)), s = vf_set1(scale);
    for (i = 0; i < n; i += VF_N) {
        const int m = vf_lanes(i, n);
        const vf g = vf_sub(vf_load_n(dy + i, m), c);
        vf_store_n(dx + i, vf_mul(vf_mul(g, vf_load_n(y + i, m)), s), m);
    }
}

const struct kern_softmax ISA_SYM(kern_softmax) = {.logits = logits, .exp_sum = exp_sum, .scale = scale_row, .back = back};
