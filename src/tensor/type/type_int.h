// Private parts of type/: what the files of the types share. Search loops of the quantizers are in search_int.h.
#pragma once

#include "base/half.h"
#include "type/blocks.h"
#include "type/type.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON) && !defined(ISA_IS_scalar)
#include <arm_neon.h>
#define TYPE_NEON 1
#endif

// Helpers that are only fast when they disappear.
#define VEC static inline __attribute__((always_inline))

// ---- row functions made from block functions ------------------------------------------------------------------------
// A type's file defines decode_block, encode_block, dot_block, check_block for one block; these make the row functions.
#define TYPE_DECODE(name, nb)                                                                                               \
    static void decode(const void *x, float *y, int64_t n) {                                                                \
        const struct block_##name *b = x;                                                                                   \
        for (int64_t i = 0; i < n / (nb); i++) decode_block(b + i, y + i * (nb));                                           \
    }
// ints_block(b, q, s): nb integers and a scale for each 16 of them.
#define TYPE_INTS(name, nb)                                                                                                 \
    static void ints(const void *x, int8_t *q, float *s, int64_t n) {                                                       \
        const struct block_##name *b = x;                                                                                   \
        for (int64_t i = 0; i < n / (nb); i++) ints_block(b + i, q + i * (nb), s + i * ((nb) / 16));                        \
    }
#define TYPE_ENCODE(name, nb)                                                                                               \
    static void encode(const float *x, void *y, int64_t n) {                                                                \
        struct block_##name *b = y;                                                                                         \
        for (int64_t i = 0; i < n / (nb); i++) encode_block(x + i * (nb), b + i);                                           \
    }
// ratio: blocks of the other operand per block. Blocks are added one after the other: the same order at every level.
#define TYPE_DOT(name, nb, other, ratio)                                                                                    \
    static void dot(int64_t n, float *s, const void *x, const void *y) {                                                    \
        const struct block_##name *a = x;                                                                                   \
        const struct block_##other *b = y;                                                                                  \
        float sum = 0.0f;                                                                                                   \
        for (int64_t i = 0; i < n / (nb); i++) sum += dot_block(a + i, b + i * (ratio));                                    \
        *s = sum;                                                                                                           \
    }
// quantize_block(x, w, b): w the importance of the block's elements (any finite values >= 0) or NULL.
#define TYPE_QUANTIZE(name, nb)                                                                                             \
    static size_t quantize(const float *x, void *y, int64_t n_rows, int64_t n_per_row, const float *imatrix) {              \
        struct block_##name *b = y;                                                                                         \
        for (int64_t r = 0; r < n_rows; r++)                                                                                \
            for (int64_t i = 0; i < n_per_row; i += (nb), x += (nb)) quantize_block(x, imatrix ? imatrix + i : NULL, b++);  \
        return (size_t) ((char *) b - (char *) y);                                                                          \
    }
#define TYPE_CHECK(name)                                                                                                    \
    static bool check(const void *x, size_t bytes) {                                                                        \
        const struct block_##name *b = x;                                                                                   \
        for (size_t i = 0; i < bytes / sizeof(*b); i++)                                                                     \
            if (!check_block(b + i)) return false;                                                                          \
        return true;                                                                                                        \
    }

// ---- scales -----------------------------------------------------------------------------------------------------------
static inline bool half_finite(uint16_t h) { return (h & 0x7c00) != 0x7c00; }

// A scale as half. Finite ones are clamped to the finite halves: no encoder makes infinity or NaN out of finite values.
static inline uint16_t half_scale(float f) {
    const float top = 65504.0f;
    if (isinf(f)) return f32_to_f16(f);
    return f32_to_f16(f > top ? top : f < -top ? -top : f);
}

// 1 / d for a scale d that is stored as half h: 0 where h is zero (all values of the block become the one that decodes to
// zero), the inverse of the stored scale where h was clamped.
static inline float inverse(float d, uint16_t h) {
    if ((h & 0x7fff) == 0) return 0.0f;
    return 1.0f / (fabsf(d) > 65504.0f ? f16_to_f32(h) : d);
}

// Nearest integer, ties to even, for |f| < 2^22.
static inline int round_int(float f) { return (int) (f32_bits(f + 12582912.0f) & 0x7fffff) - 0x400000; }
static inline float clamp_float(float f, float top) { return f < -top ? -top : f > top ? top : f; }
static inline int clamp_int(int v, int lo, int hi) { return v < lo ? lo : v > hi ? hi : v; }

// ---- descriptors ------------------------------------------------------------------------------------------------------
// All row functions of a quantized format whose block functions have the usual names.
#define TYPE_ROWS(name, nb, other, ratio)                                                                                   \
    TYPE_DECODE(name, nb)                                                                                                   \
    TYPE_ENCODE(name, nb)                                                                                                   \
    TYPE_QUANTIZE(name, nb)                                                                                                 \
    TYPE_DOT(name, nb, other, ratio)                                                                                        \
    TYPE_CHECK(name)

// Fields of a quantized format whose row functions have the usual names.
#define TYPE_QUANTIZED(ID, name_, nb)                                                                                       \
    .id = GGML_TYPE_##ID, .name = #name_, .block = (nb), .size = sizeof(struct block_##name_), .quantized = true,           \
    .decode = decode, .encode = encode, .dot = dot, .check = check, .quantize = quantize

// ---- integer dot products ----------------------------------------------------------------------------------------------
// Exact, so neither order nor instructions matter.
#if defined(__AVX2__)
VEC __m256i products_16(const int8_t *a, const int8_t *b) {  // eight sums of two
    const __m256i x = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *) (const void *) a));
    const __m256i y = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *) (const void *) b));
    return _mm256_madd_epi16(x, y);
}
VEC int32_t sum_of_8(__m256i v) {
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
    return _mm_cvtsi128_si32(s);
}
VEC int32_t dot_i8_16(const int8_t *a, const int8_t *b) { return sum_of_8(products_16(a, b)); }
VEC int32_t dot_i8_32(const int8_t *a, const int8_t *b) {
    return sum_of_8(_mm256_add_epi32(products_16(a, b), products_16(a + 16, b + 16)));
}
#elif TYPE_NEON
VEC int32x4_t products_16(const int8_t *a, const int8_t *b) {  // four sums of four
    const int8x16_t x = vld1q_s8(a), y = vld1q_s8(b);
    return vpadalq_s16(vpaddlq_s16(vmull_s8(vget_low_s8(x), vget_low_s8(y))), vmull_high_s8(x, y));
}
VEC int32_t dot_i8_16(const int8_t *a, const int8_t *b) { return vaddvq_s32(products_16(a, b)); }
VEC int32_t dot_i8_32(const int8_t *a, const int8_t *b) {
    return vaddvq_s32(vaddq_s32(products_16(a, b), products_16(a + 16, b + 16)));
}
#else
VEC int32_t dot_i8_16(const int8_t *restrict a, const int8_t *restrict b) {
    int32_t s = 0;
    for (int i = 0; i < 16; i++) s += a[i] * b[i];
    return s;
}
VEC int32_t dot_i8_32(const int8_t *restrict a, const int8_t *restrict b) {
    return dot_i8_16(a, b) + dot_i8_16(a + 16, b + 16);
}
#endif

// sum_j sc[j] * (a . b over the j-th `each` elements), each = 16 or 32
VEC int32_t dot_scaled(const int8_t *a, const int8_t *b, const int8_t *sc, int n, int each) {
#if defined(__AVX2__)
    __m256i s = _mm256_setzero_si256();
    for (int j = 0; j < n; j++, a += each, b += each) {
        __m256i p = products_16(a, b);
        if (each == 32) p = _mm256_add_epi32(p, products_16(a + 16, b + 16));
        s = _mm256_add_epi32(s, _mm256_mullo_epi32(p, _mm256_set1_epi32(sc[j])));
    }
    return sum_of_8(s);
#elif TYPE_NEON
    int32x4_t s = vdupq_n_s32(0);
    for (int j = 0; j < n; j++, a += each, b += each) {
        int32x4_t p = products_16(a, b);
        if (each == 32) p = vaddq_s32(p, products_16(a + 16, b + 16));
        s = vmlaq_n_s32(s, p, sc[j]);
    }
    return vaddvq_s32(s);
#else
    int32_t s = 0;
    for (int j = 0; j < n; j++, a += each, b += each) s += sc[j] * (each == 32 ? dot_i8_32(a, b) : dot_i8_16(a, b));
    return s;
#endif
}

static inline int32_t sum_i8_16(const int8_t *restrict a) {
    int32_t s = 0;
    for (int i = 0; i < 16; i++) s += a[i];
    return s;
}
static inline int32_t sum_i8_32(const int8_t *restrict a) {
    int32_t s = 0;
    for (int i = 0; i < 32; i++) s += a[i];
    return s;
}

// ---- values times a scale ----------------------------------------------------------------------------------------------
// y[i] = d * q[i], or d * q[i] - m. Sixteen at a time: what was written as halves of a register is read back as halves.
static inline void scale_16(const int8_t *restrict q, float d, float *restrict y) {
    for (int i = 0; i < 16; i++) y[i] = d * (float) q[i];
}
static inline void scale_32(const int8_t *restrict q, float d, float *restrict y) {
    scale_16(q, d, y);
    scale_16(q + 16, d, y + 16);
}
static inline void scale_min_16(const int8_t *restrict q, float d, float m, float *restrict y) {
    for (int i = 0; i < 16; i++) y[i] = d * (float) q[i] - m;
}
static inline void scale_min_32(const int8_t *restrict q, float d, float m, float *restrict y) {
    scale_min_16(q, d, m, y);
    scale_min_16(q + 16, d, m, y + 16);
}

// ---- bits to bytes ----------------------------------------------------------------------------------------------------
// Eight bytes that are 0 or 1, byte i from bit i of bits.
static inline uint64_t spread_bits(uint8_t bits) {
    const uint64_t ones = 0x0101010101010101u;
    return ((ones * bits & 0x8040201008040201u) + 0x7f * ones) >> 7 & ones;
}

// Five-bit values: nibbles of qs (element i low, i + 16 high) plus bit i of qh as 16.
static inline void five_bits(const uint8_t *restrict qs, const uint8_t *restrict qh, uint8_t *restrict q) {
    uint32_t h;
    memcpy(&h, qh, 4);
#if defined(__AVX2__)
    const __m256i byte = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((int64_t) 0x8040201008040201u);
    const __m256i spread = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32((int32_t) h), byte), bit);
    const __m256i high = _mm256_and_si256(_mm256_cmpeq_epi8(spread, bit), _mm256_set1_epi8(16));
    const __m128i w = _mm_loadu_si128((const __m128i *) (const void *) qs);
    const __m256i low = _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(w, 4), w), _mm256_set1_epi8(15));
    _mm256_storeu_si256((__m256i *) (void *) q, _mm256_or_si256(low, high));
#else
    for (int i = 0; i < 16; i++) {
        q[i] = (uint8_t) ((qs[i] & 15) | (h >> i & 1) << 4);
        q[i + 16] = (uint8_t) (qs[i] >> 4 | (h >> (i + 16) & 1) << 4);
    }
#endif
}

static inline void five_bits_pack(const uint8_t *restrict q, uint8_t *restrict qs, uint8_t *restrict qh) {
    uint32_t h = 0;
    for (int i = 0; i < 32; i++) h |= (uint32_t) (q[i] >> 4) << i;
    memcpy(qh, &h, 4);
    for (int i = 0; i < 16; i++) qs[i] = (uint8_t) ((q[i] & 15) | (q[i + 16] & 15) << 4);
}

// ---- table lookups ----------------------------------------------------------------------------------------------------
// q[i] = table[idx[i]] for 16 indices below 16.
static inline void lookup_16(const int8_t *restrict table, const uint8_t *restrict idx, int8_t *restrict q) {
#if defined(__AVX2__)
    const __m128i t = _mm_loadu_si128((const __m128i *) (const void *) table);
    const __m128i i = _mm_loadu_si128((const __m128i *) (const void *) idx);
    _mm_storeu_si128((__m128i *) (void *) q, _mm_shuffle_epi8(t, i));
#elif TYPE_NEON
    vst1q_s8(q, vqtbl1q_s8(vld1q_s8(table), vld1q_u8(idx)));
#else
    for (int i = 0; i < 16; i++) q[i] = table[idx[i]];
#endif
}

// 32 values from 16 bytes of indices: low nibbles, then high ones.
static inline void lookup_nibbles(const int8_t *restrict table, const uint8_t *restrict qs, int8_t *restrict q) {
    uint8_t idx[32];
    for (int i = 0; i < 16; i++) {
        idx[i] = qs[i] & 15;
        idx[i + 16] = qs[i] >> 4;
    }
    lookup_16(table, idx, q);
    lookup_16(table, idx + 16, q + 16);
}
