// q5_K: 256 elements of 5 bits, x = d * scale * q - dmin * min, 6-bit scale and min for each 32 elements.
// qs as in q4_K; the fifth bit of element i of sub-block j is bit j of qh[i].
#include "type/kquant_int.h"

static inline void unpack(const struct block_q5_K *b, int8_t *restrict q) {
    for (int j = 0; j < 4; j++) {
        for (int i = 0; i < 32; i++) {
            q[64 * j + i] = (int8_t) ((b->qs[32 * j + i] & 15) | (b->qh[i] >> (2 * j) & 1) << 4);
            q[64 * j + 32 + i] = (int8_t) ((b->qs[32 * j + i] >> 4) | (b->qh[i] >> (2 * j + 1) & 1) << 4);
        }
    }
}

static inline void pack(const int8_t *restrict q, struct block_q5_K *b) {
    memset(b->qh, 0, sizeof(b->qh));
    for (int j = 0; j < 4; j++) {
        const int8_t *lo = q + 64 * j, *hi = lo + 32;
        for (int i = 0; i < 32; i++) {
            b->qs[32 * j + i] = (uint8_t) ((lo[i] & 15) | (hi[i] & 15) << 4);
            b->qh[i] = (uint8_t) (b->qh[i] | (lo[i] >> 4) << (2 * j) | (hi[i] >> 4) << (2 * j + 1));
        }
    }
}

#define KNAME q5_K
#define KBLOCK struct block_q5_K
#define KTOP 31
#define KREACH 0.08f
#include "type/q45_K_int.h"

const struct type ISA_SYM(type_q5_K) = {
    TYPE_QUANTIZED(Q5_K, q5_K, 256),
    .dot_type = GGML_TYPE_Q8_K,
    .tolerance = 1.3e-3,
};
