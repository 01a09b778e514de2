// Attention over blocks of 64 key positions. See attn.h for the order of the sums; all levels give the same bits, because
// every operation is one correctly rounded operation of the vocabulary and the sum over a block folds 64 lanes in halves at
// any width.
#include "kern/attn.h"

#include <math.h>

#include "simd/math.h"
#include "simd/reduce.h"
#include "simd/simd.h"
#include "type/blocks.h"

#include "kern/attn_keys.h"

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

// Keeps a loaded vector in a register: compilers like to load it again for each of the few rows that use it.
INLINE vf in_register(vf x) {
#if defined(__AVX2__) && !defined(ISA_IS_scalar)
    __asm__("" : "+v"(x));
#endif
    return x;
}

// Values i .. i + m of a row, m <= VF_N; i a multiple of VF_N.
INLINE vf unpack_lanes(enum attn_form form, const void *row, int64_t i, int m) {
    if (form == ATTN_F32) return vf_load_n((const float *) row + i, m);
    if (form == ATTN_F16) return vf_load_f16_n((const uint16_t *) row + i, m);
    if (form == ATTN_BF16) return vf_load_bf16_n((const uint16_t *) row + i, m);
    const struct block_q8_0 *b = (const struct block_q8_0 *) row + i / 32;
    return vf_mul(vf_load_i8(b->qs + i % 32), vf_set1(f16_to_f32(b->d)));
}

INLINE vf unpack_whole(enum attn_form form, const void *row, int64_t i) {
    if (form == ATTN_F32) return vf_load((const float *) row + i);
    if (form == ATTN_F16) return vf_load_f16((const uint16_t *) row + i);
    if (form == ATTN_BF16) return vf_load_bf16((const uint16_t *) row + i);
    return unpack_lanes(form, row, i, VF_N);
}

// s[n_row][64] = q . k, sequentially along d. k [d][64] in `form`. Only loops that read memory's own forms, which few rows share, look
// ahead.
INLINE void scores(const float *q0, const void *k0, const enum attn_form form, int64_t d, float *s, struct attn_ahead *ahead,
                   const int n_row) {
    struct ahead h = {0};
    if (form != ATTN_F32) h = ahead_begin(ahead);
    for (int j = 0; j < ATTN_BLOCK; j += LINE) {
        vf acc[ATTN_ROWS][NV];
        SIMD_UNROLL
        for (int r = 0; r < n_row; r++) {
            SIMD_UNROLL
            for (int c = 0; c < NV; c++) acc[r][c] = vf_set1(0.0f);
        }
        const float *q = q0;
        for (int64_t i = 0; i < d; i++, q += ATTN_ROWS) {
            vf x[NV];
            SIMD_UNROLL
            for (int c = 0; c < NV; c++) x[c] = in_register(unpack_whole(form, k0, i * ATTN_BLOCK + j + c * VF_N));
            if (form != ATTN_F32) look_ahead(ahead, &h);
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
    if (form != ATTN_F32) ahead_end(ahead, h);
}

// A block's maxima and sums, and how its values enter the rows' states: o = old * o + new * values where the row sees
// something.
struct merging {
    float m[ATTN_PAD], l[ATTN_PAD];
    float shift[ATTN_PAD];  // m, or 0 where it is -inf
    float old[ATTN_PAD], new[ATTN_PAD];
    bool first[ATTN_PAD];  // the row had seen nothing: what its o holds is not read
};

INLINE void enter(float *o, vf values, const struct merging *g, int r) {
    if (g->m[r] == -INFINITY) return;
    const vf before = g->first[r] ? vf_set1(0.0f) : vf_mul(vf_load(o), vf_set1(g->old[r]));
    vf_store(o, vf_fma(values, vf_set1(g->new[r]), before));
}

// nv vectors from i0 on of the values of rows r0 ..: the sum of p[r][j] * v[j], sequentially along the positions of `seen`.
// form ATTN_F32: b->v.
INLINE void values_line(const struct attn_block *b, const struct merging *g, const float *p, int r0, int64_t i0,
                        uint64_t seen, const enum attn_form form, const int n_row, const int nv) {
    vf acc[ATTN_ROWS][NV];
    SIMD_UNROLL
    for (int r = 0; r < n_row; r++) {
        SIMD_UNROLL
        for (int c = 0; c < nv; c++) acc[r][c] = vf_set1(0.0f);
    }
    const int j0 = __builtin_ctzll(seen), j1 = ATTN_BLOCK - __builtin_clzll(seen);
    const size_t stride = form == ATTN_F32 ? (size_t) b->v_step * sizeof(float) : b->v_stride;
    const char *row = (const char *) (form == ATTN_F32 ? (const void *) b->v : b->v_raw) + (size_t) j0 * stride;
    const float *w = p + r0 * ATTN_BLOCK + j0, *end = w + (j1 - j0);
    // Positions that nobody has written are left out; unpacked, they would be zeros.
    uint64_t left = form == ATTN_F32 ? ~0ull : seen >> j0;
    struct ahead h = {0};
    if (form != ATTN_F32) h = ahead_begin(b->ahead);
    for (; w < end; w++, row += stride, left >>= 1) {
        if (form != ATTN_F32 && !(left & 1)) continue;
        vf x[NV];
        SIMD_UNROLL
        for (int c = 0; c < nv; c++) x[c] = in_register(unpack_whole(form, row, i0 + c * VF_N));
        if (form != ATTN_F32) look_ahead(b->ahead, &h);
        SIMD_UNROLL
        for (int r = 0; r < n_row; r++) {
            const vf y = vf_set1(w[r * ATTN_BLOCK]);
            SIMD_UNROLL
            for (int c = 0; c < nv; c++) acc[r][c] = vf_fma(y, x[c], acc[r][c]);
            if (form != ATTN_F32 && r == 0) look_ahead(b->ahead, &h);
        }
    }
    if (form != ATTN_F32) ahead_end(b->ahead, h);
    SIMD_UNROLL
    for (int r = 0; r < n_row; r++) {
        float *o = b->state.o + (r0 + r) * b->dvp + i0;
        SIMD_UNROLL
        for (int c = 0; c < nv; c++) enter(o + c * VF_N, acc[r][c], g, r0 + r);
    }
}

INLINE void values(const struct attn_block *b, const struct merging *g, const float *p, int r0, uint64_t seen,
                   const enum attn_form form, const int n_row) {
    int64_t i = 0;
    for (; i + LINE <= b->dvp; i += LINE) values_line(b, g, p, r0, i, seen, form, n_row, NV);
#if NV * VF_N > 16
    for (; form == ATTN_F32 && i < b->dvp; i += ATTN_PAD) values_line(b, g, p, r0, i, seen, form, n_row, ATTN_PAD / VF_N);
#endif
}

// The same for row r where values of positions that it does not see may not be touched.
static void values_careful(const struct attn_block *b, const struct merging *g, const float *p, int r) {
    float *o = b->state.o + r * b->dvp;
    for (int64_t i = 0; i < b->dvp; i += VF_N) {
        vf acc = vf_set1(0.0f);
        for (uint64_t left = b->visible[r]; left; left &= left - 1) {
            const int j = __builtin_ctzll(left);
            acc = vf_fma(vf_set1(p[r * ATTN_BLOCK + j]), vf_load(b->v + j * b->v_step + i), acc);
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

// Raw scores of a row become what goes into the exponential.
static void adjust(float *s, uint64_t visible, const float *bias, float slope, float cap) {
    const vf none = vf_set1(-INFINITY);
    for (int c = 0; c < VECS; c++) {
        vf x = vf_load(s + c * VF_N);
        if (cap > 0.0f) x = vf_mul(vf_set1(cap), vf_tanh(x));
        if (bias) x = vf_fma(vf_set1(slope), vf_load(bias + c * VF_N), x);
        vf_store(s + c * VF_N, vf_sel(mask_of(visible, c * VF_N), x, none));
    }
}

// Sum and maximum of each x[r] over its lanes, folded in halves as vf_hsum does it; all ATTN_TILE rows.
#if VF_N == 16
#define FOLD_ROWS(name, op, one)                                                                                            \
    INLINE void name(const vf *x, float *out, int n_row) {                                                                  \
        vf y[6], z[4];                                                                                                      \
        (void) n_row;                                                                                                       \
        SIMD_UNROLL                                                                                                         \
        for (int i = 0; i < 6; i++)                                                                                         \
            y[i] =                                                                                                          \
                op(_mm512_shuffle_f32x4(x[2 * i], x[2 * i + 1], 0x44), _mm512_shuffle_f32x4(x[2 * i], x[2 * i + 1], 0xee)); \
        SIMD_UNROLL                                                                                                         \
        for (int i = 0; i < 3; i++)                                                                                         \
            z[i] =                                                                                                          \
                op(_mm512_shuffle_f32x4(y[2 * i], y[2 * i + 1], 0x88), _mm512_shuffle_f32x4(y[2 * i], y[2 * i + 1], 0xdd)); \
        const vf w = op(_mm512_shuffle_ps(z[0], z[1], 0x44), _mm512_shuffle_ps(z[0], z[1], 0xee));                          \
        const vf u = op(_mm512_shuffle_ps(z[2], z[2], 0x44), _mm512_shuffle_ps(z[2], z[2], 0xee));                          \
        const vf t = op(_mm512_shuffle_ps(w, u, 0x88), _mm512_shuffle_ps(w, u, 0xdd));                                      \
        const vi order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);                           \
        _mm512_storeu_ps(out, _mm512_permutexvar_ps(order, t));                                                             \
    }
#else
#define FOLD_ROWS(name, op, one)                                                                                            \
    INLINE void name(const vf *x, float *out, int n_row) {                                                                  \
        for (int r = 0; r < n_row; r++) out[r] = one(x[r]);                                                                 \
    }
#endif
FOLD_ROWS(fold_max, vf_max, vf_hmax)
FOLD_ROWS(fold_sum, vf_add, vf_hsum)

// Scores become weights exp(score - m) in place, row by row, with m and the sum l of each. m is -inf when nothing is
// visible.
INLINE void softmax(const struct attn_block *b, float *s, struct merging *g) {
    const vf none = vf_set1(-INFINITY), zero = vf_set1(0.0f);
    vf x[ATTN_TILE];
    for (int r = 0; r < ATTN_TILE; r++) x[r] = zero;
    for (int r = 0; r < b->n_row; r++) {
        float *row = s + r * ATTN_BLOCK;
        if (b->visible[r] != ~0ull || b->bias[r] || b->cap > 0.0f)
            adjust(row, b->visible[r], b->bias[r], b->slope[r], b->cap);
        vf top[4];
        SIMD_UNROLL
        for (int c = 0; c < 4; c++) top[c] = vf_load(row + c * VF_N);
        for (int c = 4; c < VECS; c++) top[c % 4] = vf_max(top[c % 4], vf_load(row + c * VF_N));
        x[r] = vf_max(vf_max(top[0], top[1]), vf_max(top[2], top[3]));
    }
    fold_max(x, g->m, b->n_row);
    for (int r = 0; r < b->n_row; r += VF_N) {
        const vf m = vf_load_n(g->m + r, vf_lanes(r, b->n_row));
        vf_store(g->shift + r, vf_sel(vf_eq(m, none), zero, m));  // all -inf: weights 0; a NaN among them still shows
    }
    struct ahead h = ahead_begin(b->ahead);
    for (int r = 0; r < b->n_row; r++) {
        float *row = s + r * ATTN_BLOCK;
        const vf shift = vf_set1(g->shift[r]);
        vf y[VECS];
        SIMD_UNROLL
        for (int c = 0; c < 4; c++) look_ahead(b->ahead, &h);
        SIMD_UNROLL
        for (int c = 0; c < VECS; c++) {
            y[c] = vf_exp_neg(vf_sub(vf_load(row + c * VF_N), shift));
            vf_store(row + c * VF_N, y[c]);
        }
        SIMD_UNROLL
        for (int n = VECS / 2; n > 0; n /= 2) {
            SIMD_UNROLL
            for (int c = 0; c < n; c++) y[c] = vf_add(y[c], y[c + n]);
        }
        x[r] = y[0];
    }
    ahead_end(b->ahead, h);
    fold_sum(x, g->l, b->n_row);
    for (int r = 0; r < b->n_row; r += VF_N) {
        const int n = vf_lanes(r, b->n_row);
        const vf m = vf_load_n(g->m + r, n), l = vf_load_n(g->l + r, n);
        vf_store(g->m + r, vf_sel(vm_and(vf_eq(m, none), vm_not(vf_eq(l, zero))), zero, m));
    }
}

// State (m, l) of a row and those of a later part (mb, lb): the factors of the two, and the merged state.
INLINE void merge_sums(vf *m, vf *l, vf mb, vf lb, vf *old, vf *new) {
    const vf top = vf_max(*m, mb), none = vf_set1(-INFINITY);
    const vf shift = vf_sel(vf_eq(top, none), vf_set1(0.0f), top);
    *old = vf_exp_neg(vf_sub(*m, shift));
    *new = vf_exp_neg(vf_sub(mb, shift));
    *l = vf_fma(lb, *new, vf_mul(*l, *old));
    *m = top;
}

INLINE void merge_states(struct merging *g, const struct attn_state *t, int n_row) {
    for (int r = 0; r < n_row; r++) g->first[r] = t->m[r] == -INFINITY;
    for (int r = 0; r < n_row; r += VF_N) {
        const int n = vf_lanes(r, n_row);
        vf m = vf_load_n(t->m + r, n), l = vf_load_n(t->l + r, n), old, new;
        merge_sums(&m, &l, vf_load_n(g->m + r, n), vf_load_n(g->l + r, n), &old, &new);
        vf_store_n(t->m + r, m, n);
        vf_store_n(t->l + r, l, n);
        vf_store(g->old + r, old);
        vf_store(g->new + r, new);
    }
}

// call(n_row) with a constant (but not under sanitizers, which take minutes to compile that).
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SWITCH_ROWS(n_row, call) call(n_row);
#else
#define SWITCH_ROWS(n_row, call)                                                                                            \
    switch (n_row) {                                                                                                        \
        case 1: call(1); break;                                                                                             \
        case 2: call(2); break;                                                                                             \
        case 3: call(3); break;                                                                                             \
        case 4: call(4); break;                                                                                             \
        case 5: call(5); break;                                                                                             \
        default: call(6); break;                                                                                            \
    }
#endif

static int min_int(int a, int b) { return a < b ? a : b; }

static void scores_panel(const float *q, const float *k, int64_t d, float *s, int n_row){
#define CALL(n) scores(q, k, ATTN_F32, d, s, NULL, n)
    SWITCH_ROWS(n_row, CALL)
#undef CALL
}

INLINE void scores_half(const struct attn_block *b, float *s, const enum attn_form form) {
#define CALL(n) scores(b->q, b->k_half, form, b->d, s, b->ahead, n)
    SWITCH_ROWS(b->n_row, CALL)
#undef CALL
}

static void scores_all(const struct attn_block *b, float *s) {
    if (b->k_half && b->k_form == ATTN_F16) {
        scores_half(b, s, ATTN_F16);
    } else if (b->k_half) {
        scores_half(b, s, ATTN_BF16);
    } else {
        for (int r = 0; r < b->n_row; r += ATTN_ROWS)
            scores_panel(b->q + r * b->d, b->k, b->d, s + r * ATTN_BLOCK, min_int(b->n_row - r, ATTN_ROWS));
    }
}

static void values_panel(const struct attn_block *b, const struct merging *g, const float *p, int r0, int n_row) {
    uint64_t seen = 0;
    for (int r = r0; r < r0 + n_row; r++) seen |= b->visible[r];
    if (!seen) return;
#define CALL(n) values(b, g, p, r0, seen, ATTN_F32, n)
    SWITCH_ROWS(n_row, CALL)
#undef CALL
}

INLINE void values_raw(const struct attn_block *b, const struct merging *g, const float *p, uint64_t seen,
                       const enum attn_form form) {
#define CALL(n) values(b, g, p, 0, seen, form, n)
    SWITCH_ROWS(b->n_row, CALL)
#undef CALL
}

static void values_direct(const struct attn_block *b, const struct merging *g, const float *p, uint64_t seen) {
    if (b->v_form == ATTN_F16)
        values_raw(b, g, p, seen, ATTN_F16);
    else if (b->v_form == ATTN_BF16)
        values_raw(b, g, p, seen, ATTN_BF16);
    else
        values_raw(b, g, p, seen, ATTN_Q8_0);
}

static void block(const struct attn_block *b) {
    float *s = b->work;
    struct merging g;
    uint64_t any = 0;
    for (int r = 0; r < b->n_row; r++) any |= b->visible[r];
    if (!any) return;
    scores_all(b, s);
    softmax(b, s, &g);
    merge_states(&g, &b->state, b->n_row);
    if (b->v_raw) {
        values_direct(b, &g, s, any);
    } else if (b->careful) {
        for (int r = 0; r < b->n_row; r++) values_careful(b, &g, s, r);
    } else {
        for (int r = 0; r < b->n_row; r += ATTN_ROWS) values_panel(b, &g, s, r, min_int(b->n_row - r, ATTN_ROWS));
    }
}

static float exp1(float x) {
    float y[VF_N];
    vf_store(y, vf_exp_neg(vf_set1(x)));
    return y[0];
}

static void merge(float *m, float *l, float *o, float mb, float lb, const float *ob, int64_t dvp) {
    if (mb == -INFINITY) return;
    const bool first = *m == -INFINITY;
    if (first && mb == mb) {  // weighed with 1: as it is
        *m = mb, *l = lb;
        memcpy(o, ob, (size_t) dvp * sizeof *o);
        return;
    }
    vf top = vf_set1(*m), vl = vf_set1(*l), old, new;
    float t[VF_N];
    merge_sums(&top, &vl, vf_set1(mb), vf_set1(lb), &old, &new);
    vf_store(t, top);
    *m = t[0];
    vf_store(t, vl);
    *l = t[0];
    for (int64_t i = 0; i < dvp; i += VF_N) {
        const vf before = first ? vf_set1(0.0f) : vf_mul(vf_load(o + i), old);
        vf_store(o + i, vf_fma(vf_load(ob + i), new, before));
    }
}

static void index_rows(const float *q, const float *k, int64_t d, int n_row, const float *w, float *sum) {
    float s[ATTN_ROWS * ATTN_BLOCK];
    scores_panel(q, k, d, s, n_row);
    const vf zero = vf_set1(0.0f);
    for (int r = 0; r < n_row; r++)
        for (int j = 0; j < ATTN_BLOCK; j += VF_N)
            vf_store(sum + j, vf_fma(vf_max(zero, vf_load(s + r * ATTN_BLOCK + j)), vf_set1(w[r]), vf_load(sum + j)));
}

INLINE void unpack_rows(const enum attn_form form, const char *src, size_t stride, uint64_t set, int n_row, int64_t n,
                        float *out, int64_t ld, struct attn_ahead *ahead) {
    struct ahead h = ahead_begin(ahead);
    for (int j = 0; j < n_row; j++, src += stride, out += ld) {
        int64_t i = 0;
        look_ahead(ahead, &h);
        if (set >> j & 1) {
            for (; i + VF_N <= n; i += VF_N) vf_store(out + i, unpack_whole(form, src, i));
            if (i < n) {
                vf_store(out + i, unpack_lanes(form, src, i, (int) (n - i)));
                i += VF_N;
            }
        }
        for (; i < ld; i += VF_N) vf_store(out + i, vf_set1(0.0f));
    }
    ahead_end(ahead, h);
}

static void unpack(enum attn_form form, const void *src, size_t stride, uint64_t set, int n_row, int64_t n, float *out,
                   int64_t ld, struct attn_ahead *ahead) {
    switch (form) {
        case ATTN_F32: unpack_rows(ATTN_F32, src, stride, set, n_row, n, out, ld, ahead); break;
        case ATTN_F16: unpack_rows(ATTN_F16, src, stride, set, n_row, n, out, ld, ahead); break;
        case ATTN_BF16: unpack_rows(ATTN_BF16, src, stride, set, n_row, n, out, ld, ahead); break;
        default: unpack_rows(ATTN_Q8_0, src, stride, set, n_row, n, out, ld, ahead); break;
    }
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
    // Adding zero makes -0 into +0: which of them an underflow left depends on whether positions of no weight were skipped
    // or added.
    const vf zero = vf_set1(0.0f);
    for (; i + VF_N <= dv; i += VF_N) vf_store(dst + i, vf_fma(vf_load(o + i), by, zero));
    if (i < dv) vf_store_n(dst + i, vf_fma(vf_load(o + i), by, zero), (int) (dv - i));
}

const struct kern_attn ISA_SYM(kern_attn) = {
    .block = block,
    .index = index_rows,
    .unpack = unpack,
#if VF_N == 16
    .turn_halves = turn_halves,
    .turn_q8_0 = turn_q8_0,
#endif
    .transpose = transpose,
    .mask_f16 = mask_f16,
    .mask_f32 = mask_f32,
    .finite = all_finite,
    .merge = merge,
    .finish = finish,
};
