// IEEE binary16 and bfloat16 conversions for single values, exact and portable. Rows are converted in kern/.
#pragma once

#include <stdint.h>
#include <string.h>
#ifdef __F16C__
#include <immintrin.h>
#endif

static inline uint32_t f32_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static inline float f32_from_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline float f16_to_f32(uint16_t h) {
#ifdef __F16C__
    return _cvtsh_ss(h);
#else
    const uint32_t sign = (uint32_t) (h & 0x8000) << 16;
    const uint32_t mag = h & 0x7fffu;
    if (mag >= 0x7c00) return f32_from_bits(sign | 0x7f800000u | ((mag & 0x3ffu) << 13) | (mag > 0x7c00 ? 0x400000u : 0u));
    if (mag >= 0x0400) return f32_from_bits(sign | ((mag << 13) + 0x38000000u));
    const float tiny = (float) mag * 5.9604644775390625e-8f;  // subnormal: mag * 2^-24, exact
    return f32_from_bits(sign | f32_bits(tiny));
#endif
}

// Round to nearest even; overflow gives infinity; NaN stays a quiet NaN.
static inline uint16_t f32_to_f16(float f) {
    const uint32_t u = f32_bits(f);
    const uint16_t sign = (uint16_t) ((u >> 16) & 0x8000);
    const uint32_t a = u & 0x7fffffffu;
    if (a > 0x7f800000u) return (uint16_t) (sign | 0x7e00 | ((a >> 13) & 0x1ff));
    if (a >= 0x477ff000u) return (uint16_t) (sign | 0x7c00);
    if (a < 0x38800000u) {  // subnormal or zero in half: adding 0.5 aligns the rounding position
        const float r = f32_from_bits(a) + 0.5f;
        return (uint16_t) (sign | (uint16_t) (f32_bits(r) - 0x3f000000u));
    }
    const uint32_t odd = (a >> 13) & 1;
    return (uint16_t) (sign | (uint16_t) ((a - 0x38000000u + 0xfffu + odd) >> 13));
}

static inline float bf16_to_f32(uint16_t h) { return f32_from_bits((uint32_t) h << 16); }

// Round to nearest even; NaN stays a quiet NaN.
static inline uint16_t f32_to_bf16(float f) {
    const uint32_t u = f32_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t) ((u >> 16) | 64);
    return (uint16_t) ((u + (0x7fffu + ((u >> 16) & 1))) >> 16);
}
