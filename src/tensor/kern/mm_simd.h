// What the matrix kernels need beyond the SIMD vocabulary: parts of vectors, a value of memory in every lane, and the load
// that turns L rows into lanes. The scalar level has plain kernels of its own (mm_ref.c) and none of this.
#pragma once

#include "simd/simd.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL SIMD_UNROLL
#define MM_L VF_N

INLINE vf vf_zero(void) { return vf_set1(0.0f); }

INLINE vf vf_bcast(const void *p) {
    float f;
    memcpy(&f, p, 4);
    return vf_set1(f);
}

#if !defined(ISA_IS_scalar)
INLINE vi vi_load(const void *p) {
    vi x;
    memcpy(&x, p, sizeof x);
    return x;
}
INLINE void vi_store(void *p, vi x) { memcpy(p, &x, sizeof x); }

// Shifts of 32-bit lanes whose count need only be a constant after unrolling.
typedef uint32_t vu_lanes __attribute__((vector_size(4 * VF_N)));
typedef int32_t vs_lanes __attribute__((vector_size(4 * VF_N)));
INLINE vi sl(vi x, int n) { return (vi) ((vu_lanes) x << n); }
INLINE vi sr(vi x, int n) { return (vi) ((vu_lanes) x >> n); }
INLINE vi sra(vi x, int n) { return (vi) ((vs_lanes) x >> n); }

// L rows `s` bytes apart, walked together: p[q] is row 4q, so that every row is one addition away. The compiler is kept from
// making up pointers of its own, which it would spill.
enum { ROW_QUARTERS = VF_N / 4 };
struct rows {
    const uint8_t *p[ROW_QUARTERS];
    size_t s, s3;
};
#define OPAQUE(x) __asm__("" : "+r"(x))

INLINE struct rows rows_at(const uint8_t *p, size_t stride) {
    struct rows r = {.s = stride, .s3 = 3 * stride};
    UNROLL for (int q = 0; q < ROW_QUARTERS; q++) r.p[q] = p + (size_t) (4 * q) * stride;
    OPAQUE(r.s);
    OPAQUE(r.s3);
    return r;
}
INLINE void rows_advance(struct rows *r, size_t bytes) {
    UNROLL for (int q = 0; q < ROW_QUARTERS; q++) {
        r->p[q] += bytes;
        OPAQUE(r->p[q]);
    }
}
INLINE const uint8_t *rows_get(const struct rows *r, int i) {
    const int q = i % 4;
    return r->p[i / 4] + (q == 0 ? 0 : q == 1 ? r->s : q == 2 ? 2 * r->s : r->s3);
}

// Asks for `bytes` of each of L rows, to the second-level cache: the first one has no room for so many rows. What reads ahead by itself
// stops at the end of a page, and a row is often as long as one.
INLINE void ask_ahead(const uint8_t *p, size_t stride, size_t bytes) {
    const struct rows r = rows_at(p, stride);
    for (size_t at = 0; at < bytes; at += 64) {
        UNROLL for (int i = 0; i < MM_L; i++) __builtin_prefetch(rows_get(&r, i) + at, 0, 2);
    }
}

#if defined(__AVX512F__)
// Lanes from .. to - 1 of the vector at p; zeros elsewhere, and nothing else is touched.
INLINE __mmask16 span_mask(int from, int to) { return (__mmask16) (((1u << to) - 1) & (0xffffu << from)); }
INLINE vf vf_load_span(const float *p, int from, int to) { return _mm512_maskz_loadu_ps(span_mask(from, to), p); }
INLINE void vf_store_span(float *p, vf x, int from, int to) { _mm512_mask_storeu_ps(p, span_mask(from, to), x); }

INLINE vi load_quarters(const struct rows *r, size_t at) {
    return avx512_quarters(r->p[0] + at, r->p[1] + at, r->p[2] + at, r->p[3] + at);
}
#define VI_(name) _mm512_##name
#elif defined(__AVX2__)
INLINE __m256i span_mask(int from, int to) { return _mm256_andnot_si256(avx2_mask(from), avx2_mask(to)); }
INLINE vf vf_load_span(const float *p, int from, int to) { return _mm256_maskload_ps(p, span_mask(from, to)); }
INLINE void vf_store_span(float *p, vf x, int from, int to) { _mm256_maskstore_ps(p, span_mask(from, to), x); }

INLINE vi load_quarters(const struct rows *r, size_t at) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *) (r->p[0] + at))),
                                   _mm_loadu_si128((const __m128i *) (r->p[1] + at)), 1);
}
#define VI_(name) _mm256_##name
#else
INLINE vf vf_load_span(const float *p, int from, int to) {
    float t[VF_N] = {0};
    memcpy(t + from, p + from, 4 * (size_t) (to - from));
    return vf_load(t);
}
INLINE void vf_store_span(float *p, vf x, int from, int to) {
    float t[VF_N];
    vf_store(t, x);
    memcpy(p + from, t + from, 4 * (size_t) (to - from));
}
#endif

// 16 bytes at `at` of each of L rows, transposed as 4-byte words: out[w] holds word w of every row, one row per lane.
#if defined(VI_)
INLINE void load_words(const struct rows *r, size_t at, vi out[4]) {
    const vi a = load_quarters(r, at), b = load_quarters(r, at + r->s);
    const vi c = load_quarters(r, at + 2 * r->s), d = load_quarters(r, at + r->s3);
    const vi ab0 = VI_(unpacklo_epi32)(a, b), ab1 = VI_(unpackhi_epi32)(a, b);
    const vi cd0 = VI_(unpacklo_epi32)(c, d), cd1 = VI_(unpackhi_epi32)(c, d);
    out[0] = VI_(unpacklo_epi64)(ab0, cd0);
    out[1] = VI_(unpackhi_epi64)(ab0, cd0);
    out[2] = VI_(unpacklo_epi64)(ab1, cd1);
    out[3] = VI_(unpackhi_epi64)(ab1, cd1);
}
#else
INLINE void load_words(const struct rows *r, size_t at, vi out[4]) {
    const uint8_t *p = r->p[0] + at;
    const int32x4_t a = vreinterpretq_s32_u8(vld1q_u8(p)), b = vreinterpretq_s32_u8(vld1q_u8(p + r->s));
    const int32x4_t c = vreinterpretq_s32_u8(vld1q_u8(p + 2 * r->s)), d = vreinterpretq_s32_u8(vld1q_u8(p + r->s3));
    const int32x4x2_t ab = vtrnq_s32(a, b), cd = vtrnq_s32(c, d);
    out[0] = vcombine_s32(vget_low_s32(ab.val[0]), vget_low_s32(cd.val[0]));
    out[1] = vcombine_s32(vget_low_s32(ab.val[1]), vget_low_s32(cd.val[1]));
    out[2] = vcombine_s32(vget_high_s32(ab.val[0]), vget_high_s32(cd.val[0]));
    out[3] = vcombine_s32(vget_high_s32(ab.val[1]), vget_high_s32(cd.val[1]));
}
#endif
#endif
