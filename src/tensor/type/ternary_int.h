// The common body of tq1_0 and tq2_0, which differ in how digits are packed. The including file defines unpack, pack,
// TBLOCK.
#pragma once

static inline void decode_block(const TBLOCK *b, float *y) {
    int8_t q[256];
    unpack(b, q);
    const float d = f16_to_f32(b->d);
    for (int i = 0; i < 256; i += 32) scale_32(q + i, d, y + i);
}

static inline void ints_block(const TBLOCK *b, int8_t *q, float *s) {
    unpack(b, q);
    for (int j = 0; j < 16; j++) s[j] = f16_to_f32(b->d);
}

static inline float dot_block(const TBLOCK *a, const struct block_q8_K *b) {
    int8_t q[256];
    unpack(a, q);
    int32_t s = 0;
    for (int i = 0; i < 256; i += 32) s += dot_i8_32(q + i, b->qs + i);
    return (f16_to_f32(a->d) * b->d) * (float) s;
}

static inline bool check_block(const TBLOCK *b) { return half_finite(b->d); }

// The largest magnitude is the scale: these formats are for weights that are -d, 0 and d already.
static inline void encode_block(const float *x, TBLOCK *b) {
    const float d = absmax(x, 256);
    b->d = half_scale(d);
    const f32x8 inv = v_set(inverse(d, b->d));
    uint8_t q[256];
    for (int i = 0; i < 256; i += 8) v_store_u8(q + i, v_clamp(v_round(v_load(x + i) * inv), -1.0f, 1.0f) + 1.0f);
    pack(q, b);
}

static inline void quantize_block(const float *x, const float *w, TBLOCK *b) {
    (void) w;
    encode_block(x, b);
}

#define TROWS(name)                                                                                                         \
    TYPE_DECODE(name, 256)                                                                                                  \
    TYPE_INTS(name, 256)                                                                                                    \
    TYPE_ENCODE(name, 256)                                                                                                  \
    TYPE_QUANTIZE(name, 256)                                                                                                \
    TYPE_DOT(name, 256, q8_K, 1)                                                                                            \
    TYPE_CHECK(name)
TROWS(TNAME)
