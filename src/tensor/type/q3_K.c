// q3_K: 256 elements of 3 bits, x = d * (scale - 32) * (q - 4), a 6-bit scale for each 16 elements. The low two bits of q
// lie as in q2_K; the third bit of element i of the j-th 32 elements is bit j of hmask[i].
#include "type/kquant_int.h"

// Values -4 .. 3.
static inline void unpack(const struct block_q3_K *b, int8_t *restrict q) {
    for (int h = 0; h < 2; h++)
        for (int j = 0; j < 4; j++)
            for (int i = 0; i < 32; i++)
                q[128 * h + 32 * j + i] =
                    (int8_t) ((b->qs[32 * h + i] >> (2 * j) & 3) + ((b->hmask[i] >> (4 * h + j) & 1) << 2) - 4);
}

static inline void pack(const int8_t *restrict v, struct block_q3_K *b) {
    memset(b->hmask, 0, sizeof(b->hmask));
    memset(b->qs, 0, sizeof(b->qs));
    for (int h = 0; h < 2; h++) {
        for (int j = 0; j < 4; j++) {
            for (int i = 0; i < 32; i++) {
                const int q = v[128 * h + 32 * j + i] + 4;
                b->qs[32 * h + i] = (uint8_t) (b->qs[32 * h + i] | (q & 3) << (2 * j));
                b->hmask[i] = (uint8_t) (b->hmask[i] | (q >> 2) << (4 * h + j));
            }
        }
    }
}

// Sixteen scales of 6 bits in 12 bytes, made signed.
static inline void scales_get(const uint8_t *p, int8_t *s) {
    for (int j = 0; j < 16; j++) {
        const int low = j < 8 ? p[j] & 15 : p[j - 8] >> 4;
        s[j] = (int8_t) ((low | (p[8 + j % 4] >> (2 * (j / 4)) & 3) << 4) - 32);
    }
}

static inline void scales_put(const int8_t *s, uint8_t *p) {
    memset(p, 0, 12);
    for (int j = 0; j < 16; j++) {
        const int v = s[j] + 32;
        p[j % 8] = (uint8_t) (p[j % 8] | (v & 15) << (j < 8 ? 0 : 4));
        p[8 + j % 4] = (uint8_t) (p[8 + j % 4] | (v >> 4) << (2 * (j / 4)));
    }
}

static inline void decode_block(const struct block_q3_K *b, float *y) {
    int8_t q[256], sc[16];
    unpack(b, q);
    scales_get(b->scales, sc);
    const float d = f16_to_f32(b->d);
    for (int j = 0; j < 16; j++) scale_16(q + 16 * j, d * (float) sc[j], y + 16 * j);
}

static inline float dot_block(const struct block_q3_K *a, const struct block_q8_K *b) {
    int8_t q[256], sc[16];
    unpack(a, q);
    scales_get(a->scales, sc);
    const int32_t s = dot_scaled(q, b->qs, sc, 16, 16);
    return (f16_to_f32(a->d) * b->d) * (float) s;
}

static inline bool check_block(const struct block_q3_K *b) { return half_finite(b->d); }

static inline void quantize_block(const float *x, const float *importance, struct block_q3_K *b) {
    float xn[256], w[256], f[16], id[CANDIDATES];
    int8_t q[256], sc[16];
    const float s = block_normalize(x, 256, xn);
    if (!(s > 0.0f)) {
        memset(q, 0, sizeof(q));
        memset(sc, 0, sizeof(sc));
        b->d = half_of_refused(s);
    } else {
        block_weights(importance, 256, w);
        for (int j = 0; j < 16; j++) {
            candidates(extreme(xn + 16 * j, 16), -4.0f, 0.4f, id, CANDIDATES);
            f[j] = scale_search(xn + 16 * j, w + 16 * j, 16, -4.0f, 3.0f, id, CANDIDATES / 8);
        }
        const struct signed_super k = {.n_sub = 16, .n = 16, .n_round = 2, .top = 32, .lo = -4.0f, .hi = 3.0f};
        signed_super(&k, xn, w, s, f, sc, &b->d, q);
    }
    scales_put(sc, b->scales);
    pack(q, b);
}

static inline void encode_block(const float *x, struct block_q3_K *b) { quantize_block(x, NULL, b); }

TYPE_ROWS(q3_K, 256, q8_K, 1)

const struct type ISA_SYM(type_q3_K) = {
    TYPE_QUANTIZED(Q3_K, q3_K, 256),
    .dot_type = GGML_TYPE_Q8_K,
    .tolerance = 0.02,
};
