// iq3_s: 256 elements, 3.44 bits each. Per 4 elements 9 bits of grid entry (512 entries of 4 magnitudes; the ninth bits in
// qh), per 8 elements 8 signs, per 32 a scale of 4 bits: x = d * (2 scale + 1) * q.
#define GNAME iq3_s
#define GBLOCK struct block_iq3_s
#define GUNIT 1.0f
#include "type/grid_int.h"

static inline float scale(const struct block_iq3_s *b) { return f16_to_f32(b->d); }

static inline void unpack(const struct block_iq3_s *b, int8_t *q, int8_t *sc) {
    for (int j = 0; j < 8; j++) {
        const u32x8 index = lanes_of_bytes(b->qs + 8 * j) | lanes_of_bits(b->qh[j]) << 8;
        uint32_t signs;
        memcpy(&signs, b->signs + 4 * j, 4);
        sc[2 * j] = sc[2 * j + 1] = (int8_t) (2 * (b->scales[j / 2] >> (4 * (j % 2)) & 15) + 1);
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
