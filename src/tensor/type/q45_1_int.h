// The common body of q4_1 and q5_1, which differ in how values are packed. The including file defines unpack, pack, KNAME, KBLOCK, KTOP
// (largest value) and KREACH (how far around the plain scale the search looks).
#pragma once

static inline void decode_block(const KBLOCK *b, float *y) {
    uint8_t q[32];
    unpack(b, q);
    const float d = f16_to_f32(b->d), m = f16_to_f32(b->m);
    scale_min_32((const int8_t *) q, d, -m, y);
}

// The other operand's sum comes from its values: the half in its block can't hold large ones.
static inline float dot_block(const KBLOCK *a, const struct block_q8_1 *b) {
    uint8_t q[32];
    unpack(a, q);
    const float dot = f16_to_f32(a->d) * (float) dot_i8_32((const int8_t *) q, b->qs);
    return f16_to_f32(b->d) * (dot + f16_to_f32(a->m) * (float) sum_i8_32(b->qs));
}

static inline bool check_block(const KBLOCK *b) { return half_finite(b->d) && half_finite(b->m); }

// Values for scale d and minimum m, stored already; rounds half up, as the format's reference encoder does.
static inline void assign(const float *x, float d, float m, KBLOCK *b) {
    const f32x8 inv = v_set(inverse(d, b->d));
    uint8_t q[32];
    for (int i = 0; i < 32; i += 8) v_store_u8(q + i, v_clamp((v_load(x + i) - m) * inv + 0.5f, 0.0f, KTOP));
    pack(q, b);
}

static inline void encode_block(const float *x, KBLOCK *b) {
    float lo, hi;
    minmax(x, 32, &lo, &hi);
    const float d = isfinite(absmax(x, 32)) ? hi / KTOP - lo / KTOP : NAN;
    b->d = half_scale(d);
    b->m = half_scale(lo);
    assign(x, d, lo, b);
}

static inline void quantize_block(const float *x, const float *importance, KBLOCK *b) {
    float xn[32], w[32], id[CANDIDATES], m0[CANDIDATES], lo, hi, d, m, s;
    if (!importance || !((s = block_normalize(x, 32, xn)) > 0.0f)) {
        encode_block(x, b);
        return;
    }
    block_weights(importance, 32, w);
    minmax(xn, 32, &lo, &hi);
    candidates(hi - lo, KTOP, KREACH, id, CANDIDATES);
    for (int i = 0; i < CANDIDATES; i++) m0[i] = -lo;
    affine_search(xn, w, 32, KTOP, id, m0, CANDIDATES / 8, false, &d, &m);
    b->d = half_scale(s * d);
    b->m = half_scale(s * -m);
    assign(x, f16_to_f32(b->d), f16_to_f32(b->m), b);
}

TYPE_ROWS(KNAME, 32, q8_1, 1)
