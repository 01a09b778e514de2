// Part of attn.c: keys as they lie become columns, lanes along the positions.
//
// 16-bit keys are turned as they are, two elements of a position at a time, and widened when they are used: that is half the
// shuffles, and a third of the stores, of turning floats.
#pragma once

#include "kern/attn.h"
#include "simd/simd.h"
#include "type/blocks.h"

#define INLINE static inline __attribute__((always_inline))

// What a loop keeps in registers of struct attn_ahead.
struct ahead {
    const char *at, *end;
    int step;
};
INLINE struct ahead ahead_begin(const struct attn_ahead *a) { return (struct ahead){a->at, a->end, a->step}; }
INLINE void ahead_end(struct attn_ahead *a, struct ahead h) { a->at = h.at, a->end = h.end, a->step = h.step; }

// The piece after this one, if any.
INLINE void next_piece(struct attn_ahead *a, struct ahead *h) {
    if (--a->now.n > 0) {
        a->now.at += a->now.stride;
    } else {
        a->now = a->then;
        a->then.n = 0;
    }
    if (a->now.n > 0)
        h->at = a->now.at, h->end = h->at + a->now.bytes;
    else
        h->step = 0;
}

// Asks for the lines that are due.
INLINE void look_ahead(struct attn_ahead *a, struct ahead *h) {
    for (int c = 0; c < h->step; c++) {
        __builtin_prefetch(h->at, 0, 2);
        h->at += 64;
        if (h->at >= h->end) next_piece(a, h);
    }
}

#if VF_N == 16
// Quarter c of the result: the 16 bytes at p + c * step.
INLINE __m512i quarters(const char *p, size_t step) { return avx512_quarters(p, p + step, p + 2 * step, p + 3 * step); }
#endif

// kt[0 .. VF_N)[64] of VF_N positions from VF_N rows of ld floats.
#if VF_N == 16
static inline void transpose_square(const float *rows, int64_t ld, float *kt) {
    __m512 a[16], t[16];
    // Quarter c of a[4 i + j] is row 4 c + j, elements 4 i .. 4 i + 3: the loads do half of the work.
    SIMD_UNROLL
    for (int i = 0; i < 4; i++) {
        SIMD_UNROLL
        for (int j = 0; j < 4; j++) {
            const char *p = (const char *) (rows + j * ld + 4 * i);
            a[4 * i + j] = _mm512_castsi512_ps(quarters(p, (size_t) ld * 4 * sizeof(float)));
        }
    }
    SIMD_UNROLL
    for (int i = 0; i < 16; i += 4) {
        t[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
        t[i + 2] = _mm512_unpacklo_ps(a[i + 2], a[i + 3]);
        t[i + 3] = _mm512_unpackhi_ps(a[i + 2], a[i + 3]);
        _mm512_storeu_ps(kt + (i + 0) * ATTN_BLOCK, _mm512_shuffle_ps(t[i], t[i + 2], 0x44));
        _mm512_storeu_ps(kt + (i + 1) * ATTN_BLOCK, _mm512_shuffle_ps(t[i], t[i + 2], 0xee));
        _mm512_storeu_ps(kt + (i + 2) * ATTN_BLOCK, _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44));
        _mm512_storeu_ps(kt + (i + 3) * ATTN_BLOCK, _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee));
    }
}
#elif VF_N == 8
static inline void transpose_square(const float *rows, int64_t ld, float *kt) {
    SIMD_UNROLL
    for (int i = 0; i < 8; i += 4) {
        __m256 a[4];
        SIMD_UNROLL
        for (int j = 0; j < 4; j++)
            a[j] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(rows + j * ld + i)),
                                        _mm_loadu_ps(rows + (j + 4) * ld + i), 1);
        const __m256 t0 = _mm256_unpacklo_ps(a[0], a[1]), t1 = _mm256_unpackhi_ps(a[0], a[1]);
        const __m256 t2 = _mm256_unpacklo_ps(a[2], a[3]), t3 = _mm256_unpackhi_ps(a[2], a[3]);
        _mm256_storeu_ps(kt + (i + 0) * ATTN_BLOCK, _mm256_shuffle_ps(t0, t2, 0x44));
        _mm256_storeu_ps(kt + (i + 1) * ATTN_BLOCK, _mm256_shuffle_ps(t0, t2, 0xee));
        _mm256_storeu_ps(kt + (i + 2) * ATTN_BLOCK, _mm256_shuffle_ps(t1, t3, 0x44));
        _mm256_storeu_ps(kt + (i + 3) * ATTN_BLOCK, _mm256_shuffle_ps(t1, t3, 0xee));
    }
}
#elif VF_N == 4
static inline void transpose_square(const float *rows, int64_t ld, float *kt) {
    const float32x4x2_t x = vtrnq_f32(vld1q_f32(rows), vld1q_f32(rows + ld));
    const float32x4x2_t y = vtrnq_f32(vld1q_f32(rows + 2 * ld), vld1q_f32(rows + 3 * ld));
    vst1q_f32(kt, vcombine_f32(vget_low_f32(x.val[0]), vget_low_f32(y.val[0])));
    vst1q_f32(kt + ATTN_BLOCK, vcombine_f32(vget_low_f32(x.val[1]), vget_low_f32(y.val[1])));
    vst1q_f32(kt + 2 * ATTN_BLOCK, vcombine_f32(vget_high_f32(x.val[0]), vget_high_f32(y.val[0])));
    vst1q_f32(kt + 3 * ATTN_BLOCK, vcombine_f32(vget_high_f32(x.val[1]), vget_high_f32(y.val[1])));
}
#else
static inline void transpose_square(const float *rows, int64_t ld, float *kt) {
    (void) ld;
    *kt = *rows;
}
#endif

static void transpose(const float *rows, int64_t ld, int64_t d, float *kt) {
    const int64_t whole = d - d % VF_N;
    for (int j = 0; j < ATTN_PAD; j += VF_N)
        for (int64_t i = 0; i < whole; i += VF_N) transpose_square(rows + j * ld + i, ld, kt + i * ATTN_BLOCK + j);
    for (int64_t i = whole; i < d; i++)
        for (int j = 0; j < ATTN_PAD; j++) kt[i * ATTN_BLOCK + j] = rows[j * ld + i];
}

// ---- keys that are turned before they are widened
// -----------------------------------------------------------------------------------------

#if VF_N == 16
// y[e], lane r: word e of the four 32-bit words at p + r * stride, r = 0 .. 15.
INLINE void turn_words(const char *p, size_t stride, __m512i *y) {
    __m512i a[4];
    SIMD_UNROLL
    for (int j = 0; j < 4; j++) a[j] = quarters(p + (size_t) j * stride, 4 * stride);
    const __m512i t0 = _mm512_unpacklo_epi32(a[0], a[1]), t1 = _mm512_unpackhi_epi32(a[0], a[1]);
    const __m512i t2 = _mm512_unpacklo_epi32(a[2], a[3]), t3 = _mm512_unpackhi_epi32(a[2], a[3]);
    y[0] = _mm512_unpacklo_epi64(t0, t2), y[1] = _mm512_unpackhi_epi64(t0, t2);
    y[2] = _mm512_unpacklo_epi64(t1, t3), y[3] = _mm512_unpackhi_epi64(t1, t3);
}

// Lanes of x and y are even and odd positions, two elements each: the first elements of all of them in order, then the second.
INLINE void halves_store(__m512i x, __m512i y, uint16_t *to) {
    _mm512_storeu_si512(to, _mm512_mask_blend_epi16(0xaaaaaaaa, x, _mm512_slli_epi32(y, 16)));
    _mm512_storeu_si512(to + ATTN_BLOCK, _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(x, 16), y));
}

static void turn_halves(const void *src, size_t stride, int64_t d, uint16_t *kt, struct attn_ahead *ahead) {
    struct ahead h = ahead_begin(ahead);
    for (int j = 0; j < ATTN_BLOCK; j += 32) {
        const char *row = (const char *) src + (size_t) j * stride;
        for (int64_t i = 0; i < d; i += 8) {
            __m512i even[4], odd[4];
            turn_words(row + 2 * i, 2 * stride, even);
            look_ahead(ahead, &h);
            look_ahead(ahead, &h);
            turn_words(row + 2 * i + stride, 2 * stride, odd);
            look_ahead(ahead, &h);
            look_ahead(ahead, &h);
            SIMD_UNROLL
            for (int e = 0; e < 4; e++) halves_store(even[e], odd[e], kt + (i + 2 * e) * ATTN_BLOCK + j);
        }
    }
    ahead_end(ahead, h);
}

// Elements 4 i .. 4 i + 3 of a block of Q8_0, bytes of the lanes, as columns of kt.
INLINE void bytes_store(__m512i x, __m512 scale, float *kt) {
#define BYTE(b, shifted)                                                                                                    \
    _mm512_storeu_ps(kt + (b) *ATTN_BLOCK, _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_srai_epi32(shifted, 24)), scale))
    BYTE(0, _mm512_slli_epi32(x, 24));
    BYTE(1, _mm512_slli_epi32(x, 16));
    BYTE(2, _mm512_slli_epi32(x, 8));
    BYTE(3, x);
#undef BYTE
}

static void turn_q8_0(const void *src, size_t stride, int64_t d, float *kt, struct attn_ahead *ahead) {
    const __m512i step = _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                            _mm512_set1_epi32((int) stride));
    struct ahead h = ahead_begin(ahead);
    for (int j = 0; j < ATTN_BLOCK; j += 16) {
        const char *block = (const char *) src + (size_t) j * stride;
        for (int64_t i = 0; i < d; i += 32, block += sizeof(struct block_q8_0)) {
            // Two bytes beyond each scale are read: the first of the block's values.
            const __m512i d16 = _mm512_i32gather_epi32(step, (const void *) block, 1);
            const __m512 scale = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(d16));
            for (int part = 0; part < 32; part += 16) {
                __m512i x[4];
                turn_words(block + offsetof(struct block_q8_0, qs) + part, stride, x);
                SIMD_UNROLL
                for (int e = 0; e < 4; e++) {
                    bytes_store(x[e], scale, kt + (i + part + 4 * e) * ATTN_BLOCK + j);
                    look_ahead(ahead, &h);
                    look_ahead(ahead, &h);
                }
            }
        }
    }
    ahead_end(ahead, h);
}
#endif
