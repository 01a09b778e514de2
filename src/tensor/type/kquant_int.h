// What the K formats share: 256 elements, sub-blocks of 16 or 32 whose scales (and minima) are small integers times the
// super-block's d (and dmin).
#pragma once

#include "type/search_int.h"

// Eight scales and minima of 6 bits in 12 bytes: q4_K and q5_K.
static inline void scales_unpack(const uint8_t *restrict p, uint8_t *restrict sc, uint8_t *restrict mn) {
    for (int j = 0; j < 4; j++) {
        sc[j] = p[j] & 63;
        mn[j] = p[j + 4] & 63;
        sc[j + 4] = (uint8_t) ((p[j + 8] & 15) | (p[j] >> 6) << 4);
        mn[j + 4] = (uint8_t) ((p[j + 8] >> 4) | (p[j + 4] >> 6) << 4);
    }
}

static inline void scales_pack(const uint8_t *restrict sc, const uint8_t *restrict mn, uint8_t *restrict p) {
    for (int j = 0; j < 4; j++) {
        p[j] = (uint8_t) (sc[j] | (sc[j + 4] >> 4) << 6);
        p[j + 4] = (uint8_t) (mn[j] | (mn[j + 4] >> 4) << 6);
        p[j + 8] = (uint8_t) ((sc[j + 4] & 15) | (mn[j + 4] & 15) << 4);
    }
}

// n factors f[j] >= 0 as integers 0 .. top times one half (in *h); s: power of two that undoes block_normalize.
// Gives that half's value, divided by s again.
static inline float factors_quantize(const float *f, int n, int top, float s, uint8_t *q, uint16_t *h) {
    float most = 0.0f;
    for (int j = 0; j < n; j++) most = f[j] > most ? f[j] : most;
    *h = half_scale(most / (float) top * s);
    const float unit = f16_to_f32(*h) / s, inv = unit > 0.0f ? 1.0f / unit : 0.0f;
    for (int j = 0; j < n; j++) q[j] = (uint8_t) clamp_int(round_int(fminf(f[j] * inv, (float) top)), 0, top);
    return unit;
}

// The same for factors of either sign as integers -top .. top - 1; the one of largest magnitude becomes -top.
static inline float factors_quantize_signed(const float *f, int n, int top, float s, int8_t *q, uint16_t *h) {
    float most = 0.0f;
    for (int j = 0; j < n; j++) most = fabsf(f[j]) > fabsf(most) ? f[j] : most;
    *h = half_scale(-most / (float) top * s);
    const float unit = f16_to_f32(*h) / s, inv = unit != 0.0f ? 1.0f / unit : 0.0f;
    for (int j = 0; j < n; j++) q[j] = (int8_t) clamp_int(round_int(fmaxf(fminf(f[j] * inv, (float) top), (float) -top)), -top, top - 1);
    return unit;
}

// q[i] = nearest integer to (x[i] + m) / d, of lo .. hi; d == 0: the value nearest to zero.
VEC void assign_values(const float *x, int n, float d, float m, float lo, float hi, int8_t *q) {
    const f32x8 inv = v_set(d != 0.0f ? 1.0f / d : 0.0f);
    for (int i = 0; i < n; i += 8) v_store_i8(q + i, v_clamp(v_round((v_load(x + i) + m) * inv), lo, hi));
}

// Scale and minimum of one sub-block of a format with minima, values 0 .. hi; both >= 0.
VEC void sub_block_affine(const float *x, const float *w, int n, float hi, float reach, float *d, float *m) {
    float lo, top, id[CANDIDATES], m0[CANDIDATES];
    minmax(x, n, &lo, &top);
    if (lo > 0.0f) lo = 0.0f;
    if (top <= lo) {  // all equal and not above zero
        *d = 0.0f;
        *m = -lo;
        return;
    }
    candidates(top - lo, hi, reach, id);
    for (int i = 0; i < CANDIDATES; i++) m0[i] = -lo;
    affine_search(x, w, n, hi, id, m0, CANDIDATES / 8, true, d, m);
}
