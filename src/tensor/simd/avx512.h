// SIMD vocabulary for AVX-512 (F, BW, DQ, VL): vectors of 16. The vnni and bf16 levels use it as it is.
#pragma once

#include <immintrin.h>

#define VF_N 16
typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

static inline __mmask16 avx512_mask(int n) { return (__mmask16) ((1u << n) - 1u); }

// 16 bytes at each of four places, side by side. Halves are put together first: a load of 16 bytes into a quarter of a whole vector takes the
// time of a whole load where vectors are loaded in halves.
static inline __m512i avx512_quarters(const void *a, const void *b, const void *c, const void *d) {
    const __m256i lo = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *) a)),
                                               _mm_loadu_si128((const __m128i *) b), 1);
    const __m256i hi = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *) c)),
                                               _mm_loadu_si128((const __m128i *) d), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(lo), hi, 1);
}

static inline vf vf_set1(float x) { return _mm512_set1_ps(x); }
static inline vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
static inline vf vf_load_n(const float *p, int n) { return _mm512_maskz_loadu_ps(avx512_mask(n), p); }
static inline void vf_store(float *p, vf v) { _mm512_storeu_ps(p, v); }
static inline void vf_store_n(float *p, vf v, int n) { _mm512_mask_storeu_ps(p, avx512_mask(n), v); }
static inline vf vf_load_f16(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *) p)); }
static inline vf vf_load_f16_n(const uint16_t *p, int n) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(avx512_mask(n), p));
}
static inline void vf_store_f16(uint16_t *p, vf v) {
    _mm256_storeu_si256((__m256i *) p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
static inline void vf_store_f16_n(uint16_t *p, vf v, int n) {
    _mm256_mask_storeu_epi16(p, avx512_mask(n), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
static inline vf avx512_from_bf16(__m256i h) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16)); }
// Not vcvtneps2bf16, which flushes subnormals: the bits are the same at all levels.
static inline __m256i avx512_to_bf16(vf v) {
    const __m512i u = _mm512_castps_si512(v);
    const __m512i hi = _mm512_srli_epi32(u, 16);
    const __m512i odd = _mm512_and_si512(hi, _mm512_set1_epi32(1));
    const __m512i r = _mm512_srli_epi32(_mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_mask_or_epi32(r, nan, hi, _mm512_set1_epi32(64)));
}
static inline vf vf_load_bf16(const uint16_t *p) { return avx512_from_bf16(_mm256_loadu_si256((const __m256i *) p)); }
static inline vf vf_load_bf16_n(const uint16_t *p, int n) {
    return avx512_from_bf16(_mm256_maskz_loadu_epi16(avx512_mask(n), p));
}
static inline void vf_store_bf16(uint16_t *p, vf v) { _mm256_storeu_si256((__m256i *) p, avx512_to_bf16(v)); }
static inline void vf_store_bf16_n(uint16_t *p, vf v, int n) {
    _mm256_mask_storeu_epi16(p, avx512_mask(n), avx512_to_bf16(v));
}
static inline vf vf_load_i8(const int8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *) p)));
}

static inline vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
static inline vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
static inline vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
static inline vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
static inline vf vf_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
static inline vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
static inline vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
static inline vf vf_sqrt(vf a) { return _mm512_sqrt_ps(a); }
static inline vf vf_round(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline vf vf_floor(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
static inline vf vf_ceil(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
static inline vf vf_trunc(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }

static inline vi vf_bits(vf a) { return _mm512_castps_si512(a); }
static inline vf vf_from_bits(vi a) { return _mm512_castsi512_ps(a); }
static inline vf vf_abs(vf a) { return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), a); }
static inline vf vf_neg(vf a) { return _mm512_xor_ps(_mm512_set1_ps(-0.0f), a); }

static inline vm vf_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
static inline vm vf_le(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
static inline vm vf_gt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
static inline vm vf_ge(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
static inline vm vf_eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
static inline vm vf_isnan(vf a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
static inline vm vm_and(vm a, vm b) { return (vm) (a & b); }
static inline vm vm_or(vm a, vm b) { return (vm) (a | b); }
static inline vm vm_not(vm a) { return (vm) ~a; }
static inline int vm_any(vm a) { return a != 0; }
static inline int vm_all(vm a) { return a == 0xffff; }
static inline uint32_t vm_bits(vm a) { return a; }
static inline vf vf_sel(vm m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }
static inline vi vi_sel(vm m, vi a, vi b) { return _mm512_mask_blend_epi32(m, b, a); }

static inline vi vi_set1(int32_t x) { return _mm512_set1_epi32(x); }
static inline vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
static inline vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
static inline vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
static inline vi vi_or(vi a, vi b) { return _mm512_or_si512(a, b); }
static inline vi vi_xor(vi a, vi b) { return _mm512_xor_si512(a, b); }
#define vi_shl(a, k) _mm512_slli_epi32((a), (k))
#define vi_shr(a, k) _mm512_srai_epi32((a), (k))
#define vi_shrl(a, k) _mm512_srli_epi32((a), (k))
static inline vm vi_eq(vi a, vi b) { return _mm512_cmpeq_epi32_mask(a, b); }
static inline vm vi_gt(vi a, vi b) { return _mm512_cmpgt_epi32_mask(a, b); }
static inline vi vi_load_n(const int32_t *p, int n) { return _mm512_maskz_loadu_epi32(avx512_mask(n), p); }
static inline void vi_store_n(int32_t *p, vi v, int n) { _mm512_mask_storeu_epi32(p, avx512_mask(n), v); }
static inline vf vf_from_vi(vi a) { return _mm512_cvtepi32_ps(a); }

static inline vf vf_scale2(vf a, vi n) { return _mm512_scalef_ps(a, _mm512_cvtepi32_ps(n)); }
static inline void vf_load2(const float *p, vf *a, vf *b) {
    const vf x = _mm512_loadu_ps(p), y = _mm512_loadu_ps(p + 16);
    const vi even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    *a = _mm512_permutex2var_ps(x, even, y);
    *b = _mm512_permutex2var_ps(x, _mm512_add_epi32(even, _mm512_set1_epi32(1)), y);
}
static inline void vf_store2(float *p, vf a, vf b) {
    const vi lo = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    _mm512_storeu_ps(p, _mm512_permutex2var_ps(a, lo, b));
    _mm512_storeu_ps(p + 16, _mm512_permutex2var_ps(a, _mm512_add_epi32(lo, _mm512_set1_epi32(8)), b));
}
