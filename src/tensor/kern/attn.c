// Attention over blocks of 64 key positions. See attn.h for the order of the sums; all levels give the same bits, because every
// operation is one correctly rounded operation of the vocabulary and the sum over a block folds 64 lanes in halves at any width.
#include "kern/attn.h"

#include <math.h>

#include "simd/math.h"
#include "simd/reduce.h"
#include "simd/simd.h"

// Vectors per row of the register tile: 6 rows x NV accumulators, NV operands and a broadcast have to fit the register file.
#if VF_N == 16
#define NV 4
#elif VF_N == 8
#define NV 2
#elif VF_N == 4
#define NV 4
#else
#define NV 4
#endif
#define LINE (NV * VF_N)
#define INLINE static inline __attribute__((always_inline))

// Keeps a loaded vector in a register: compilers like to load it again for each of the few rows that use it.
INLINE vf in_register(vf x) {
#if defined(__AVX2__) && !defined(ISA_IS_scalar)
    __asm__("" : "+v"(x));
#endif
    return x;
}

// s[n_row][64] = q . k, sequentially along d.
INLINE void scores(const float *q0, const float *k0, int64_t d, float *s, const int n_row) {
    for (int j = 0; j < ATTN_BLOCK; j += LINE) {
        vf acc[ATTN_ROWS][NV];
        SIMD_UNROLL
        for (int r = 0; r < n_row; r++) {
            SIMD_UNROLL
            for (int c = 0; c < NV; c++) acc[r][c] = vf_set1(0.0f);
        }
        const float *k = k0 + j, *q = q0;
        for (int64_t i = 0; i < d; i++, k += ATTN_BLOCK, q += ATTN_ROWS) {
            vf x[NV];
            SIMD_UNROLL
            for (int c = 0; c < NV; c++) x[c] = in_register(vf_load(k + c * VF_N));
            SIMD_UNROLL
            for (int r = 0; r < n_row; r++) {
                const vf y = vf_set1(q[r]);
                SIMD_UNROLL
                for (int c = 0; c < NV; c++) acc[r][c] = vf_fma(y, x[c], acc[r][c]);
            }
        }
        SIMD_UNROLL
        for (int r = 0; r < n_row; r++) {
            SIMD_UNROLL
            for (int c = 0; c < NV; c++) vf_store(s + r * ATTN_BLOCK + j + c * VF_N, acc[r][c]);
        }
    }
}

// How a block's values enter the state of each row: o = old * o + new * values, or just the values if it is the row's first block.
enum entry { SKIP, FIRST, MERGE };

struct merging {
    float m[ATTN_PAD], l[ATTN_PAD];      // of the block
    float old[ATTN_PAD], new[ATTN_PAD];  // factors
    enum entry entry[ATTN_ROWS];
};

INLINE void enter(float *o, vf values, const struct merging *g, int r) {
    if (g->entry[r] == MERGE) vf_store(o, vf_fma(values, vf_set1(g->new[r]), vf_mul(vf_load(o), vf_set1(g->old[r]))));
    else if (g->entry[r] == FIRST) vf_store(o, values);
}

// nv vectors of each row's values from i0 on: the sum of p[r][j] * v[j], sequentially along j0 <= j < j1.
INLINE void values_line(const struct attn_block *b, const struct merging *g, const float *p, int64_t i0, int j0, int j1,
                        const int n_row, const int nv) {
    vf acc[ATTN_ROWS][NV];
    SIMD_UNROLL
    for (int r = 0; r < n_row; r++) {
        SIMD_UNROLL
        for (int c = 0; c < nv; c++) acc[r][c] = vf_set1(0.0f);
    }
    const float *v = b->v + j0 * b->dvp + i0;
    for (int j = j0; j < j1; j++, v += b->dvp) {
        vf x[NV];
        SIMD_UNROLL
        for (int c = 0; c < nv; c++) x[c] = in_register(vf_load(v + c * VF_N));
        SIMD_UNROLL
        for (int r = 0; r < n_row; r++) {
            const vf y = vf_set1(p[r * ATTN_BLOCK + j]);
            SIMD_UNROLL
            for (int c = 0; c < nv; c++) acc[r][c] = vf_fma(y, x[c], acc[r][c]);
        }
    }
    SIMD_UNROLL
    for (int r = 0; r < n_row; r++) {
        float *o = b->state.o + r * b->dvp + i0;
        SIMD_UNROLL
        for (int c = 0; c < nv; c++) enter(o + c * VF_N, acc[r][c], g, r);
    }
}

INLINE void values(const struct attn_block *b, const struct merging *g, const float *p, int j0, int j1, const int n_row) {
    int64_t i = 0;
    for (; i + LINE <= b->dvp; i += LINE) values_line(b, g, p, i, j0, j1, n_row, NV);
#if NV * VF_N > 16
    for (; i < b->dvp; i += ATTN_PAD) values_line(b, g, p, i, j0, j1, n_row, ATTN_PAD / VF_N);
#endif
}

// The same for row r where values of positions that it does not see may not be touched.
static void values_careful(const struct attn_block *b, const struct merging *g, const float *p, int r) {
    float *o = b->state.o + r * b->dvp;
    for (int64_t i = 0; i < b->dvp; i += VF_N) {
        vf acc = vf_set1(0.0f);
        for (uint64_t left = b->visible[r]; left; left &= left - 1) {
            const int j = __builtin_ctzll(left);
            acc = vf_fma(vf_set1(p[r * ATTN_BLOCK + j]), vf_load(b->v + j * b->dvp + i), acc);
        }
        enter(o + i, acc, g, r);
    }
}

static inline vm mask_of(uint64_t bits, int j) {
#if VF_N == 16
    return (vm) (bits >> j);
#else
    static const int32_t one[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    const vi lane = vi_load_n(one, VF_N);
    return vi_eq(vi_and(vi_set1((int32_t) ((bits >> j) & 0xff)), lane), lane);
#endif
}

enum { VECS = ATTN_BLOCK / VF_N };

// Scores become weights exp(score - m) in place; their sum goes to *l. m is -inf when nothing is visible.
INLINE float softmax(float *s, uint64_t visible, const float *bias, float slope, const struct attn_block *b, float *l) {
    const vf scale = vf_set1(b->scale), none = vf_set1(-INFINITY);
    vf top = none, x[VECS];
    SIMD_UNROLL
    for (int c = 0; c < VECS; c++) x[c] = vf_mul(vf_load(s + c * VF_N), scale);
    if (b->cap > 0.0f)
        for (int c = 0; c < VECS; c++) x[c] = vf_mul(vf_set1(b->cap), vf_tanh(x[c]));
    if (bias) {
        SIMD_UNROLL
        for (int c = 0; c < VECS; c++) x[c] = vf_fma(vf_set1(slope), vf_load(bias + c * VF_N), x[c]);
    }
    if (visible != ~0ull) {
        SIMD_UNROLL
        for (int c = 0; c < VECS; c++) x[c] = vf_sel(mask_of(visible, c * VF_N), x[c], none);
    }
    SIMD_UNROLL
    for (int c = 0; c < VECS; c++) top = vf_max(top, x[c]);
    float m = vf_hmax(top);
    const vf shift = vf_set1(m == -INFINITY ? 0.0f : m);  // all -inf: weights 0; a NaN among them still shows
    SIMD_UNROLL
    for (int c = 0; c < VECS; c++) {
        x[c] = vf_exp_neg(vf_sub(x[c], shift));
        vf_store(s + c * VF_N, x[c]);
    }
    SIMD_UNROLL
    for (int h = VECS / 2; h > 0; h /= 2) {
        SIMD_UNROLL
        for (int c = 0; c < h; c++) x[c] = vf_add(x[c], x[c + h]);
    }
    *l = vf_hsum(x[0]);
    if (m == -INFINITY && *l != 0.0f) m = 0.0f;
    return m;
}

// State (m, l) of a row and those of a later part (mb, lb): the factors of the two, and the merged state.
INLINE void merge_sums(vf *m, vf *l, vf mb, vf lb, vf *old, vf *new) {
    const vf top = vf_max(*m, mb);
    *old = vf_exp_neg(vf_sub(*m, top));
    *new = vf_exp_neg(vf_sub(mb, top));
    *l = vf_fma(lb, *new, vf_mul(*l, *old));
    *m = top;
}

INLINE void plan_merge(struct merging *g, const struct attn_state *t, const int n_row) {
    float m[ATTN_PAD] = {0}, l[ATTN_PAD] = {0};
    for (int r = 0; r < n_row; r++) {
        g->entry[r] = g->m[r] == -INFINITY ? SKIP : t->m[r] == -INFINITY ? FIRST : MERGE;
        m[r] = t->m[r], l[r] = t->l[r];
    }
    for (int r = 0; r < n_row; r += VF_N) {
        vf xm = vf_load(m + r), xl = vf_load(l + r), old, new;
        merge_sums(&xm, &xl, vf_load(g->m + r), vf_load(g->l + r), &old, &new);
        vf_store(m + r, xm), vf_store(l + r, xl), vf_store(g->old + r, old), vf_store(g->new + r, new);
    }
    for (int r = 0; r < n_row; r++) {
        if (g->entry[r] == MERGE) t->m[r] = m[r], t->l[r] = l[r];
        if (g->entry[r] == FIRST) t->m[r] = g->m[r], t->l[r] = g->l[r];
    }
}

INLINE void block_rows(const struct attn_block *b, const int n_row) {
    float *s = b->work;
    struct merging g = {.m = {0}};
    uint64_t any = 0;
    scores(b->q, b->k, b->d, s, n_row);
    for (int r = 0; r < n_row; r++) {
        g.m[r] = softmax(s + r * ATTN_BLOCK, b->visible[r], b->bias[r], b->slope[r], b, &g.l[r]);
        any |= b->visible[r];
    }
    if (!any) return;
    plan_merge(&g, &b->state, n_row);
    if (b->careful) {
        for (int r = 0; r < n_row; r++) values_careful(b, &g, s, r);
    } else {
        values(b, &g, s, __builtin_ctzll(any), ATTN_BLOCK - __builtin_clzll(any), n_row);
    }
}

static float exp1(float x) {
    float y[VF_N];
    vf_store(y, vf_exp_neg(vf_set1(x)));
    return y[0];
}

static void merge(float *m, float *l, float *o, float mb, float lb, const float *ob, int64_t dvp) {
    if (mb == -INFINITY) return;
    if (*m == -INFINITY) {
        *m = mb;
        *l = lb;
        memcpy(o, ob, (size_t) dvp * sizeof(float));
        return;
    }
    vf xm = vf_set1(*m), xl = vf_set1(*l), old, new;
    merge_sums(&xm, &xl, vf_set1(mb), vf_set1(lb), &old, &new);
    float t[VF_N];
    vf_store(t, xm);
    *m = t[0];
    vf_store(t, xl);
    *l = t[0];
    for (int64_t i = 0; i < dvp; i += VF_N) vf_store(o + i, vf_fma(vf_load(ob + i), new, vf_mul(vf_load(o + i), old)));
}

static void block(const struct attn_block *b) {
    switch (b->n_row) {
        case 1: block_rows(b, 1); break;
        case 2: block_rows(b, 2); break;
        case 3: block_rows(b, 3); break;
        case 4: block_rows(b, 4); break;
        case 5: block_rows(b, 5); break;
        default: block_rows(b, 6); break;
    }
}

static void index_rows(const float *q, const float *k, int64_t d, int n_row, const float *w, float *sum) {
    float s[ATTN_ROWS * ATTN_BLOCK];
    switch (n_row) {
        case 1: scores(q, k, d, s, 1); break;
        case 2: scores(q, k, d, s, 2); break;
        case 3: scores(q, k, d, s, 3); break;
        case 4: scores(q, k, d, s, 4); break;
        case 5: scores(q, k, d, s, 5); break;
        default: scores(q, k, d, s, 6); break;
    }
    const vf zero = vf_set1(0.0f);
    for (int r = 0; r < n_row; r++)
        for (int j = 0; j < ATTN_BLOCK; j += VF_N)
            vf_store(sum + j, vf_fma(vf_max(zero, vf_load(s + r * ATTN_BLOCK + j)), vf_set1(w[r]), vf_load(sum + j)));
}

// kt[0 .. VF_N)[64] of VF_N positions from VF_N rows of ld floats.
#if VF_N == 16
static inline void transpose_square(const float *rows, int64_t ld, float *kt) {
    __m512 a[16], t[16];
    // Quarter c of a[4 i + j] is row 4 c + j, elements 4 i .. 4 i + 3: the loads do half of the work.
    SIMD_UNROLL
    for (int i = 0; i < 4; i++) {
        SIMD_UNROLL
        for (int j = 0; j < 4; j++) {
            const float *p = rows + j * ld + 4 * i;
            __m512 x = _mm512_castps128_ps512(_mm_loadu_ps(p));
            x = _mm512_mask_broadcast_f32x4(x, 0x00f0, _mm_loadu_ps(p + 4 * ld));
            x = _mm512_mask_broadcast_f32x4(x, 0x0f00, _mm_loadu_ps(p + 8 * ld));
            a[4 * i + j] = _mm512_mask_broadcast_f32x4(x, 0xf000, _mm_loadu_ps(p + 12 * ld));
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
            a[j] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(rows + j * ld + i)), _mm_loadu_ps(rows + (j + 4) * ld + i), 1);
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
    for (int j = 0; j < ATTN_BLOCK; j += VF_N)
        for (int64_t i = 0; i < whole; i += VF_N) transpose_square(rows + j * ld + i, ld, kt + i * ATTN_BLOCK + j);
    for (int64_t i = whole; i < d; i++)
        for (int j = 0; j < ATTN_BLOCK; j++) kt[i * ATTN_BLOCK + j] = rows[j * ld + i];
}

INLINE uint64_t mask_vector(vf x, int j, int n, float *out, bool *bias) {
    const uint32_t in = (uint32_t) ((1ull << n) - 1);
    const uint32_t seen = vm_bits(vm_not(vf_eq(x, vf_set1(-INFINITY)))) & in;
    if (vm_bits(vm_not(vf_eq(x, vf_set1(0.0f)))) & seen) *bias = true;
    vf_store(out + j, x);
    return (uint64_t) seen << j;
}

static uint64_t mask_f16(const uint16_t *mask, int n, float *out, bool *bias) {
    uint64_t seen = 0;
    *bias = false;
    for (int j = 0; j < n; j += VF_N) {
        const int left = vf_lanes(j, n);
        seen |= mask_vector(vf_load_f16_n(mask + j, left), j, left, out, bias);
    }
    return seen;
}

static uint64_t mask_f32(const float *mask, int n, float *out, bool *bias) {
    uint64_t seen = 0;
    *bias = false;
    for (int j = 0; j < n; j += VF_N) {
        const int left = vf_lanes(j, n);
        seen |= mask_vector(vf_load_n(mask + j, left), j, left, out, bias);
    }
    return seen;
}

static bool all_finite(const float *x, int64_t n) {
    vf acc = vf_set1(0.0f);
    for (int64_t i = 0; i < n; i += VF_N) acc = vf_fma(vf_load(x + i), vf_set1(0.0f), acc);
    return !vm_any(vf_isnan(acc));
}

static void finish(float m, float l, const float *o, float sink, float *dst, int64_t dv) {
    if (m == -INFINITY) {
        memset(dst, 0, (size_t) dv * sizeof(float));
        return;
    }
    float a = 1.0f;
    if (sink != -INFINITY) {
        const float top = m > sink ? m : sink;
        a = exp1(m - top);
        l = __builtin_fmaf(l, a, exp1(sink - top));
    }
    const vf by = vf_set1(a / l);
    int64_t i = 0;
    for (; i + VF_N <= dv; i += VF_N) vf_store(dst + i, vf_mul(vf_load(o + i), by));
    if (i < dv) vf_store_n(dst + i, vf_mul(vf_load(o + i), by), (int) (dv - i));
}

const struct kern_attn ISA_SYM(kern_attn) = {block, index_rows, transpose, mask_f16, mask_f32, all_finite, merge, finish};
