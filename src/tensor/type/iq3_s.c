// iq3_s: 256 elements, 3.44 bits each. Per 4 elements 9 bits of grid entry (512 entries of 4 magnitudes; the ninth bits in
// qh), per 8 elements 8 signs, per 32 a scale of 4 bits: x = d * (2 scale + 1) * q.
#define GNAME iq3_s
#define GBLOCK struct block_iq3_s
#define GUNIT 1.0f
#include "type/grid_int.h"

static inline float scale(const struct block_iq3_s *b) { return f16_to_f32(b->d); }

static inline void unpack(const struct block_iq3_s *b, int8_t *q, int8_t *sc) {
    const u16x8 pairs = {b->scales[0], b->scales[0] >> 4, b->scales[1], b->scales[1] >> 4,
                         b->scales[2], b->scales[2] >> 4, b->scales[3], b->scales[3] >> 4};
    put_scales((pairs & 15) * 0x101, sc);
    for (int j = 0; j < 8; j++) {
        const uint8_t *e = b->qs + 8 * j;
        const unsigned h = (unsigned) b->qh[j] << 8;
#define INDEX(k) (uint16_t)(e[k] | (h >> k & 0x100))
        const uint16_t index[8] = {INDEX(0), INDEX(1), INDEX(2), INDEX(3), INDEX(4), INDEX(5), INDEX(6), INDEX(7)};
#undef INDEX
        uint32_t signs;
        memcpy(&signs, b->signs + 4 * j, 4);
        put_signed(entries_4(codebook_iq3_s, index), signs, q + 32 * j);
    }
}

#ifdef ISA_IS_scalar
static const struct grid_format format = {
    .book = &codebook_search_iq3_s,
    GRID_OF_4,
    .signs = GRID_SIGNS_FREE,
    .n_sub = 32,
    .top = 15,
    .unit = GUNIT,
    .first = 1.05f,
    .last = 0.75f,
    .n_start = 3,
};

static void pack(const struct grid_fit *f, struct block_iq3_s *b) {
    memset(b, 0, sizeof(*b));
    b->d = f->half;
    memcpy(b->signs, f->signs, sizeof(b->signs));
    for (int j = 0; j < 4; j++) b->scales[j] = (uint8_t) (f->sc[2 * j] | f->sc[2 * j + 1] << 4);
    for (int k = 0; k < 64; k++) {
        b->qs[k] = (uint8_t) f->entry[k];
        b->qh[k / 8] = (uint8_t) (b->qh[k / 8] | f->entry[k] >> 8 << (k % 8));
    }
}
GRID_ROWS(iq3_s)
#endif

const struct type ISA_SYM(type_iq3_s) = {GRID_TYPE(IQ3_S, iq3_s, .tolerance = 0.023) GRID_ENCODERS};
