// q5_0: 32 elements of 5 bits, x = d * (q - 16).
#include "type/search_int.h"

// Values -16 .. 15; the fifth bits lie in qh, element i in bit i.
static inline void unpack(const struct block_q5_0 *b, int8_t *q) {
    five_bits(b->qs, b->qh, (uint8_t *) q);
    for (int i = 0; i < 32; i++) q[i] = (int8_t) (q[i] - 16);
}

static inline void pack(const uint8_t *q, struct block_q5_0 *b) { five_bits_pack(q, b->qs, b->qh); }

#define KNAME q5_0
#define KBLOCK struct block_q5_0
#define KHALF 16.0f
#define KREACH 0.16f
#include "type/q45_0_int.h"

const struct type ISA_SYM(type_q5_0) = {
    TYPE_QUANTIZED(Q5_0, q5_0, 32),
    .dot_type = GGML_TYPE_Q8_0,
    .tolerance = 1.5e-3,
};
