// q5_1: 32 elements of 5 bits with a minimum, x = d * q + m.
#include "type/search_int.h"

static inline void unpack(const struct block_q5_1 *b, uint8_t *q) { five_bits(b->qs, b->qh, q); }
static inline void pack(const uint8_t *q, struct block_q5_1 *b) { five_bits_pack(q, b->qs, b->qh); }

#define KNAME q5_1
#define KBLOCK struct block_q5_1
#define KTOP 31.0f
#define KREACH 0.1f
#include "type/q45_1_int.h"

const struct type ISA_SYM(type_q5_1) = {
    TYPE_QUANTIZED(Q5_1, q5_1, 32),
    .dot_type = GGML_TYPE_Q8_1,
    .tolerance = 1.3e-3,
};
