// Losses and optimizer steps (see train.h).
#include "kern/train.h"
#include "simd/simd.h"
#include "simd/reduce.h"

static inline vf entropy_term(vf x, vf b, vf c) {
    const vf zero = vf_set1(0.0f);
    return vf_sel(vf_eq(b, zero), zero, vf_mul(b, vf_sub(c, x)));
}

static float cross_entropy(int64_t n, const float *x, const float *b, float c) {
    struct vr acc = vr_set1(0.0f);
    const vf cc = vf_set1(c);
    int64_t i = 0;
    for (; i + VR_LANES <= n; i += VR_LANES) {
        SIMD_UNROLL
        for (int k = 0; k < VR_N; k++)
            acc.v[k] = vf_add(acc.v[k], entropy_term(vf_load(x + i + k * VF_N), vf_load(b + i + k * VF_N), cc));
    }
    for (int k = 0; i < n; k++, i += VF_N) {
        const int m = vf_lanes(i, n);
        acc.v[k] = vf_add(acc.v[k], entropy_term(vf_load_n(x + i, m), vf_load_n(b + i, m), cc));
    }
    return vr_hsum(acc);
}

static void cross_entropy_back(int64_t n, float *dx, const float *e, const float *b, float sum, float scale) {
    const vf s = vf_set1(sum), f = vf_set1(scale);
    for (int64_t i = 0; i < n; i += VF_N) {
        const int m = vf_lanes(i, n);
        vf_store_n(dx + i, vf_mul(vf_sub(vf_div(vf_load_n(e + i, m), s), vf_load_n(b + i, m)), f), m);
    }
}

static void adamw(int64_t n, float *w, const float *g, float *m, float *v, const float *p) {
    const vf alpha = vf_set1(p[0]), beta1 = vf_set1(p[1]), beta2 = vf_set1(p[2]), eps = vf_set1(p[3]);
    const vf rest1 = vf_set1(1.0f - p[1]), rest2 = vf_set1(1.0f - p[2]);
    const vf keep = vf_set1(1.0f - p[0] * p[4]), scale1 = vf_set1(p[5]), scale2 = vf_set1(p[6]);
    for (int64_t i = 0; i < n; i += VF_N) {
        const int k = vf_lanes(i, n);
        const vf gi = vf_load_n(g + i, k);
        const vf mi = vf_add(vf_mul(vf_load_n(m + i, k), beta1), vf_mul(gi, rest1));
        const vf vi_ = vf_add(vf_mul(vf_load_n(v + i, k), beta2), vf_mul(vf_mul(gi, gi), rest2));
        const vf step = vf_div(vf_mul(mi, scale1), vf_add(vf_sqrt(vf_mul(vi_, scale2)), eps));
        vf_store_n(m + i, mi, k);
        vf_store_n(v + i, vi_, k);
        vf_store_n(w + i, vf_sub(vf_mul(vf_load_n(w + i, k), keep), vf_mul(alpha, step)), k);
    }
}

static void sgd(int64_t n, float *w, const float *g, const float *p) {
    const vf alpha = vf_set1(p[0]), keep = vf_set1(1.0f - p[0] * p[1]);
    for (int64_t i = 0; i < n; i += VF_N) {
        const int k = vf_lanes(i, n);
        vf_store_n(w + i, vf_sub(vf_mul(vf_load_n(w + i, k), keep), vf_mul(alpha, vf_load_n(g + i, k))), k);
    }
}

const struct kern_train ISA_SYM(kern_train) = {
    .cross_entropy = cross_entropy, .cross_entropy_back = cross_entropy_back, .adamw = adamw, .sgd = sgd};
