// q1_0: 128 elements of one bit, x = d where the bit is set and -d where it is not. Element i is bit i % 8 of qs[i / 8].
#include "type/search_int.h"

// -1 or 1
static inline void unpack(const struct block_q1_0 *b, int8_t *restrict q) {
    for (int k = 0; k < 16; k++) {
        const uint64_t minus = spread_bits((uint8_t) ~b->qs[k]), v = minus * 255 | (minus ^ 0x0101010101010101u);
        memcpy(q + 8 * k, &v, 8);
    }
}

static inline void decode_block(const struct block_q1_0 *b, float *y) {
    int8_t q[128];
    unpack(b, q);
    const float d = f16_to_f32(b->d);
    for (int i = 0; i < 128; i += 32) scale_32(q + i, d, y + i);
}

static inline float dot_block(const struct block_q1_0 *a, const struct block_q8_0 *b) {
    int8_t q[128];
    unpack(a, q);
    float s = 0.0f;
    for (int k = 0; k < 4; k++) s += f16_to_f32(b[k].d) * (float) dot_i8_32(q + 32 * k, b[k].qs);
    return f16_to_f32(a->d) * s;
}

static inline bool check_block(const struct block_q1_0 *b) { return half_finite(b->d); }

// The scale that is best in the mean square: the (weighted) mean of |x|.
static inline void quantize_block(const float *x, const float *importance, struct block_q1_0 *b) {
    float w[128];
    block_weights(importance, 128, w);
    f32x8 sw = v_set(0.0f), sx = sw;
    for (int i = 0; i < 128; i += 8) {
        sw += v_load(w + i);
        sx += v_load(w + i) * (v_abs(v_load(x + i)) * 0x1p-7f);  // a sum of 128 largest floats is no float
    }
    b->d = half_scale(v_hsum(sx) / (v_hsum(sw) * 0x1p-7f));
    for (int k = 0; k < 16; k++) {
        unsigned bits = 0;
        for (int i = 0; i < 8; i++) bits |= (unsigned) (x[8 * k + i] >= 0.0f) << i;
        b->qs[k] = (uint8_t) bits;
    }
}

static inline void encode_block(const float *x, struct block_q1_0 *b) { quantize_block(x, NULL, b); }

static inline void ints_block(const struct block_q1_0 *b, int8_t *q, float *s) {
    unpack(b, q);
    for (int j = 0; j < 8; j++) s[j] = f16_to_f32(b->d);
}

TYPE_DECODE(q1_0, 128)
TYPE_INTS(q1_0, 128)
TYPE_ENCODE(q1_0, 128)
TYPE_QUANTIZE(q1_0, 128)
TYPE_DOT(q1_0, 128, q8_0, 4)
TYPE_CHECK(q1_0)

const struct type ISA_SYM(type_q1_0) = {
    TYPE_QUANTIZED(Q1_0, q1_0, 128),
    .ints = ints,
    .dot_type = GGML_TYPE_Q8_0,
    .tolerance = 0.28,
};
