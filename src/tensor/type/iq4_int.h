// What iq4_nl and iq4_xs share: 16 unevenly spaced values, codebook_iq4_nl, denser around zero.
#pragma once

#include "type/codebook.h"
#include "type/kquant_int.h"

// Halfway between neighbouring values, and the steps between them.
static const float iq4_above[15] = {-115.5f, -93.5f, -74.0f, -57.0f, -42.0f, -28.5f, -16.0f, -4.5f,
                                    7.0f,    19.0f,  31.5f,  45.5f,  61.0f,  79.0f,  101.0f};
static const float iq4_step[15] = {23.0f, 21.0f, 18.0f, 16.0f, 14.0f, 13.0f, 12.0f, 11.0f,
                                   12.0f, 12.0f, 13.0f, 15.0f, 16.0f, 20.0f, 24.0f};

// The nearest of the 16 values.
VEC f32x8 iq4_nearest(f32x8 v) {
    f32x8 r = v_set(-127.0f);
    for (int k = 0; k < 15; k++) r += (f32x8) ((v > iq4_above[k]) & (i32x8) v_set(iq4_step[k]));
    return r;
}

// Their indices, for n elements times inv.
VEC void iq4_assign(const float *x, int n, float inv, uint8_t *q) {
    for (int i = 0; i < n; i += 8) {
        const f32x8 v = v_load(x + i) * inv;
        i32x8 code = -(v > iq4_above[0]);
        for (int k = 1; k < 15; k++) code -= v > iq4_above[k];
        const u8x8 c = __builtin_convertvector(code, u8x8);
        memcpy(q + i, &c, sizeof(c));
    }
}

// Scale of 32 elements: maps the value of largest magnitude around either end of the values, and takes the least error.
VEC float iq4_scale(const float *x, const float *w) {
    enum { N = 32 };
    float id[N], gain[N], scale[N];
    const float top = extreme(x, 32);
    candidates(top, -127.0f, 0.18f, id, N / 2);
    candidates(top, 113.0f, 0.18f, id + N / 2, N / 2);
    for (int v = 0; v < N; v += 8) {
        const f32x8 inv = v_load(id + v);
        f32x8 xq = v_set(0.0f), qq = xq;
        for (int i = 0; i < 32; i++) {
            const f32x8 q = iq4_nearest(inv * x[i]), wq = q * w[i];
            xq += wq * x[i];
            qq += wq * q;
        }
        const f32x8 s = xq / qq;  // no value is zero, so neither is qq
        v_store(scale + v, s);
        v_store(gain + v, s * xq);
    }
    return scale[best_of(gain, N)];
}
