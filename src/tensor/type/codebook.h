// Codebooks of the table-driven formats: grids of value vectors and lists of values. Facts of the file formats, generated
// into codebook.c by scripts/make_codebook.py.
#pragma once

#include <stdint.h>

// A grid as decoders read it: 8 (iq2, iq1) or 4 (iq3) signed bytes per entry, the first value in the lowest byte.
extern const uint64_t codebook_iq2_xxs[256], codebook_iq2_xs[512], codebook_iq2_s[1024], codebook_iq1[2048];
extern const uint32_t codebook_iq3_xxs[256], codebook_iq3_s[512];
// Byte of signs (1: minus) for 7 stored bits; the eighth makes the number of minus signs even.
extern const uint8_t codebook_signs[128];
// Values of four bits. fp4 holds twice the value of the number.
extern const int8_t codebook_iq4_nl[16], codebook_fp4[16];

// The same grid as searches read it. An entry's code has 2 (iq1, iq2) or 3 bits per value, the index of its level, first
// value lowest; entries are in rising order of codes, those with the upper half h are start[h] .. start[h + 1] - 1.
struct codebook {
    const uint16_t *codes;
    const uint16_t *start;
    float levels[8];
};
extern const struct codebook codebook_search_iq2_xxs, codebook_search_iq2_xs, codebook_search_iq2_s, codebook_search_iq3_xxs,
    codebook_search_iq3_s, codebook_search_iq1;
