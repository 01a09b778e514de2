// Eight floats as one value, for encoders and quantizer searches: compiler vector extensions, so that one source serves
// every ISA level and every lane computes the same bits at each. Only what extensions cannot say is written with intrinsics.
#pragma once

#include "type/type_int.h"

typedef float f32x8 __attribute__((vector_size(32)));
typedef int32_t i32x8 __attribute__((vector_size(32)));
typedef uint32_t u32x8 __attribute__((vector_size(32)));
typedef uint8_t u8x8 __attribute__((vector_size(8)));
typedef int8_t i8x8 __attribute__((vector_size(8)));

VEC f32x8 v_load(const float *p) {
    f32x8 v;
    memcpy(&v, p, sizeof(v));
    return v;
}
VEC void v_store(float *p, f32x8 v) { memcpy(p, &v, sizeof(v)); }
VEC f32x8 v_set(float f) { return (f32x8){f, f, f, f, f, f, f, f}; }
// m ? a : b, m a comparison's result
VEC f32x8 v_select(i32x8 m, f32x8 a, f32x8 b) { return (f32x8) ((m & (i32x8) a) | (~m & (i32x8) b)); }
VEC i32x8 vi_select(i32x8 m, i32x8 a, i32x8 b) { return (m & a) | (~m & b); }
VEC f32x8 v_abs(f32x8 a) { return (f32x8) ((i32x8) a & 0x7fffffff); }

#ifdef __AVX2__
VEC f32x8 v_max(f32x8 a, f32x8 b) { return (f32x8) _mm256_max_ps((__m256) a, (__m256) b); }
VEC f32x8 v_min(f32x8 a, f32x8 b) { return (f32x8) _mm256_min_ps((__m256) a, (__m256) b); }
VEC f32x8 v_round(f32x8 a) { return (f32x8) _mm256_round_ps((__m256) a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
VEC i32x8 v_int(f32x8 a) { return (i32x8) _mm256_cvttps_epi32((__m256) a); }
VEC i32x8 vi_max(i32x8 a, i32x8 b) { return (i32x8) _mm256_max_epi32((__m256i) a, (__m256i) b); }
#else
VEC i32x8 vi_max(i32x8 a, i32x8 b) { return vi_select(a > b, a, b); }
VEC f32x8 v_max(f32x8 a, f32x8 b) { return v_select(a > b, a, b); }
VEC f32x8 v_min(f32x8 a, f32x8 b) { return v_select(a < b, a, b); }
// Ties to even, for |a| < 2^22 (a zero comes out as +0, an integer all the same).
VEC f32x8 v_round(f32x8 a) { return (a + 12582912.0f) - 12582912.0f; }
VEC i32x8 v_int(f32x8 a) { return __builtin_convertvector(a, i32x8); }
#endif

VEC f32x8 v_clamp(f32x8 a, float lo, float hi) { return v_min(v_max(a, v_set(lo)), v_set(hi)); }
VEC f32x8 v_float(i32x8 a) { return __builtin_convertvector(a, f32x8); }

// Largest and smallest lane; their order does not matter.
VEC float v_hmax(f32x8 v) {
    float a[8];
    v_store(a, v);
    float m = a[0];
    for (int i = 1; i < 8; i++) m = a[i] > m ? a[i] : m;
    return m;
}
VEC float v_hmin(f32x8 v) { return -v_hmax(-v); }
// Sum of the lanes, pairwise: (0+4)+(2+6) + (1+5)+(3+7)
VEC float v_hsum(f32x8 v) { return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])); }

// Lanes must hold integers of [-128, 127].
VEC void v_store_i8(int8_t *p, f32x8 v) {
#ifdef __AVX2__
    const __m256i i = _mm256_cvtps_epi32((__m256) v);
    const __m128i h = _mm_packs_epi32(_mm256_castsi256_si128(i), _mm256_extracti128_si256(i, 1));
    _mm_storel_epi64((__m128i *) (void *) p, _mm_packs_epi16(h, h));
#else
    const i8x8 b = __builtin_convertvector(v_int(v), i8x8);
    memcpy(p, &b, sizeof(b));
#endif
}

VEC f32x8 v_load_i8(const int8_t *p) {
    i8x8 b;
    memcpy(&b, p, sizeof(b));
    return __builtin_convertvector(__builtin_convertvector(b, i32x8), f32x8);
}

// Truncated to integers; lanes must be of [0, 256).
VEC void v_store_u8(uint8_t *p, f32x8 v) {
#ifdef __AVX2__
    const __m256i i = _mm256_cvttps_epi32((__m256) v);
    const __m128i h = _mm_packs_epi32(_mm256_castsi256_si128(i), _mm256_extracti128_si256(i, 1));
    _mm_storel_epi64((__m128i *) (void *) p, _mm_packus_epi16(h, h));
#else
    const u8x8 b = __builtin_convertvector(v_int(v), u8x8);
    memcpy(p, &b, sizeof(b));
#endif
}

// Largest |x[i]|, n a multiple of 8; NaN if there is one: bit patterns compare as integers, NaN above infinity.
VEC float absmax(const float *x, int n) {
    i32x8 m = (i32x8) v_abs(v_load(x));
    for (int i = 8; i < n; i += 8) m = vi_max(m, (i32x8) v_abs(v_load(x + i)));
    int32_t a[8], top = 0;
    memcpy(a, &m, sizeof(a));
    for (int i = 0; i < 8; i++) top = a[i] > top ? a[i] : top;
    float f;
    memcpy(&f, &top, 4);
    return f;
}
