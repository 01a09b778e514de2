// q4_0: 32 elements of 4 bits, x = d * (q - 8).
#include "type/search_int.h"

// Values -8 .. 7.
static inline void unpack(const struct block_q4_0 *b, int8_t *q) {
    for (int i = 0; i < 16; i++) {
        q[i] = (int8_t) ((b->qs[i] & 15) - 8);
        q[i + 16] = (int8_t) ((b->qs[i] >> 4) - 8);
    }
}

static inline void pack(const uint8_t *q, struct block_q4_0 *b) {
    for (int i = 0; i < 16; i++) b->qs[i] = (uint8_t) (q[i] | q[i + 16] << 4);
}

static inline void decode_block(const struct block_q4_0 *b, float *y) {
    int8_t q[32];
    unpack(b, q);
    scale_32(q, f16_to_f32(b->d), y);
}

static inline float dot_block(const struct block_q4_0 *a, const struct block_q8_0 *b) {
    int8_t q[32];
    unpack(a, q);
    return (f16_to_f32(a->d) * f16_to_f32(b->d)) * (float) dot_i8_32(q, b->qs);
}

static inline bool check_block(const struct block_q4_0 *b) { return half_finite(b->d); }

// Values for a scale d, stored already; rounds x / d + 8 half up, as the format's reference encoder does.
static inline void assign(const float *x, float d, struct block_q4_0 *b) {
    const f32x8 inv = v_set(inverse(d, b->d));
    uint8_t q[32];
    for (int i = 0; i < 32; i += 8) v_store_u8(q + i, v_clamp(v_load(x + i) * inv + 8.5f, 0.0f, 15.0f));
    pack(q, b);
}

// The value of largest magnitude becomes -8.
static inline void encode_block(const float *x, struct block_q4_0 *b) {
    const float d = extreme(x, 32) / -8.0f;
    b->d = half_scale(d);
    assign(x, d, b);
}

static inline void quantize_block(const float *x, const float *importance, struct block_q4_0 *b) {
    float xn[32], w[32], id[CANDIDATES];
    float s;
    if (!importance || !((s = block_normalize(x, 32, xn)) > 0.0f)) {
        encode_block(x, b);
        return;
    }
    block_weights(importance, 32, w);
    candidates(extreme(xn, 32), -8.0f, 0.24f, id, CANDIDATES);
    const float d = s * scale_search(xn, w, 32, -8.0f, 7.0f, id, CANDIDATES / 8);
    b->d = half_scale(d);
    assign(x, f16_to_f32(b->d), b);
}

TYPE_DECODE(q4_0, 32)
TYPE_ENCODE(q4_0, 32)
TYPE_QUANTIZE(q4_0, 32)
TYPE_DOT(q4_0, 32, q8_0, 1)
TYPE_CHECK(q4_0)

const struct type ISA_SYM(type_q4_0) = {
    TYPE_QUANTIZED(Q4_0, q4_0, 32),
    .dot_type = GGML_TYPE_Q8_0,
    .tolerance = 6e-3,
};
