// iq3_xxs: 256 elements, 3.06 bits each. Per 4 elements a byte of grid entry (256 entries of 4 magnitudes) in qs[0..63];
// then per 32 elements a word with four times 7 signs (the eighth makes their number even) and a scale of 4 bits: x = d * (2
// scale + 1) / 4 * q.
#define GNAME iq3_xxs
#define GBLOCK struct block_iq3_xxs
#define GUNIT 0.25f
#include "type/grid_int.h"

static inline float scale(const struct block_iq3_xxs *b) { return f16_to_f32(b->d); }

static inline void unpack(const struct block_iq3_xxs *b, int8_t *q, int8_t *sc) {
    u32x8 words = {0}, signs;
    memcpy(&words, b->qs + 64, 32);
    signs = even_signs(words);
    put_word_scales(words, sc);
    for (int j = 0; j < 8; j++) {
        const uint8_t *e = b->qs + 8 * j;
        const uint16_t index[8] = {e[0], e[1], e[2], e[3], e[4], e[5], e[6], e[7]};
        put_signed(entries_4(codebook_iq3_xxs, index), signs[j], q + 32 * j);
    }
}

#ifdef ISA_IS_scalar
static const struct grid_format format = {
    .book = &codebook_search_iq3_xxs,
    GRID_OF_4,
    .signs = GRID_SIGNS_EVEN,
    .n_sub = 32,
    .top = 15,
    .unit = GUNIT,
    .first = 1.05f,
    .last = 0.75f,
    .n_start = 3,
};

static void pack(const struct grid_fit *f, struct block_iq3_xxs *b) {
    b->d = f->half;
    for (int k = 0; k < 64; k++) b->qs[k] = (uint8_t) f->entry[k];
    for (int j = 0; j < 8; j++) {
        uint32_t word = (uint32_t) f->sc[j] << 28;
        for (int k = 0; k < 4; k++) word |= (uint32_t) (f->signs[4 * j + k] & 127) << (7 * k);
        memcpy(b->qs + 64 + 4 * j, &word, 4);
    }
}
GRID_ROWS(iq3_xxs)
#endif

const struct type ISA_SYM(type_iq3_xxs) = {GRID_TYPE(IQ3_XXS, iq3_xxs, .tolerance = 0.044) GRID_ENCODERS};
