// Block layouts of all quantized formats, as they lie in files and in memory: little endian, halves as raw binary16 bits.
// They are facts of the file format; the sizes are asserted here, the meaning of the bits is told in each type's file.
#pragma once

#include "ggml/types.h"

#include <stdint.h>

enum { QK_K = 256 };  // elements of a super-block: the K formats, iq1 to iq4_xs, tq

#define BLOCK(name, bytes, ...)                                                                                             \
    struct block_##name {                                                                                                   \
        __VA_ARGS__                                                                                                         \
    };                                                                                                                      \
    _Static_assert(sizeof(struct block_##name) == (bytes), "block_" #name " must be " #bytes " bytes, as in the files")

// 32 elements, one scale d (and a minimum m); 4- and 5-bit formats: element i in the low nibble of qs[i], i + 16 in its high
// one.
BLOCK(q4_0, 18, uint16_t d; uint8_t qs[16];);
BLOCK(q4_1, 20, uint16_t d; uint16_t m; uint8_t qs[16];);
BLOCK(q5_0, 22, uint16_t d; uint8_t qh[4]; uint8_t qs[16];);
BLOCK(q5_1, 24, uint16_t d; uint16_t m; uint8_t qh[4]; uint8_t qs[16];);
BLOCK(q8_0, 34, uint16_t d; int8_t qs[32];);
BLOCK(q8_1, 36, uint16_t d; uint16_t s; int8_t qs[32];);  // s = d * sum of qs, clamped to the finite halves
BLOCK(iq4_nl, 18, uint16_t d; uint8_t qs[16];);
BLOCK(mxfp4, 17, uint8_t e; uint8_t qs[16];);
// 64 and 128 elements
BLOCK(nvfp4, 36, uint8_t d[4]; uint8_t qs[32];);
BLOCK(q2_0, 18, uint16_t d; uint8_t qs[16];);
BLOCK(q1_0, 18, uint16_t d; uint8_t qs[16];);

// 256 elements
BLOCK(q2_K, 84, uint8_t scales[16]; uint8_t qs[64]; uint16_t d; uint16_t dmin;);
BLOCK(q3_K, 110, uint8_t hmask[32]; uint8_t qs[64]; uint8_t scales[12]; uint16_t d;);
BLOCK(q4_K, 144, uint16_t d; uint16_t dmin; uint8_t scales[12]; uint8_t qs[128];);
BLOCK(q5_K, 176, uint16_t d; uint16_t dmin; uint8_t scales[12]; uint8_t qh[32]; uint8_t qs[128];);
BLOCK(q6_K, 210, uint8_t ql[128]; uint8_t qh[64]; int8_t scales[16]; uint16_t d;);
BLOCK(q8_K, 292, float d; int8_t qs[256]; int16_t bsums[16];);  // bsums[j] = sum of qs[16j .. 16j+15]
BLOCK(iq1_s, 50, uint16_t d; uint8_t qs[32]; uint16_t qh[8];);
BLOCK(iq1_m, 56, uint8_t qs[32]; uint8_t qh[16]; uint8_t scales[8];);
BLOCK(iq2_xxs, 66, uint16_t d; uint16_t qs[32];);
BLOCK(iq2_xs, 74, uint16_t d; uint16_t qs[32]; uint8_t scales[8];);
BLOCK(iq2_s, 82, uint16_t d; uint8_t qs[64]; uint8_t qh[8]; uint8_t scales[8];);
BLOCK(iq3_xxs, 98, uint16_t d; uint8_t qs[96];);
BLOCK(iq3_s, 110, uint16_t d; uint8_t qs[64]; uint8_t qh[8]; uint8_t signs[32]; uint8_t scales[4];);
BLOCK(iq4_xs, 136, uint16_t d; uint16_t scales_h; uint8_t scales_l[4]; uint8_t qs[128];);
BLOCK(tq1_0, 54, uint8_t qs[48]; uint8_t qh[4]; uint16_t d;);
BLOCK(tq2_0, 66, uint8_t qs[64]; uint16_t d;);

#undef BLOCK
