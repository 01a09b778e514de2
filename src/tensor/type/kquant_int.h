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
    candidates(top - lo, hi, reach, id, CANDIDATES);
    for (int i = 0; i < CANDIDATES; i++) m0[i] = -lo;
    affine_search(x, w, n, hi, id, m0, CANDIDATES / 8, true, d, m);
}

// ---- from ideal scales to integers -------------------------------------------------------------------------------------
// The sub-blocks' ideal factors f (and minima m) become integers times d (and dmin). Rounding each to the nearest is not the
// best: for every sub-block the neighbouring integers are tried (one per lane) with the values they lead to, then d and dmin
// are fitted to what came out, and the integers are chosen once more.

struct affine_super {
    int n_sub, n;  // sub-blocks and elements in each
    int top;       // scales and minima are integers of 0 .. top
    float hi;      // values are integers of 0 .. hi
};

// Integers around (f / d, m / dmin) with the least error; gives it.
VEC float affine_choose(const struct affine_super *k, const float *x, const float *w, float d, float dmin, float f, float m,
                        uint8_t *sc, uint8_t *mn) {
    const int s0 = clamp_int(round_int(fminf(d > 0.0f ? f / d : 0.0f, 1000.0f)), 0, k->top);
    const int m0 = clamp_int(round_int(fminf(dmin > 0.0f ? m / dmin : 0.0f, 1000.0f)), 0, k->top);
    float scale[16], min[16], error[16];
    for (int c = 0; c < 16; c++) {  // three scales times five minima; the last repeats the middle
        scale[c] = (float) clamp_int(c < 15 ? s0 + c % 3 - 1 : s0, 0, k->top);
        min[c] = (float) clamp_int(c < 15 ? m0 + c / 3 - 2 : m0, 0, k->top);
    }
    for (int v = 0; v < 16; v += 8) {
        const f32x8 u = v_load(scale + v) * d, off = v_load(min + v) * dmin;
        const i32x8 some = u > 0.0f;
        const f32x8 inv = v_select(some, 1.0f / v_select(some, u, v_set(1.0f)), v_set(0.0f));
        f32x8 e = v_set(0.0f);
        for (int i = 0; i < k->n; i++) {
            const f32x8 t = off + x[i], r = t - u * v_clamp(v_round(t * inv), 0.0f, k->hi);
            e += r * r * w[i];
        }
        v_store(error + v, -e);
    }
    const int b = best_of(error, 16);
    *sc = (uint8_t) scale[b];
    *mn = (uint8_t) min[b];
    return -error[b];
}

// Least-squares d and dmin for values q, scales sc and minima mn of a super-block. Left alone where that has no answer.
static inline void affine_fit(const struct affine_super *k, const float *x, const float *w, const int8_t *q,
                              const uint8_t *sc, const uint8_t *mn, float *d, float *dmin) {
    float pp = 0.0f, pr = 0.0f, rr = 0.0f, xp = 0.0f, xr = 0.0f;
    for (int j = 0; j < k->n_sub; j++) {
        const float s = sc[j], m = mn[j];
        f32x8 a0 = v_set(0.0f), a1 = a0, a2 = a0, b0 = a0, b1 = a0;
        for (int i = k->n * j; i < k->n * (j + 1); i += 8) {
            const f32x8 v = v_load_i8(q + i), wv = v_load(w + i), wx = wv * v_load(x + i);
            a0 += wv;
            a1 += wv * v;
            a2 += wv * v * v;
            b0 += wx;
            b1 += wx * v;
        }
        pp += s * s * v_hsum(a2);
        pr += s * m * v_hsum(a1);
        rr += m * m * v_hsum(a0);
        xp += s * v_hsum(b1);
        xr += m * v_hsum(b0);
    }
    const float det = pp * rr - pr * pr;
    if (rr == 0.0f && pp > 0.0f && xp > 0.0f) *d = xp / pp;
    if (!(det > 1e-4f * pp * rr)) return;
    const float nd = (xp * rr - xr * pr) / det, nm = (xp * pr - xr * pp) / det;
    if (!(nd > 0.0f && nm >= 0.0f)) return;
    *d = nd;
    *dmin = nm;
}

// All of it: from f, m to sc, mn, the halves and the values. s: power of two that undoes block_normalize.
VEC void affine_super(const struct affine_super *k, const float *x, const float *w, float s, const float *f, const float *m,
                      uint8_t *sc, uint8_t *mn, uint16_t *half_d, uint16_t *half_dmin, int8_t *q) {
    float d = 0.0f, dmin = 0.0f;
    for (int j = 0; j < k->n_sub; j++) {
        d = f[j] > d ? f[j] : d;
        dmin = m[j] > dmin ? m[j] : dmin;
    }
    d /= (float) k->top;
    dmin /= (float) k->top;
    for (int round = 0; round < 2; round++) {
        *half_d = half_scale(d * s);
        *half_dmin = half_scale(dmin * s);
        d = f16_to_f32(*half_d) / s;
        dmin = f16_to_f32(*half_dmin) / s;
        for (int j = 0; j < k->n_sub; j++) {
            const int at = k->n * j;
            affine_choose(k, x + at, w + at, d, dmin, f[j], m[j], sc + j, mn + j);
            assign_values(x + at, k->n, d * (float) sc[j], dmin * (float) mn[j], 0.0f, k->hi, q + at);
        }
        if (round == 0) affine_fit(k, x, w, q, sc, mn, &d, &dmin);
    }
}

struct signed_super {
    int n_sub, n;
    int n_round;   // 2: d is fitted after the first; 1: it is not
    int top;       // scales are integers of -top .. top - 1
    float lo, hi;  // values are integers of lo .. hi
};

VEC void signed_choose(const struct signed_super *k, const float *x, const float *w, float d, float f, int8_t *sc) {
    const int s0 = clamp_int(round_int(clamp_float(d != 0.0f ? f / d : 0.0f, 1000.0f)), -k->top, k->top - 1);
    float scale[8], error[8];
    for (int c = 0; c < 8; c++) scale[c] = (float) clamp_int(s0 + c - 3, -k->top, k->top - 1);
    const f32x8 u = v_load(scale) * d;
    const i32x8 some = u != 0.0f;
    const f32x8 inv = v_select(some, 1.0f / v_select(some, u, v_set(1.0f)), v_set(0.0f));
    f32x8 e = v_set(0.0f);
    for (int i = 0; i < k->n; i++) {
        const f32x8 r = x[i] - u * v_clamp(v_round(inv * x[i]), k->lo, k->hi);
        e += r * r * w[i];
    }
    v_store(error, -e);
    *sc = (int8_t) scale[best_of(error, 8)];
}

// The same for one signed scale per sub-block.
VEC void signed_super(const struct signed_super *k, const float *x, const float *w, float s, const float *f, int8_t *sc,
                      uint16_t *half_d, int8_t *q) {
    float most = 0.0f;
    for (int j = 0; j < k->n_sub; j++) most = fabsf(f[j]) > fabsf(most) ? f[j] : most;
    float d = -most / (float) k->top;
    for (int round = 0; round < k->n_round; round++) {
        *half_d = half_scale(d * s);
        d = f16_to_f32(*half_d) / s;
        float xp = 0.0f, pp = 0.0f;
        for (int j = 0; j < k->n_sub; j++) {
            const int at = k->n * j;
            signed_choose(k, x + at, w + at, d, f[j], sc + j);
            assign_values(x + at, k->n, d * (float) sc[j], 0.0f, k->lo, k->hi, q + at);
            f32x8 a = v_set(0.0f), b = a;
            for (int i = at; i < at + k->n; i += 8) {
                const f32x8 v = v_load_i8(q + i), wv = v_load(w + i) * v;
                a += wv * v_load(x + i);
                b += wv * v;
            }
            xp += (float) sc[j] * v_hsum(a);
            pp += (float) (sc[j] * sc[j]) * v_hsum(b);
        }
        if (pp > 0.0f && xp / pp * d > 0.0f) d = xp / pp;
    }
}
