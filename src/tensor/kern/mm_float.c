// Products with float activations: weights in F32, F16, BF16, and any type that can be decoded, when the activations must not
// be rounded. Two paths give the same bits:
//   dot    few columns: rows and columns are read as they lie, L words of k at a time, one lane per word;
//   lanes  many columns: L rows are transposed so that a lane is a row, and lane j's words of the dot path become the j-th
//          run of consecutive words. Each run is summed in registers; the runs are added as the dot path adds its lanes.
#include "kern/mm_int.h"

#if defined(ISA_IS_avx512vnni)
// Nothing of this gains from VNNI: the level below serves.
const struct mm_path *mm_float_path_avx512(enum ggml_type type, int64_t n_col, bool exact);
const struct mm_path *ISA_SYM(mm_float_path)(enum ggml_type type, int64_t n_col, bool exact) {
    return mm_float_path_avx512(type, n_col, exact);
}
#elif !defined(ISA_IS_scalar)
#include "kern/mm_simd.h"
#include "base/half.h"
#include "type/type.h"

#include "ggml.h"

// How words are made of a row. DECODE: through the type's decoder, to F32.
enum kind { KIND_F32, KIND_F16, KIND_BF16, KIND_BF16_PAIR, KIND_DECODE };

enum {
    L = MM_L,
#if MM_L == 16
    PANEL = 3,    // vectors of rows in a tile of the lanes path: 3 x 8 sums, 11 loads for 24 multiplications
#else
    PANEL = 2,
#endif
    STAGE = 256,  // words staged at a time
    STAGE_STRIDE = STAGE + 16,
    PANELS = 2,  // panels packed at a time
    PANEL_WORDS = (MM_PIECE * PANEL + L) * L,
#if MM_L == 16
    COLS = 8,
#elif MM_L == 8
    COLS = 6,
#else
    COLS = 8,
#endif
};

INLINE int64_t words_of(int kind, int64_t k) { return kind == KIND_BF16_PAIR ? (k + 1) / 2 : k; }
INLINE int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Bytes of n words of a row; DECODE has none.
INLINE size_t word_bytes(int kind, int64_t n) { return (size_t) n * (kind == KIND_F16 || kind == KIND_BF16 ? 2 : 4); }

INLINE vf step(int kind, vf w, vf x, vf acc) {
#ifdef __AVX512BF16__
    if (kind == KIND_BF16_PAIR) return _mm512_dpbf16_ps(acc, (__m512bh) w, (__m512bh) x);
#endif
    (void) kind;
    return vf_fma(w, x, acc);
}

INLINE vf word_load(int kind, const uint8_t *p) {
    if (kind == KIND_F16) return vf_load_f16((const uint16_t *) p);
    if (kind == KIND_BF16) return vf_load_bf16((const uint16_t *) p);
    return vf_load((const float *) p);
}

// ---- dot ------------------------------------------------------------------------------------------------------------

// The lanes of each of eight vectors, added in pairs of neighbours, these in pairs, and so on.
#if MM_L >= 8
#if MM_L == 16
#define SHUFFLE _mm512_shuffle_ps
#else
#define SHUFFLE _mm256_shuffle_ps
#endif
INLINE vf pairs(vf a, vf b) { return vf_add(SHUFFLE(a, b, 0x88), SHUFFLE(a, b, 0xdd)); }
#else
INLINE vf pairs(vf a, vf b) { return vpaddq_f32(a, b); }
#endif

INLINE void fold_8(const vf v[8], float sum[8]) {
    const vf a = pairs(pairs(v[0], v[1]), pairs(v[2], v[3])), b = pairs(pairs(v[4], v[5]), pairs(v[6], v[7]));
#if MM_L == 16
    const vf c = vf_add(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
    const vf d = vf_add(_mm512_shuffle_f32x4(c, c, 0x08), _mm512_shuffle_f32x4(c, c, 0x0d));
    _mm256_storeu_ps(sum, _mm512_castps512_ps256(d));
#elif MM_L == 8
    _mm256_storeu_ps(sum, vf_add(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31)));
#else
    vst1q_f32(sum, a);
    vst1q_f32(sum + 4, b);
#endif
}

// Adds one piece of R rows times C columns to total[r * C + c]. n: elements of k in the piece.
INLINE void dot_piece(int kind, int R, int C, const uint8_t *const *w, const uint8_t *const *x, int64_t n, float *total) {
    const int64_t n_word = words_of(kind, n), full = kind == KIND_BF16_PAIR ? n / 2 / L * L : n / L * L;
    vf acc[8][4];
    UNROLL for (int r = 0; r < R; r++) { UNROLL for (int c = 0; c < C; c++) acc[r][c] = vf_zero(); }
    for (int64_t i = 0; i < full; i += L) {
        vf xc[4];
        UNROLL for (int c = 0; c < C; c++) xc[c] = vf_load((const float *) (x[c] + 4 * i));
        UNROLL for (int r = 0; r < R; r++) {
            const vf wr = word_load(kind, w[r] + word_bytes(kind, i));
            UNROLL for (int c = 0; c < C; c++) acc[r][c] = step(kind, wr, xc[c], acc[r][c]);
        }
    }
    if (full < n_word) {
        const size_t width = kind == KIND_F32 || kind == KIND_DECODE ? 4 : 2;  // bytes of one element
        const int64_t done = kind == KIND_BF16_PAIR ? 2 * full : full;
        const size_t w_bytes = (size_t) (n - done) * width, x_bytes = (size_t) (n - done) * (kind == KIND_BF16_PAIR ? 2 : 4);
        vf xc[4];
        UNROLL for (int c = 0; c < C; c++) {
            float t[L] = {0};
            memcpy(t, x[c] + 4 * full, x_bytes);
            xc[c] = vf_load(t);
        }
        UNROLL for (int r = 0; r < R; r++) {
            float t[L] = {0};
            memcpy(t, w[r] + word_bytes(kind, full), w_bytes);
            const vf wr = word_load(kind, (const uint8_t *) t);
            UNROLL for (int c = 0; c < C; c++) acc[r][c] = step(kind, wr, xc[c], acc[r][c]);
        }
    }
    vf flat[16];
    UNROLL for (int i = 0; i < (R * C + 7) / 8 * 8; i++) flat[i] = i < R * C ? acc[i / C][i % C] : vf_zero();
    UNROLL for (int i = 0; i < R * C; i += 8) {
        float sum[8];
        fold_8(flat + i, sum);
        UNROLL for (int q = 0; q < 8; q++) {
            if (i + q < R * C) total[i + q] += sum[q];
        }
    }
}

INLINE int64_t piece_elements(int kind) { return kind == KIND_BF16_PAIR ? 2 * MM_PIECE : MM_PIECE; }

// R rows, `apart` rows apart, from `row` (those past the range repeat the last one) times C columns from `col`.
INLINE void dot_tile(int kind, int R, int C, const struct mm_job *j, const struct type *type, int64_t row, int64_t apart,
                     int64_t col) {
    float total[8 * 4] = {0};
    const uint8_t *w[8], *wp[8], *x[4], *xp[4];
    UNROLL for (int r = 0; r < R; r++) {
        const int64_t i = row + r * apart;
        w[r] = j->a + (size_t) (i < j->row1 ? i : j->row1 - 1) * j->a_stride;
    }
    UNROLL for (int c = 0; c < C; c++) x[c] = mm_job_column(j, col + c);
    for (int64_t k = 0; k < j->k; k += piece_elements(kind)) {
        const int64_t n = j->k - k < piece_elements(kind) ? j->k - k : piece_elements(kind);
        UNROLL for (int c = 0; c < C; c++) xp[c] = x[c] + 4 * words_of(kind, k);
        UNROLL for (int r = 0; r < R; r++) {
            if (kind == KIND_DECODE) {
                float *t = (float *) j->scratch + (size_t) r * (MM_PIECE + 16);
                type->decode(w[r] + (size_t) (k / type->block) * type->size, t, n);
                wp[r] = (const uint8_t *) t;
            } else {
                wp[r] = w[r] + word_bytes(kind, words_of(kind, k));
            }
        }
        dot_piece(kind, R, C, wp, xp, n, total);
    }
    for (int c = 0; c < C; c++) {
        float *y = mm_job_result(j, col + c);
        for (int r = 0; r < R && row + r * apart < j->row1; r++) y[row + r * apart] = total[r * C + c];
    }
}

// The range is cut into R runs, and a tile takes a row of each: R long streams, which the processor reads ahead.
INLINE void dot_rows(int kind, int R, int C, const struct mm_job *j, const struct type *type, int64_t col) {
    const int64_t run = (j->row1 - j->row0) / R;
    for (int64_t i = 0; i < run; i++) dot_tile(kind, R, C, j, type, j->row0 + i, run, col);
    if (j->row0 + run * R < j->row1) dot_tile(kind, R, C, j, type, j->row0 + run * R, 1, col);
}

INLINE void dot_run(int kind, const struct mm_job *j) {
    const struct type *type = kind == KIND_DECODE ? type_get(j->type) : NULL;
    for (int64_t col = 0; col < j->n_col;) {
        const int64_t left = j->n_col - col;
        const int n = kind == KIND_DECODE ? 1 : left > 4 ? (left == 5 ? 3 : 4) : (int) left;
        if (n == 1)
            dot_rows(kind, 8, 1, j, type, col);
        else if (n == 2)
            dot_rows(kind, 4, 2, j, type, col);
        else if (n == 3)
            dot_rows(kind, 4, 3, j, type, col);
        else
            dot_rows(kind, 4, 4, j, type, col);
        col += n;
    }
}

static size_t dot_scratch(const struct mm_job *j) {
    (void) j;
    return 8 * (MM_PIECE + 16) * sizeof(float);
}

// ---- lanes ----------------------------------------------------------------------------------------------------------

// Words word .. word + n of row r as L-word multiples, zeros behind.
INLINE void stage(int kind, const struct mm_job *j, const struct type *type, int64_t r, int64_t word, int64_t n,
                  float *out) {
    const uint8_t *w = j->a + (size_t) r * j->a_stride;
    const int64_t padded = round_up(n, L);
    if (kind == KIND_DECODE) {
        type->decode(w + (size_t) (word / type->block) * type->size, out, n);
        for (int64_t i = n; i < padded; i++) out[i] = 0;
        return;
    }
    const uint8_t *p = w + word_bytes(kind, word);
    if (kind == KIND_BF16_PAIR) {
        const int64_t there = j->k - 2 * word < 2 * n ? j->k - 2 * word : 2 * n;
        memset(out, 0, (size_t) padded * 4);
        memcpy(out, p, (size_t) there * 2);
        return;
    }
    const int64_t full = n / L * L;
    for (int64_t i = 0; i < full; i += L) vf_store(out + i, word_load(kind, p + word_bytes(kind, i)));
    if (full < n) {
        float t[L] = {0};
        memcpy(t, p + word_bytes(kind, full), word_bytes(kind, n - full));
        vf_store(out + full, word_load(kind, (const uint8_t *) t));
    }
}

// Runs lie a line further apart than they are long, so that writing one word of each does not meet in one set of the cache.
INLINE int64_t run_apart(int64_t ni, int64_t width) { return ni * width + L; }

// L rows from lo, n_word words from `word`, into runs: word i * L + q of row r goes to panel[q * run_apart + i * width + r].
INLINE void pack(int kind, const struct mm_job *j, const struct type *type, int64_t lo, int64_t word, int64_t n_word,
                 int width, float *tmp, float *panel) {
    const int64_t ni = (n_word + L - 1) / L;
    const bool in_place = (kind == KIND_F32 || kind == KIND_BF16_PAIR) && lo + L <= j->n_row;
    for (int64_t at = 0; at < n_word; at += STAGE) {
        const int64_t n = n_word - at < STAGE ? n_word - at : STAGE;
        const bool whole = kind == KIND_BF16_PAIR ? 2 * (word + at + n) <= j->k : true;
        const uint8_t *src = j->a + (size_t) lo * j->a_stride + word_bytes(kind, word + at);
        size_t stride = j->a_stride;
        if (!in_place || n % L || !whole) {
            for (int r = 0; r < L; r++) {
                stage(kind, j, type, lo + r < j->n_row ? lo + r : j->n_row - 1, word + at, n, tmp + r * STAGE_STRIDE);
            }
            src = (const uint8_t *) tmp;
            stride = STAGE_STRIDE * sizeof(float);
        }
        struct rows rows = rows_at(src, stride);
        for (int64_t i = 0; i < n; i += L) {
            float *to = panel + ((at + i) / L) * width;
            UNROLL for (int q = 0; q < L; q += 4) {
                vi t[4];
                load_words(&rows, 4 * (size_t) q, t);
                UNROLL for (int o = 0; o < 4; o++) vi_store(to + (q + o) * run_apart(ni, width), t[o]);
            }
            rows_advance(&rows, 4 * L);
        }
    }
}

// total[c * PANEL * L + r] += rows of the panel times column c, run by run.
INLINE void lanes_tile(int kind, int R, int C, const float *panel, int64_t ni, const float *const *x, float *total) {
    _Alignas(64) float saved[4][8 * PANEL][L];
    for (int64_t run = 0; run < L; run++) {
        vf acc[3][8];
        UNROLL for (int r = 0; r < R; r++) { UNROLL for (int c = 0; c < C; c++) acc[r][c] = vf_zero(); }
        const float *p = panel + run * run_apart(ni, R * L);
        for (int64_t i = 0; i < ni; i++) {
            vf w[3];
            UNROLL for (int r = 0; r < R; r++) w[r] = vf_load(p + (i * R + r) * L);
            UNROLL for (int c = 0; c < C; c++) {
                const vf b = vf_bcast(x[c] + run * ni + i);
                UNROLL for (int r = 0; r < R; r++) acc[r][c] = step(kind, w[r], b, acc[r][c]);
            }
        }
        // Binary counting: a run joins the sums of as many runs before it as there are trailing ones in its number.
        int level = 0;
        for (; run >> level & 1; level++) {
            UNROLL for (int r = 0; r < R; r++) {
                UNROLL for (int c = 0; c < C; c++) acc[r][c] = vf_add(vf_load(saved[level][c * PANEL + r]), acc[r][c]);
            }
        }
        UNROLL for (int r = 0; r < R; r++) {
            UNROLL for (int c = 0; c < C; c++) {
                float *t = run == L - 1 ? total + (c * PANEL + r) * L : saved[level][c * PANEL + r];
                vf_store(t, run == L - 1 ? vf_add(vf_load(t), acc[r][c]) : acc[r][c]);
            }
        }
    }
}

#define TILE(op, kind, R, C)                                                                                                \
    static void tile_##op##_##R##_##C(const float *panel, int64_t ni, const float *const *x, float *total) {                \
        lanes_tile(kind, R, C, panel, ni, x, total);                                                                        \
    }
#define TILES_OF(op, kind, R)                                                                                               \
    TILE(op, kind, R, 1)                                                                                                    \
    TILE(op, kind, R, 2)                                                                                                    \
    TILE(op, kind, R, 3)                                                                                                    \
    TILE(op, kind, R, 4) TILE(op, kind, R, 5) TILE(op, kind, R, 6) TILE(op, kind, R, 7) TILE(op, kind, R, 8)
#define ROW_OF(op, R)                                                                                                       \
    {                                                                                                                       \
        0, tile_##op##_##R##_1, tile_##op##_##R##_2, tile_##op##_##R##_3, tile_##op##_##R##_4, tile_##op##_##R##_5,         \
            tile_##op##_##R##_6, tile_##op##_##R##_7, tile_##op##_##R##_8                                                   \
    }

typedef void tile_fn(const float *panel, int64_t ni, const float *const *x, float *total);

#ifndef __AVX512BF16__
TILES_OF(fma, KIND_F32, 1)
TILES_OF(fma, KIND_F32, 2)
#if MM_L == 16
TILES_OF(fma, KIND_F32, 3)
static tile_fn *const tiles_fma[PANEL][9] = {ROW_OF(fma, 1), ROW_OF(fma, 2), ROW_OF(fma, 3)};
#else
static tile_fn *const tiles_fma[PANEL][9] = {ROW_OF(fma, 1), ROW_OF(fma, 2)};
#endif
#else  // only products of BF16 gain from what this level has: the level below serves the others
TILES_OF(dp, KIND_BF16_PAIR, 1)
TILES_OF(dp, KIND_BF16_PAIR, 2)
TILES_OF(dp, KIND_BF16_PAIR, 3)
static tile_fn *const tiles_dp[PANEL][9] = {ROW_OF(dp, 1), ROW_OF(dp, 2), ROW_OF(dp, 3)};
#endif

// A panel: up to PANEL vectors of rows, packed. lo[r]: first row of vector r, of which lanes from[r] to to[r] are wanted.
struct panel {
    int R;
    int64_t lo[PANEL];
    int from[PANEL], to[PANEL];
};

static void panel_init(struct panel *p, const struct mm_job *j, int64_t row) {
    p->R = j->row1 - row > (PANEL - 1) * L ? PANEL : (int) ((j->row1 - row + L - 1) / L);
    for (int r = 0; r < p->R; r++) {
        const int64_t first = row + r * L;
        p->lo[r] = first + L <= j->row1 ? first : (j->row1 > L ? j->row1 - L : 0);
        p->from[r] = (int) (first - p->lo[r]);
        p->to[r] = (int) (j->row1 - p->lo[r] < L ? j->row1 - p->lo[r] : L);
    }
}

// Results between pieces of k are in dst, too far apart to be there when they are wanted: they are asked for before the tile is begun.
static void tile_times(const struct mm_job *j, tile_fn *const (*tiles)[9], const struct panel *p, const float *packed,
                       int64_t c0, int C, const float *const *x, bool first, int64_t ni) {
    _Alignas(64) float total[8 * PANEL * L];
    for (int c = 0; c < C; c++) {
        const float *y = mm_job_result(j, c0 + c);
        for (int r = 0; r < p->R; r++) {
            __builtin_prefetch(y + p->lo[r], 1);
            vf_store(total + (c * PANEL + r) * L, vf_zero());
        }
    }
    tiles[p->R - 1][C](packed, ni, x, total);
    for (int c = 0; c < C; c++) {
        float *y = mm_job_result(j, c0 + c);
        for (int r = 0; r < p->R; r++) {
            const vf sum = vf_load(total + (c * PANEL + r) * L);
            const vf all = first ? sum : vf_add(vf_load_span(y + p->lo[r], p->from[r], p->to[r]), sum);
            vf_store_span(y + p->lo[r], all, p->from[r], p->to[r]);
        }
    }
}

// Lines of rows that will be packed next, asked for a few at a time while the ones before are multiplied.
struct lines {
    const uint8_t *row;
    size_t stride, bytes, at;
    int64_t n_row;
};

// The piece of n words from `word` of rows that start at `row`, up to those of all panels.
INLINE struct lines lines_of(int kind, const struct mm_job *j, int64_t row, int64_t word, int64_t n) {
    const int64_t left = j->row1 - row, all = PANELS * PANEL * L;
    return (struct lines){.row = j->a + (size_t) row * j->a_stride + word_bytes(kind, word),
                          .stride = j->a_stride,
                          .bytes = word_bytes(kind, n),
                          .n_row = kind == KIND_DECODE || left < 0 ? 0
                                   : left < all                    ? left
                                                                   : all};
}

INLINE void ask_lines(struct lines *a, int64_t n) {
    for (; n > 0 && a->n_row > 0; n--) {
        __builtin_prefetch(a->row + a->at, 0, 2);
        a->at += 64;
        if (a->at < a->bytes) continue;
        a->at = 0, a->row += a->stride, a->n_row--;
    }
}

// Rows of up to PANELS panels at a time are packed for one piece of k and stay in the second-level cache while all columns pass
// by; a tile of columns stays in the first while the panels pass by.
INLINE void lanes_run(int kind, const struct mm_job *j, tile_fn *const (*tiles)[9]) {
    const struct type *type = kind == KIND_DECODE ? type_get(j->type) : NULL;
    float *packed = j->scratch, *tmp = packed + (size_t) PANELS * PANEL_WORDS;
    const int64_t n_word = words_of(kind, j->k), n_tile = (j->n_col + COLS - 1) / COLS;
    if (n_tile < 1) return;
    for (int64_t row = j->row0; row < j->row1; row += PANELS * PANEL * L) {
        const int64_t left = (j->row1 - row + PANEL * L - 1) / (PANEL * L);
        const int n_panel = left < PANELS ? (int) left : PANELS;
        struct panel panels[PANELS];
        for (int i = 0; i < n_panel; i++) panel_init(panels + i, j, row + i * PANEL * L);
        for (int64_t word = 0; word < n_word; word += MM_PIECE) {
            const int64_t n = n_word - word < MM_PIECE ? n_word - word : MM_PIECE, ni = (n + L - 1) / L;
            for (int i = 0; i < n_panel; i++) {
                const struct panel *p = panels + i;
                for (int r = 0; r < p->R; r++)
                    pack(kind, j, type, p->lo[r], word, n, p->R * L, tmp, packed + i * PANEL_WORDS + r * L);
            }
            const bool last = word + MM_PIECE >= n_word;
            const int64_t next = last ? 0 : word + MM_PIECE, n_next = n_word - next < MM_PIECE ? n_word - next : MM_PIECE;
            struct lines ahead = lines_of(kind, j, last ? row + PANELS * PANEL * L : row, next, n_next);
            const int64_t n_ask = ahead.n_row * (int64_t) (ahead.bytes / 64 + 1) / n_tile + 1;
            for (int64_t t = 0; t < n_tile; t++) {
                const int64_t c0 = j->n_col * t / n_tile;
                const int C = (int) (j->n_col * (t + 1) / n_tile - c0);
                ask_lines(&ahead, n_ask);
                const float *x[8];
                for (int c = 0; c < C; c++) x[c] = (const float *) mm_job_column(j, c0 + c) + word;
                for (int i = 0; i < n_panel; i++)
                    tile_times(j, tiles, panels + i, packed + i * PANEL_WORDS, c0, C, x, word == 0, ni);
            }
        }
    }
}

static size_t lanes_scratch(const struct mm_job *j) {
    (void) j;
    return ((size_t) PANELS * PANEL_WORDS + L * STAGE_STRIDE) * sizeof(float);
}

// ---- activations ----------------------------------------------------------------------------------------------------

// Columns start at odd multiples of 64 bytes, so that equal places of neighbours do not meet in one set of the cache.
INLINE size_t spread(size_t bytes) { return (bytes / 64 + 1) / 2 * 128 + 64; }

// Words of each piece in the order of runs.
static void lanes_order(const uint32_t *x, int64_t n_word, uint32_t *out) {
    for (int64_t word = 0; word < n_word; word += MM_PIECE) {
        const int64_t n = n_word - word < MM_PIECE ? n_word - word : MM_PIECE, ni = (n + L - 1) / L;
        for (int64_t i = 0; i < ni; i++) {
            for (int q = 0; q < L; q++) out[word + q * ni + i] = i * L + q < n ? x[word + i * L + q] : 0;
        }
    }
}

#ifndef __AVX512BF16__
static size_t f32_bytes(int64_t k) { return (size_t) k * 4; }
static void f32_encode(const float *x, int64_t k, void *act) { memcpy(act, x, (size_t) k * 4); }
static size_t lanes_bytes(int64_t k) { return spread((size_t) round_up(k, L) * 4); }
static void lanes_encode(const float *x, int64_t k, void *act) { lanes_order((const uint32_t *) x, k, act); }
#else
static void pairs_encode(const float *x, int64_t k, uint16_t *out) {
    int64_t i = 0;
    for (; i + L <= k; i += L) {
        const __m256bh h = _mm512_cvtneps_pbh(vf_load(x + i));
        memcpy(out + i, &h, sizeof h);
    }
    for (; i < k; i++) {
        const __m256bh h = _mm512_cvtneps_pbh(_mm512_set1_ps(x[i]));
        memcpy(out + i, &h, 2);
    }
    if (k % 2) out[k] = 0;
}

static size_t pairs_bytes(int64_t k) { return (size_t) (k + 1) / 2 * 4; }
static void bf16_encode(const float *x, int64_t k, void *act) { pairs_encode(x, k, act); }
static size_t bf16_lanes_bytes(int64_t k) { return spread((size_t) round_up((k + 1) / 2, L) * 4); }
static void bf16_lanes_encode(const float *x, int64_t k, void *act) {
    enum { WORDS = MM_PIECE };
    uint32_t t[WORDS];
    const int64_t n_word = (k + 1) / 2;
    for (int64_t word = 0; word < n_word; word += WORDS) {
        const int64_t n = k - 2 * word < 2 * WORDS ? k - 2 * word : 2 * WORDS;
        pairs_encode(x + 2 * word, n, (uint16_t *) t);
        lanes_order(t, (n + 1) / 2, (uint32_t *) act + word);
    }
}
#endif

// ---- paths ----------------------------------------------------------------------------------------------------------

#define PATHS(name, kind, act, table)                                                                                       \
    static void name##_dot(const struct mm_job *j) { dot_run(kind, j); }                                                    \
    static void name##_lanes(const struct mm_job *j) { lanes_run(kind, j, table); }                                         \
    static const struct mm_path path_##name##_dot = {                                                                       \
        MM_F32, 8, 0, f32_bytes, f32_encode, dot_scratch, name##_dot, 0, NULL};                                             \
    static const struct mm_path path_##name##_lanes = {MM_F32_LANES,  PANEL * L,    0, lanes_bytes, lanes_encode,           \
                                                       lanes_scratch, name##_lanes, 0, NULL};

#ifndef __AVX512BF16__
PATHS(f32, KIND_F32, f32, tiles_fma)
PATHS(f16, KIND_F16, f32, tiles_fma)
PATHS(bf16, KIND_BF16, f32, tiles_fma)
PATHS(decode, KIND_DECODE, f32, tiles_fma)
#else
static void pair_dot(const struct mm_job *j) { dot_run(KIND_BF16_PAIR, j); }
static void pair_lanes(const struct mm_job *j) { lanes_run(KIND_BF16_PAIR, j, tiles_dp); }
static const struct mm_path path_pair_dot = {MM_BF16, 8, 0, pairs_bytes, bf16_encode, dot_scratch, pair_dot, 0, NULL};
static const struct mm_path path_pair_lanes = {
    MM_BF16_LANES, PANEL *L, 0, bf16_lanes_bytes, bf16_lanes_encode, lanes_scratch, pair_lanes, 0, NULL};
#endif

enum { FEW = 4 };  // columns up to which the dot path wins; where weights are decoded for each column anew, one

#ifdef __AVX512BF16__
const struct mm_path *mm_float_path_avx512(enum ggml_type type, int64_t n_col, bool exact);
const struct mm_path *ISA_SYM(mm_float_path)(enum ggml_type type, int64_t n_col, bool exact) {
    if (type != GGML_TYPE_BF16 || exact) return mm_float_path_avx512(type, n_col, exact);
    return n_col <= FEW ? &path_pair_dot : &path_pair_lanes;
}
#else
const struct mm_path *ISA_SYM(mm_float_path)(enum ggml_type type, int64_t n_col, bool exact) {
    const bool few = n_col <= FEW;
    (void) exact;
    switch (type) {
        case GGML_TYPE_F32: return few ? &path_f32_dot : &path_f32_lanes;
        case GGML_TYPE_F16: return few ? &path_f16_dot : &path_f16_lanes;
        case GGML_TYPE_BF16: return few ? &path_bf16_dot : &path_bf16_lanes;
        default: return n_col <= 1 ? &path_decode_dot : &path_decode_lanes;
    }
}
#endif
#endif
