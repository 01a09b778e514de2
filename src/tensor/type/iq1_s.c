// iq1_s: 256 elements, 1.56 bits each. Per 8 elements 11 bits of grid entry (2048 entries of -1, 0, 1; the low 8 bits in qs,
// three in qh), per 32 a scale of 3 bits and the sign of a shift by 1/8: x = d * (2 scale + 1) * (entry +- 1/8).
// Unpacked as eight times that: 8 * entry +- 1.
#define GNAME iq1_s
#define GBLOCK struct block_iq1_s
#define GUNIT 0.125f
#include "type/grid_int.h"

static inline float scale(const struct block_iq1_s *b) { return f16_to_f32(b->d); }

static inline void unpack(const struct block_iq1_s *b, int8_t *q, int8_t *sc) {
    u16x8 all;
    memcpy(&all, b->qh, 16);
    put_scales((all >> 12 & 7) * 0x101, sc);
    for (int j = 0; j < 8; j++) {
        const uint8_t *e = b->qs + 4 * j;
        const unsigned h = b->qh[j];
        const uint16_t index[4] = {(uint16_t) (e[0] | (h << 8 & 0x700)), (uint16_t) (e[1] | (h << 5 & 0x700)),
                                   (uint16_t) (e[2] | (h << 2 & 0x700)), (uint16_t) (e[3] | (h >> 1 & 0x700))};
        put_shifted(entries_8(codebook_iq1, index), h & 0x8000 ? 0xffffffff : 0, q + 32 * j);
    }
}

#ifdef ISA_IS_scalar
static const struct grid_format format = {
    .book = &codebook_search_iq1,
    GRID_OF_8,
    .signs = GRID_SIGNS_NONE,
    .n_sub = 32,
    .n_delta = 32,
    .delta = 0.125f,
    .top = 7,
    .unit = 1.0f,
    .first = 0.7f,
    .last = 0.45f,
    .n_start = 2,
};

static void pack(const struct grid_fit *f, struct block_iq1_s *b) {
    b->d = f->half;
    for (int j = 0; j < 8; j++) {
        unsigned h = (unsigned) f->sc[j] << 12 | (f->minus[4 * j] ? 0x8000u : 0u);
        for (int k = 0; k < 4; k++) {
            b->qs[4 * j + k] = (uint8_t) f->entry[4 * j + k];
            h |= (unsigned) (f->entry[4 * j + k] >> 8) << (3 * k);
        }
        b->qh[j] = (uint16_t) h;
    }
}
GRID_ROWS(iq1_s)
#endif

const struct type ISA_SYM(type_iq1_s) = {GRID_TYPE(IQ1_S, iq1_s, .needs_imatrix = true, .tolerance = 0.2) GRID_ENCODERS};
