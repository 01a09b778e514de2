// Products of quantized weights with activations rounded to 8 bits per 32 values. L rows at a time are unpacked into a panel in
// cache, a lane per row, then multiplied with tiles of columns: the integer sum of a group is exact, so any instruction may
// form it; the groups' sums are scaled and added in order. One column and many take the same way.
#include "kern/mm_int.h"
#include "kern/mm_simd.h"

#if defined(ISA_IS_avx512bf16)
// Nothing of this gains from BF16: the level below serves.
const struct mm_path *mm_quant_path_avx512vnni(enum ggml_type type, int64_t n_col);
const struct mm_path *ISA_SYM(mm_quant_path)(enum ggml_type type, int64_t n_col) {
    return mm_quant_path_avx512vnni(type, n_col);
}
#elif !defined(ISA_IS_scalar)
#if defined(__AVX512VNNI__)
#define MM_VNNI 1
#else
#define MM_VNNI 0
#endif
#include "kern/mm_unpack.h"
#include "kern/mm_one.h"
#include "kern/mm_record.h"
#include "kern/mm_ints.h"
#include "type/type.h"

#include <stddef.h>

enum {
    L = MM_L,
    SUM_ROWS = 128,
    SUM_COLS = 512,
    FEW = 20,     // columns up to which weights are read row by row; more can be cut into tiles of COLS and COLS - 1
    AT_ONCE = 8,  // groups unpacked then, which stay in the first-level cache
#if MM_L == 16 && MM_VNNI
    PANEL = 2,
    COLS = 6,
    WIDE = 8,  // columns of a tile of one vector of rows
#elif MM_L == 16
    PANEL = 1,
    COLS = 4,  // 6 would fit, but few processors stop at this level: not worth the code
    WIDE = COLS,
#elif MM_L == 8
    PANEL = 1,
    COLS = 4,
    WIDE = COLS,
#else
    PANEL = 1,
    COLS = 6,
    WIDE = COLS,
#endif
};

// ---- integer sums ---------------------------------------------------------------------------------------------------

#if MM_VNNI
// acc[r][c] += sum over n words of the rows of vector r times column c.
INLINE void dot_words(int max, int n, int R, int C, const struct panel_group *g, int from, const struct mm_record *const *x,
                      vi acc[2][WIDE], int part) {
    (void) max, (void) part;
    UNROLL for (int j = from; j < from + n; j++) {
        vi w[2];
        UNROLL for (int r = 0; r < R; r++) w[r] = vi_load(g[r].w[j]);
        UNROLL for (int c = 0; c < C; c++) {
            const vi a = bcast_4(x[c]->q + 4 * j);
            UNROLL for (int r = 0; r < R; r++) acc[r][c] = _mm512_dpbusd_epi32(acc[r][c], w[r], a);
        }
    }
}
#elif defined(VI_)
// Products of two pairs are summed in 16 bits as long as they fit: unsigned weights up to `max` times -127 .. 127; weights of
// 8 bits are signed, and give their sign to the activations. part >= 0: the sums are multiplied by that part's factors.
INLINE void dot_words(int max, int n, int R, int C, const struct panel_group *g, int from, const struct mm_record *const *x,
                      vi acc[2][WIDE], int part) {
    const int fit = max == 15 ? 8 : max == 31 ? 4 : max == 63 ? 2 : 1, per = fit < n ? fit : n;
    UNROLL for (int r = 0; r < R; r++) {
        const vi by = part < 0 ? VI_(set1_epi16)(1) : vi_load(g[r].by[part]);
        UNROLL for (int j = from; j < from + n; j += per) {
            vi s[WIDE];
            UNROLL for (int i = 0; i < per; i++) {
                const vi w = vi_load(g[r].w[j + i]);
                UNROLL for (int c = 0; c < C; c++) {
                    const vi a = bcast_4(x[c]->q + 4 * (j + i));
                    const vi t =
                        max == 255 ? VI_(maddubs_epi16)(VI_(abs_epi8)(w), with_sign(a, w)) : VI_(maddubs_epi16)(w, a);
                    s[c] = i ? VI_(add_epi16)(s[c], t) : t;
                    __asm__("" : "+v"(s[c]));  // in this order: else all products come first, and are spilled
                }
            }
            UNROLL for (int c = 0; c < C; c++) acc[r][c] = VI_(add_epi32)(acc[r][c], VI_(madd_epi16)(s[c], by));
        }
    }
}
#else
INLINE void dot_words(int max, int n, int R, int C, const struct panel_group *g, int from, const struct mm_record *const *x,
                      vi acc[2][WIDE], int part) {
    (void) max, (void) part;
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int j = from; j < from + n; j++) {
            const int8x16_t w = vreinterpretq_s8_s32(vi_load(g[r].w[j]));
            UNROLL for (int c = 0; c < C; c++) {
                const int8x16_t a = vreinterpretq_s8_s32(bcast_4(x[c]->q + 4 * j));
#if defined(__ARM_FEATURE_DOTPROD)
                acc[r][c] = vdotq_s32(acc[r][c], w, a);
#else
                const int32x4_t lo = vpaddlq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(a)));
                const int32x4_t hi = vpaddlq_s16(vmull_s8(vget_high_s8(w), vget_high_s8(a)));
                acc[r][c] = vaddq_s32(acc[r][c], vpaddq_s32(lo, hi));
#endif
            }
        }
    }
}
#endif

// ---- tiles ----------------------------------------------------------------------------------------------------------

// What the sum of a group starts with where sums of 16, of integers q + zero, are multiplied.
INLINE vi start_by(const struct panel_group *g, const struct mm_record *x, int zero) {
    vi start = vi_set1((int32_t) f32_bits(x->base));
#if defined(VI_) && !MM_VNNI
    const vi by = vi_or(vi_and(vi_load(g->by[0]), vi_set1(0xffff)), vi_and(vi_load(g->by[1]), vi_set1(-0x10000)));
    const vi sum = VI_(madd_epi16)(by, vi_set1(x->correction[1]));
    UNROLL for (int i = 0; i < zero; i++) start = vi_sub(start, sum);
#endif
    (void) g, (void) zero;
    return start;
}

// total[(c * R + r) * L ...] += n groups of R vectors of rows times C columns. by >= 0: sums of 16 are multiplied, of integers that
// are so much too large.
INLINE void quant_tile(int sub, int min, bool offset, int max, int per, int by, int R, int C, const struct panel_group *g,
                       int n, const struct mm_record *const *x, ptrdiff_t ahead, float *total) {
    const struct mm_record *y[WIDE];
    vf acc[2][WIDE];
    UNROLL for (int c = 0; c < C; c++) {
        y[c] = x[c];
        UNROLL for (int r = 0; r < R; r++) acc[r][c] = per == 32 ? vf_load(total + (c * R + r) * L) : vf_zero();
    }
    for (int i = 0; i < n; i++, g += R) {
        UNROLL for (int part = 0; part < 32 / sub; part++) {
            vi sum[2][WIDE];
            UNROLL for (int c = 0; c < C; c++) {
                UNROLL for (int r = 0; r < R; r++) sum[r][c] =
                    by < 0 ? vi_set1(mm_record_start(y[c], part, min, offset, per)) : start_by(g + r, y[c], by);
            }
            if (by < 0) {
                dot_words(max, sub / 4, R, C, g, part * sub / 4, y, sum, -1);
            } else {
                dot_words(max, 4, R, C, g, 0, y, sum, 0);
                dot_words(max, 4, R, C, g, 4, y, sum, 1);
            }
            UNROLL for (int c = 0; c < C; c++) {
                const vf d = vf_set1(y[c]->d);
                UNROLL for (int r = 0; r < R; r++) {
                    const vf s = vf_load(g[r].s[part]);
                    acc[r][c] = vf_fma(per == 32 ? vf_mul(s, d) : s, mm_record_sum(y[c], sum[r][c], per), acc[r][c]);
                    UNROLL for (int h = part; h < part + min; h++) acc[r][c] =
                        vf_fma(vf_load(g[r].m[h]), vf_set1(y[c]->sum[h]), acc[r][c]);
                }
            }
        }
        if (per == 256 && i % 8 == 7) {
            UNROLL for (int c = 0; c < C; c++) {
                UNROLL for (int r = 0; r < R; r++) {
                    float *t = total + (c * R + r) * L;
                    vf_store(t, vf_fma(vf_set1(y[c]->d), acc[r][c], vf_load(t)));
                    acc[r][c] = vf_zero();
                }
            }
        }
        UNROLL for (int c = 0; c < C; c++) __builtin_prefetch((const char *) y[c]++ + ahead);
    }
    if (per == 256) return;
    UNROLL for (int c = 0; c < C; c++) { UNROLL for (int r = 0; r < R; r++) vf_store(total + (c * R + r) * L, acc[r][c]); }
}

// ahead: bytes from a column to the one that will be wanted in its place next.
typedef void tile_fn(const struct panel_group *g, int n, const struct mm_record *const *x, ptrdiff_t ahead, float *total);

#define TILE(name, sub, min, offset, max, per, by, R, C)                                                                    \
    static void name##_##R##_##C(const struct panel_group *g, int n, const struct mm_record *const *x, ptrdiff_t ahead,     \
                                 float *total) {                                                                            \
        quant_tile(sub, min, offset, max, per, by, R, C, g, n, x, ahead, total);                                            \
    }
// Many columns are cut into tiles of about the same width, COLS or one less; few go into
// the narrowest tile that holds them.
struct tiles {
    tile_fn *many[COLS + 1], *few[WIDE + 1];
};
#if MM_VNNI
#define TILES_BY(name, sub, min, offset, max, per, by)                                                                      \
    TILE(name, sub, min, offset, max, per, by, 1, 2)                                                                        \
    TILE(name, sub, min, offset, max, per, by, 1, 4)                                                                        \
    TILE(name, sub, min, offset, max, per, by, 1, 8)                                                                        \
    TILE(name, sub, min, offset, max, per, by, 2, 5)                                                                        \
    TILE(name, sub, min, offset, max, per, by, 2, 6)                                                                        \
    static const struct tiles name = {                                                                                      \
        {0, 0, 0, 0, 0, name##_2_5, name##_2_6},                                                                            \
        {0, name##_1_2, name##_1_2, name##_1_4, name##_1_4, name##_1_8, name##_1_8, name##_1_8, name##_1_8}};
#elif MM_L == 4
#define TILES_BY(name, sub, min, offset, max, per, by)                                                                      \
    TILE(name, sub, min, offset, max, per, by, 1, 1)                                                                        \
    TILE(name, sub, min, offset, max, per, by, 1, 2)                                                                        \
    TILE(name, sub, min, offset, max, per, by, 1, 4)                                                                        \
    TILE(name, sub, min, offset, max, per, by, 1, 5)                                                                        \
    TILE(name, sub, min, offset, max, per, by, 1, 6)                                                                        \
    static const struct tiles name = {{0, 0, 0, 0, 0, name##_1_5, name##_1_6},                                              \
                                      {0, name##_1_1, name##_1_2, name##_1_4, name##_1_4, name##_1_5, name##_1_6}};
#else
#define TILES_BY(name, sub, min, offset, max, per, by)                                                                      \
    TILE(name, sub, min, offset, max, per, by, 1, 1)                                                                        \
    TILE(name, sub, min, offset, max, per, by, 1, 2)                                                                        \
    TILE(name, sub, min, offset, max, per, by, 1, 3)                                                                        \
    TILE(name, sub, min, offset, max, per, by, 1, 4)                                                                        \
    static const struct tiles name = {{0, 0, 0, name##_1_3, name##_1_4},                                                    \
                                      {0, name##_1_1, name##_1_2, name##_1_3, name##_1_4}};
#endif

#define TILES(name, sub, min, offset, max, per) TILES_BY(name, sub, min, offset, max, per, -1)

// Which tiles serve a type: sub, min, per and, where products are summed in 16 bits, max.
#if !MM_VNNI && defined(VI_)
TILES(tiles_32_0_31_32, 32, 0, true, 31, 32)
TILES(tiles_32_0_255_32, 32, 0, false, 255, 32)
TILES(tiles_32_1_31_32, 32, 1, false, 31, 32)
TILES(tiles_32_1_31_256, 32, 1, false, 31, 256)
#if MM_L == 8
TILES(tiles_32_0_15_32, 32, 0, true, 15, 32)
TILES(tiles_32_1_15_32, 32, 1, false, 15, 32)
TILES(tiles_32_1_15_256, 32, 1, false, 15, 256)
#else  // nor is this
#define tiles_32_0_15_32 tiles_32_0_31_32
#define tiles_32_1_15_32 tiles_32_1_31_32
#define tiles_32_1_15_256 tiles_32_1_31_256
#endif
TILES(tiles_16_0_63_32, 16, 0, true, 63, 32)
TILES(tiles_16_0_63_256, 16, 0, true, 63, 256)
TILES(tiles_16_0_255_256, 16, 0, false, 255, 256)
TILES_BY(tiles_32_0_255_256, 32, 0, false, 15, 256, 4)
TILES_BY(tiles_32_2_63_256, 32, 2, false, 15, 256, 0)
#else
TILES(tiles_32, 32, 0, MM_VNNI, 255, 32)
TILES(tiles_32_block, 32, 0, MM_VNNI, 255, 256)
TILES(tiles_32_min, 32, 1, false, 255, 32)
TILES(tiles_32_min_block, 32, 1, false, 255, 256)
TILES(tiles_32_min2_block, 32, 2, false, 255, 256)
TILES(tiles_16, 16, 0, MM_VNNI, 255, 32)
TILES(tiles_16_block, 16, 0, MM_VNNI, 255, 256)
#define tiles_32_0_15_32 tiles_32
#define tiles_32_0_31_32 tiles_32
#define tiles_32_0_255_32 tiles_32
#define tiles_32_1_15_32 tiles_32_min
#define tiles_32_1_31_32 tiles_32_min
#define tiles_32_1_15_256 tiles_32_min_block
#define tiles_32_1_31_256 tiles_32_min_block
#define tiles_16_0_63_32 tiles_16
#define tiles_16_0_63_256 tiles_16_block
#define tiles_16_0_255_256 tiles_16_block
#define tiles_32_0_255_256 tiles_32_block
#define tiles_32_2_63_256 tiles_32_min2_block
#endif

// ---- rows times columns ---------------------------------------------------------------------------------------------

// Kernel scratch of a thread.
struct scratch {
    struct panel_group panel[GROUPS * PANEL];
    uint8_t rows[L][GROUPS * 64];  // copies, when a matrix has fewer than L rows; or, of one column, L unpacked rows
    float sums[SUM_ROWS / L][SUM_COLS][L];  // results between ranges of k: those of dst lie too far apart
};

static size_t quant_scratch(const struct mm_job *j) {
    return j->k / 32 > GROUPS && j->n_col > FEW ? sizeof(struct scratch) : offsetof(struct scratch, sums);
}

// Rows lo, lo + step, ... of a vector, of which lanes from .. to - 1 are wanted.
struct span {
    int64_t lo, step;
    int from, to;
};

INLINE void span_store(float *y, const struct span *s, vf x) {
    if (s->step == 1) {
        vf_store_span(y + s->lo, x, s->from, s->to);
        return;
    }
    float t[L];
    vf_store(t, x);
    for (int i = 0; i < L; i++) y[s->lo + i * s->step] = t[i];
}

// L rows from `first` < row1 + L, of which those before row1 are wanted; moved up if there are fewer.
static struct span span_at(const struct mm_job *j, int64_t first) {
    struct span s = {.lo = first + L <= j->row1 ? first : (j->row1 > L ? j->row1 - L : 0), .step = 1};
    s.from = (int) (first - s.lo);
    s.to = (int) (j->row1 - s.lo < L ? j->row1 - s.lo : L);
    return s;
}

static void panel_times(const struct mm_job *j, tile_fn *const *tiles, const struct span *rows,
                        const struct panel_group *panel, int64_t group, int n, float (*sums)[SUM_COLS][L]) {
    const bool last = (group + n) * 32 == j->k;
    const int64_t n_tile = (j->n_col + COLS - 1) / COLS;
    float total[COLS * PANEL * L];
    for (int64_t t = 0; t < n_tile; t++) {
        const int64_t c0 = j->n_col * t / n_tile;
        const int C = (int) (j->n_col * (t + 1) / n_tile - c0);
        const struct mm_record *x[COLS];
        for (int c = 0; c < C; c++) {
            const float *y = mm_job_result(j, c0 + c);
            x[c] = (const struct mm_record *) mm_job_column(j, c0 + c) + group;
            for (int r = 0; r < PANEL; r++) {
                vf_store(total + (c * PANEL + r) * L, !group ? vf_zero()
                                                      : sums ? vf_load(sums[r][c0 + c])
                                                             : vf_load_span(y + rows[r].lo, rows[r].from, rows[r].to));
            }
        }
        for (int c = 0; c < C && (!sums || last); c++) {
            for (int r = 0; r < PANEL; r++) __builtin_prefetch(mm_job_result(j, c0 + c) + rows[r].lo, 1);
        }
        tiles[C](panel, n, x, (ptrdiff_t) j->act_stride * C, total);
        for (int c = 0; c < C; c++) {
            float *y = mm_job_result(j, c0 + c);
            for (int r = 0; r < PANEL; r++) {
                const vf sum = vf_load(total + (c * PANEL + r) * L);
                if (sums && !last)
                    vf_store(sums[r][c0 + c], sum);
                else
                    span_store(y, rows + r, sum);
            }
        }
    }
}

static void unpack_rows(const struct mm_job *j, const struct type *type, unpack_fn *unpack, struct scratch *s,
                        const struct span *rows, int64_t group, int n, struct panel_group *out, int step) {
    const size_t at = (size_t) (group * 32 / type->block) * type->size, bytes = (size_t) (n * 32 / type->block) * type->size;
    if (rows->lo + (L - 1) * rows->step < j->n_row) {
        unpack(j->a + (size_t) rows->lo * j->a_stride + at, j->a_stride * (size_t) rows->step, n, out, step);
        return;
    }
    for (int r = 0; r < L; r++) {
        const int64_t row = rows->lo + r < j->n_row ? rows->lo + r : j->n_row - 1;
        memcpy(s->rows[r], j->a + (size_t) row * j->a_stride + at, bytes);
    }
    unpack(s->rows[0], sizeof s->rows[0], n, out, step);
}

// One range of k of one panel of rows.
static void quant_piece(const struct mm_job *j, const struct type *type, unpack_fn *unpack, tile_fn *const *tiles,
                        const struct span *rows, int64_t group, int n, float (*sums)[SUM_COLS][L]) {
    struct scratch *s = j->scratch;
    for (int r = 0; r < PANEL; r++) unpack_rows(j, type, unpack, s, rows + r, group, n, s->panel + r, PANEL);
    panel_times(j, tiles, rows, s->panel, group, n, sums);
}

// The order of few columns: what takes time then is reading the weights, so a range is cut into L runs of rows and lane l walks through
// run l: L long streams, which the processor reads ahead. They must not lie so that all meet in the same sets of the first-level
// cache. Rows that are left over come last, side by side.
static int64_t run_length(const struct mm_job *j) {
    enum { SETS = 2048, NEAR = 256 };  // bytes after which sets repeat, or every second one does
    const int64_t run = (j->row1 - j->row0) / L;
    return run > 1 && ((size_t) run * j->a_stride + NEAR) % SETS < 2 * NEAR ? run - 1 : run;
}
static bool more_rows(const struct mm_job *j, int64_t run, int64_t row) {
    return row < run || j->row0 + run * L + (row - run) * L < j->row1;
}
static struct span row_of_runs(const struct mm_job *j, int64_t run, int64_t row) {
    return row < run ? (struct span){j->row0 + row, run, 0, L} : span_at(j, j->row0 + row * L);
}

enum { AHEAD = 384, LONG = 512 };  // bytes that are asked for ahead of the ones in use; short rows gain nothing

INLINE void ask_rows(const struct mm_job *j, const struct type *type, const struct span *rows, int64_t group, int n) {
    const size_t row = (size_t) (j->k / type->block) * type->size, at = (size_t) (group * 32 / type->block) * type->size;
    if (row < LONG) return;
    ask_ahead(j->a + (size_t) rows->lo * j->a_stride + at + AHEAD, j->a_stride * (size_t) rows->step,
              (size_t) (n * 32 / type->block) * type->size);
}

// Few columns: L rows are unpacked a few groups at a time, and multiplied with all columns.
static void few_run(const struct mm_job *j, unpack_fn *unpack, tile_fn *const *tiles) {
    const struct type *type = type_get(j->type);
    struct scratch *s = j->scratch;
    const int64_t n_group = j->k / 32, run = run_length(j);
    const int n_col = (int) j->n_col, n_tile = (n_col + WIDE - 1) / WIDE;
    const struct mm_record *x[FEW + WIDE];
    for (int c = 0; c < n_tile * WIDE; c++) x[c] = (const struct mm_record *) mm_job_column(j, c < n_col ? c : n_col - 1);
    for (int64_t row = 0; more_rows(j, run, row); row++) {
        const struct span rows = row_of_runs(j, run, row);
        _Alignas(64) float total[FEW + WIDE][L];
        for (int c = 0; c < n_tile * WIDE; c++) vf_store(total[c], vf_zero());
        for (int64_t group = 0; group < n_group; group += AT_ONCE) {
            const int n = n_group - group < AT_ONCE ? (int) (n_group - group) : AT_ONCE;
            ask_rows(j, type, &rows, group, n);
            unpack_rows(j, type, unpack, s, &rows, group, n, s->panel, 1);
            for (int c = 0; c < n_col; c += WIDE) {
                const struct mm_record *y[WIDE];
                for (int i = 0; i < WIDE; i++) y[i] = x[c + i] + group;
                tiles[n_col - c < WIDE ? n_col - c : WIDE](s->panel, n, y, (ptrdiff_t) sizeof(struct mm_record) * AT_ONCE,
                                                           total[c]);
            }
        }
        for (int c = 0; c < n_col; c++) span_store(mm_job_result(j, c), &rows, vf_load(total[c]));
    }
}

#if MM_VNNI
// One column: every group is multiplied as soon as it is unpacked, a block of the largest kind at a time, which is also what shares
// a scale of activations where blocks do. The scales of all groups of
// a call are read first, and where that is more than a line or two of each stream it stalls the streams.
static void one_run(const struct mm_job *j, one_fn *one) {
    const struct type *type = type_get(j->type);
    struct scratch *s = j->scratch;
    const struct mm_record *x = (const struct mm_record *) mm_job_column(j, 0);
    float *y = mm_job_result(j, 0);
    const int64_t n_group = j->k / 32, run = run_length(j);
    for (int64_t row = 0; more_rows(j, run, row); row++) {
        const struct span rows = row_of_runs(j, run, row);
        _Alignas(64) float total[L] = {0};
        for (int64_t group = 0; group < n_group; group += AT_ONCE) {
            const int n = n_group - group < AT_ONCE ? (int) (n_group - group) : AT_ONCE;
            const size_t at = (size_t) (group * 32 / type->block) * type->size;
            const uint8_t *p = j->a + (size_t) rows.lo * j->a_stride + at;
            const size_t stride = j->a_stride * (size_t) rows.step;
            ask_rows(j, type, &rows, group, n);
            one(p, stride, n, s->panel, x + group, total);
        }
        span_store(y, &rows, vf_load(total));
    }
}
#define ONE(ID, name, per)                                                                                                  \
    static void one_##name(const uint8_t *p, size_t stride, int n, struct panel_group *room, const struct mm_record *x,     \
                           float *total) {                                                                                  \
        struct sink k = {true, per, x, per == 32 ? vf_load(total) : vf_zero()};                                             \
        if (n < AT_ONCE || !eight_groups(GGML_TYPE_##ID, &k, p, stride)) unpack_##name(&k, p, stride, n, room, 1);          \
        vf_store(total, per == 32 ? k.acc : vf_fma(vf_set1(x->d), k.acc, vf_load(total)));                                  \
    }
#else
#define ONE(ID, name, per) enum { one_##name };
#define one_run(j, one) (void) 0
#endif

#if defined(VI_)
_Static_assert(sizeof(struct ints_block) <= sizeof((struct scratch *) 0)->rows,
               "the rows of a block are unpacked in their place");

static void ints_run(const struct mm_job *j) {
    const struct type *type = type_get(j->type);
    struct ints_block *b = (void *) ((struct scratch *) j->scratch)->rows;
    const struct mm_record *x = (const struct mm_record *) mm_job_column(j, 0);
    float *y = mm_job_result(j, 0);
    const int64_t n_block = j->k / type->block, run = run_length(j);
    for (int64_t row = 0; more_rows(j, run, row); row++) {
        const struct span rows = row_of_runs(j, run, row);
        const uint8_t *p = j->a + (size_t) rows.lo * j->a_stride;
        _Alignas(64) float total[L] = {0};
        for (int64_t i = 0; i < n_block; i++, p += type->size) {
            for (int l = 0; l < L; l++)
                type->ints(p + (size_t) (l * rows.step) * j->a_stride, b->q[l], b->s[l], type->block);
            ints_times(b, x + 8 * i, total);
        }
        span_store(y, &rows, vf_load(total));
    }
}
#define ROW_BY_ROW 1
#else
#define ROW_BY_ROW 0
#define ints_run(j) (void) 0
#endif

// Many columns: all rows see one range of k before the next: its part of the columns stays in the second-level cache.
static void many_run(const struct mm_job *j, unpack_fn *unpack, tile_fn *const *tiles) {
    const struct type *type = type_get(j->type);
    const int64_t n_group = j->k / 32;
    const int step = group_step(n_group, GROUPS);
    struct span rows[PANEL];
    struct scratch *s = j->scratch;
    const bool room = j->row1 - j->row0 <= SUM_ROWS && j->n_col <= SUM_COLS && j->scratch_bytes >= sizeof *s;
    for (int64_t group = 0; group < n_group; group += step) {
        const int n = n_group - group < step ? (int) (n_group - group) : step;
        for (int64_t row = j->row0; row < j->row1; row += PANEL * L) {
            for (int r = 0; r < PANEL; r++) rows[r] = span_at(j, row + r * L);  // none may be wanted of the last
            quant_piece(j, type, unpack, tiles, rows, group, n, room ? s->sums + (row - j->row0) / L : NULL);
        }
    }
}

static void quant_run(const struct mm_job *j, unpack_fn *unpack, const struct tiles *tiles) {
    if (j->n_col <= FEW)
        few_run(j, unpack, tiles->few);
    else
        many_run(j, unpack, tiles->many);
}

// Types that are unpacked row by row.
static inline bool is_ints(enum ggml_type type) {
    switch (type) {
#define QUANT(...)
#define INTS(ID, name) case GGML_TYPE_##ID:
#include "kern/mm_quant.def"
#undef QUANT
        return true;
        default: return false;
    }
}

#define QUANT(ID, name, sub, min, offset, max, per)                                                                         \
    static void encode_##name(const float *x, int64_t k, void *act) {                                                       \
        mm_record_encode(x, k, act, sub, min, SIGNED(max) ? 0 : offset, per);                                               \
    }                                                                                                                       \
    ONE(ID, name, per)                                                                                                      \
    static void run_##name(const struct mm_job *j) {                                                                        \
        const bool one = j->n_col == 1 && j->row1 >= L;                                                                     \
        if (ROW_BY_ROW && one && is_ints(GGML_TYPE_##ID))                                                                   \
            ints_run(j);                                                                                                    \
        else if (MM_VNNI && one)                                                                                            \
            one_run(j, one_##name);                                                                                         \
        else                                                                                                                \
            quant_run(j, panel_##name, &tiles_##sub##_##min##_##max##_##per);                                               \
    }                                                                                                                       \
    static const struct mm_path path_##name = {MM_I8,                                                                       \
                                               PANEL * L,                                                                   \
                                               MM_VARIANT(sub, min, SIGNED(max) ? 0 : offset, per),                         \
                                               mm_record_bytes,                                                             \
                                               encode_##name,                                                               \
                                               quant_scratch,                                                               \
                                               run_##name,                                                                  \
                                               0,                                                                           \
                                               NULL};
#include "kern/mm_quant.def"
#undef QUANT

const struct mm_path *ISA_SYM(mm_quant_path)(enum ggml_type type, int64_t n_col) {
    (void) n_col;
    switch (type) {
#define QUANT(ID, name, ...)                                                                                                \
    case GGML_TYPE_##ID:                                                                                                    \
        return &path_##name;
#include "kern/mm_quant.def"
#undef QUANT
        default: return NULL;
    }
}
#endif
