// iq1_m: 256 elements, 1.75 bits each. Per 8 elements 11 bits of grid entry (that of iq1_s; the low 8 bits in qs, three in
// qh) and the sign of a shift by 1/8 (the nibble's fourth bit in qh), per 16 a scale of 3 bits; four 16-bit words of scales
// hold four each, and in their top nibbles the half d: x = d * (2 scale + 1) * (entry +- 1/8).
#define GNAME iq1_m
#define GBLOCK struct block_iq1_m
#define GUNIT 0.125f
#include "type/grid_int.h"

static inline float scale(const struct block_iq1_m *b) {
    uint16_t w[4];
    memcpy(w, b->scales, 8);
    return f16_to_f32((uint16_t) (w[0] >> 12 | (w[1] >> 8 & 0xf0) | (w[2] >> 4 & 0xf00) | (w[3] & 0xf000)));
}

static inline void unpack(const struct block_iq1_m *b, int8_t *q, int8_t *sc) {
    uint16_t w[4];
    memcpy(w, b->scales, 8);
    const u16x8 pairs = {w[0], w[0] >> 6, w[1], w[1] >> 6, w[2], w[2] >> 6, w[3], w[3] >> 6};
    put_scales((pairs & 7) | (pairs << 5 & 0x700), sc);
    for (int j = 0; j < 8; j++) {
        const uint8_t *e = b->qs + 4 * j;
        const unsigned h = b->qh[2 * j] | (unsigned) b->qh[2 * j + 1] << 8;
        const uint16_t index[4] = {(uint16_t) (e[0] | (h << 8 & 0x700)), (uint16_t) (e[1] | (h << 4 & 0x700)),
                                   (uint16_t) (e[2] | (h & 0x700)), (uint16_t) (e[3] | (h >> 4 & 0x700))};
        const uint32_t minus = (h >> 3 & 1) | (h << 1 & 0x100) | (h << 5 & 0x10000) | (h << 9 & 0x1000000);
        put_shifted(entries_8(codebook_iq1, index), minus * 255, q + 32 * j);
    }
}

#ifdef ISA_IS_scalar
static const struct grid_format format = {
    .book = &codebook_search_iq1,
    GRID_OF_8,
    .signs = GRID_SIGNS_NONE,
    .n_sub = 16,
    .n_delta = 8,
    .delta = 0.125f,
    .top = 7,
    .unit = 1.0f,
    .first = 0.7f,
    .last = 0.45f,
    .n_start = 2,
};

static void pack(const struct grid_fit *f, struct block_iq1_m *b) {
    uint16_t w[4];
    for (int j = 0; j < 4; j++) {
        unsigned v = (unsigned) (f->half >> (4 * j) & 15) << 12;
        for (int k = 0; k < 4; k++) v |= (unsigned) f->sc[4 * j + k] << (3 * k);
        w[j] = (uint16_t) v;
    }
    memcpy(b->scales, w, 8);
    memset(b->qh, 0, sizeof(b->qh));
    for (int k = 0; k < 32; k++) {
        b->qs[k] = (uint8_t) f->entry[k];
        b->qh[k / 2] = (uint8_t) (b->qh[k / 2] | (f->entry[k] >> 8 | (f->minus[k] ? 8 : 0)) << (4 * (k % 2)));
    }
}
GRID_ROWS(iq1_m)
#endif

const struct type ISA_SYM(type_iq1_m) = {GRID_TYPE(IQ1_M, iq1_m, .tolerance = 0.3) GRID_ENCODERS};
