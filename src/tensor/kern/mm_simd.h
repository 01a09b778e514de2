// The vectors that the matrix kernels are written in: L lanes of 32 bits, at each level the widest there are. The scalar level
// has its own plain kernels (mm_ref.c) and none of this.
#pragma once

#include "kern/isa.h"

#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

#if defined(ISA_IS_scalar)
#define MM_L 1
#elif defined(__AVX512F__)
#include <immintrin.h>
#define MM_L 16
typedef __m512 vf;
typedef __m512i vi;
INLINE vf vf_zero(void) { return _mm512_setzero_ps(); }
INLINE vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
INLINE void vf_store(float *p, vf x) { _mm512_storeu_ps(p, x); }
INLINE __mmask16 lanes_between(int from, int to) { return (__mmask16) (((1u << to) - 1) & (0xffffu << from)); }
INLINE vf vf_load_span(const float *p, int from, int to) { return _mm512_maskz_loadu_ps(lanes_between(from, to), p); }
INLINE void vf_store_span(float *p, vf x, int from, int to) { _mm512_mask_storeu_ps(p, lanes_between(from, to), x); }
INLINE vf vf_bcast(const void *p) {
    float f;
    memcpy(&f, p, 4);
    return _mm512_set1_ps(f);
}
INLINE vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
INLINE vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
INLINE vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
INLINE vf vf_from_f16(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *) p)); }
INLINE vf vf_from_bf16(const uint16_t *p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *) p)), 16));
}
INLINE vi load_quarters(const uint8_t *p, size_t s) {
    __m512i x = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *) p));
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *) (p + 4 * s)), 1);
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *) (p + 8 * s)), 2);
    return _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *) (p + 12 * s)), 3);
}
#define VI_(name) _mm512_##name
#elif defined(__AVX2__)
#include <immintrin.h>
#define MM_L 8
typedef __m256 vf;
typedef __m256i vi;
INLINE vf vf_zero(void) { return _mm256_setzero_ps(); }
INLINE vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
INLINE __m256i lanes_between(int from, int to) {
    const __m256i i = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(from), i), _mm256_cmpgt_epi32(_mm256_set1_epi32(to), i));
}
INLINE void vf_store(float *p, vf x) { _mm256_storeu_ps(p, x); }
INLINE vf vf_load_span(const float *p, int from, int to) { return _mm256_maskload_ps(p, lanes_between(from, to)); }
INLINE void vf_store_span(float *p, vf x, int from, int to) { _mm256_maskstore_ps(p, lanes_between(from, to), x); }
INLINE vf vf_bcast(const void *p) { return _mm256_broadcast_ss((const float *) p); }
INLINE vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
INLINE vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
INLINE vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
INLINE vf vf_from_f16(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) p)); }
INLINE vf vf_from_bf16(const uint16_t *p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *) p)), 16));
}
INLINE vi load_quarters(const uint8_t *p, size_t s) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *) p)),
                                   _mm_loadu_si128((const __m128i *) (p + 4 * s)), 1);
}
#define VI_(name) _mm256_##name
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#define MM_L 4
typedef float32x4_t vf;
typedef int32x4_t vi;
INLINE vf vf_zero(void) { return vdupq_n_f32(0); }
INLINE vf vf_load(const float *p) { return vld1q_f32(p); }
INLINE vf vf_load_span(const float *p, int from, int to) {
    float t[4] = {0};
    memcpy(t + from, p + from, 4 * (size_t) (to - from));
    return vld1q_f32(t);
}
INLINE void vf_store(float *p, vf x) { vst1q_f32(p, x); }
INLINE void vf_store_span(float *p, vf x, int from, int to) {
    float t[4];
    vst1q_f32(t, x);
    memcpy(p + from, t + from, 4 * (size_t) (to - from));
}
INLINE vf vf_bcast(const void *p) { return vld1q_dup_f32((const float *) p); }
INLINE vf vf_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
INLINE vf vf_add(vf a, vf b) { return vaddq_f32(a, b); }
INLINE vf vf_mul(vf a, vf b) { return vmulq_f32(a, b); }
INLINE vf vf_from_f16(const uint16_t *p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
INLINE vf vf_from_bf16(const uint16_t *p) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16)); }
#endif

#if defined(VI_)
// 16 bytes of each of L rows, transposed as 4-byte words: out[w] holds word w of every row, one row per lane.
INLINE void load_words(const uint8_t *p, size_t s, vi out[4]) {
    const vi a = load_quarters(p, s), b = load_quarters(p + s, s);
    const vi c = load_quarters(p + 2 * s, s), d = load_quarters(p + 3 * s, s);
    const vi ab0 = VI_(unpacklo_epi32)(a, b), ab1 = VI_(unpackhi_epi32)(a, b);
    const vi cd0 = VI_(unpacklo_epi32)(c, d), cd1 = VI_(unpackhi_epi32)(c, d);
    out[0] = VI_(unpacklo_epi64)(ab0, cd0);
    out[1] = VI_(unpackhi_epi64)(ab0, cd0);
    out[2] = VI_(unpacklo_epi64)(ab1, cd1);
    out[3] = VI_(unpackhi_epi64)(ab1, cd1);
}
INLINE void vi_store(void *p, vi x) { memcpy(p, &x, sizeof x); }
INLINE vi vi_load(const void *p) {
    vi x;
    memcpy(&x, p, sizeof x);
    return x;
}
#elif defined(__ARM_NEON) && !defined(ISA_IS_scalar)
INLINE void load_words(const uint8_t *p, size_t s, vi out[4]) {
    const int32x4_t a = vreinterpretq_s32_u8(vld1q_u8(p)), b = vreinterpretq_s32_u8(vld1q_u8(p + s));
    const int32x4_t c = vreinterpretq_s32_u8(vld1q_u8(p + 2 * s)), d = vreinterpretq_s32_u8(vld1q_u8(p + 3 * s));
    const int32x4x2_t ab = vtrnq_s32(a, b), cd = vtrnq_s32(c, d);
    out[0] = vcombine_s32(vget_low_s32(ab.val[0]), vget_low_s32(cd.val[0]));
    out[1] = vcombine_s32(vget_low_s32(ab.val[1]), vget_low_s32(cd.val[1]));
    out[2] = vcombine_s32(vget_high_s32(ab.val[0]), vget_high_s32(cd.val[0]));
    out[3] = vcombine_s32(vget_high_s32(ab.val[1]), vget_high_s32(cd.val[1]));
}
INLINE void vi_store(void *p, vi x) { vst1q_s32((int32_t *) p, x); }
INLINE vi vi_load(const void *p) { return vld1q_s32((const int32_t *) p); }
#endif
