// SIMD vocabulary for AVX2 + FMA + F16C: vectors of 8.
#pragma once

#include <immintrin.h>

#define VF_N 8
typedef __m256 vf;
typedef __m256i vi;
typedef __m256 vm;  // all bits of a lane set or clear

static inline __m256i avx2_mask(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
// The n 16-bit values at p, zeros after them; nothing beyond p[n - 1] is touched.
static inline __m128i avx2_load16_n(const uint16_t *p, int n) {
    uint16_t buf[8] = {0};
    memcpy(buf, p, (size_t) n * 2);
    return _mm_loadu_si128((const __m128i *) buf);
}
static inline void avx2_store16_n(uint16_t *p, __m128i v, int n) {
    uint16_t buf[8];
    _mm_storeu_si128((__m128i *) buf, v);
    memcpy(p, buf, (size_t) n * 2);
}

static inline vf vf_set1(float x) { return _mm256_set1_ps(x); }
static inline vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
static inline vf vf_load_n(const float *p, int n) { return _mm256_maskload_ps(p, avx2_mask(n)); }
static inline void vf_store(float *p, vf v) { _mm256_storeu_ps(p, v); }
static inline void vf_store_n(float *p, vf v, int n) { _mm256_maskstore_ps(p, avx2_mask(n), v); }
static inline vf vf_load_f16(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) p)); }
static inline vf vf_load_f16_n(const uint16_t *p, int n) { return _mm256_cvtph_ps(avx2_load16_n(p, n)); }
static inline void vf_store_f16(uint16_t *p, vf v) {
    _mm_storeu_si128((__m128i *) p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
static inline void vf_store_f16_n(uint16_t *p, vf v, int n) {
    avx2_store16_n(p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT), n);
}
static inline vf avx2_from_bf16(__m128i h) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16)); }
static inline __m128i avx2_to_bf16(vf v) {
    const __m256i u = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    __m256i r = _mm256_srli_epi32(_mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    const __m256i quiet = _mm256_or_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(64));
    r = _mm256_blendv_epi8(r, quiet, _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q)));
    return _mm_packus_epi32(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1));
}
static inline vf vf_load_bf16(const uint16_t *p) { return avx2_from_bf16(_mm_loadu_si128((const __m128i *) p)); }
static inline vf vf_load_bf16_n(const uint16_t *p, int n) { return avx2_from_bf16(avx2_load16_n(p, n)); }
static inline void vf_store_bf16(uint16_t *p, vf v) { _mm_storeu_si128((__m128i *) p, avx2_to_bf16(v)); }
static inline void vf_store_bf16_n(uint16_t *p, vf v, int n) { avx2_store16_n(p, avx2_to_bf16(v), n); }
static inline vf vf_load_i8(const int8_t *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *) p)));
}

static inline vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
static inline vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
static inline vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
static inline vf vf_div(vf a, vf b) { return _mm256_div_ps(a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
static inline vf vf_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
static inline vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); }
static inline vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }
static inline vf vf_sqrt(vf a) { return _mm256_sqrt_ps(a); }
static inline vf vf_round(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline vf vf_floor(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
static inline vf vf_ceil(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
static inline vf vf_trunc(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }

static inline vi vf_bits(vf a) { return _mm256_castps_si256(a); }
static inline vf vf_from_bits(vi a) { return _mm256_castsi256_ps(a); }
static inline vf vf_abs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
static inline vf vf_neg(vf a) { return _mm256_xor_ps(_mm256_set1_ps(-0.0f), a); }

static inline vm vf_lt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
static inline vm vf_le(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
static inline vm vf_gt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
static inline vm vf_ge(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_GE_OQ); }
static inline vm vf_eq(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
static inline vm vf_isnan(vf a) { return _mm256_cmp_ps(a, a, _CMP_UNORD_Q); }
static inline vm vm_and(vm a, vm b) { return _mm256_and_ps(a, b); }
static inline vm vm_or(vm a, vm b) { return _mm256_or_ps(a, b); }
static inline vm vm_not(vm a) { return _mm256_xor_ps(a, _mm256_castsi256_ps(_mm256_set1_epi32(-1))); }
static inline int vm_any(vm a) { return _mm256_movemask_ps(a) != 0; }
static inline int vm_all(vm a) { return _mm256_movemask_ps(a) == 0xff; }
static inline uint32_t vm_bits(vm a) { return (uint32_t) _mm256_movemask_ps(a); }
static inline vf vf_sel(vm m, vf a, vf b) { return _mm256_blendv_ps(b, a, m); }
static inline vi vi_sel(vm m, vi a, vi b) { return _mm256_blendv_epi8(b, a, _mm256_castps_si256(m)); }

static inline vi vi_set1(int32_t x) { return _mm256_set1_epi32(x); }
static inline vi vi_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
static inline vi vi_sub(vi a, vi b) { return _mm256_sub_epi32(a, b); }
static inline vi vi_and(vi a, vi b) { return _mm256_and_si256(a, b); }
static inline vi vi_or(vi a, vi b) { return _mm256_or_si256(a, b); }
static inline vi vi_xor(vi a, vi b) { return _mm256_xor_si256(a, b); }
#define vi_shl(a, k) _mm256_slli_epi32((a), (k))
#define vi_shr(a, k) _mm256_srai_epi32((a), (k))
#define vi_shrl(a, k) _mm256_srli_epi32((a), (k))
static inline vm vi_eq(vi a, vi b) { return _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b)); }
static inline vm vi_gt(vi a, vi b) { return _mm256_castsi256_ps(_mm256_cmpgt_epi32(a, b)); }
static inline vi vi_load_n(const int32_t *p, int n) { return _mm256_maskload_epi32(p, avx2_mask(n)); }
static inline void vi_store_n(int32_t *p, vi v, int n) { _mm256_maskstore_epi32(p, avx2_mask(n), v); }
static inline vf vf_from_vi(vi a) { return _mm256_cvtepi32_ps(a); }

static inline vf vf_scale2(vf a, vi n) {
    const vi h = _mm256_srai_epi32(n, 1), bias = _mm256_set1_epi32(127);
    const vf s1 = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(h, bias), 23));
    const vf s2 = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(n, h), bias), 23));
    return _mm256_mul_ps(_mm256_mul_ps(a, s1), s2);
}
static inline void vf_load2(const float *p, vf *a, vf *b) {
    const vf x = _mm256_loadu_ps(p), y = _mm256_loadu_ps(p + 8);
    const vf lo = _mm256_permute2f128_ps(x, y, 0x20), hi = _mm256_permute2f128_ps(x, y, 0x31);
    *a = _mm256_shuffle_ps(lo, hi, 0x88);
    *b = _mm256_shuffle_ps(lo, hi, 0xdd);
}
static inline void vf_store2(float *p, vf a, vf b) {
    const vf lo = _mm256_unpacklo_ps(a, b), hi = _mm256_unpackhi_ps(a, b);
    _mm256_storeu_ps(p, _mm256_permute2f128_ps(lo, hi, 0x20));
    _mm256_storeu_ps(p + 8, _mm256_permute2f128_ps(lo, hi, 0x31));
}
