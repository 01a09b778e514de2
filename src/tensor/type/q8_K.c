// q8_K: 256 elements, x = d * q with a float d and q in -127 .. 127, and the sums of each 16 values: the second operand of
// products with 256-element formats. Never in files.
#include "type/type_int.h"
#include "type/vec_int.h"

#include <float.h>

static inline void decode_block(const struct block_q8_K *b, float *y) {
    for (int i = 0; i < 256; i += 32) scale_32(b->qs + i, b->d, y + i);
}

// A scale below the normal floats has no usable inverse: such blocks become zero.
static inline void encode_block(const float *x, struct block_q8_K *b) {
    const float d = absmax(x, 256) / 127.0f;
    b->d = d < FLT_MIN ? 0.0f : d;
    const f32x8 inv = v_set(b->d != 0.0f ? 1.0f / b->d : 0.0f);
    for (int i = 0; i < 256; i += 8) v_store_i8(b->qs + i, v_clamp(v_round(v_load(x + i) * inv), -127.0f, 127.0f));
    for (int j = 0; j < 16; j++) b->bsums[j] = (int16_t) sum_i8_16(b->qs + 16 * j);
}

static inline float dot_block(const struct block_q8_K *a, const struct block_q8_K *b) {
    int32_t s = 0;
    for (int i = 0; i < 256; i += 32) s += dot_i8_32(a->qs + i, b->qs + i);
    return (a->d * b->d) * (float) s;
}

static inline bool check_block(const struct block_q8_K *b) { return isfinite(b->d); }

static inline void quantize_block(const float *x, const float *w, struct block_q8_K *b) {
    (void) w;
    encode_block(x, b);
}

TYPE_ROWS(q8_K, 256, q8_K, 1)

const struct type ISA_SYM(type_q8_K) = {
    TYPE_QUANTIZED(Q8_K, q8_K, 256),
    .dot_type = GGML_TYPE_Q8_K,
    .tolerance = 3e-5,
};
