// The common body of q4_0 and q5_0, which differ in how values are packed. The including file defines unpack (to values around 0), pack,
// KNAME, KBLOCK, KHALF (minus the smallest value) and KREACH (how far around the plain scale the search looks).
#pragma once

static inline void decode_block(const KBLOCK *b, float *y) {
    int8_t q[32];
    unpack(b, q);
    scale_32(q, f16_to_f32(b->d), y);
}

static inline float dot_block(const KBLOCK *a, const struct block_q8_0 *b) {
    int8_t q[32];
    unpack(a, q);
    return (f16_to_f32(a->d) * f16_to_f32(b->d)) * (float) dot_i8_32(q, b->qs);
}

static inline bool check_block(const KBLOCK *b) { return half_finite(b->d); }

// Values for a scale d, stored already; rounds x / d + KHALF half up, as the format's reference encoder does.
static inline void assign(const float *x, float d, KBLOCK *b) {
    const f32x8 inv = v_set(inverse(d, b->d));
    uint8_t q[32];
    for (int i = 0; i < 32; i += 8)
        v_store_u8(q + i, v_clamp(v_load(x + i) * inv + (KHALF + 0.5f), 0.0f, 2.0f * KHALF - 1.0f));
    pack(q, b);
}

// The value of largest magnitude becomes -KHALF.
static inline void encode_block(const float *x, KBLOCK *b) {
    const float d = extreme(x, 32) / -KHALF;
    b->d = half_scale(d);
    assign(x, d, b);
}

static inline void quantize_block(const float *x, const float *importance, KBLOCK *b) {
    float xn[32], w[32], id[CANDIDATES];
    float s;
    if (!importance || !((s = block_normalize(x, 32, xn)) > 0.0f)) {
        encode_block(x, b);
        return;
    }
    block_weights(importance, 32, w);
    candidates(extreme(xn, 32), -KHALF, KREACH, id, CANDIDATES);
    const float d = s * scale_search(xn, w, 32, -KHALF, KHALF - 1.0f, id, CANDIDATES / 8);
    b->d = half_scale(d);
    assign(x, f16_to_f32(b->d), b);
}

TYPE_ROWS(KNAME, 32, q8_0, 1)
