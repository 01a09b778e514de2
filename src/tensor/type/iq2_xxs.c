// iq2_xxs: 256 elements, 2.06 bits each. Per 32 elements four grid entries (256 entries of 8 magnitudes, one byte each),
// then a word with four times 7 signs (the eighth makes their number even) and a scale of 4 bits: x = d * (2 scale + 1) / 8
// * q.
#define GNAME iq2_xxs
#define GBLOCK struct block_iq2_xxs
#define GUNIT 0.125f
#include "type/grid_int.h"

static inline float scale(const struct block_iq2_xxs *b) { return f16_to_f32(b->d); }

static inline void unpack(const struct block_iq2_xxs *b, int8_t *q, int8_t *sc) {
    typedef uint64_t u64x8 __attribute__((vector_size(64)));
    u64x8 pairs;
    memcpy(&pairs, b->qs, 64);
    const u32x8 words = __builtin_convertvector(pairs >> 32, u32x8), signs = even_signs(words);
    put_word_scales(words, sc);
    for (int j = 0; j < 8; j++) {
        const uint8_t *e = (const uint8_t *) (b->qs + 4 * j);
        const uint16_t index[4] = {e[0], e[1], e[2], e[3]};
        put_signed(entries_8(codebook_iq2_xxs, index), signs[j], q + 32 * j);
    }
}

#ifdef ISA_IS_scalar
static const struct grid_format format = {
    .book = &codebook_search_iq2_xxs,
    GRID_OF_8,
    .signs = GRID_SIGNS_EVEN,
    .n_sub = 32,
    .top = 15,
    .unit = GUNIT,
    .first = 1.0f,
    .last = 0.75f,
    .n_start = 2,
};

static void pack(const struct grid_fit *f, struct block_iq2_xxs *b) {
    b->d = f->half;
    for (int j = 0; j < 8; j++) {
        uint8_t entry[4];
        uint32_t word = (uint32_t) f->sc[j] << 28;
        for (int k = 0; k < 4; k++) {
            entry[k] = (uint8_t) f->entry[4 * j + k];
            word |= (uint32_t) (f->signs[4 * j + k] & 127) << (7 * k);
        }
        memcpy(b->qs + 4 * j, entry, 4);
        memcpy(b->qs + 4 * j + 2, &word, 4);
    }
}
GRID_ROWS(iq2_xxs)
#endif

const struct type ISA_SYM(type_iq2_xxs) = {GRID_TYPE(IQ2_XXS, iq2_xxs, .needs_imatrix = true, .tolerance = 0.128)
                                               GRID_ENCODERS};
