// q4_0: 32 elements of 4 bits, x = d * (q - 8).
#include "type/search_int.h"

// Values -8 .. 7.
static inline void unpack(const struct block_q4_0 *b, int8_t *q) {
    for (int i = 0; i < 16; i++) {
        q[i] = (int8_t) ((b->qs[i] & 15) - 8);
        q[i + 16] = (int8_t) ((b->qs[i] >> 4) - 8);
    }
}

static inline void pack(const uint8_t *q, struct block_q4_0 *b) {
    for (int i = 0; i < 16; i++) b->qs[i] = (uint8_t) (q[i] | q[i + 16] << 4);
}

#define KNAME q4_0
#define KBLOCK struct block_q4_0
#define KHALF 8.0f
#define KREACH 0.24f
#include "type/q45_0_int.h"

const struct type ISA_SYM(type_q4_0) = {
    TYPE_QUANTIZED(Q4_0, q4_0, 32),
    .dot_type = GGML_TYPE_Q8_0,
    .tolerance = 6e-3,
};
