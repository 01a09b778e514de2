// q2_0: 64 elements of two bits, x = d * (q - 1). Element i is in the bits 2 * (i % 4) of qs[i / 4].
#include "type/search_int.h"

// -1 .. 2
static inline void unpack(const struct block_q2_0 *b, int8_t *restrict q) {
    for (int i = 0; i < 64; i++) q[i] = (int8_t) ((b->qs[i / 4] >> (2 * (i % 4)) & 3) - 1);
}

static inline void decode_block(const struct block_q2_0 *b, float *y) {
    int8_t q[64];
    unpack(b, q);
    const float d = f16_to_f32(b->d);
    scale_32(q, d, y);
    scale_32(q + 32, d, y + 32);
}

static inline float dot_block(const struct block_q2_0 *a, const struct block_q8_0 *b) {
    int8_t q[64];
    unpack(a, q);
    const float s = f16_to_f32(b[0].d) * (float) dot_i8_32(q, b[0].qs);
    return f16_to_f32(a->d) * (s + f16_to_f32(b[1].d) * (float) dot_i8_32(q + 32, b[1].qs));
}

static inline bool check_block(const struct block_q2_0 *b) { return half_finite(b->d); }

static inline void assign(const float *x, float d, struct block_q2_0 *b) {
    const f32x8 inv = v_set(inverse(d, b->d));
    uint8_t q[64];
    for (int i = 0; i < 64; i += 8) v_store_u8(q + i, v_clamp(v_round(v_load(x + i) * inv), -1.0f, 2.0f) + 1.0f);
    for (int i = 0; i < 16; i++) b->qs[i] = (uint8_t) (q[4 * i] | q[4 * i + 1] << 2 | q[4 * i + 2] << 4 | q[4 * i + 3] << 6);
}

// The largest magnitude is the scale: made for weights that are -d, 0 and d.
static inline void encode_block(const float *x, struct block_q2_0 *b) {
    const float d = absmax(x, 64);
    b->d = half_scale(d);
    assign(x, d, b);
}

// With importance weights, the best scale of either sign for the values -1 .. 2.
static inline void quantize_block(const float *x, const float *importance, struct block_q2_0 *b) {
    float xn[64], w[64], id[2 * CANDIDATES];
    float s;
    if (!importance || !((s = block_normalize(x, 64, xn)) > 0.0f)) {
        encode_block(x, b);
        return;
    }
    block_weights(importance, 64, w);
    const float top = extreme(xn, 64);
    candidates(top, 2.0f, 0.6f, id, CANDIDATES);
    candidates(top, -2.0f, 0.6f, id + CANDIDATES, CANDIDATES);
    const float d = s * scale_search(xn, w, 64, -1.0f, 2.0f, id, 2 * CANDIDATES / 8);
    b->d = half_scale(d);
    assign(x, f16_to_f32(b->d), b);
}

static inline void ints_block(const struct block_q2_0 *b, int8_t *q, float *s) {
    unpack(b, q);
    for (int j = 0; j < 4; j++) s[j] = f16_to_f32(b->d);
}

TYPE_DECODE(q2_0, 64)
TYPE_INTS(q2_0, 64)
TYPE_ENCODE(q2_0, 64)
TYPE_QUANTIZE(q2_0, 64)
TYPE_DOT(q2_0, 64, q8_0, 2)
TYPE_CHECK(q2_0)

const struct type ISA_SYM(type_q2_0) = {
    TYPE_QUANTIZED(Q2_0, q2_0, 64),
    .ints = ints,
    .dot_type = GGML_TYPE_Q8_0,
    .tolerance = 0.27,
};
