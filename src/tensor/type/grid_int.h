// The common body of the formats whose values come from a grid (iq1, iq2, iq3). Each unpacks to small integers and an odd
// integer scale for each 16 elements: x = d * scale * GUNIT * q. The including file defines GNAME, GBLOCK, GUNIT,
// unpack(block, q, sc) and scale(block), which gives d; then includes this and gives its descriptor GRID_TYPE(ID,
// tolerance).
#pragma once

#include "type/codebook.h"
#include "type/vec_int.h"

typedef int8_t i8x32 __attribute__((vector_size(32)));
typedef uint16_t u16x8 __attribute__((vector_size(16)));

// Entries of four, or eight, values each. Single loads: gather instructions are slower on half of the processors and no faster on the others.
VEC i8x32 entries_4(const uint32_t *book, const uint16_t *i) {
    const u32x8 v = {book[i[0]], book[i[1]], book[i[2]], book[i[3]], book[i[4]], book[i[5]], book[i[6]], book[i[7]]};
    return (i8x32) v;
}
VEC i8x32 entries_8(const uint64_t *book, const uint16_t *i) {
    typedef uint64_t u64x4 __attribute__((vector_size(32)));
    const u64x4 v = {book[i[0]], book[i[1]], book[i[2]], book[i[3]]};
    return (i8x32) v;
}

// 32 bytes of -1 or 0 by the bits of b.
VEC i8x32 spread_32(uint32_t b) {
#if defined(__AVX512BW__)
    return (i8x32) _mm256_movm_epi8(b);
#elif defined(__AVX2__)
    const __m256i byte = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((int64_t) 0x8040201008040201u);
    const __m256i x = _mm256_shuffle_epi8(_mm256_set1_epi32((int32_t) b), byte);
    return (i8x32) _mm256_cmpeq_epi8(_mm256_and_si256(x, bit), bit);
#else
    i8x32 m = {0};
    for (int k = 0; k < 4; k++) {
        const uint64_t x = spread_bits((uint8_t) (b >> (8 * k))) * 255;
        memcpy((char *) &m + 8 * k, &x, 8);
    }
    return m;
#endif
}

// 32 values, negated where a bit of signs is set. None is below -127.
VEC void put_signed(i8x32 v, uint32_t signs, int8_t *q) {
    const i8x32 m = spread_32(signs), y = (v ^ m) - m;
    memcpy(q, &y, 32);
}

// 32 values v of -1, 0 and 1 become 8 v - 1 where a bit of minus is set, else 8 v + 1.
VEC void put_shifted(i8x32 v, uint32_t minus, int8_t *q) {
    const i8x32 two = v + v, four = two + two, y = four + four + (spread_32(minus) | 1);
    memcpy(q, &y, 32);
}

// Words of four times 7 bits become four bytes, whose eighth bits make the numbers of ones even.
VEC u32x8 even_signs(u32x8 x) {
    x = (x & 0x7f) | (x << 1 & 0x7f00) | (x << 2 & 0x7f0000) | (x << 3 & 0x7f000000);
    u32x8 odd = x ^ x >> 4;  // its lowest four bits of each byte, then two, then one
    odd ^= odd >> 2;
    odd ^= odd >> 1;
    return x | (odd & 0x01010101) << 7;
}

// Scales 2 i + 1, two bytes of a lane each. Written at once, as they will be read.
VEC void put_scales(u16x8 i, int8_t *sc) {
    const u16x8 x = i + i + 0x101;
    memcpy(sc, &x, sizeof x);
}
// i in the highest four bits of a word, for 32 elements; in half a byte, for 16.
VEC void put_word_scales(u32x8 words, int8_t *sc) { put_scales(__builtin_convertvector((words >> 28) * 0x101, u16x8), sc); }
VEC void put_nibble_scales(const uint8_t *p, int8_t *sc) {
    u8x8 b;
    memcpy(&b, p, 8);
    const u16x8 x = __builtin_convertvector(b, u16x8);
    put_scales((x & 15) | (x >> 4) << 8, sc);
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
