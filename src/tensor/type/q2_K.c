// q2_K: 256 elements of 2 bits, x = d * scale * q - dmin * min, 4-bit scale (low nibble) and min (high nibble) for each 16
// elements. In each half of 128, 32 bytes of qs hold four times 32 elements, two bits each.
#include "type/kquant_int.h"

static inline void unpack(const struct block_q2_K *b, int8_t *restrict q) {
    for (int h = 0; h < 2; h++)
        for (int j = 0; j < 4; j++)
            for (int i = 0; i < 32; i++) q[128 * h + 32 * j + i] = (int8_t) (b->qs[32 * h + i] >> (2 * j) & 3);
}

static inline void pack(const int8_t *restrict q, struct block_q2_K *b) {
    for (int h = 0; h < 2; h++) {
        const int8_t *p = q + 128 * h;
        for (int i = 0; i < 32; i++) b->qs[32 * h + i] = (uint8_t) (p[i] | p[i + 32] << 2 | p[i + 64] << 4 | p[i + 96] << 6);
    }
}

static inline void decode_block(const struct block_q2_K *b, float *y) {
    int8_t q[256];
    unpack(b, q);
    const float d = f16_to_f32(b->d), dmin = f16_to_f32(b->dmin);
    for (int j = 0; j < 16; j++)
        scale_min_16(q + 16 * j, d * (float) (b->scales[j] & 15), dmin * (float) (b->scales[j] >> 4), y + 16 * j);
}

static inline float dot_block(const struct block_q2_K *a, const struct block_q8_K *b) {
    int8_t q[256], sc[16];
    unpack(a, q);
    int32_t m = 0;
    for (int j = 0; j < 16; j++) {
        sc[j] = (int8_t) (a->scales[j] & 15);
        m += (a->scales[j] >> 4) * b->bsums[j];
    }
    const int32_t s = dot_scaled(q, b->qs, sc, 16, 16);
    return (f16_to_f32(a->d) * b->d) * (float) s - (f16_to_f32(a->dmin) * b->d) * (float) m;
}

static inline bool check_block(const struct block_q2_K *b) { return half_finite(b->d) && half_finite(b->dmin); }

static inline void quantize_block(const float *x, const float *importance, struct block_q2_K *b) {
    float xn[256], w[256], f[16], m[16];
    int8_t q[256];
    uint8_t sc[16], mn[16];
    const float s = block_normalize(x, 256, xn);
    if (!(s > 0.0f)) {
        memset(b, 0, sizeof(*b));
        b->d = half_of_refused(s);
        return;
    }
    if (importance) {
        block_weights(importance, 256, w);
    } else {
        // four steps can't serve all: what is large counts for more, or products shrink by the error's share of the energy
        for (int i = 0; i < 256; i += 8) v_store(w + i, v_max(v_abs(v_load(xn + i)), v_set(1e-5f)));
    }
    for (int j = 0; j < 16; j++) sub_block_affine(xn + 16 * j, w + 16 * j, 16, 3.0f, 0.5f, f + j, m + j);
    const struct affine_super k = {.n_sub = 16, .n = 16, .top = 15, .hi = 3.0f};
    affine_super(&k, xn, w, s, f, m, sc, mn, &b->d, &b->dmin, q);
    for (int j = 0; j < 16; j++) b->scales[j] = (uint8_t) (sc[j] | mn[j] << 4);
    pack(q, b);
}

static inline void encode_block(const float *x, struct block_q2_K *b) { quantize_block(x, NULL, b); }

TYPE_ROWS(q2_K, 256, q8_K, 1)

const struct type ISA_SYM(type_q2_K) = {
    TYPE_QUANTIZED(Q2_K, q2_K, 256),
    .dot_type = GGML_TYPE_Q8_K,
    .tolerance = 0.07,
};
