// Four-bit floats (sign, two exponent bits, one of mantissa): 0 0.5 1 1.5 2 3 4 6. Tables and searches count in halves:
// 0 1 2 3 4 6 8 12, codebook_fp4.
#pragma once

#include "type/codebook.h"
#include "type/search_int.h"

// Codes of x[i] * inv, x in units of half the scale: the nearest value, of two equally near the smaller; zero has no sign.
VEC void fp4_assign(const float *x, int n, float inv, uint8_t *q) {
    static const float above[7] = {0.5f, 1.5f, 2.5f, 3.5f, 5.0f, 7.0f, 10.0f};
    for (int i = 0; i < n; i += 8) {
        const f32x8 v = v_load(x + i) * inv, a = v_abs(v);
        i32x8 code = a > a;  // zero
        for (int k = 0; k < 7; k++) code -= a > above[k];
        code |= (v < 0.0f) & (code > 0) & 8;
        const u8x8 c = __builtin_convertvector(code, u8x8);
        memcpy(q + i, &c, sizeof(c));
    }
}

// Weighted squared error of the codes q under the unit d (half the scale).
VEC float fp4_error(const float *x, const float *w, int n, float d, const uint8_t *q) {
    float e = 0.0f;
    for (int i = 0; i < n; i++) {
        const float r = x[i] - d * (float) codebook_fp4[q[i]];
        e += w[i] * (r * r);
    }
    return e;
}
