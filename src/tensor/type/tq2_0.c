// tq2_0: 256 ternary elements of two bits, x = d * (q - 1). In each half of 128, 32 bytes hold four times 32 elements.
#include "type/search_int.h"

// -1 .. 1 (2 in damaged blocks)
static inline void unpack(const struct block_tq2_0 *b, int8_t *restrict q) {
    for (int h = 0; h < 2; h++)
        for (int j = 0; j < 4; j++)
            for (int i = 0; i < 32; i++) q[128 * h + 32 * j + i] = (int8_t) ((b->qs[32 * h + i] >> (2 * j) & 3) - 1);
}

static inline void pack(const uint8_t *restrict q, struct block_tq2_0 *b) {
    for (int h = 0; h < 2; h++) {
        const uint8_t *p = q + 128 * h;
        for (int i = 0; i < 32; i++) b->qs[32 * h + i] = (uint8_t) (p[i] | p[i + 32] << 2 | p[i + 64] << 4 | p[i + 96] << 6);
    }
}

#define TNAME tq2_0
#define TBLOCK struct block_tq2_0
#include "type/ternary_int.h"

const struct type ISA_SYM(type_tq2_0) = {
    TYPE_QUANTIZED(TQ2_0, tq2_0, 256),
    .ints = ints,
    .dot_type = GGML_TYPE_Q8_K,
    .tolerance = 0.6,
};
