// tq1_0: 256 ternary elements, x = d * (q - 1), five to a byte. A byte holds its digits as a fraction of 256 (rounded up),
// the first one most significant: times 3^n, modulo 256, then times 3 / 256 gives digit n. The first 32 bytes of qs hold the
// elements i + 32 n, the other 16 the elements 160 + i + 16 n, and qh, with four digits each, the elements 240 + i + 4 n.
#include "type/search_int.h"

// Digits as -1, 0 and 1: a fraction below 86 / 256 begins with 0, one below 171 / 256 with 1.
static inline void digits(const uint8_t *restrict p, int n_byte, int n_digit, int8_t *restrict q) {
    uint8_t x[32];
    memcpy(x, p, (size_t) n_byte);
    for (int n = 0; n < n_digit; n++, q += n_byte) {
        for (int i = 0; i < n_byte; i++) {
            q[i] = (int8_t) ((x[i] >= 86) + (x[i] >= 171) - 1);
            x[i] = (uint8_t) (x[i] + x[i] + x[i]);
        }
    }
}

static inline void unpack(const struct block_tq1_0 *b, int8_t *restrict q) {
    digits(b->qs, 32, 5, q);
    digits(b->qs + 32, 16, 5, q + 160);
    digits(b->qh, 4, 4, q + 240);
}

static inline void digits_pack(const uint8_t *restrict q, int n_byte, int n_digit, uint8_t *restrict p) {
    for (int i = 0; i < n_byte; i++) {
        unsigned v = 0;
        for (int n = 0; n < 5; n++) v = v * 3 + (n < n_digit ? q[n * n_byte + i] : 0);
        p[i] = (uint8_t) ((v * 256 + 242) / 243);
    }
}

static inline void pack(const uint8_t *restrict q, struct block_tq1_0 *b) {
    digits_pack(q, 32, 5, b->qs);
    digits_pack(q + 160, 16, 5, b->qs + 32);
    digits_pack(q + 240, 4, 4, b->qh);
}

#define TNAME tq1_0
#define TBLOCK struct block_tq1_0
#include "type/ternary_int.h"

const struct type ISA_SYM(type_tq1_0) = {
    TYPE_QUANTIZED(TQ1_0, tq1_0, 256),
    .ints = ints,
    .dot_type = GGML_TYPE_Q8_K,
    .tolerance = 0.6,
};
