// Blocks of L rows to the panel that the integer tiles read: a lane per row. unpack_<type>(k, p, stride, n, out, step): n groups
// of 32 values from p, rows `stride` bytes apart, to out[0], out[step], ... n is a multiple of the type's groups per block.
// Integers are stored as the level wants them: plus the type's offset, as unsigned bytes, or (SIGNED) as they are.
#pragma once

#include "kern/mm_simd.h"
#include "type/blocks.h"
#include "type/codebook.h"
#include "type/type.h"
#include "kern/mm_record.h"

#ifndef ISA_IS_scalar

struct panel_group {
    uint8_t w[8][4 * MM_L];  // w[j]: integers 4j .. 4j+3 of each row
    float s[2][MM_L], m[2][MM_L];
#if defined(VI_) && !MM_VNNI
    int32_t by[2][MM_L];  // where sums of 16 are multiplied: the factors, twice in each lane, in 16 bits
#endif
};

#if defined(VI_)
#ifndef SIGNED
#define SIGNED(max) (!MM_VNNI && (max) == 255)
#endif
INLINE vi bytes_set1(int x) { return VI_(set1_epi8)((char) x); }
INLINE vi bytes_sub(vi a, vi b) { return VI_(sub_epi8)(a, b); }
#else
#define SIGNED(max) 1
INLINE vi bytes_set1(int x) { return vreinterpretq_s32_s8(vdupq_n_s8((int8_t) x)); }
INLINE vi bytes_sub(vi a, vi b) { return vreinterpretq_s32_s8(vsubq_s8(vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b))); }
#endif

#if defined(__AVX512F__)
// The half in the low (high) 16 bits of each lane.
INLINE vf half_low(vi x) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(x)); }
#elif defined(__AVX2__)
INLINE vf half_low(vi x) {
    const __m256i w = _mm256_and_si256(x, _mm256_set1_epi32(0xffff));
    const __m256i h = _mm256_permute4x64_epi64(_mm256_packus_epi32(w, w), 0x88);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(h));
}
#else
INLINE vf half_low(vi x) { return vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(vreinterpretq_u32_s32(x)))); }
#endif
INLINE vf half_high(vi x) { return half_low(sr(x, 16)); }

// Where unpacked groups go: into the panel, or (one) straight into the product with one column, added to acc in order.
struct sink {
    bool one;
    int per;  // activations that share a scale
    const struct mm_record *x;
    vf acc;
};

INLINE vi bcast_4(const int8_t *p) {
    int32_t x;
    memcpy(&x, p, 4);
    return vi_set1(x);
}

#if MM_VNNI
INLINE vi sum_words(const vi *w, const int8_t *q, int n, int32_t start) {
    vi even = vi_set1(start), odd = vi_set1(0);
    UNROLL for (int j = 0; j < n; j += 2) {
        even = _mm512_dpbusd_epi32(even, w[j], bcast_4(q + 4 * j));
        odd = _mm512_dpbusd_epi32(odd, w[j + 1], bcast_4(q + 4 * j + 4));
    }
    return vi_add(even, odd);
}

// The sum of a group, or of a half, scaled.
INLINE void add_sum(struct sink *k, const struct mm_record *x, vf s, vi sum) {
    k->acc = vf_fma(k->per == 32 ? vf_mul(s, vf_set1(x->d)) : s, mm_record_sum(x, sum, k->per), k->acc);
}

INLINE void multiply_words(struct sink *k, const struct panel_group *g, const vi w[8], int sub, bool min, bool offset) {
    const struct mm_record *x = k->x++;
    UNROLL for (int part = 0; part < 32 / sub; part++) {
        const vi sum =
            sum_words(w + part * sub / 4, x->q + part * sub, sub / 4, mm_record_start(x, part, min, offset, k->per));
        add_sum(k, x, vf_load(g->s[part]), sum);
        if (min) k->acc = vf_fma(vf_load(g->m[part]), vf_set1(x->sum[part]), k->acc);
    }
}
#endif

// Eight vectors of unsigned integers (value + offset) to the sink, in the level's form. The group's scales are in g already.
INLINE void put_words(struct sink *k, struct panel_group *g, const vi w[8], int sub, bool min, int offset, int max) {
#if MM_VNNI
    if (k->one) {
        multiply_words(k, g, w, sub, min, offset != 0);
        return;
    }
#endif
    (void) k, (void) max, (void) sub, (void) min;
    UNROLL for (int j = 0; j < 8; j++) vi_store(g->w[j], SIGNED(max) && offset ? bytes_sub(w[j], bytes_set1(offset)) : w[j]);
}

// A lane's value in its halves, or in its bytes.
INLINE vi spread(vi x) {
#if defined(VI_)
    return vi_or(vi_and(x, vi_set1(0xffff)), sl(x, 16));
#else
    const vi half = vi_or(vi_and(x, vi_set1(0xff)), sl(vi_and(x, vi_set1(0xff)), 8));
    return vi_or(half, sl(half, 16));
#endif
}

// Bytes times the lane's factor, plus what is added; both spread.
INLINE vi bytes_scaled(vi w, vi by, vi add) {
#if defined(VI_)
    const vi low = vi_set1(0x00ff00ff);
    const vi even = VI_(add_epi16)(VI_(mullo_epi16)(vi_and(w, low), by), add);
    const vi odd = VI_(add_epi16)(VI_(mullo_epi16)(VI_(srli_epi16)(w, 8), by), add);
    return vi_or(vi_and(even, low), VI_(slli_epi16)(odd, 8));
#else
    return vreinterpretq_s32_s8(vmlaq_s8(vreinterpretq_s8_s32(add), vreinterpretq_s8_s32(w), vreinterpretq_s8_s32(by)));
#endif
}

#if MM_VNNI
// With one column its sums of 16 are multiplied. The integers are 2^up times what they stand for.
INLINE void multiply_scaled(struct sink *k, const struct panel_group *g, const vi w[8], const vi by[2], int up, int zero,
                            int min) {
    const struct mm_record *x = k->x++;
    vi sum = vi_set1(0);
    UNROLL for (int h = 0; h < 2; h++) {
        const int q = zero ? (int16_t) (x->correction[1] >> (16 * h)) : 0;
        sum = vi_add(sum, _mm512_mullo_epi32(sum_words(w + 4 * h, x->q + 16 * h, 4, -zero * q), by[h]));
    }
    sum = vi_add(_mm512_sra_epi32(sum, _mm_cvtsi32_si128(up)), vi_set1((int32_t) f32_bits(x->base)));
    add_sum(k, x, vf_load(g->s[0]), sum);
    UNROLL for (int h = 0; h < min; h++) k->acc = vf_fma(vf_load(g->m[h]), vf_set1(x->sum[h]), k->acc);
}
#endif

// Integers q + zero whose products with `by`, the factor of their 16, fit in 8 bits: as these products, plus the offset or (SIGNED) as
// they are. Where products are summed in 16 bits small integers are worth more as they come, and their sums are multiplied.
INLINE void put_scaled(struct sink *k, struct panel_group *g, const vi w[8], const vi by[2], int up, int zero, int min,
                       int offset, int max) {
#if MM_VNNI
    if (k->one) {
        multiply_scaled(k, g, w, by, up, zero, min);
        return;
    }
#endif
    (void) k, (void) max, (void) min, (void) offset, (void) zero, (void) up;
    UNROLL for (int h = 0; h < 2; h++) {
#if defined(VI_) && !MM_VNNI
        vi_store(g->by[h], spread(by[h]));
        UNROLL for (int j = 4 * h; j < 4 * h + 4; j++) vi_store(g->w[j], w[j]);
#else
        vi add = vi_set1(SIGNED(max) ? 0 : offset);
        UNROLL for (int i = 0; i < zero; i++) add = vi_sub(add, by[h]);
        UNROLL for (int j = 4 * h; j < 4 * h + 4; j++) vi_store(g->w[j], bytes_scaled(w[j], spread(by[h]), spread(add)));
#endif
    }
}

INLINE void load_32(const struct rows *r, size_t at, vi w[8]) {
    load_words(r, at, w);
    load_words(r, at + 16, w + 4);
}

INLINE void nibbles_of(const vi t[4], vi w[8]) {
    const vi low = bytes_set1(15);
    UNROLL for (int j = 0; j < 4; j++) {
        w[j] = vi_and(t[j], low);
        w[j + 4] = vi_and(sr(t[j], 4), low);
    }
}

INLINE void nibbles_16(const struct rows *r, size_t at, vi w[8]) {
    vi t[4];
    load_words(r, at, t);
    nibbles_of(t, w);
}

// 32-bit words of L rows, written side by side so that they can be loaded as a vector later, when the stores are done. One by
// one through general registers: the vector ports have enough to do.
INLINE void gather_32(const struct rows *r, size_t at, uint32_t *out) {
    UNROLL for (int i = 0; i < MM_L; i++) {
        uint32_t t;
        memcpy(&t, rows_get(r, i) + at, 4);
        OPAQUE(t);
        out[i] = t;
    }
}

enum { GROUPS = 64 };  // groups unpacked at a time, at most

// Groups to unpack at a time, at most `most`, so that n are done in about equal parts; whole blocks of every type.
INLINE int group_step(int64_t n, int most) {
    const int64_t parts = (n + most - 1) / most, even = parts ? (n + parts - 1) / parts : 0;
    const int64_t step = (even + 7) / 8 * 8;
    return step < most && step > 0 ? (int) step : most;
}

// ---- blocks of 32 ---------------------------------------------------------------------------------------------------

// First words of the groups: d and two bytes more, or d and m.
INLINE void gather_scales(struct rows r, size_t size, int n, uint32_t (*out)[MM_L]) {
    for (int g = 0; g < n; g++) {
        gather_32(&r, 0, out[g]);
        rows_advance(&r, size);
    }
}

INLINE void put_scales(struct panel_group *g, bool min, const uint32_t *h) {
    const vi x = vi_load(h);
    vf_store(g->s[0], half_low(x));
    if (min) vf_store(g->m[0], half_high(x));
}

INLINE void unpack_q4(struct sink *k, const uint8_t *p, size_t stride, int n, struct panel_group *out, int step, size_t size,
                      bool min) {
    uint32_t h[GROUPS][MM_L];
    struct rows r = rows_at(p, stride);
    gather_scales(r, size, n, h);
    for (int g = 0; g < n; g++, out += step) {
        vi w[8];
        nibbles_16(&r, min ? 4 : 2, w);
        put_scales(out, min, h[g]);
        put_words(k, out, w, 32, min, min ? 0 : 8, 15);
        rows_advance(&r, size);
    }
}

INLINE void unpack_q4_0(struct sink *k, const uint8_t *p, size_t stride, int n, struct panel_group *out, int step) {
    unpack_q4(k, p, stride, n, out, step, sizeof(struct block_q4_0), false);
}

INLINE void unpack_q4_1(struct sink *k, const uint8_t *p, size_t stride, int n, struct panel_group *out, int step) {
    unpack_q4(k, p, stride, n, out, step, sizeof(struct block_q4_1), true);
}

// Bit 4j + i of each lane of h to bit 4 of byte i of w[j].
INLINE void fifth_bits(vi h, vi w[8]) {
#if MM_VNNI
    // Eight bits from 4 before the wanted one on, counted in pairs of lanes.
    const __m512i from = _mm512_set1_epi64(0x1f1e1d1cfffefdfc), four = bytes_set1(4), bit = bytes_set1(16);
    __m512i at = from;
    UNROLL for (int j = 0; j < 8; j++) {
        w[j] = vi_or(w[j], vi_and(_mm512_multishift_epi64_epi8(at, h), bit));
        at = _mm512_add_epi8(at, four);
    }
#elif defined(__AVX512F__)
    const vi spread = _mm512_setr_epi32(0, 0x10, 0x1000, 0x1010, 0x100000, 0x100010, 0x101000, 0x101010, 0x10000000,
                                        0x10000010, 0x10001000, 0x10001010, 0x10100000, 0x10100010, 0x10101000, 0x10101010);
    UNROLL for (int j = 0; j < 8; j++) w[j] = vi_or(w[j], _mm512_permutexvar_epi32(sr(h, 4 * j), spread));
#else
    const vi bits = vi_set1(0x01010101);
    UNROLL for (int j = 0; j < 8; j++) {
        vi t = sr(sl(h, 28 - 4 * j), 28);
        t = vi_or(vi_or(t, sl(t, 7)), vi_or(sl(t, 14), sl(t, 21)));
        w[j] = vi_or(w[j], sl(vi_and(t, bits), 4));
    }
#endif
}

INLINE void unpack_q5(struct sink *k, const uint8_t *p, size_t stride, int n, struct panel_group *out, int step, size_t size,
                      bool min) {
    uint32_t h[GROUPS][MM_L], high[GROUPS][MM_L];
    struct rows r = rows_at(p, stride), q = r;
    const size_t at = min ? 4 : 2;
    gather_scales(r, size, n, h);
    for (int g = 0; g < n; g++) {
        gather_32(&q, at, high[g]);
        rows_advance(&q, size);
    }
    for (int g = 0; g < n; g++, out += step) {
        vi w[8];
        nibbles_16(&r, at + 4, w);
        fifth_bits(vi_load(high[g]), w);
        put_scales(out, min, h[g]);
        put_words(k, out, w, 32, min, min ? 0 : 16, 31);
        rows_advance(&r, size);
    }
}

INLINE void unpack_q5_0(struct sink *k, const uint8_t *p, size_t stride, int n, struct panel_group *out, int step) {
    unpack_q5(k, p, stride, n, out, step, sizeof(struct block_q5_0), false);
}

INLINE void unpack_q5_1(struct sink *k, const uint8_t *p, size_t stride, int n, struct panel_group *out, int step) {
    unpack_q5(k, p, stride, n, out, step, sizeof(struct block_q5_1), true);
}

INLINE void unpack_q8_0(struct sink *k, const uint8_t *p, size_t stride, int n, struct panel_group *out, int step) {
    uint32_t h[GROUPS][MM_L];
    struct rows r = rows_at(p, stride);
    gather_scales(r, sizeof(struct block_q8_0), n, h);
    const vi flip = bytes_set1(-128);
    for (int g = 0; g < n; g++, out += step) {
        vi w[8];
        load_32(&r, 2, w);
        UNROLL for (int j = 0; j < 8; j++) w[j] = vi_xor(w[j], flip);
        put_scales(out, false, h[g]);
        put_words(k, out, w, 32, false, 128, 255);
        rows_advance(&r, sizeof(struct block_q8_0));
    }
}

// One block of q1_0 or q2_0 is a half and 16 bytes, for 4 or 2 groups.
INLINE void unpack_q1_0(struct sink *k, const uint8_t *p, size_t stride, int n, struct panel_group *out, int step) {
    uint32_t h[GROUPS / 4][MM_L];
    const vi two = bytes_set1(2);
    struct rows r = rows_at(p, stride);
    gather_scales(r, sizeof(struct block_q1_0), n / 4, h);
    for (int b = 0; b < n / 4; b++, rows_advance(&r, sizeof(struct block_q1_0))) {
        vi t[4];
        load_words(&r, 2, t);
        UNROLL for (int g = 0; g < 4; g++, out += step) {
            vi w[8];
            UNROLL for (int j = 0; j < 8; j++) w[j] = vi_set1(0);
            fifth_bits(t[g], w);
            UNROLL for (int j = 0; j < 8; j++) w[j] = vi_and(sr(w[j], 3), two);
            put_scales(out, false, h[b]);
            put_words(k, out, w, 32, false, 1, 15);
        }
    }
}

INLINE void unpack_q2_0(struct sink *k, const uint8_t *p, size_t stride, int n, struct panel_group *out, int step) {
    uint32_t h[GROUPS / 2][MM_L];
    const vi two = bytes_set1(3), byte = vi_set1(255);
    struct rows r = rows_at(p, stride);
    gather_scales(r, sizeof(struct block_q2_0), n / 2, h);
    for (int b = 0; b < n / 2; b++, rows_advance(&r, sizeof(struct block_q2_0))) {
        vi t[4];
        load_words(&r, 2, t);
        UNROLL for (int g = 0; g < 2; g++, out += step) {
            vi w[8];
            UNROLL for (int j = 0; j < 8; j++) {  // a byte's four values to the four bytes of a word
                const vi x = vi_and(sr(t[2 * g + j / 4], 8 * (j % 4)), byte), y = vi_or(x, sl(x, 12));
                w[j] = vi_and(vi_or(y, sl(y, 6)), two);
            }
            put_scales(out, false, h[b]);
            put_words(k, out, w, 32, false, 1, 15);
        }
    }
}

// ---- blocks of 256 --------------------------------------------------------------------------------------------------

// Byte i of each lane as a float.
#define BYTE_U(x, i) vf_from_vi(vi_and(sr((x), 8 * (i)), vi_set1(255)))
#define BYTE_S(x, i) vf_from_vi(sra(sl((x), 24 - 8 * (i)), 24))

// The 16 header bytes of q4_K and q5_K: d and dmin, then scales and minima of 6 bits. Scales of odd groups are multiplied by `odd`.
INLINE void k_scales(const struct rows *r, struct panel_group *out, int step, float odd) {
    vi t[4];
    load_words(r, 0, t);
    const vf d = half_low(t[0]), dmin = vf_neg(half_high(t[0])), d_odd = vf_mul(d, vf_set1(odd));
    const vi six = bytes_set1(63), four = bytes_set1(15), top = bytes_set1(0x30);
    const vi s[2] = {vi_and(t[1], six), vi_or(vi_and(t[3], four), vi_and(sr(t[1], 2), top))};
    const vi m[2] = {vi_and(t[2], six), vi_or(vi_and(sr(t[3], 4), four), vi_and(sr(t[2], 2), top))};
    UNROLL for (int j = 0; j < 8; j++) {
        vf_store(out[j * step].s[0], vf_mul(j % 2 ? d_odd : d, BYTE_U(s[j / 4], j % 4)));
        vf_store(out[j * step].m[0], vf_mul(dmin, BYTE_U(m[j / 4], j % 4)));
    }
}

// Where a column's integers and those of weights are multiplied without limit (VNNI), high nibbles are left where they are and count
// sixteen times: their scale is so much smaller.
INLINE void unpack_q4_K(struct sink *k, const uint8_t *p, size_t stride, int n, struct panel_group *out, int step) {
    const vi low = bytes_set1(15);
    struct rows r = rows_at(p, stride);
    for (; n > 0; n -= 8, rows_advance(&r, sizeof(struct block_q4_K))) {
        k_scales(&r, out, step, k->one ? 0x1p-4f : 1.0f);
        for (int c = 0; c < 4; c++, out += 2 * step) {
            vi t[8], w[8];
            load_32(&r, (size_t) (16 + 32 * c), t);
            UNROLL for (int j = 0; j < 8; j++) w[j] = vi_and(t[j], low);
            put_words(k, out, w, 32, true, 0, 15);
            UNROLL for (int j = 0; j < 8; j++) w[j] = k->one ? vi_and(t[j], bytes_set1(-16)) : vi_and(sr(t[j], 4), low);
            put_words(k, out + step, w, 32, true, 0, 15);
        }
    }
}

#if defined(__AVX512F__)
#define RISE(x) _mm512_rol_epi32(x, 4)
#define NEXT_BIT(x) _mm512_ror_epi32(x, 1)
#define FIFTH_BIT(x) vi_and(x, bytes_set1(16))
#else
#define RISE(x) (x)
#define NEXT_BIT(x) sr(x, 1)
#define FIFTH_BIT(x) vi_and(sl(vi_and(x, bytes_set1(1)), 4), bytes_set1(16))
#endif

INLINE void unpack_q5_K(struct sink *k, const uint8_t *p, size_t stride, int n, struct panel_group *out, int step) {
    const vi low = bytes_set1(15);
    struct rows r = rows_at(p, stride);
    for (; n > 0; n -= 8, rows_advance(&r, sizeof(struct block_q5_K))) {
        k_scales(&r, out, step, 1.0f);
        vi h[8];
        load_32(&r, 16, h);
        UNROLL for (int j = 0; j < 8; j++) h[j] = RISE(h[j]);
        for (int c = 0; c < 4; c++, out += 2 * step) {
            vi t[8], w[8];
            load_32(&r, (size_t) (48 + 32 * c), t);
            UNROLL for (int j = 0; j < 8; j++) {
                w[j] = vi_or(vi_and(t[j], low), FIFTH_BIT(h[j]));
                h[j] = NEXT_BIT(h[j]);
            }
            put_words(k, out, w, 32, true, 0, 31);
            UNROLL for (int j = 0; j < 8; j++) {
                w[j] = vi_or(vi_and(sr(t[j], 4), low), FIFTH_BIT(h[j]));
                h[j] = NEXT_BIT(h[j]);
            }
            put_words(k, out + step, w, 32, true, 0, 31);
        }
    }
}

INLINE void unpack_q6_K(struct sink *k, const uint8_t *p, size_t stride, int n, struct panel_group *out, int step) {
    const vi low = bytes_set1(15), two = bytes_set1(0x30);
    struct rows r = rows_at(p, stride);
    for (; n > 0; n -= 8, out += 8 * step, rows_advance(&r, sizeof(struct block_q6_K))) {
        vi s[4], t[4];
        load_words(&r, 192, s);
        load_words(&r, 194, t);  // its last word ends with d
        const vf d = half_high(t[3]);
        UNROLL for (int i = 0; i < 16; i++) vf_store(out[i / 2 * step].s[i % 2], vf_mul(d, BYTE_S(s[i / 4], i % 4)));
        for (int half = 0; half < 2; half++) {
            struct panel_group *o = out + 4 * half * step;
            vi a[8], b[8], h[8], w[8];
            load_32(&r, (size_t) (64 * half), a);
            load_32(&r, (size_t) (64 * half + 32), b);
            load_32(&r, (size_t) (128 + 32 * half), h);
            UNROLL for (int j = 0; j < 8; j++) w[j] = vi_or(vi_and(a[j], low), vi_and(sl(h[j], 4), two));
            put_words(k, o, w, 16, false, 32, 63);
            UNROLL for (int j = 0; j < 8; j++) w[j] = vi_or(vi_and(b[j], low), vi_and(sl(h[j], 2), two));
            put_words(k, o + step, w, 16, false, 32, 63);
            UNROLL for (int j = 0; j < 8; j++) w[j] = vi_or(vi_and(sr(a[j], 4), low), vi_and(h[j], two));
            put_words(k, o + 2 * step, w, 16, false, 32, 63);
            UNROLL for (int j = 0; j < 8; j++) w[j] = vi_or(vi_and(sr(b[j], 4), low), vi_and(sr(h[j], 2), two));
            put_words(k, o + 3 * step, w, 16, false, 32, 63);
        }
    }
}

INLINE void unpack_q2_K(struct sink *k, const uint8_t *p, size_t stride, int n, struct panel_group *out, int step) {
    const vi two = bytes_set1(3);
    struct rows r = rows_at(p, stride);
    for (; n > 0; n -= 8, out += 8 * step, rows_advance(&r, sizeof(struct block_q2_K))) {
        vi s[4], t[4];
        load_words(&r, 0, s);
        load_words(&r, 68, t);  // its last word is d and dmin
        const vf d = half_low(t[3]), dmin = vf_neg(half_high(t[3]));
        UNROLL for (int i = 0; i < 16; i++) {
            const vi b = sr(s[i / 4], 8 * (i % 4));
            vf_store(out[i / 2 * step].s[i % 2], d);
            vf_store(out[i / 2 * step].m[i % 2], vf_mul(dmin, vf_from_vi(vi_and(sr(b, 4), vi_set1(15)))));
        }
        for (int half = 0; half < 2; half++) {
            vi q[8], w[8], bits = two;
            load_32(&r, (size_t) (16 + 32 * half), q);
            for (int part = 0; part < 4; part++) {
                UNROLL for (int j = 0; j < 8; j++) {
                    w[j] = vi_and(q[j], bits);
                    if (!k->one) q[j] = sr(q[j], 2);
                }
                const int up = k->one ? 2 * part : 0;
                if (k->one) bits = sl(bits, 2);
                const int i = 8 * half + 2 * part;
                const vi b = sr(s[i / 4], 8 * (i % 4)), by[2] = {vi_and(b, vi_set1(15)), vi_and(sr(b, 8), vi_set1(15))};
                put_scaled(k, out + i / 2 * step, w, by, up, 0, 2, 0, 63);
            }
        }
    }
}

INLINE void unpack_q3_K(struct sink *k, const uint8_t *p, size_t stride, int n, struct panel_group *out, int step) {
    const vi two = bytes_set1(3), four = bytes_set1(4), low = bytes_set1(15), top = bytes_set1(0x30), zero = bytes_set1(32);
    struct rows r = rows_at(p, stride);
    for (; n > 0; n -= 8, out += 8 * step, rows_advance(&r, sizeof(struct block_q3_K))) {
        vi t[4], s[4], h[8];
        load_words(&r, 94, t);  // twelve bytes of scales from the third on, then d
        const vf d = half_high(t[3]);
        UNROLL for (int i = 0; i < 3; i++) t[i] = vi_or(sr(t[i], 16), sl(t[i + 1], 16));
        UNROLL for (int i = 0; i < 2; i++) {
            s[i] = vi_or(vi_and(t[i], low), vi_and(sl(t[2], 4 - 2 * i), top));
            s[i + 2] = vi_or(vi_and(sr(t[i], 4), low), vi_and(sr(t[2], 2 * i), top));
        }
        UNROLL for (int i = 0; i < 4; i++) s[i] = bytes_sub(zero, s[i]);  // negated, as d is
        UNROLL for (int i = 0; i < 8; i++) vf_store(out[i * step].s[0], vf_neg(d));
        load_32(&r, 0, h);
        for (int half = 0; half < 2; half++) {
            vi q[8], w[8], high[8];  // high: the bit that is next, at its place in the value
            load_32(&r, (size_t) (32 + 32 * half), q);
            UNROLL for (int j = 0; j < 8; j++) {
                high[j] = sl(h[j], 2);
                h[j] = sr(h[j], 4);
            }
            for (int part = 0; part < 4; part++) {
                UNROLL for (int j = 0; j < 8; j++) {
                    w[j] = vi_or(vi_and(q[j], two), vi_and(high[j], four));
                    q[j] = sr(q[j], 2);
                    high[j] = sr(high[j], 1);
                }
                const int i = 8 * half + 2 * part;
                const vi b = sl(s[i / 4], 16 - 8 * (i % 4)), by[2] = {sra(sl(b, 8), 24), sra(b, 24)};
                put_scaled(k, out + i / 2 * step, w, by, 0, 4, 0, 128, 255);
            }
        }
    }
}

INLINE void unpack_tq2_0(struct sink *k, const uint8_t *p, size_t stride, int n, struct panel_group *out, int step) {
    const vi two = bytes_set1(3);
    struct rows r = rows_at(p, stride);
    for (; n > 0; n -= 8, rows_advance(&r, sizeof(struct block_tq2_0))) {
        vi t[4];
        load_words(&r, 50, t);  // its last word ends with d
        const vf d = half_high(t[3]);
        for (int half = 0; half < 2; half++) {
            vi q[8], w[8];
            load_32(&r, (size_t) (32 * half), q);
            for (int part = 0; part < 4; part++, out += step) {
                UNROLL for (int j = 0; j < 8; j++) {
                    w[j] = vi_and(q[j], two);
                    q[j] = sr(q[j], 2);
                }
                vf_store(out->s[0], d);
                put_words(k, out, w, 32, false, 1, 15);
            }
        }
    }
}

// The next of the digits to base 3 that the bytes of a word hold as fractions of 256 (type/tq1_0.c); the bytes are in two halves.
INLINE vi next_digits(vi *even, vi *odd) {
    const vi low = vi_set1(0x00ff00ff);
    const vi e = vi_add(vi_add(*even, *even), *even), o = vi_add(vi_add(*odd, *odd), *odd);
    *even = vi_and(e, low);
    *odd = vi_and(o, low);
    return vi_or(vi_and(sr(e, 8), low), vi_sub(o, *odd));
}
INLINE void split_bytes(vi x, vi *even, vi *odd) {
    *even = vi_and(x, vi_set1(0x00ff00ff));
    *odd = vi_and(sr(x, 8), vi_set1(0x00ff00ff));
}

INLINE void unpack_tq1_0(struct sink *k, const uint8_t *p, size_t stride, int n, struct panel_group *out, int step) {
    struct rows r = rows_at(p, stride);
    for (; n > 0; n -= 8, out += 8 * step, rows_advance(&r, sizeof(struct block_tq1_0))) {
        vi t[4], e[8], o[8], w[8];
        load_words(&r, 38, t);  // its last six bytes are those of four digits, and d
        const vi last = vi_or(sr(t[2], 16), sl(t[3], 16));
        const vf d = half_high(t[3]);
        UNROLL for (int i = 0; i < 8; i++) vf_store(out[i * step].s[0], d);
        load_32(&r, 0, w);
        UNROLL for (int j = 0; j < 8; j++) split_bytes(w[j], e + j, o + j);
        for (int i = 0; i < 5; i++) {
            UNROLL for (int j = 0; j < 8; j++) w[j] = next_digits(e + j, o + j);
            put_words(k, out + i * step, w, 32, false, 1, 15);
        }
        load_words(&r, 32, w);
        UNROLL for (int j = 0; j < 4; j++) split_bytes(w[j], e + j, o + j);
        for (int i = 5; i < 7; i++) {
            UNROLL for (int j = 0; j < 8; j++) w[j] = next_digits(e + j % 4, o + j % 4);
            put_words(k, out + i * step, w, 32, false, 1, 15);
        }
        split_bytes(last, e + 4, o + 4);
        UNROLL for (int j = 0; j < 4; j++) w[j] = next_digits(e + j, o + j);
        UNROLL for (int j = 4; j < 8; j++) w[j] = next_digits(e + 4, o + 4);
        put_words(k, out + 7 * step, w, 32, false, 1, 15);
    }
}

// ---- tables ---------------------------------------------------------------------------------------------------------

#if defined(__AVX512F__)
INLINE vi look_up(const int8_t *table, vi i) {
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *) table)), i);
}
#elif defined(__AVX2__)
INLINE vi look_up(const int8_t *table, vi i) {
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *) table)), i);
}
#else
INLINE vi look_up(const int8_t *table, vi i) {
    return vreinterpretq_s32_s8(vqtbl1q_s8(vld1q_s8(table), vreinterpretq_u8_s32(i)));
}
#endif

// Values of a table, plus the offset.
INLINE void look_up_words(const int8_t *table, int offset, vi w[8]) {
    UNROLL for (int j = 0; j < 8; j++) w[j] = bytes_sub(look_up(table, w[j]), bytes_set1(-offset));
}

INLINE void unpack_iq4_nl(struct sink *k, const uint8_t *p, size_t stride, int n, struct panel_group *out, int step) {
    uint32_t h[GROUPS][MM_L];
    struct rows r = rows_at(p, stride);
    gather_scales(r, sizeof(struct block_iq4_nl), n, h);
    for (int g = 0; g < n; g++, out += step) {
        vi w[8];
        nibbles_16(&r, 2, w);
        look_up_words(codebook_iq4_nl, 128, w);
        put_scales(out, false, h[g]);
        put_words(k, out, w, 32, false, 128, 255);
        rows_advance(&r, sizeof(struct block_iq4_nl));
    }
}

INLINE void unpack_iq4_xs(struct sink *k, const uint8_t *p, size_t stride, int n, struct panel_group *out, int step) {
    struct rows r = rows_at(p, stride);
    for (; n > 0; n -= 8, rows_advance(&r, sizeof(struct block_iq4_xs))) {
        vi t[4];
        load_words(&r, 0, t);  // d and scales_h, scales_l
        const vf d = half_low(t[0]);
        UNROLL for (int j = 0; j < 8; j++) {
            const vi low = vi_and(sr(t[1], 4 * j), vi_set1(15)), high = vi_and(sl(sr(t[0], 16 + 2 * j), 4), vi_set1(0x30));
            vf_store(out[j * step].s[0], vf_mul(d, vf_from_vi(vi_sub(vi_or(low, high), vi_set1(32)))));
        }
        for (int j = 0; j < 8; j++, out += step) {
            vi w[8];
            nibbles_16(&r, (size_t) (8 + 16 * j), w);
            look_up_words(codebook_iq4_nl, 128, w);
            put_words(k, out, w, 32, false, 128, 255);
        }
    }
}

// The scale that exponent e stands for, as type/mxfp4.c has it.
INLINE float fp4_unit(uint8_t e) {
    return f32_from_bits(e == 255 ? 0x7fc00000u : e > 1 ? (uint32_t) (e - 1) << 23 : 0x200000u << e);
}

INLINE void unpack_mxfp4(struct sink *k, const uint8_t *p, size_t stride, int n, struct panel_group *out, int step) {
    float s[GROUPS][MM_L];
    struct rows r = rows_at(p, stride), q = r;
    for (int g = 0; g < n; g++) {
        UNROLL for (int i = 0; i < MM_L; i++) s[g][i] = fp4_unit(*rows_get(&q, i));
        rows_advance(&q, sizeof(struct block_mxfp4));
    }
    for (int g = 0; g < n; g++, out += step) {
        vi w[8];
        nibbles_16(&r, 1, w);
        look_up_words(codebook_fp4, 16, w);
        vf_store(out->s[0], vf_load(s[g]));
        put_words(k, out, w, 32, false, 16, 31);
        rows_advance(&r, sizeof(struct block_mxfp4));
    }
}

// Scales of nvfp4, a byte per 16 values: 4 bits of exponent, 3 of mantissa, halved as the table's values are doubled.
INLINE vf fp4_scale(vi byte) {
    const vi c = vi_and(byte, vi_set1(127)), tiny = vi_and(c, vi_set1(0x78));
    const vf normal = vf_from_bits(vi_add(sl(c, 20), vi_set1(119 << 23)));
    const vf x = vf_sel(vi_eq(tiny, vi_set1(0)), vf_mul(vf_from_vi(c), vf_set1(0x1p-10f)), normal);
    return vf_sel(vi_eq(c, vi_set1(127)), vf_from_bits(vi_set1(0x7fc00000)), x);
}

INLINE void unpack_nvfp4(struct sink *k, const uint8_t *p, size_t stride, int n, struct panel_group *out, int step) {
    uint32_t h[GROUPS / 2][MM_L];
    const vi low = bytes_set1(15);
    struct rows r = rows_at(p, stride);
    gather_scales(r, sizeof(struct block_nvfp4), n / 2, h);
    for (int b = 0; b < n / 2; b++, rows_advance(&r, sizeof(struct block_nvfp4))) {
        const vi scales = vi_load(h[b]);
        UNROLL for (int g = 0; g < 2; g++, out += step) {
            vi t[4], w[8];
            load_words(&r, (size_t) (4 + 16 * g), t);
            UNROLL for (int j = 0; j < 2; j++) {
                w[j] = vi_and(t[j], low);
                w[j + 2] = vi_and(sr(t[j], 4), low);
                w[j + 4] = vi_and(t[j + 2], low);
                w[j + 6] = vi_and(sr(t[j + 2], 4), low);
                vf_store(out->s[j], fp4_scale(sr(scales, 8 * (2 * g + j))));
            }
            look_up_words(codebook_fp4, 16, w);
            put_words(k, out, w, 16, false, 16, 63);
        }
    }
}

// Row by row, through the type's integer form.
INLINE void unpack_ints(struct sink *k, const struct type *type, const uint8_t *p, size_t stride, int n,
                        struct panel_group *out, int step, int offset, int max) {
    int8_t q[MM_L][256 + 16];
    float s[MM_L][16];
    const int per = (int) (type->block / 32);
    for (; n > 0; n -= per, p += type->size) {
        for (int i = 0; i < MM_L; i++) type->ints(p + (size_t) i * stride, q[i], s[i], type->block);
        struct rows r = rows_at((const uint8_t *) q[0], sizeof q[0]), rs = rows_at((const uint8_t *) s[0], sizeof s[0]);
        vi scales[4];
        for (int g = 0; g < per; g++, out += step) {
            vi w[8];
            load_32(&r, 0, w);
            UNROLL for (int j = 0; j < 8; j++) w[j] = bytes_sub(w[j], bytes_set1(-offset));
            if (g % 2 == 0) load_words(&rs, (size_t) (8 * g), scales);
            UNROLL for (int j = 0; j < 2; j++) vi_store(out->s[j], scales[g % 2 * 2 + j]);
            put_words(k, out, w, 16, false, offset, max);
            rows_advance(&r, 32);
        }
    }
}

#define QUANT(...)
#define INTS(ID, name)                                                                                                      \
    INLINE void unpack_##name(struct sink *k, const uint8_t *p, size_t stride, int n, struct panel_group *out, int step) {  \
        unpack_ints(k, type_get(GGML_TYPE_##ID), p, stride, n, out, step, 128, 255);                                        \
    }
#include "kern/mm_quant.def"
#undef QUANT

// As functions: unpack to a panel; add the product with one column to total [L], the panel serving as room for scales.
typedef void unpack_fn(const uint8_t *p, size_t stride, int n, struct panel_group *out, int step);
typedef void one_fn(const uint8_t *p, size_t stride, int n, struct panel_group *room, const struct mm_record *x,
                    float *total);
#define QUANT(ID, name, ...)                                                                                                \
    static void panel_##name(const uint8_t *p, size_t stride, int n, struct panel_group *out, int step) {                   \
        struct sink k = {0};                                                                                                \
        unpack_##name(&k, p, stride, n, out, step);                                                                         \
    }
#include "kern/mm_quant.def"
#undef QUANT
#endif
