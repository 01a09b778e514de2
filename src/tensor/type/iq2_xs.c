// iq2_xs: 256 elements, 2.31 bits each. Per 8 elements 9 bits of grid entry (512 entries) and 7 signs (the eighth makes
// their number even), per 16 a scale of 4 bits: x = d * (2 scale + 1) / 8 * q.
#define GNAME iq2_xs
#define GBLOCK struct block_iq2_xs
#define GUNIT 0.125f
#include "type/grid_int.h"

static inline float scale(const struct block_iq2_xs *b) { return f16_to_f32(b->d); }

static inline void unpack(const struct block_iq2_xs *b, int8_t *q, int8_t *sc) {
    typedef uint16_t u16x32 __attribute__((vector_size(64)));
    typedef uint8_t u8x32 __attribute__((vector_size(32)));
    u16x32 all;
    memcpy(&all, b->qs, 64);
    u16x32 seven = all >> 9, odd = seven ^ seven >> 4;
    odd ^= odd >> 2;
    odd ^= odd >> 1;
    const u32x8 signs = (u32x8) __builtin_convertvector(seven | (odd & 1) << 7, u8x32);
    put_nibble_scales(b->scales, sc);
    for (int j = 0; j < 8; j++) {
        const uint16_t *e = b->qs + 4 * j;
        const uint16_t index[4] = {e[0] & 511, e[1] & 511, e[2] & 511, e[3] & 511};
        put_signed(entries_8(codebook_iq2_xs, index), signs[j], q + 32 * j);
    }
}

#ifdef ISA_IS_scalar
static const struct grid_format format = {
    .book = &codebook_search_iq2_xs,
    GRID_OF_8,
    .signs = GRID_SIGNS_EVEN,
    .n_sub = 16,
    .top = 15,
    .unit = GUNIT,
    .first = 1.0f,
    .last = 0.75f,
    .n_start = 2,
};

static void pack(const struct grid_fit *f, struct block_iq2_xs *b) {
    b->d = f->half;
    for (int j = 0; j < 8; j++) b->scales[j] = (uint8_t) (f->sc[2 * j] | f->sc[2 * j + 1] << 4);
    for (int k = 0; k < 32; k++) b->qs[k] = (uint16_t) (f->entry[k] | (f->signs[k] & 127) << 9);
}
GRID_ROWS(iq2_xs)
#endif

const struct type ISA_SYM(type_iq2_xs) = {GRID_TYPE(IQ2_XS, iq2_xs, .needs_imatrix = true, .tolerance = 0.094)
                                              GRID_ENCODERS};
