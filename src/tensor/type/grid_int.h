// The common body of the formats whose values come from a grid (iq1, iq2, iq3). Each unpacks to small integers and an odd
// integer scale for each 16 elements: x = d * scale * GUNIT * q. The including file defines GNAME, GBLOCK, GUNIT,
// unpack(block, q, sc) and scale(block), which gives d; then includes this and gives its descriptor GRID_TYPE(ID,
// tolerance).
#pragma once

#include "type/codebook.h"
#include "type/type_int.h"

// Eight values of a grid entry, negated where a bit of signs is set. No value is zero or below -127.
static inline void put_signed(uint64_t entry, uint8_t signs, int8_t *q) {
    const uint64_t minus = spread_bits(signs);
    entry = (entry ^ minus * 255) + minus;
    memcpy(q, &entry, 8);
}

static inline void unpack(const GBLOCK *b, int8_t *q, int8_t *sc);
static inline float scale(const GBLOCK *b);

static inline void decode_block(const GBLOCK *b, float *y) {
    int8_t q[256], sc[16];
    unpack(b, q, sc);
    const float d = scale(b);
    for (int j = 0; j < 16; j++) scale_16(q + 16 * j, d * (float) sc[j] * GUNIT, y + 16 * j);
}

static inline void ints_block(const GBLOCK *b, int8_t *q, float *s) {
    int8_t sc[16];
    unpack(b, q, sc);
    const float d = scale(b);
    for (int j = 0; j < 16; j++) s[j] = d * (float) sc[j] * GUNIT;
}

static inline float dot_block(const GBLOCK *a, const struct block_q8_K *b) {
    int8_t q[256], sc[16];
    unpack(a, q, sc);
    return (scale(a) * GUNIT * b->d) * (float) dot_scaled(q, b->qs, sc, 16, 16);
}

static inline bool check_block(const GBLOCK *b) { return isfinite(scale(b)); }

#define GROWS(name)                                                                                                         \
    TYPE_DECODE(name, 256)                                                                                                  \
    TYPE_INTS(name, 256)                                                                                                    \
    TYPE_DOT(name, 256, q8_K, 1)                                                                                            \
    TYPE_CHECK(name)
#define GROWS_(name) GROWS(name)
GROWS_(GNAME)

#define GRID_TYPE(ID, name_, ...)                                                                                           \
    .id = GGML_TYPE_##ID, .name = #name_, .block = 256, .size = sizeof(struct block_##name_), .quantized = true,            \
    .search_only = true, .dot_type = GGML_TYPE_Q8_K, .decode = decode, .ints = ints, .dot = dot, .check = check,            \
    __VA_ARGS__

#ifdef ISA_IS_scalar
#include "type/grid_search_int.h"
#define GRID_ENCODERS , .encode = encode, .quantize = quantize
#define GRID_ROWS(name)                                                                                                     \
    static inline void quantize_block(const float *x, const float *importance, struct block_##name *b) {                    \
        struct grid_fit f;                                                                                                  \
        grid_search(&format, x, importance, &f);                                                                            \
        pack(&f, b);                                                                                                        \
    }                                                                                                                       \
    static inline void encode_block(const float *x, struct block_##name *b) { quantize_block(x, NULL, b); }                 \
    TYPE_QUANTIZE(name, 256)                                                                                                \
    TYPE_ENCODE(name, 256)
#else
#define GRID_ENCODERS
#endif
