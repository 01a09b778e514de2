// Rotations by pairs (see rope.h). Each result is one product rounded, then one fma.
#include "kern/rope.h"
#include "simd/simd.h"
#include "simd/math.h"

static void angles(int64_t n, float *c, float *s, const float *t, float m) {
    const vf k = vf_set1(m);
    for (int64_t i = 0; i < n; i += VF_N) {
        const int l = vf_lanes(i, n);
        vf sv, cv;
        vf_sincos(vf_load_n(t + i, l), &sv, &cv);
        vf_store_n(c + i, vf_mul(cv, k), l);
        vf_store_n(s + i, vf_mul(sv, k), l);
    }
}

static inline void turn(vf a, vf b, vf c, vf s, vf *ya, vf *yb) {
    *ya = vf_fma(a, c, vf_neg(vf_mul(b, s)));
    *yb = vf_fma(a, s, vf_mul(b, c));
}

static void halves(int64_t n, int64_t off, float *y, const float *x, const float *c, const float *s) {
    int64_t i = 0;
    vf a, b;
    for (; i + VF_N <= n; i += VF_N) {
        turn(vf_load(x + i), vf_load(x + i + off), vf_load(c + i), vf_load(s + i), &a, &b);
        vf_store(y + i, a);
        vf_store(y + i + off, b);
    }
    const int m = vf_lanes(i, n);
    if (m == 0) return;
    turn(vf_load_n(x + i, m), vf_load_n(x + i + off, m), vf_load_n(c + i, m), vf_load_n(s + i, m), &a, &b);
    vf_store_n(y + i, a, m);
    vf_store_n(y + i + off, b, m);
}

static void pairs(int64_t n, float *y, const float *x, const float *c, const float *s) {
    int64_t i = 0;
    vf a, b;
    for (; i + VF_N <= n; i += VF_N) {
        vf_load2(x + 2 * i, &a, &b);
        turn(a, b, vf_load(c + i), vf_load(s + i), &a, &b);
        vf_store2(y + 2 * i, a, b);
    }
    const int m = vf_lanes(i, n);
    if (m == 0) return;
    float t[2 * VF_N] = {0};
    memcpy(t, x + 2 * i, (size_t) m * 2 * sizeof(float));
    vf_load2(t, &a, &b);
    turn(a, b, vf_load_n(c + i, m), vf_load_n(s + i, m), &a, &b);
    vf_store2(t, a, b);
    memcpy(y + 2 * i, t, (size_t) m * 2 * sizeof(float));
}

const struct kern_rope ISA_SYM(kern_rope) = {.angles = angles, .halves = halves, .pairs = pairs};
