// q8_1: 32 elements, x = d * q with q in -127 .. 127, and s = d * sum(q): the second operand of formats with a minimum.
// Products here take the sum from the values themselves, because s as a half overflows for large activations.
#include "type/type_int.h"
#include "type/vec_int.h"

static inline void decode_block(const struct block_q8_1 *b, float *y) { scale_32(b->qs, f16_to_f32(b->d), y); }

static inline void encode_block(const float *x, struct block_q8_1 *b) {
    const float d = absmax(x, 32) / 127.0f;
    b->d = half_scale(d);
    const f32x8 inv = v_set(inverse(d, b->d));
    for (int i = 0; i < 32; i += 8) v_store_i8(b->qs + i, v_clamp(v_round(v_load(x + i) * inv), -127.0f, 127.0f));
    b->s = half_scale((float) sum_i8_32(b->qs) * f16_to_f32(b->d));
}

static inline float dot_block(const struct block_q8_1 *a, const struct block_q8_1 *b) {
    return (f16_to_f32(a->d) * f16_to_f32(b->d)) * (float) dot_i8_32(a->qs, b->qs);
}

static inline bool check_block(const struct block_q8_1 *b) { return half_finite(b->d) && half_finite(b->s); }

static inline void quantize_block(const float *x, const float *w, struct block_q8_1 *b) {
    (void) w;
    encode_block(x, b);
}

TYPE_ROWS(q8_1, 32, q8_1, 1)

const struct type ISA_SYM(type_q8_1) = {
    TYPE_QUANTIZED(Q8_1, q8_1, 32),
    .dot_type = GGML_TYPE_Q8_1,
    .tolerance = 2e-5,
};
