// Products with one column of types whose blocks hold 32 values (VNNI): eight blocks of L rows are one stream of 4-byte words, a lane per
// row. Blocks of an odd number of halves are taken in pairs: of the first one all words are two bytes late, so that its last two
// values stand in front of its first two; the activations are taken in the same order.
#pragma once

#include "kern/mm_unpack.h"

#if MM_VNNI
struct stream {
    struct rows r;
    int at;
    vi t[4];
};

INLINE vi next_word(struct stream *s) {
    if (s->at % 4 == 0) load_words(&s->r, 4 * (size_t) s->at, s->t);
    return s->t[s->at++ % 4];
}

// Low halves of a, high halves of b.
INLINE vi low_high(vi a, vi b) { return _mm512_mask_blend_epi16(0xaaaaaaaa, a, b); }

// Four of n activations, from 4j on; late: the last two stand before the others.
INLINE vi activations(const int8_t *q, int n, int j, bool late) {
    if (!late || j) return bcast_4(q + 4 * j - (late ? 2 : 0));
    uint16_t last, first;
    memcpy(&last, q + n - 2, 2);
    memcpy(&first, q, 2);
    return vi_set1((int32_t) ((uint32_t) first << 16 | last));
}

// A group of nibbles: the high ones are sixteen times what they stand for, until they are summed.
INLINE void times_nibbles(struct sink *k, const vi w[4], bool late, vf s, bool min, vf m) {
    const struct mm_record *x = k->x++;
    vi low = vi_set1(mm_record_start(x, 0, min, !min, k->per)), high = vi_set1(0);
    UNROLL for (int j = 0; j < 4; j++) {
        low = _mm512_dpbusd_epi32(low, vi_and(w[j], bytes_set1(15)), activations(x->q, 16, j, late));
        high = _mm512_dpbusd_epi32(high, vi_and(w[j], bytes_set1(-16)), activations(x->q + 16, 16, j, late));
    }
    add_sum(k, x, s, vi_add(low, sra(high, 4)));
    if (min) k->acc = vf_fma(m, vf_set1(x->sum[0]), k->acc);
}

// A group of bytes; half: values that follow each other, 16 where the words hold nibbles.
INLINE void times_bytes(struct sink *k, const vi w[8], int half, bool late, vf s, bool min, vf m) {
    const struct mm_record *x = k->x++;
    vi even = vi_set1(mm_record_start(x, 0, min, !min, k->per)), odd = vi_set1(0);
    UNROLL for (int j = 0; j < 8; j += 2) {
        const int8_t *q = x->q + 4 * j / half * half;
        even = _mm512_dpbusd_epi32(even, w[j], activations(q, half, j % (half / 4), late));
        odd = _mm512_dpbusd_epi32(odd, w[j + 1], activations(q, half, j % (half / 4) + 1, late));
    }
    add_sum(k, x, s, vi_add(even, odd));
    if (min) k->acc = vf_fma(m, vf_set1(x->sum[0]), k->acc);
}

enum kind { NIBBLES, FIVE_BITS, TABLE };

INLINE void times_words(struct sink *k, enum kind kind, const vi t[4], vi fifth, bool late, vf s, bool min, vf m) {
    if (kind == NIBBLES) {
        times_nibbles(k, t, late, s, min, m);
        return;
    }
    vi w[8];
    nibbles_of(t, w);
    if (kind == TABLE)
        look_up_words(codebook_iq4_nl, 128, w);
    else
        fifth_bits(late ? vi_or(_mm512_slli_epi16(fifth, 2), _mm512_srli_epi16(fifth, 14)) : fifth, w);
    times_bytes(k, w, 16, late, s, min, m);
}

// Eight groups: d, then (FIVE_BITS) fifth bits, then 16 bytes.
INLINE void eight_halves(struct sink *k, enum kind kind, const uint8_t *p, size_t stride) {
    struct stream in = {.r = rows_at(p, stride)};
    UNROLL for (int g = 0; g < 8; g += 2) {
        vi t[4], h = vi_set1(0);
        const vi first = next_word(&in);
        vi odd = first;
        if (kind == FIVE_BITS) {
            odd = next_word(&in);
            h = vi_or(sr(first, 16), sl(odd, 16));
        }
        UNROLL for (int j = 1; j < 4; j++) t[j] = next_word(&in);
        const vi last = next_word(&in);
        t[0] = low_high(last, odd);
        times_words(k, kind, t, h, true, half_low(first), false, vf_zero());
        if (kind == FIVE_BITS) h = next_word(&in);
        UNROLL for (int j = 0; j < 4; j++) t[j] = next_word(&in);
        times_words(k, kind, t, h, false, half_high(last), false, vf_zero());
    }
}

// Eight groups: d and m, then (FIVE_BITS) fifth bits, then 16 bytes; a few of them are whole loads.
INLINE void eight_with_minima(struct sink *k, enum kind kind, const uint8_t *p, size_t stride) {
    const int words = kind == FIVE_BITS ? 6 : 5, whole = kind == FIVE_BITS ? 2 : 4;
    for (int g = 0; g < 8; g += whole, p += 4 * words * whole) {
        struct stream in = {.r = rows_at(p, stride)};
        UNROLL for (int i = 0; i < whole; i++) {
            vi t[4];
            const vi first = next_word(&in), h = kind == FIVE_BITS ? next_word(&in) : first;
            UNROLL for (int j = 0; j < 4; j++) t[j] = next_word(&in);
            times_words(k, kind, t, h, false, half_low(first), true, half_high(first));
        }
    }
}

INLINE void eight_q8_0(struct sink *k, const uint8_t *p, size_t stride) {
    struct stream in = {.r = rows_at(p, stride)};
    UNROLL for (int g = 0; g < 8; g += 2) {
        vi w[8];
        const vi first = next_word(&in);
        UNROLL for (int j = 1; j < 8; j++) w[j] = next_word(&in);
        const vi last = next_word(&in);
        w[0] = low_high(last, first);
        UNROLL for (int j = 0; j < 8; j++) w[j] = vi_xor(w[j], bytes_set1(-128));
        times_bytes(k, w, 32, true, half_low(first), false, vf_zero());
        UNROLL for (int j = 0; j < 8; j++) w[j] = vi_xor(next_word(&in), bytes_set1(-128));
        times_bytes(k, w, 32, false, half_high(last), false, vf_zero());
    }
}

// Whether eight groups of a type are done so, and how.
INLINE bool eight_groups(enum ggml_type type, struct sink *k, const uint8_t *p, size_t stride) {
    switch (type) {
        case GGML_TYPE_Q4_0: eight_halves(k, NIBBLES, p, stride); return true;
        case GGML_TYPE_Q5_0: eight_halves(k, FIVE_BITS, p, stride); return true;
        case GGML_TYPE_IQ4_NL: eight_halves(k, TABLE, p, stride); return true;
        case GGML_TYPE_Q4_1: eight_with_minima(k, NIBBLES, p, stride); return true;
        case GGML_TYPE_Q5_1: eight_with_minima(k, FIVE_BITS, p, stride); return true;
        case GGML_TYPE_Q8_0: eight_q8_0(k, p, stride); return true;
        default: return false;
    }
}
#endif
