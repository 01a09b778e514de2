// nvfp4: 64 four-bit floats, a scale for each 16 as an eight-bit float without sign (4 exponent bits, 3 of mantissa, at most
// 448; 127 means NaN). Each 8 bytes of qs hold 16 elements: eight in the low nibbles, eight in the high ones.
#include "type/fp4_int.h"

// Half the scale.
static inline float unit(uint8_t c) {
    const int e = c >> 3 & 15, m = c & 7;
    if (e == 15 && m == 7) return NAN;
    return e == 0 ? (float) m * 0x1p-10f : f32_from_bits((uint32_t) (e + 127 - 8) << 23 | (uint32_t) m << 20);
}

// Code of the scale nearest to f >= 0; too large ones become 448, NaN and infinity NaN.
static inline uint8_t scale_code(float f) {
    if (!(f < INFINITY)) return 127;
    if (f >= 448.0f) return 126;
    if (f < 0x1p-6f) return (uint8_t) round_int(f * 512.0f);  // may reach 8, the first normal one
    const uint32_t u = f32_bits(f), r = (u + 0x7ffffu + (u >> 20 & 1)) >> 20;
    return (uint8_t) (r - ((127 - 7) << 3));
}

static inline void unpack(const struct block_nvfp4 *b, int8_t *restrict q) {
    uint8_t idx[64];
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < 8; i++) {
            idx[16 * k + i] = b->qs[8 * k + i] & 15;
            idx[16 * k + 8 + i] = b->qs[8 * k + i] >> 4;
        }
        lookup_16(codebook_fp4, idx + 16 * k, q + 16 * k);
    }
}

static inline void decode_block(const struct block_nvfp4 *b, float *y) {
    int8_t q[64];
    unpack(b, q);
    for (int k = 0; k < 4; k++) scale_16(q + 16 * k, unit(b->d[k]), y + 16 * k);
}

static inline float dot_block(const struct block_nvfp4 *a, const struct block_q8_0 *b) {
    int8_t q[64];
    unpack(a, q);
    float s = 0.0f;
    for (int k = 0; k < 4; k++)
        s += (unit(a->d[k]) * f16_to_f32(b[k / 2].d)) * (float) dot_i8_16(q + 16 * k, b[k / 2].qs + 16 * (k % 2));
    return s;
}

static inline bool check_block(const struct block_nvfp4 *b) {
    return b->d[0] < 127 && b->d[1] < 127 && b->d[2] < 127 && b->d[3] < 127;
}

static inline void assign(const float *x, uint8_t code, uint8_t *q) {
    const float d = unit(code);
    fp4_assign(x, 16, d > 0.0f ? 1.0f / d : 0.0f, q);
}

static inline void quantize_block(const float *x, const float *importance, struct block_nvfp4 *b) {
    float w[64];
    block_weights(importance, 64, w);
    for (int k = 0; k < 4; k++, x += 16) {
        uint8_t best[16], q[16];
        const uint8_t code = scale_code(absmax(x, 16) / 6.0f);
        b->d[k] = code;
        assign(x, code, best);
        float least = importance && code < 127 ? fp4_error(x, w + 16 * k, 16, unit(code), best) : 0.0f;
        for (int c = code - 2; c <= code + 4 && least > 0.0f; c++) {
            if (c < 0 || c == code || c > 126) continue;
            assign(x, (uint8_t) c, q);
            const float error = fp4_error(x, w + 16 * k, 16, unit((uint8_t) c), q);
            if (error >= least) continue;
            least = error;
            b->d[k] = (uint8_t) c;
            memcpy(best, q, sizeof(q));
        }
        for (int i = 0; i < 8; i++) b->qs[8 * k + i] = (uint8_t) (best[i] | best[i + 8] << 4);
    }
}

static inline void encode_block(const float *x, struct block_nvfp4 *b) { quantize_block(x, NULL, b); }

static inline void ints_block(const struct block_nvfp4 *b, int8_t *q, float *s) {
    unpack(b, q);
    for (int k = 0; k < 4; k++) s[k] = unit(b->d[k]);
}

TYPE_DECODE(nvfp4, 64)
TYPE_INTS(nvfp4, 64)
TYPE_ENCODE(nvfp4, 64)
TYPE_QUANTIZE(nvfp4, 64)
TYPE_DOT(nvfp4, 64, q8_0, 2)
TYPE_CHECK(nvfp4)

const struct type ISA_SYM(type_nvfp4) = {
    TYPE_QUANTIZED(NVFP4, nvfp4, 64),
    .ints = ints,
    .dot_type = GGML_TYPE_Q8_0,
    .tolerance = 0.012,
};
