// One column of the types that unpack row by row (INTS in mm_quant.def): a row's integers are multiplied as they come, in their own order,
// and only the sums of its groups are turned to lanes, one per row.
#pragma once

#include "kern/mm_int.h"
#include "kern/mm_record.h"
#include "kern/mm_simd.h"
#include "type/type.h"

#if defined(VI_)
#if MM_L == 16
INLINE vi with_sign(vi a, vi w) { return _mm512_mask_sub_epi8(a, _mm512_movepi8_mask(w), _mm512_setzero_si512(), a); }
#else
INLINE vi with_sign(vi a, vi w) { return _mm256_sign_epi8(a, w); }
#endif

enum { INTS_VECTORS = 256 / (4 * MM_L), INTS_GROUPS = MM_L / 4 };  // of a block; of a vector

// L rows of a block: integers, and a scale for each 16 of them.
struct ints_block {
    int8_t q[MM_L][256];
    float s[MM_L][16];
};

// Sums of fours. Magnitudes are up to 62, so that they fit in 16 bits.
INLINE vi ints_dot(vi w, vi x) {
    const vi a = VI_(abs_epi8)(w), b = with_sign(x, w);
#if defined(__AVX512VNNI__)
    return _mm512_dpbusd_epi32(vi_set1(0), a, b);
#else
    return VI_(madd_epi16)(VI_(maddubs_epi16)(a, b), VI_(set1_epi16)(1));
#endif
}

// Lanes 4i to 4i + 3: sums of 16 of rows row .. row + 3, of group i of vector v.
INLINE vi ints_four(const struct ints_block *b, int row, int v, vi x) {
    vi t[4];
    UNROLL for (int i = 0; i < 4; i++) t[i] = ints_dot(vi_load(b->q[row + i] + 4 * MM_L * v), x);
    const vi ones = VI_(set1_epi16)(1);
    const vf lo = vf_from_bits(VI_(madd_epi16)(VI_(packs_epi32)(t[0], t[1]), ones));
    const vf hi = vf_from_bits(VI_(madd_epi16)(VI_(packs_epi32)(t[2], t[3]), ones));
    return vi_add(vf_bits(VI_(shuffle_ps)(lo, hi, 0x88)), vf_bits(VI_(shuffle_ps)(lo, hi, 0xdd)));
}

// Sums of the groups of vector v, a row per lane.
INLINE void ints_sums(const struct ints_block *b, int v, vi x, vi *sum) {
#if MM_L == 16
    const vi a0 = ints_four(b, 0, v, x), a1 = ints_four(b, 4, v, x), a2 = ints_four(b, 8, v, x), a3 = ints_four(b, 12, v, x);
    const vi lo0 = _mm512_shuffle_i32x4(a0, a1, 0x44), hi0 = _mm512_shuffle_i32x4(a0, a1, 0xee);
    const vi lo1 = _mm512_shuffle_i32x4(a2, a3, 0x44), hi1 = _mm512_shuffle_i32x4(a2, a3, 0xee);
    sum[0] = _mm512_shuffle_i32x4(lo0, lo1, 0x88);
    sum[1] = _mm512_shuffle_i32x4(lo0, lo1, 0xdd);
    sum[2] = _mm512_shuffle_i32x4(hi0, hi1, 0x88);
    sum[3] = _mm512_shuffle_i32x4(hi0, hi1, 0xdd);
#else
    const vi a0 = ints_four(b, 0, v, x), a1 = ints_four(b, 4, v, x);
    sum[0] = _mm256_permute2x128_si256(a0, a1, 0x20);
    sum[1] = _mm256_permute2x128_si256(a0, a1, 0x31);
#endif
}

// total [L] += a block of L rows times its 8 records.
INLINE void ints_times(const struct ints_block *b, const struct mm_record *x, float *total) {
    const struct rows r = rows_at((const uint8_t *) b->s, sizeof b->s[0]);
    vf part = vf_zero();
    vi s[4];  // scales of four groups
    UNROLL for (int v = 0; v < INTS_VECTORS; v++) {
        vi sum[INTS_GROUPS], y;
#if MM_L == 16
        y = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *) x[2 * v].q)),
                               _mm256_loadu_si256((const __m256i *) x[2 * v + 1].q), 1);
        load_words(&r, (size_t) (16 * v), s);
#else
        y = vi_load(x[v].q);
        if (v % 2 == 0) load_words(&r, (size_t) (8 * v), s);
#endif
        ints_sums(b, v, y, sum);
        UNROLL for (int g = 0; g < INTS_GROUPS; g++) {
            const vf base = vf_set1(x[(v * INTS_GROUPS + g) / 2].base);
            const vf value = vf_sub(vf_from_bits(vi_add(sum[g], vf_bits(base))), base);
            part = vf_fma(vf_from_bits(s[(v * INTS_GROUPS + g) % 4]), value, part);
        }
    }
    vf_store(total, vf_fma(vf_set1(x->d), part, vf_load(total)));
}
#endif
