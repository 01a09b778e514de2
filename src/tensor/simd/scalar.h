// SIMD vocabulary, plain C: vectors of one element. It is the oracle of the other levels, and what unknown processors use.
#pragma once

#include <math.h>

#define VF_N 1
typedef float vf;
typedef int32_t vi;
typedef int vm;  // 0 or 1

static inline vf vf_set1(float x) { return x; }
static inline vf vf_load(const float *p) { return *p; }
static inline vf vf_load_n(const float *p, int n) { return n > 0 ? *p : 0.0f; }
static inline void vf_store(float *p, vf v) { *p = v; }
static inline void vf_store_n(float *p, vf v, int n) {
    if (n > 0) *p = v;
}
static inline vf vf_load_f16(const uint16_t *p) { return f16_to_f32(*p); }
static inline vf vf_load_f16_n(const uint16_t *p, int n) { return n > 0 ? f16_to_f32(*p) : 0.0f; }
static inline void vf_store_f16(uint16_t *p, vf v) { *p = f32_to_f16(v); }
static inline void vf_store_f16_n(uint16_t *p, vf v, int n) {
    if (n > 0) *p = f32_to_f16(v);
}
static inline vf vf_load_bf16(const uint16_t *p) { return bf16_to_f32(*p); }
static inline vf vf_load_bf16_n(const uint16_t *p, int n) { return n > 0 ? bf16_to_f32(*p) : 0.0f; }
static inline void vf_store_bf16(uint16_t *p, vf v) { *p = f32_to_bf16(v); }
static inline void vf_store_bf16_n(uint16_t *p, vf v, int n) {
    if (n > 0) *p = f32_to_bf16(v);
}
static inline vf vf_load_i8(const int8_t *p) { return (float) *p; }  // VF_N integers

static inline vf vf_add(vf a, vf b) { return a + b; }
static inline vf vf_sub(vf a, vf b) { return a - b; }
static inline vf vf_mul(vf a, vf b) { return a * b; }
static inline vf vf_div(vf a, vf b) { return a / b; }
static inline vf vf_fma(vf a, vf b, vf c) { return __builtin_fmaf(a, b, c); }
static inline vf vf_fnma(vf a, vf b, vf c) { return __builtin_fmaf(-a, b, c); }
static inline vf vf_min(vf a, vf b) { return a < b ? a : b; }
static inline vf vf_max(vf a, vf b) { return a > b ? a : b; }
static inline vf vf_sqrt(vf a) { return sqrtf(a); }
static inline vf vf_round(vf a) { return rintf(a); }
static inline vf vf_floor(vf a) { return floorf(a); }
static inline vf vf_ceil(vf a) { return ceilf(a); }
static inline vf vf_trunc(vf a) { return truncf(a); }

static inline vi vf_bits(vf a) { return (int32_t) f32_bits(a); }
static inline vf vf_from_bits(vi a) { return f32_from_bits((uint32_t) a); }
static inline vf vf_abs(vf a) { return f32_from_bits(f32_bits(a) & 0x7fffffffu); }
static inline vf vf_neg(vf a) { return -a; }

static inline vm vf_lt(vf a, vf b) { return a < b; }
static inline vm vf_le(vf a, vf b) { return a <= b; }
static inline vm vf_gt(vf a, vf b) { return a > b; }
static inline vm vf_ge(vf a, vf b) { return a >= b; }
static inline vm vf_eq(vf a, vf b) { return a == b; }
static inline vm vf_isnan(vf a) { return a != a; }
static inline vm vm_and(vm a, vm b) { return a & b; }
static inline vm vm_or(vm a, vm b) { return a | b; }
static inline vm vm_not(vm a) { return !a; }
static inline int vm_any(vm a) { return a; }
static inline int vm_all(vm a) { return a; }
static inline uint32_t vm_bits(vm a) { return (uint32_t) a; }
static inline vf vf_sel(vm m, vf a, vf b) { return m ? a : b; }
static inline vi vi_sel(vm m, vi a, vi b) { return m ? a : b; }

static inline vi vi_set1(int32_t x) { return x; }
static inline vi vi_add(vi a, vi b) { return (int32_t) ((uint32_t) a + (uint32_t) b); }
static inline vi vi_sub(vi a, vi b) { return (int32_t) ((uint32_t) a - (uint32_t) b); }
static inline vi vi_and(vi a, vi b) { return a & b; }
static inline vi vi_or(vi a, vi b) { return a | b; }
static inline vi vi_xor(vi a, vi b) { return a ^ b; }
#define vi_shl(a, k) ((int32_t) ((uint32_t) (a) << (k)))
#define vi_shr(a, k) ((int32_t) (a) >> (k))  // keeps the sign
#define vi_shrl(a, k) ((int32_t) ((uint32_t) (a) >> (k)))
static inline vm vi_eq(vi a, vi b) { return a == b; }
static inline vm vi_gt(vi a, vi b) { return a > b; }
static inline vi vi_load_n(const int32_t *p, int n) { return n > 0 ? *p : 0; }
static inline void vi_store_n(int32_t *p, vi v, int n) {
    if (n > 0) *p = v;
}
static inline vf vf_from_vi(vi a) { return (float) a; }

// a * 2^n for |n| <= 252, rounded once
static inline vf vf_scale2(vf a, vi n) {
    const int32_t h = n >> 1;
    return a * f32_from_bits((uint32_t) (h + 127) << 23) * f32_from_bits((uint32_t) (n - h + 127) << 23);
}
// Even and odd elements of the 2 * VF_N floats at p, and back.
static inline void vf_load2(const float *p, vf *a, vf *b) { *a = p[0], *b = p[1]; }
static inline void vf_store2(float *p, vf a, vf b) { p[0] = a, p[1] = b; }
