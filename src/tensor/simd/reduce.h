// Reductions over rows with one order at every ISA level: 32 running lanes, lane j takes elements j, j + 32, j + 64 ...,
// then the lanes are folded in halves (16 + 16, 8 + 8, ...). The order depends on the row's length alone.
#pragma once

#include "simd/simd.h"

#define VR_LANES 32
#define VR_N (VR_LANES / VF_N)

struct vr {
    vf v[VR_N];
};

static inline struct vr vr_set1(float x) {
    struct vr r;
    SIMD_UNROLL
    for (int k = 0; k < VR_N; k++) r.v[k] = vf_set1(x);
    return r;
}

#if defined(__AVX2__) && !defined(ISA_IS_scalar)
static inline float simd_fold8_sum(__m256 v) {
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}
static inline float simd_fold8_max(__m256 v) {
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}
#endif

// vf_hsum, vf_hmax: all lanes of one vector; vr_hsum, vr_hmax: of the 32.
#if defined(__AVX512F__) && !defined(ISA_IS_scalar)
static inline float vf_hsum(vf v) {
    return simd_fold8_sum(_mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1)));
}
static inline float vf_hmax(vf v) {
    return simd_fold8_max(_mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1)));
}
#elif defined(__AVX2__) && !defined(ISA_IS_scalar)
static inline float vf_hsum(vf v) { return simd_fold8_sum(v); }
static inline float vf_hmax(vf v) { return simd_fold8_max(v); }
#else
static inline float vf_hsum(vf v) {
    float x[VF_N];
    vf_store(x, v);
    for (int h = VF_N / 2; h > 0; h /= 2)
        for (int j = 0; j < h; j++) x[j] = x[j] + x[j + h];
    return x[0];
}
static inline float vf_hmax(vf v) {
    float x[VF_N];
    vf_store(x, v);
    for (int h = VF_N / 2; h > 0; h /= 2)
        for (int j = 0; j < h; j++) x[j] = x[j] > x[j + h] ? x[j] : x[j + h];
    return x[0];
}
#endif

static inline float vr_hsum(struct vr r) {
    SIMD_UNROLL
    for (int h = VR_N / 2; h > 0; h /= 2)
        for (int j = 0; j < h; j++) r.v[j] = vf_add(r.v[j], r.v[j + h]);
    return vf_hsum(r.v[0]);
}
static inline float vr_hmax(struct vr r) {
    SIMD_UNROLL
    for (int h = VR_N / 2; h > 0; h /= 2)
        for (int j = 0; j < h; j++) r.v[j] = vf_max(r.v[j], r.v[j + h]);
    return vf_hmax(r.v[0]);
}
