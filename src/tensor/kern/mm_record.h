// Activations in 8 bits: records of 32 values of a column. q = round(x / d), d = max |x| / 127; sums are kept exact (or in
// F32), never in half precision, so that large activations stay finite. The same bits at every level.
#pragma once

#include "kern/mm_simd.h"

#include <math.h>

struct mm_record {
    int8_t q[32];
    float d;
    union {                     // per 16 values, or the first for all 32
        int32_t correction[2];  // -offset * sum of q: undoes the offset of unsigned weights
        float sum[2];           // d * sum of q: meets the minima of types that have them
    };
    uint32_t unused;
};

_Static_assert(sizeof(struct mm_record) == 48, "records are 48 bytes");

// Columns start at odd multiples of 64 bytes, so that equal places of neighbours do not meet in one set of the cache.
static inline size_t mm_record_bytes(int64_t k) {
    return ((size_t) (k / 32) * sizeof(struct mm_record) / 64 + 1) / 2 * 128 + 64;
}

// Integers of 32 values, their largest magnitude's scale, and the two sums of 16.
#if !defined(ISA_IS_scalar) && defined(__AVX512F__)
static inline float record_round(const float *x, int8_t *q, int32_t *sum) {
    const __m512 a = _mm512_loadu_ps(x), b = _mm512_loadu_ps(x + 16);
    const __m512i mask = _mm512_set1_epi32(0x7fffffff);
    const __m512i m =
        _mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(a), mask), _mm512_and_si512(_mm512_castps_si512(b), mask));
    const float top = f32_from_bits((uint32_t) _mm512_reduce_max_epi32(m));
    const __m512 inv = _mm512_set1_ps(top < 1e-36f ? 0.0f : 127.0f / top);
    const __m512i qa = _mm512_cvtps_epi32(_mm512_mul_ps(a, inv)), qb = _mm512_cvtps_epi32(_mm512_mul_ps(b, inv));
    const __m256i q32 = _mm256_set_m128i(_mm512_cvtepi32_epi8(qb), _mm512_cvtepi32_epi8(qa));
    _mm256_storeu_si256((__m256i *) q, q32);
    // Pairs and fours of bytes in 16 and 32 bits, then across each half.
    const __m256i fours = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), q32), _mm256_set1_epi16(1));
    const __m256i twos = _mm256_add_epi32(fours, _mm256_shuffle_epi32(fours, 0x4e));
    const __m256i ones = _mm256_add_epi32(twos, _mm256_shuffle_epi32(twos, 0xb1));
    sum[0] = _mm_cvtsi128_si32(_mm256_castsi256_si128(ones));
    sum[1] = _mm_cvtsi128_si32(_mm256_extracti128_si256(ones, 1));
    return top < 1e-36f ? 0.0f : top / 127.0f;
}
#elif !defined(ISA_IS_scalar) && defined(__AVX2__)
static inline float record_round(const float *x, int8_t *q, int32_t *sum) {
    __m256 v[4];
    __m256i m = _mm256_setzero_si256(), i[4];
    for (int j = 0; j < 4; j++) {
        v[j] = _mm256_loadu_ps(x + 8 * j);
        m = _mm256_max_epi32(m, _mm256_and_si256(_mm256_castps_si256(v[j]), _mm256_set1_epi32(0x7fffffff)));
    }
    __m128i t = _mm_max_epi32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
    t = _mm_max_epi32(t, _mm_shuffle_epi32(t, 0x4e));
    t = _mm_max_epi32(t, _mm_shuffle_epi32(t, 0xb1));
    const float top = f32_from_bits((uint32_t) _mm_cvtsi128_si32(t));
    const __m256 inv = _mm256_set1_ps(top < 1e-36f ? 0.0f : 127.0f / top);
    for (int j = 0; j < 4; j++) {
        const __m256 y = _mm256_mul_ps(v[j], inv);
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
    return top < 1e-36f ? 0.0f : top / 127.0f;
}
#else
static inline float record_round(const float *x, int8_t *q, int32_t *sum) {
    int32_t m = 0;  // as integers, so that NaN is the largest of all
    for (int i = 0; i < 32; i++) {
        const int32_t a = (int32_t) (f32_bits(x[i]) & 0x7fffffff);
        m = a > m ? a : m;
    }
    const float top = f32_from_bits((uint32_t) m), inv = top < 1e-36f ? 0.0f : 127.0f / top;
    sum[0] = sum[1] = 0;
    for (int i = 0; i < 32; i++) {
        const float y = x[i] * inv;
        q[i] = (int8_t) (y == y ? (int) rintf(y) : 0);
        sum[i / 16] += q[i];
    }
    return top < 1e-36f ? 0.0f : top / 127.0f;
}
#endif

static inline __attribute__((always_inline)) void mm_record_encode(const float *x, int64_t k, struct mm_record *out, int sub,
                                                                   bool min, int offset) {
    for (int64_t i = 0; i < k; i += 32, out++) {
        int32_t sum[2];
        out->d = record_round(x + i, out->q, sum);
        out->unused = 0;
        if (sub == 32) sum[0] += sum[1], sum[1] = 0;
        for (int h = 0; h < 2; h++) {
            if (min)
                out->sum[h] = out->d * (float) sum[h];
            else
                out->correction[h] = -offset * sum[h];
        }
    }
}
