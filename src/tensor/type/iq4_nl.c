// iq4_nl: 32 elements of 4 bits, x = d * value[q], 16 unevenly spaced values. Nibbles as in q4_0.
#include "type/iq4_int.h"

static inline void decode_block(const struct block_iq4_nl *b, float *y) {
    int8_t q[32];
    lookup_nibbles(codebook_iq4_nl, b->qs, q);
    scale_32(q, f16_to_f32(b->d), y);
}

static inline float dot_block(const struct block_iq4_nl *a, const struct block_q8_0 *b) {
    int8_t q[32];
    lookup_nibbles(codebook_iq4_nl, a->qs, q);
    return (f16_to_f32(a->d) * f16_to_f32(b->d)) * (float) dot_i8_32(q, b->qs);
}

static inline bool check_block(const struct block_iq4_nl *b) { return half_finite(b->d); }

static inline void quantize_block(const float *x, const float *importance, struct block_iq4_nl *b) {
    float xn[32], w[32];
    uint8_t q[32];
    const float s = block_normalize(x, 32, xn);
    if (!(s > 0.0f)) {
        memset(b, 0, sizeof(*b));
        b->d = half_of_refused(s);
        return;
    }
    block_weights(importance, 32, w);
    const float d = iq4_scale(xn, w) * s;
    b->d = half_scale(d);
    iq4_assign(x, 32, inverse(f16_to_f32(b->d), b->d), q);
    for (int i = 0; i < 16; i++) b->qs[i] = (uint8_t) (q[i] | q[i + 16] << 4);
}

static inline void encode_block(const float *x, struct block_iq4_nl *b) { quantize_block(x, NULL, b); }

static inline void ints_block(const struct block_iq4_nl *b, int8_t *q, float *s) {
    lookup_nibbles(codebook_iq4_nl, b->qs, q);
    s[0] = s[1] = f16_to_f32(b->d);
}

TYPE_DECODE(iq4_nl, 32)
TYPE_INTS(iq4_nl, 32)
TYPE_ENCODE(iq4_nl, 32)
TYPE_QUANTIZE(iq4_nl, 32)
TYPE_DOT(iq4_nl, 32, q8_0, 1)
TYPE_CHECK(iq4_nl)

const struct type ISA_SYM(type_iq4_nl) = {
    TYPE_QUANTIZED(IQ4_NL, iq4_nl, 32),
    .ints = ints,
    .dot_type = GGML_TYPE_Q8_0,
    .tolerance = 4.6e-3,
};
