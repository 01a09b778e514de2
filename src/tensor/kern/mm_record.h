// Activations in 8 bits: records of 32 values of a column. q = round(x / d), d = max |x| / 127; or, in blocks of 256 that share d,
// q = round(x / (d * unit)), unit being the least power of two up to 1 that keeps q within 127. Sums are kept exact (or in F32), never
// in half precision, so that large activations stay finite. The same bits at every level.
#pragma once

#include "kern/mm_simd.h"

#include <math.h>

struct mm_record {
    int8_t q[32];
    float d;
    // Of each 16 values, or first that of all 32: -offset * sum of q, which undoes the offset of unsigned weights, in blocks plus the bits
    // of base; where the first is for all 32, the second holds the sums of q of 16 each, in 16 bits. Or, for types that have minima,
    // d (in blocks: unit) * sum of q.
    union {
        int32_t correction[2];
        float sum[2];
    };
    float base;  // in blocks: 1.5 * 2^23 * unit. An integer added to its bits adds so many units to its value.
};

_Static_assert(sizeof(struct mm_record) == 48, "records are 48 bytes");

// Columns start at odd multiples of 64 bytes, so that equal places of neighbours do not meet in one set of the cache.
static inline size_t mm_record_bytes(int64_t k) {
    return ((size_t) (k / 32) * sizeof(struct mm_record) / 64 + 1) / 2 * 128 + 64;
}

// record_top: the largest magnitude of 32 values, NaN being the largest of all. record_round: integers of 32 values,
// and the two sums of 16; NaN gives 0.
#if !defined(ISA_IS_scalar) && defined(__AVX512F__)
static inline float record_top(const float *x) {
    const __m512i mask = _mm512_set1_epi32(0x7fffffff);
    __m512i m = _mm512_setzero_si512();
    for (int i = 0; i < 32; i += 16) m = _mm512_max_epi32(m, _mm512_and_si512(_mm512_loadu_si512(x + i), mask));
    return f32_from_bits((uint32_t) _mm512_reduce_max_epi32(m));
}
static inline void record_round(const float *x, float scale, int8_t *q, int32_t *sum) {
    const __m512 inv = _mm512_set1_ps(scale);
    const __m512i qa = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), inv));
    const __m512i qb = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + 16), inv));
    const __m256i q32 = _mm256_set_m128i(_mm512_cvtepi32_epi8(qb), _mm512_cvtepi32_epi8(qa));
    _mm256_storeu_si256((__m256i *) q, q32);
    // Pairs and fours of bytes in 16 and 32 bits, then across each half.
    const __m256i fours = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), q32), _mm256_set1_epi16(1));
    const __m256i twos = _mm256_add_epi32(fours, _mm256_shuffle_epi32(fours, 0x4e));
    const __m256i ones = _mm256_add_epi32(twos, _mm256_shuffle_epi32(twos, 0xb1));
    sum[0] = _mm_cvtsi128_si32(_mm256_castsi256_si128(ones));
    sum[1] = _mm_cvtsi128_si32(_mm256_extracti128_si256(ones, 1));
}
#elif !defined(ISA_IS_scalar) && defined(__AVX2__)
static inline float record_top(const float *x) {
    __m256i m = _mm256_setzero_si256();
    for (int i = 0; i < 32; i += 8) {
        const __m256i v = _mm256_loadu_si256((const __m256i *) (const void *) (x + i));
        m = _mm256_max_epi32(m, _mm256_and_si256(v, _mm256_set1_epi32(0x7fffffff)));
    }
    __m128i t = _mm_max_epi32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
    t = _mm_max_epi32(t, _mm_shuffle_epi32(t, 0x4e));
    t = _mm_max_epi32(t, _mm_shuffle_epi32(t, 0xb1));
    return f32_from_bits((uint32_t) _mm_cvtsi128_si32(t));
}
static inline void record_round(const float *x, float scale, int8_t *q, int32_t *sum) {
    const __m256 inv = _mm256_set1_ps(scale);
    __m256i i[4];
    for (int j = 0; j < 4; j++) {
        const __m256 y = _mm256_mul_ps(_mm256_loadu_ps(x + 8 * j), inv);
        i[j] = _mm256_cvtps_epi32(_mm256_and_ps(y, _mm256_cmp_ps(y, y, _CMP_ORD_Q)));  // NaN gives 0
    }
    const __m256i lo = _mm256_packs_epi32(i[0], i[1]), hi = _mm256_packs_epi32(i[2], i[3]);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256((__m256i *) q, _mm256_permutevar8x32_epi32(_mm256_packs_epi16(lo, hi), order));
    for (int h = 0; h < 2; h++) {
        const __m256i a = _mm256_add_epi32(i[2 * h], i[2 * h + 1]);
        __m128i s = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
        s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
        s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
        sum[h] = _mm_cvtsi128_si32(s);
    }
}
#else
static inline float record_top(const float *x) {
    int32_t m = 0;  // as integers, so that NaN is the largest of all
    for (int i = 0; i < 32; i++) {
        const int32_t a = (int32_t) (f32_bits(x[i]) & 0x7fffffff);
        m = a > m ? a : m;
    }
    return f32_from_bits((uint32_t) m);
}
static inline void record_round(const float *x, float scale, int8_t *q, int32_t *sum) {
    sum[0] = sum[1] = 0;
    for (int i = 0; i < 32; i++) {
        const float y = x[i] * scale;
        q[i] = (int8_t) (y == y ? (int) rintf(y) : 0);
        sum[i / 16] += q[i];
    }
}
#endif

static inline float record_scale(float top) { return top < 1e-36f ? 0.0f : top / 127.0f; }

// How often a group whose largest magnitude is `top` may double its values so that none exceeds `most`, that of its block.
static inline int record_doublings(float most, float top) {
    const uint32_t n = (f32_bits(most) - f32_bits(top)) >> 23;
    return top < 1e-36f ? 0 : n < 20 ? (int) n : 20;
}

// Activations that share a scale: 32, or 256 where per says so.
static inline __attribute__((always_inline)) void mm_record_encode(const float *x, int64_t k, struct mm_record *out, int sub,
                                                                   int min, int offset, int per) {
    for (int64_t i = 0; i < k; i += per) {
        float top[8], most = 0;
        for (int j = 0; j < per / 32; j++) {
            top[j] = record_top(x + i + 32 * j);
            most = f32_bits(top[j]) > f32_bits(most) ? top[j] : most;
        }
        const float inv = most < 1e-36f ? 0.0f : 127.0f / most, d = record_scale(most);
        for (int j = 0; j < per / 32; j++, out++) {
            const int n = per == 32 ? 0 : record_doublings(most, top[j]);
            const float unit = f32_from_bits((uint32_t) (127 - n) << 23);
            int32_t sum[2];
            record_round(x + i + 32 * j, inv * f32_from_bits((uint32_t) (127 + n) << 23), out->q, sum);
            out->d = d;
            out->base = per == 32 ? 0 : 0x1.8p23f * unit;
            const int32_t halves = (int32_t) ((uint32_t) sum[1] << 16 | ((uint32_t) sum[0] & 0xffff));
            if (sub == 32 && min < 2) sum[0] += sum[1];
            for (int h = 0; h < 2; h++) {
                if (min)
                    out->sum[h] = (per == 32 ? d : unit) * (float) sum[h];
                else
                    out->correction[h] = (int32_t) f32_bits(out->base) - offset * sum[h];
            }
            if (sub == 32 && !min) out->correction[1] = halves;
        }
    }
}

// What the integer sum of a group, or of a half, starts with; and the sum as a float, in units of the block's scale.
static inline __attribute__((always_inline)) int32_t mm_record_start(const struct mm_record *x, int part, int min,
                                                                     bool offset, int per) {
    if (per == 256) return min ? (int32_t) f32_bits(x->base) : x->correction[part];
    return offset ? x->correction[part] : 0;
}
#if !defined(ISA_IS_scalar)
static inline __attribute__((always_inline)) vf mm_record_sum(const struct mm_record *x, vi sum, int per) {
    return per == 256 ? vf_sub(vf_from_bits(sum), vf_set1(x->base)) : vf_from_vi(sum);
}
#endif
