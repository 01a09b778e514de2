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
    int8_t q[256], sc[8];
    for (int j = 0; j < 8; j++) {
        lookup_nibbles(codebook_iq4_nl, a->qs + 16 * j, q + 32 * j);
        sc[j] = (int8_t) scale_at(a, j);
    }
    return (f16_to_f32(a->d) * b->d) * (float) dot_scaled(q, b->qs, sc, 8, 32);
}

static inline bool check_block(const struct block_iq4_xs *b) { return half_finite(b->d); }

// The integer scale around f / d with the least error, eight tried at once.
static inline int choose(const float *x, const float *w, float d, float f) {
    const int s0 = clamp_int(round_int(clamp_float(d != 0.0f ? f / d : 0.0f, 1000.0f)), -32, 31);
    float scale[8], gain[8];
    for (int c = 0; c < 8; c++) scale[c] = (float) clamp_int(s0 + c - 3, -32, 31);
    const f32x8 u = v_load(scale) * d;
    const i32x8 some = u != 0.0f;
    const f32x8 inv = v_select(some, 1.0f / v_select(some, u, v_set(1.0f)), v_set(0.0f));
    f32x8 e = v_set(0.0f);
    for (int i = 0; i < 32; i++) {
        const f32x8 r = x[i] - u * iq4_nearest(inv * x[i]);
        e += r * r * w[i];
    }
    v_store(gain, -e);
    return (int) scale[best_of(gain, 8)];
}

static inline void quantize_block(const float *x, const float *importance, struct block_iq4_xs *b) {
    float xn[256], w[256], f[8], most = 0.0f;
    int sc[8];
    uint8_t q[256];
    memset(b, 0, sizeof(*b));
    const float s = block_normalize(x, 256, xn);
    if (!(s > 0.0f)) {
        b->d = half_of_refused(s);
        return;
    }
    block_weights(importance, 256, w);
    for (int j = 0; j < 8; j++) {
        f[j] = iq4_scale(xn + 32 * j, w + 32 * j);
        most = fabsf(f[j]) > fabsf(most) ? f[j] : most;
    }
    float d = -most / 32.0f;
    for (int round = 0; round < 2; round++) {  // the second with d fitted to what the first gave
        b->d = half_scale(d * s);
        d = f16_to_f32(b->d) / s;
        float xp = 0.0f, pp = 0.0f;
        for (int j = 0; j < 8; j++) {
            sc[j] = choose(xn + 32 * j, w + 32 * j, d, f[j]);
            const float unit = d * (float) sc[j];
            iq4_assign(xn + 32 * j, 32, unit != 0.0f ? 1.0f / unit : 0.0f, q + 32 * j);
            for (int i = 32 * j; i < 32 * j + 32; i++) {
                const float v = (float) (sc[j] * codebook_iq4_nl[q[i]]);
                xp += w[i] * v * xn[i];
                pp += w[i] * v * v;
            }
        }
        if (round == 0 && pp > 0.0f && xp / pp * d > 0.0f) d = xp / pp;
    }
    for (int j = 0; j < 8; j++) {
        const int v = sc[j] + 32;
        b->scales_l[j / 2] = (uint8_t) (b->scales_l[j / 2] | (v & 15) << (4 * (j % 2)));
        b->scales_h = (uint16_t) (b->scales_h | (v >> 4) << (2 * j));
        for (int i = 0; i < 16; i++) b->qs[16 * j + i] = (uint8_t) (q[32 * j + i] | q[32 * j + 16 + i] << 4);
    }
}

static inline void encode_block(const float *x, struct block_iq4_xs *b) { quantize_block(x, NULL, b); }

static inline void ints_block(const struct block_iq4_xs *b, int8_t *q, float *s) {
    const float d = f16_to_f32(b->d);
    for (int j = 0; j < 8; j++) {
        lookup_nibbles(codebook_iq4_nl, b->qs + 16 * j, q + 32 * j);
        s[2 * j] = s[2 * j + 1] = d * (float) scale_at(b, j);
    }
}

TYPE_DECODE(iq4_xs, 256)
TYPE_INTS(iq4_xs, 256)
TYPE_ENCODE(iq4_xs, 256)
TYPE_QUANTIZE(iq4_xs, 256)
TYPE_DOT(iq4_xs, 256, q8_K, 1)
TYPE_CHECK(iq4_xs)

const struct type ISA_SYM(type_iq4_xs) = {
    TYPE_QUANTIZED(IQ4_XS, iq4_xs, 256),
    .ints = ints,
    .dot_type = GGML_TYPE_Q8_K,
    .tolerance = 4.8e-3,
};
