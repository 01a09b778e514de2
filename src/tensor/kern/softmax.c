// Softmax of one row (see softmax.h).
#include "kern/softmax.h"
#include "simd/simd.h"
#include "simd/math.h"
#include "simd/reduce.h"

static void logits(int64_t n, float *y, const float *x, float scale, const float *mask, float slope) {
    const vf s = vf_set1(scale), b = vf_set1(slope);
    int64_t i = 0;
    if (!mask) {
        for (; i + VF_N <= n; i += VF_N) vf_store(y + i, vf_mul(vf_load(x + i), s));
        const int m = vf_lanes(i, n);
        if (m > 0) vf_store_n(y + i, vf_mul(vf_load_n(x + i, m), s), m);
        return;
    }
    for (; i + VF_N <= n; i += VF_N) vf_store(y + i, vf_add(vf_mul(vf_load(x + i), s), vf_mul(vf_load(mask + i), b)));
    const int m = vf_lanes(i, n);
    if (m > 0) vf_store_n(y + i, vf_add(vf_mul(vf_load_n(x + i, m), s), vf_mul(vf_load_n(mask + i, m), b)), m);
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

static void scale_row(int64_t n, float *y, float s) { logits(n, y, y, s, NULL, 0.0f); }

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
