// SIMD vocabulary for AArch64 Advanced SIMD: vectors of 4. The dotprod and i8mm levels use it as it is.
#pragma once

#include <arm_neon.h>

#define VF_N 4
typedef float32x4_t vf;
typedef int32x4_t vi;
typedef uint32x4_t vm;  // all bits of a lane set or clear

static inline vf vf_set1(float x) { return vdupq_n_f32(x); }
static inline vf vf_load(const float *p) { return vld1q_f32(p); }
static inline vf vf_load_n(const float *p, int n) {
    float buf[4] = {0};
    memcpy(buf, p, (size_t) n * 4);
    return vld1q_f32(buf);
}
static inline void vf_store(float *p, vf v) { vst1q_f32(p, v); }
static inline void vf_store_n(float *p, vf v, int n) {
    float buf[4];
    vst1q_f32(buf, v);
    memcpy(p, buf, (size_t) n * 4);
}
static inline uint16x4_t neon_load16_n(const uint16_t *p, int n) {
    uint16_t buf[4] = {0};
    memcpy(buf, p, (size_t) n * 2);
    return vld1_u16(buf);
}
static inline void neon_store16_n(uint16_t *p, uint16x4_t v, int n) {
    uint16_t buf[4];
    vst1_u16(buf, v);
    memcpy(p, buf, (size_t) n * 2);
}
static inline vf neon_from_f16(uint16x4_t h) { return vcvt_f32_f16(vreinterpret_f16_u16(h)); }
static inline uint16x4_t neon_to_f16(vf v) { return vreinterpret_u16_f16(vcvt_f16_f32(v)); }
static inline vf vf_load_f16(const uint16_t *p) { return neon_from_f16(vld1_u16(p)); }
static inline vf vf_load_f16_n(const uint16_t *p, int n) { return neon_from_f16(neon_load16_n(p, n)); }
static inline void vf_store_f16(uint16_t *p, vf v) { vst1_u16(p, neon_to_f16(v)); }
static inline void vf_store_f16_n(uint16_t *p, vf v, int n) { neon_store16_n(p, neon_to_f16(v), n); }
static inline vf neon_from_bf16(uint16x4_t h) { return vreinterpretq_f32_u32(vshll_n_u16(h, 16)); }
static inline uint16x4_t neon_to_bf16(vf v) {
    const uint32x4_t u = vreinterpretq_u32_f32(v);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
    const uint32x4_t r = vshrq_n_u32(vaddq_u32(u, vaddq_u32(odd, vdupq_n_u32(0x7fff))), 16);
    const uint32x4_t quiet = vorrq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(64));
    return vmovn_u32(vbslq_u32(vceqq_f32(v, v), r, quiet));
}
static inline vf vf_load_bf16(const uint16_t *p) { return neon_from_bf16(vld1_u16(p)); }
static inline vf vf_load_bf16_n(const uint16_t *p, int n) { return neon_from_bf16(neon_load16_n(p, n)); }
static inline void vf_store_bf16(uint16_t *p, vf v) { vst1_u16(p, neon_to_bf16(v)); }
static inline void vf_store_bf16_n(uint16_t *p, vf v, int n) { neon_store16_n(p, neon_to_bf16(v), n); }
static inline vf vf_load_i8(const int8_t *p) {
    const int32_t x[4] = {p[0], p[1], p[2], p[3]};
    return vcvtq_f32_s32(vld1q_s32(x));
}

static inline vf vf_add(vf a, vf b) { return vaddq_f32(a, b); }
static inline vf vf_sub(vf a, vf b) { return vsubq_f32(a, b); }
static inline vf vf_mul(vf a, vf b) { return vmulq_f32(a, b); }
static inline vf vf_div(vf a, vf b) { return vdivq_f32(a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
static inline vf vf_fnma(vf a, vf b, vf c) { return vfmsq_f32(c, a, b); }
static inline vf vf_min(vf a, vf b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
static inline vf vf_max(vf a, vf b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
static inline vf vf_sqrt(vf a) { return vsqrtq_f32(a); }
static inline vf vf_round(vf a) { return vrndnq_f32(a); }
static inline vf vf_floor(vf a) { return vrndmq_f32(a); }
static inline vf vf_ceil(vf a) { return vrndpq_f32(a); }
static inline vf vf_trunc(vf a) { return vrndq_f32(a); }

static inline vi vf_bits(vf a) { return vreinterpretq_s32_f32(a); }
static inline vf vf_from_bits(vi a) { return vreinterpretq_f32_s32(a); }
static inline vf vf_abs(vf a) { return vabsq_f32(a); }
static inline vf vf_neg(vf a) { return vnegq_f32(a); }

static inline vm vf_lt(vf a, vf b) { return vcltq_f32(a, b); }
static inline vm vf_le(vf a, vf b) { return vcleq_f32(a, b); }
static inline vm vf_gt(vf a, vf b) { return vcgtq_f32(a, b); }
static inline vm vf_ge(vf a, vf b) { return vcgeq_f32(a, b); }
static inline vm vf_eq(vf a, vf b) { return vceqq_f32(a, b); }
static inline vm vf_isnan(vf a) { return vmvnq_u32(vceqq_f32(a, a)); }
static inline vm vm_and(vm a, vm b) { return vandq_u32(a, b); }
static inline vm vm_or(vm a, vm b) { return vorrq_u32(a, b); }
static inline vm vm_not(vm a) { return vmvnq_u32(a); }
static inline int vm_any(vm a) { return vmaxvq_u32(a) != 0; }
static inline int vm_all(vm a) { return vminvq_u32(a) != 0; }
static inline uint32_t vm_bits(vm a) {
    static const int32_t shift[4] = {0, 1, 2, 3};
    return vaddvq_u32(vshlq_u32(vshrq_n_u32(a, 31), vld1q_s32(shift)));
}
static inline vf vf_sel(vm m, vf a, vf b) { return vbslq_f32(m, a, b); }
static inline vi vi_sel(vm m, vi a, vi b) { return vbslq_s32(m, a, b); }

static inline vi vi_set1(int32_t x) { return vdupq_n_s32(x); }
static inline vi vi_add(vi a, vi b) { return vaddq_s32(a, b); }
static inline vi vi_sub(vi a, vi b) { return vsubq_s32(a, b); }
static inline vi vi_and(vi a, vi b) { return vandq_s32(a, b); }
static inline vi vi_or(vi a, vi b) { return vorrq_s32(a, b); }
static inline vi vi_xor(vi a, vi b) { return veorq_s32(a, b); }
#define vi_shl(a, k) vshlq_n_s32((a), (k))
#define vi_shr(a, k) vshrq_n_s32((a), (k))
#define vi_shrl(a, k) vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a), (k)))
static inline vm vi_eq(vi a, vi b) { return vceqq_s32(a, b); }
static inline vm vi_gt(vi a, vi b) { return vcgtq_s32(a, b); }
static inline vi vi_load_n(const int32_t *p, int n) {
    int32_t buf[4] = {0};
    memcpy(buf, p, (size_t) n * 4);
    return vld1q_s32(buf);
}
static inline void vi_store_n(int32_t *p, vi v, int n) {
    int32_t buf[4];
    vst1q_s32(buf, v);
    memcpy(p, buf, (size_t) n * 4);
}
static inline vf vf_from_vi(vi a) { return vcvtq_f32_s32(a); }

static inline vf vf_scale2(vf a, vi n) {
    const vi h = vshrq_n_s32(n, 1), bias = vdupq_n_s32(127);
    const vf s1 = vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(h, bias), 23));
    const vf s2 = vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vsubq_s32(n, h), bias), 23));
    return vmulq_f32(vmulq_f32(a, s1), s2);
}
static inline void vf_load2(const float *p, vf *a, vf *b) {
    const float32x4x2_t v = vld2q_f32(p);
    *a = v.val[0], *b = v.val[1];
}
static inline void vf_store2(float *p, vf a, vf b) {
    float32x4x2_t v = {{a, b}};
    vst2q_f32(p, v);
}
