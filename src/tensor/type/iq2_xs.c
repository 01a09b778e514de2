// iq2_xs: 256 elements, 2.31 bits each. Per 8 elements 9 bits of grid entry (512 entries) and 7 signs (the eighth makes
// their number even), per 16 a scale of 4 bits: x = d * (2 scale + 1) / 8 * q.
#define GNAME iq2_xs
#define GBLOCK struct block_iq2_xs
#define GUNIT 0.125f
#include "type/grid_int.h"

static inline float scale(const struct block_iq2_xs *b) { return f16_to_f32(b->d); }

static inline void unpack(const struct block_iq2_xs *b, int8_t *q, int8_t *sc) {
    uint16_t index[32];
    u32x8 words = {0}, signs;
    for (int j = 0; j < 16; j++) sc[j] = (int8_t) (2 * (b->scales[j / 2] >> (4 * (j % 2)) & 15) + 1);
    for (int j = 0; j < 8; j++) {
        uint64_t four;
        memcpy(&four, b->qs + 4 * j, 8);
        words[j] =
            (uint32_t) ((four >> 9 & 0x7f) | (four >> 18 & 0x3f80) | (four >> 27 & 0x1fc000) | (four >> 36 & 0xfe00000));
        four &= 0x01ff01ff01ff01ff;
        memcpy(index + 4 * j, &four, 8);
    }
    signs = even_signs(words);
    for (int j = 0; j < 8; j++) put_signed(entries_8(codebook_iq2_xs, index + 4 * j), signs[j], q + 32 * j);
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
