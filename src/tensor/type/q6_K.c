// q6_K: 256 elements of 6 bits, x = d * scale * (q - 32), an 8-bit signed scale for each 16 elements.
// In each half of 128: ql has the low nibbles (elements 0..63 low, 64..127 high), qh two bits for each of four times 32.
#include "type/kquant_int.h"

// Values -32 .. 31.
static inline void unpack(const struct block_q6_K *b, int8_t *restrict q) {
    for (int h = 0; h < 2; h++, q += 128) {
        const uint8_t *ql = b->ql + 64 * h, *qh = b->qh + 32 * h;
        for (int i = 0; i < 32; i++) {
            q[i] = (int8_t) (((ql[i] & 15) | (qh[i] & 3) << 4) - 32);
            q[i + 32] = (int8_t) (((ql[i + 32] & 15) | (qh[i] >> 2 & 3) << 4) - 32);
            q[i + 64] = (int8_t) (((ql[i] >> 4) | (qh[i] >> 4 & 3) << 4) - 32);
            q[i + 96] = (int8_t) (((ql[i + 32] >> 4) | (qh[i] >> 6) << 4) - 32);
        }
    }
}

static inline void pack(const int8_t *restrict v, struct block_q6_K *b) {
    uint8_t q[256];
    for (int i = 0; i < 256; i++) q[i] = (uint8_t) (v[i] + 32);
    for (int h = 0; h < 2; h++) {
        const uint8_t *p = q + 128 * h;
        for (int i = 0; i < 64; i++) b->ql[64 * h + i] = (uint8_t) ((p[i] & 15) | (p[i + 64] & 15) << 4);
        for (int i = 0; i < 32; i++)
            b->qh[32 * h + i] = (uint8_t) (p[i] >> 4 | p[i + 32] >> 4 << 2 | p[i + 64] >> 4 << 4 | p[i + 96] >> 4 << 6);
    }
}

static inline void decode_block(const struct block_q6_K *b, float *y) {
    int8_t q[256];
    unpack(b, q);
    const float d = f16_to_f32(b->d);
    for (int j = 0; j < 16; j++) scale_16(q + 16 * j, d * (float) b->scales[j], y + 16 * j);
}

static inline float dot_block(const struct block_q6_K *a, const struct block_q8_K *b) {
    int8_t q[256];
    unpack(a, q);
    const int32_t s = dot_scaled(q, b->qs, a->scales, 16, 16);
    return (f16_to_f32(a->d) * b->d) * (float) s;
}

static inline bool check_block(const struct block_q6_K *b) { return half_finite(b->d); }

static inline void quantize_block(const float *x, const float *importance, struct block_q6_K *b) {
    float xn[256], w[256], f[16], id[CANDIDATES];
    int8_t q[256];
    const float s = block_normalize(x, 256, xn);
    if (!(s > 0.0f)) {
        memset(b, 0, sizeof(*b));
        b->d = half_of_refused(s);
        return;
    }
    block_weights(importance, 256, w);
    for (int j = 0; j < 16; j++) {
        candidates(extreme(xn + 16 * j, 16), -32.0f, 0.06f, id, CANDIDATES);
        f[j] = scale_search(xn + 16 * j, w + 16 * j, 16, -32.0f, 31.0f, id, CANDIDATES / 8);
    }
    const struct signed_super k = {.n_sub = 16, .n = 16, .n_round = 1, .top = 128, .lo = -32.0f, .hi = 31.0f};
    signed_super(&k, xn, w, s, f, b->scales, &b->d, q);
    pack(q, b);
}

static inline void encode_block(const float *x, struct block_q6_K *b) { quantize_block(x, NULL, b); }

TYPE_ROWS(q6_K, 256, q8_K, 1)

const struct type ISA_SYM(type_q6_K) = {
    TYPE_QUANTIZED(Q6_K, q6_K, 256),
    .dot_type = GGML_TYPE_Q8_K,
    .tolerance = 3e-4,
};
