// iq2_s: 256 elements, 2.56 bits each. Per 8 elements 10 bits of grid entry (1024 entries; the low 8 bits in qs[0..31], two
// bits in qh) and 8 signs (qs[32..63]), per 16 a scale of 4 bits: x = d * (2 scale + 1) / 8 * q.
#define GNAME iq2_s
#define GBLOCK struct block_iq2_s
#define GUNIT 0.125f
#include "type/grid_int.h"

static inline float scale(const struct block_iq2_s *b) { return f16_to_f32(b->d); }

static inline void unpack(const struct block_iq2_s *b, int8_t *q, int8_t *sc) {
    put_nibble_scales(b->scales, sc);
    for (int j = 0; j < 8; j++) {
        const uint8_t *e = b->qs + 4 * j;
        const unsigned h = b->qh[j];
        const uint16_t index[4] = {(uint16_t) (e[0] | (h << 8 & 0x300)), (uint16_t) (e[1] | (h << 6 & 0x300)),
                                   (uint16_t) (e[2] | (h << 4 & 0x300)), (uint16_t) (e[3] | (h << 2 & 0x300))};
        uint32_t signs;
        memcpy(&signs, b->qs + 32 + 4 * j, 4);
        put_signed(entries_8(codebook_iq2_s, index), signs, q + 32 * j);
    }
}

#ifdef ISA_IS_scalar
static const struct grid_format format = {
    .book = &codebook_search_iq2_s,
    GRID_OF_8,
    .signs = GRID_SIGNS_FREE,
    .n_sub = 16,
    .top = 15,
    .unit = GUNIT,
    .first = 1.0f,
    .last = 0.75f,
    .n_start = 2,
};

static void pack(const struct grid_fit *f, struct block_iq2_s *b) {
    memset(b, 0, sizeof(*b));
    b->d = f->half;
    for (int j = 0; j < 8; j++) b->scales[j] = (uint8_t) (f->sc[2 * j] | f->sc[2 * j + 1] << 4);
    for (int k = 0; k < 32; k++) {
        b->qs[k] = (uint8_t) f->entry[k];
        b->qs[32 + k] = f->signs[k];
        b->qh[k / 4] = (uint8_t) (b->qh[k / 4] | f->entry[k] >> 8 << (2 * (k % 4)));
    }
}
GRID_ROWS(iq2_s)
#endif

const struct type ISA_SYM(type_iq2_s) = {GRID_TYPE(IQ2_S, iq2_s, .tolerance = 0.066) GRID_ENCODERS};
