// q4_1: 32 elements of 4 bits with a minimum, x = d * q + m.
#include "type/search_int.h"

static inline void unpack(const struct block_q4_1 *b, uint8_t *q) {
    for (int i = 0; i < 16; i++) {
        q[i] = b->qs[i] & 15;
        q[i + 16] = b->qs[i] >> 4;
    }
}

static inline void pack(const uint8_t *q, struct block_q4_1 *b) {
    for (int i = 0; i < 16; i++) b->qs[i] = (uint8_t) (q[i] | q[i + 16] << 4);
}

#define KNAME q4_1
#define KBLOCK struct block_q4_1
#define KTOP 15.0f
#define KREACH 0.16f
#include "type/q45_1_int.h"

const struct type ISA_SYM(type_q4_1) = {
    TYPE_QUANTIZED(Q4_1, q4_1, 32),
    .dot_type = GGML_TYPE_Q8_1,
    .tolerance = 5e-3,
};
