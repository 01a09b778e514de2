// q4_K: 256 elements of 4 bits, x = d * scale * q - dmin * min, 6-bit scale and min for each 32 elements.
// Each 32 bytes of qs hold two sub-blocks: the first in the low nibbles, the second in the high ones.
#include "type/kquant_int.h"

static inline void unpack(const struct block_q4_K *b, int8_t *restrict q) {
    for (int j = 0; j < 4; j++) {
        for (int i = 0; i < 32; i++) {
            q[64 * j + i] = (int8_t) (b->qs[32 * j + i] & 15);
            q[64 * j + 32 + i] = (int8_t) (b->qs[32 * j + i] >> 4);
        }
    }
}

static inline void pack(const int8_t *restrict q, struct block_q4_K *b) {
    for (int j = 0; j < 4; j++)
        for (int i = 0; i < 32; i++) b->qs[32 * j + i] = (uint8_t) (q[64 * j + i] | q[64 * j + 32 + i] << 4);
}

#define KNAME q4_K
#define KBLOCK struct block_q4_K
#define KTOP 15
#define KREACH 0.14f
#include "type/q45_K_int.h"

const struct type ISA_SYM(type_q4_K) = {
    TYPE_QUANTIZED(Q4_K, q4_K, 256),
    .dot_type = GGML_TYPE_Q8_K,
    .tolerance = 5e-3,
};
