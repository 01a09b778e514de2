// Reductions and normalisations of one row (see norm.h).
#include "kern/norm.h"
#include "simd/simd.h"
#include "simd/reduce.h"

#include <math.h>

// Sums expr over the row; a and b stand for the vectors at x and z. Lanes beyond the end hold zero, and so must expr there.
#define REDUCE(x, z, expr)                                                                                                  \
    struct vr acc = vr_set1(0.0f);                                                                                          \
    int64_t i = 0;                                                                                                          \
    for (; i + VR_LANES <= n; i += VR_LANES) {                                                                              \
        SIMD_UNROLL                                                                                                         \
        for (int k = 0; k < VR_N; k++) {                                                                                    \
            const vf a = vf_load((x) + i + k * VF_N), b = vf_load((z) + i + k * VF_N);                                      \
            acc.v[k] = vf_add(acc.v[k], expr);                                                                              \
        }                                                                                                                   \
    }                                                                                                                       \
    for (int k = 0; i < n; k++, i += VF_N) {                                                                                \
        const int m = vf_lanes(i, n);                                                                                       \
        const vf a = vf_load_n((x) + i, m), b = vf_load_n((z) + i, m);                                                      \
        acc.v[k] = vf_add(acc.v[k], expr);                                                                                  \
    }                                                                                                                       \
    return vr_hsum(acc)

static float sum(int64_t n, const float *x) { REDUCE(x, x, ((void) b, a)); }
static float sum_sqr(int64_t n, const float *x) { REDUCE(x, x, vf_mul(a, b)); }
static float dot(int64_t n, const float *x, const float *y) { REDUCE(x, y, vf_mul(a, b)); }

static float sum_dev(int64_t n, const float *x, float mean) {
    const vf c = vf_set1(mean);
    struct vr acc = vr_set1(0.0f);
    int64_t i = 0;
    for (; i + VR_LANES <= n; i += VR_LANES) {
        SIMD_UNROLL
        for (int k = 0; k < VR_N; k++) {
            const vf d = vf_sub(vf_load(x + i + k * VF_N), c);
            acc.v[k] = vf_add(acc.v[k], vf_mul(d, d));
        }
    }
    for (int k = 0; i < n; k++, i += VF_N) {
        const int m = vf_lanes(i, n);
        float d[VF_N];  // lanes beyond the end must stay zero, so they go through memory once
        vf_store(d, vf_set1(0.0f));
        vf_store_n(d, vf_sub(vf_load_n(x + i, m), c), m);
        const vf v = vf_load(d);
        acc.v[k] = vf_add(acc.v[k], vf_mul(v, v));
    }
    return vr_hsum(acc);
}

static float row_max(int64_t n, const float *x) {
    struct vr acc = vr_set1(-INFINITY);
    int64_t i = 0;
    for (; i + VR_LANES <= n; i += VR_LANES) {
        SIMD_UNROLL
        for (int k = 0; k < VR_N; k++) acc.v[k] = vf_max(vf_load(x + i + k * VF_N), acc.v[k]);
    }
    for (int k = 0; i < n; k++, i += VF_N) {
        const int m = vf_lanes(i, n);
        float t[VF_N];
        vf_store(t, vf_set1(-INFINITY));
        vf_store_n(t, vf_load_n(x + i, m), m);
        acc.v[k] = vf_max(vf_load(t), acc.v[k]);
    }
    return vr_hmax(acc);
}

static void scaled(int64_t n, float *y, const float *x, float s) {
    const vf k = vf_set1(s);
    int64_t i = 0;
    for (; i + VF_N <= n; i += VF_N) vf_store(y + i, vf_mul(vf_load(x + i), k));
    const int m = vf_lanes(i, n);
    if (m > 0) vf_store_n(y + i, vf_mul(vf_load_n(x + i, m), k), m);
}

static void rms(int64_t n, float *y, const float *x, const float *w, float eps) {
    const float s = 1.0f / sqrtf(sum_sqr(n, x) / (float) n + eps);
    if (!w) {
        scaled(n, y, x, s);
        return;
    }
    const vf k = vf_set1(s);
    int64_t i = 0;
    for (; i + VF_N <= n; i += VF_N) vf_store(y + i, vf_mul(vf_mul(vf_load(x + i), k), vf_load(w + i)));
    const int m = vf_lanes(i, n);
    if (m > 0) vf_store_n(y + i, vf_mul(vf_mul(vf_load_n(x + i, m), k), vf_load_n(w + i, m)), m);
}

static void shift_scale(int64_t n, float *y, const float *x, float shift, float scale) {
    const vf c = vf_set1(shift), k = vf_set1(scale);
    int64_t i = 0;
    for (; i + VF_N <= n; i += VF_N) vf_store(y + i, vf_mul(vf_add(vf_load(x + i), c), k));
    const int m = vf_lanes(i, n);
    if (m > 0) vf_store_n(y + i, vf_mul(vf_add(vf_load_n(x + i, m), c), k), m);
}

static void layer(int64_t n, float *y, const float *x, float eps) {
    const float mean = sum(n, x) / (float) n;
    const float var = sum_dev(n, x, mean) / (float) n;
    shift_scale(n, y, x, -mean, 1.0f / sqrtf(var + eps));
}

static void l2(int64_t n, float *y, const float *x, float eps) {
    const float len = sqrtf(sum_sqr(n, x));
    scaled(n, y, x, 1.0f / (len > eps ? len : eps));
}

static void rms_back(int64_t n, float *dx, const float *dy, const float *x, float eps) {
    const float xx = sum_sqr(n, x), xdy = dot(n, x, dy);
    const float s = 1.0f / sqrtf(xx / (float) n + eps), c = -xdy / (xx + eps * (float) n);
    const vf k = vf_set1(s), f = vf_set1(c);
    int64_t i = 0;
    for (; i + VF_N <= n; i += VF_N) vf_store(dx + i, vf_mul(vf_fma(vf_load(x + i), f, vf_load(dy + i)), k));
    const int m = vf_lanes(i, n);
    if (m > 0) vf_store_n(dx + i, vf_mul(vf_fma(vf_load_n(x + i, m), f, vf_load_n(dy + i, m)), k), m);
}

const struct kern_norm ISA_SYM(kern_norm) = {
    .sum = sum,
    .sum_sqr = sum_sqr,
    .sum_dev = sum_dev,
    .dot = dot,
    .max = row_max,
    .rms = rms,
    .layer = layer,
    .l2 = l2,
    .shift_scale = shift_scale,
    .rms_back = rms_back,
};
