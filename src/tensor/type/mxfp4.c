// mxfp4 (OCP Microscaling): 32 four-bit floats with a power-of-two scale 2^(e - 127); e = 255 means NaN.
#include "type/fp4_int.h"

// Half the scale, exact down to the subnormals.
static inline float unit(uint8_t e) {
    if (e == 255) return NAN;
    return f32_from_bits(e > 1 ? (uint32_t) (e - 1) << 23 : 0x200000u << e);
}

static inline void decode_block(const struct block_mxfp4 *b, float *y) {
    int8_t q[32];
    lookup_nibbles(codebook_fp4, b->qs, q);
    scale_32(q, unit(b->e), y);
}

static inline float dot_block(const struct block_mxfp4 *a, const struct block_q8_0 *b) {
    int8_t q[32];
    lookup_nibbles(codebook_fp4, a->qs, q);
    return (unit(a->e) * f16_to_f32(b->d)) * (float) dot_i8_32(q, b->qs);
}

static inline bool check_block(const struct block_mxfp4 *b) { return b->e != 255; }

static inline void pack(const uint8_t *q, uint8_t e, struct block_mxfp4 *b) {
    b->e = e;
    for (int i = 0; i < 16; i++) b->qs[i] = (uint8_t) (q[i] | q[i + 16] << 4);
}

// The largest magnitude gets the largest exponent. Blocks below 2^-122 become zero: their scale's inverse is no float.
static inline uint8_t exponent(const float *x) {
    const int e = (int) (f32_bits(absmax(x, 32)) >> 23);
    return (uint8_t) (e == 255 ? 255 : e > 5 ? e - 2 : 0);
}

static inline void encode_block(const float *x, struct block_mxfp4 *b) {
    uint8_t q[32];
    const uint8_t e = exponent(x);
    fp4_assign(x, 32, e > 3 && e < 255 ? 1.0f / unit(e) : 0.0f, q);
    pack(q, e, b);
}

// Of three neighbouring exponents the one with the least error.
static inline void quantize_block(const float *x, const float *importance, struct block_mxfp4 *b) {
    float w[32], least = INFINITY;
    const uint8_t e0 = exponent(x);
    if (!importance || e0 <= 4 || e0 > 250) {
        encode_block(x, b);
        return;
    }
    block_weights(importance, 32, w);
    float xn[32];
    const f32x8 inv = v_set(1.0f / unit(e0));
    for (int i = 0; i < 32; i += 8) v_store(xn + i, v_load(x + i) * inv);
    for (int k = -1; k <= 1; k++) {
        uint8_t q[32];
        const float u = k < 0 ? 0.5f : k > 0 ? 2.0f : 1.0f;
        fp4_assign(xn, 32, 1.0f / u, q);
        const float error = fp4_error(xn, w, 32, u, q);
        if (error < least) {
            least = error;
            pack(q, (uint8_t) (e0 + k), b);
        }
    }
}

static inline void ints_block(const struct block_mxfp4 *b, int8_t *q, float *s) {
    lookup_nibbles(codebook_fp4, b->qs, q);
    s[0] = s[1] = unit(b->e);
}

TYPE_DECODE(mxfp4, 32)
TYPE_INTS(mxfp4, 32)
TYPE_ENCODE(mxfp4, 32)
TYPE_QUANTIZE(mxfp4, 32)
TYPE_DOT(mxfp4, 32, q8_0, 1)
TYPE_CHECK(mxfp4)

const struct type ISA_SYM(type_mxfp4) = {
    TYPE_QUANTIZED(MXFP4, mxfp4, 32),
    .ints = ints,
    .dot_type = GGML_TYPE_Q8_0,
    .tolerance = 0.024,
};
