// iq4_xs: 256 elements of 4 bits, x = d * (scale - 32) * value[q] with the values of iq4_nl and a 6-bit scale for each 32
// elements (its low four bits in scales_l, the upper two in scales_h). Nibbles as in iq4_nl, 16 bytes per 32 elements.
#include "type/iq4_int.h"

static inline int scale_at(const struct block_iq4_xs *b, int j) {
    return ((b->scales_l[j / 2] >> (4 * (j % 2)) & 15) | (b->scales_h >> (2 * j) & 3) << 4) - 32;
}

static inline void decode_block(const struct block_iq4_xs *b, float *y) {
    int8_t q[32];
    const float d = f16_to_f32(b->d);
    for (int j = 0; j < 8; j++) {
        lookup_nibbles(codebook_iq4_nl, b->qs + 16 * j, q);
        scale_32(q, d * (float) scale_at(b, j), y + 32 * j);
    }
}

static inline float dot_block(const struct block_iq4_xs *a, const struct block_q8_K *b) {
    int8_t q[32];
    int32_t s = 0;
    for (int j = 0; j < 8; j++) {
        lookup_nibbles(codebook_iq4_nl, a->qs + 16 * j, q);
        s += scale_at(a, j) * dot_i8_32(q, b->qs + 32 * j);
    }
    return (f16_to_f32(a->d) * b->d) * (float) s;
}

static inline bool check_block(const struct block_iq4_xs *b) { return half_finite(b->d); }

static inline void quantize_block(const float *x, const float *importance, struct block_iq4_xs *b) {
    float xn[256], w[256], f[8];
    int8_t sc[8];
    memset(b, 0, sizeof(*b));
    const float s = block_normalize(x, 256, xn);
    if (s == 0.0f) return;
    block_weights(importance, 256, w);
    for (int j = 0; j < 8; j++) f[j] = iq4_scale(xn + 32 * j, w + 32 * j);
    const float d = factors_quantize_signed(f, 8, 32, s, sc, &b->d);
    for (int j = 0; j < 8; j++) {
        uint8_t q[32];
        const int v = sc[j] + 32;
        const float unit = d * (float) sc[j];
        b->scales_l[j / 2] = (uint8_t) (b->scales_l[j / 2] | (v & 15) << (4 * (j % 2)));
        b->scales_h = (uint16_t) (b->scales_h | (v >> 4) << (2 * j));
        iq4_assign(xn + 32 * j, 32, unit != 0.0f ? 1.0f / unit : 0.0f, q);
        for (int i = 0; i < 16; i++) b->qs[16 * j + i] = (uint8_t) (q[i] | q[i + 16] << 4);
    }
}

static inline void encode_block(const float *x, struct block_iq4_xs *b) { quantize_block(x, NULL, b); }

TYPE_DECODE(iq4_xs, 256)
TYPE_ENCODE(iq4_xs, 256)
TYPE_QUANTIZE(iq4_xs, 256)
TYPE_DOT(iq4_xs, 256, q8_K, 1)
TYPE_CHECK(iq4_xs)

const struct type ISA_SYM(type_iq4_xs) = {
    TYPE_QUANTIZED(IQ4_XS, iq4_xs, 256), .dot_type = GGML_TYPE_Q8_K, .tolerance = 4.8e-3,
};
