// BF16 weights in the tile registers: a tile of weights is 16 rows as they lie in memory, a tile of activations 16 columns, pair by
// pair side by side; the sums of all of k stay in tiles. A result is one chain over k, 32 values at a time, whatever else is in the
// tiles, so one column goes the same way as many. Compiled with level avx512bf16, used at avx512amx.
#include "kern/mm_int.h"

#if defined(ISA_IS_avx512bf16)
#include "kern/mm_amx.h"
#include "kern/mm_simd.h"

#include <string.h>

enum { L = MM_L, COLS = 16, DEPTH = 32, WORDS = DEPTH / 2 * COLS, ROWS = 4, FEW = 1 };

// C: +=; A: weights; B: activations.
#define TILE_BF16(c, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)

struct scratch {
    float sums[ROWS][L][COLS];
    uint16_t tail[ROWS][L][DEPTH];  // what is left of k behind the last whole step, zeros behind
    uint32_t columns[];             // two blocks, for columns that do not lie side by side
};

static int64_t steps_of(int64_t k) { return (k + DEPTH - 1) / DEPTH; }

static size_t act_bytes(int64_t k) { return (size_t) steps_of(k) * DEPTH * 2; }

static size_t scratch_bytes(const struct mm_job *j) {
    return sizeof(struct scratch) + 2 * (size_t) steps_of(j->k) * WORDS * sizeof(uint32_t);
}

// Word p of step i of a column is out[i * WORDS + p * COLS + lane].
static void encode_lane(const float *x, int64_t k, void *block, int lane) {
    uint32_t *out = (uint32_t *) block + lane;
    for (int64_t i = 0; i < k; i += DEPTH, out += WORDS) {
        float rest[DEPTH] = {0};
        const float *from = x + i;
        if (k - i < DEPTH) from = memcpy(rest, from, (size_t) (k - i) * sizeof *rest);
        uint32_t words[DEPTH / 2];
        const __m512bh h = _mm512_cvtne2ps_pbh(vf_load(from + L), vf_load(from));
        memcpy(words, &h, sizeof words);
        for (int p = 0; p < DEPTH / 2; p++) out[p * COLS] = words[p];
    }
}

// Tiles 0 and 1: weights; 2 and 3: activations; 4 to 7: sums.
AMX_INLINE void configure(int n_row) {
    struct tile_config t = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        t.rows[i] = (uint8_t) (i == 2 || i == 3 ? DEPTH / 2 : n_row);
        t.col_bytes[i] = 64;
    }
    tile_configure(&t);
}

// n_row rows from `row` on, `apart` rows apart, for each of several tiles.
struct weights {
    const uint8_t *at[ROWS];
    int64_t row[ROWS];
    size_t stride;  // bytes
    int64_t apart;
    int n_row;
};

INLINE void copy_tail(const struct mm_job *j, const struct weights *w, int n_tile, struct scratch *s) {
    const int64_t done = j->k / DEPTH * DEPTH;
    for (int t = 0; t < n_tile; t++) {
        for (int r = 0; r < w->n_row; r++) {
            memset(s->tail[t][r], 0, sizeof s->tail[t][r]);
            memcpy(s->tail[t][r], w->at[t] + (size_t) r * w->stride + 2 * (size_t) done, 2 * (size_t) (j->k - done));
        }
    }
}

// The products of R tiles of weights with one block of columns.
AMX_INLINE void times_one(int R, const struct mm_job *j, const struct weights *w, const uint32_t *x, struct scratch *s) {
    const int64_t whole = j->k / DEPTH;
    TILE_ZERO(4);
    if (R > 1) TILE_ZERO(5);
    if (R > 2) TILE_ZERO(6);
    if (R > 3) TILE_ZERO(7);
    for (int64_t i = 0; i < steps_of(j->k); i++, x += WORDS) {
        const bool in_place = i < whole;
        const size_t stride = in_place ? w->stride : DEPTH * 2, at = (size_t) i * DEPTH * 2;
        TILE_LOAD(2, x, 64);
        TILE_LOAD(0, in_place ? w->at[0] + at : (const uint8_t *) s->tail[0], stride);
        TILE_BF16(4, 0, 2);
        if (R < 2) continue;
        TILE_LOAD(1, in_place ? w->at[1] + at : (const uint8_t *) s->tail[1], stride);
        TILE_BF16(5, 1, 2);
        if (R < 3) continue;
        TILE_LOAD(0, in_place ? w->at[2] + at : (const uint8_t *) s->tail[2], stride);
        TILE_BF16(6, 0, 2);
        TILE_LOAD(1, in_place ? w->at[3] + at : (const uint8_t *) s->tail[3], stride);
        TILE_BF16(7, 1, 2);
    }
    TILE_STORE(4, s->sums[0], 64);
    if (R > 1) TILE_STORE(5, s->sums[1], 64);
    if (R > 2) TILE_STORE(6, s->sums[2], 64);
    if (R > 3) TILE_STORE(7, s->sums[3], 64);
}

// Those of two tiles of weights with two blocks of columns: sums 0 and 1 are the first block's.
AMX static void times_two(const struct mm_job *j, const struct weights *w, const uint32_t *x, const uint32_t *y,
                          struct scratch *s) {
    TILE_ZERO(4);
    TILE_ZERO(5);
    TILE_ZERO(6);
    TILE_ZERO(7);
    const int64_t whole = j->k / DEPTH;
    for (int64_t i = 0; i < steps_of(j->k); i++, x += WORDS, y += WORDS) {
        const bool in_place = i < whole;
        const size_t stride = in_place ? w->stride : DEPTH * 2, at = (size_t) i * DEPTH * 2;
        TILE_LOAD(2, x, 64);
        TILE_LOAD(0, in_place ? w->at[0] + at : (const uint8_t *) s->tail[0], stride);
        TILE_BF16(4, 0, 2);
        TILE_LOAD(1, in_place ? w->at[1] + at : (const uint8_t *) s->tail[1], stride);
        TILE_BF16(5, 1, 2);
        TILE_LOAD(3, y, 64);
        TILE_BF16(6, 0, 3);
        TILE_BF16(7, 1, 3);
    }
    TILE_STORE(4, s->sums[0], 64);
    TILE_STORE(5, s->sums[1], 64);
    TILE_STORE(6, s->sums[2], 64);
    TILE_STORE(7, s->sums[3], 64);
}

// Columns of a job that are lanes of one block: `n` from c0 on.
struct block {
    const uint32_t *x;
    int64_t c0;
    int lane, n;
};

// copy: where they are put if they lie apart.
static struct block block_at(const struct mm_job *j, int64_t c0, uint32_t *copy) {
    struct block b = {copy, c0, 0, COLS};
    const int64_t first = j->col0 + c0, left = j->n_col - c0;
    if (!j->act_idx) {
        b.lane = (int) (first % COLS);
        b.x = (const void *) (j->act + (size_t) (first - b.lane) * j->act_stride);
        b.n = COLS - b.lane;
    }
    if (left < b.n) b.n = (int) left;
    for (int c = 0; j->act_idx && c < b.n; c++) {
        const int64_t column = j->act_idx[c0 + c], lane = column % COLS;
        const uint32_t *from = (const void *) (j->act + (size_t) (column - lane) * j->act_stride);
        for (int64_t i = 0; i < steps_of(j->k) * (DEPTH / 2); i++) copy[i * COLS + c] = from[i * COLS + lane];
    }
    return b;
}

// Results of the t-th tile of rows, which lie in sums row by row.
INLINE void store(const struct mm_job *j, const struct weights *w, int t, float (*sums)[COLS], const struct block *b) {
    if (w->apart == 1) {
        const struct rows rows = rows_at((const uint8_t *) sums, sizeof sums[0]);
        for (int q = 0; q < COLS; q += 4) {
            if (q + 4 <= b->lane || q >= b->lane + b->n) continue;
            vi v[4];
            load_words(&rows, 4 * (size_t) q, v);
            UNROLL for (int o = 0; o < 4; o++) {
                const int c = q + o - b->lane;
                if (c >= 0 && c < b->n)
                    vf_store_span(mm_job_result(j, b->c0 + c) + w->row[t], vf_from_bits(v[o]), 0, w->n_row);
            }
        }
        return;
    }
    for (int c = 0; c < b->n; c++) {
        float *y = mm_job_result(j, b->c0 + c) + w->row[t];
        for (int r = 0; r < w->n_row; r++) y[r * w->apart] = sums[r][b->lane + c];
    }
}

INLINE struct weights weights_at(const struct mm_job *j, int64_t row, int n_row, int64_t apart, int64_t next, int n_tile) {
    struct weights w = {.stride = (size_t) apart * j->a_stride, .apart = apart, .n_row = n_row};
    for (int t = 0; t < ROWS; t++) {
        w.row[t] = t < n_tile ? row + t * next : row;
        w.at[t] = j->a + (size_t) w.row[t] * j->a_stride;
    }
    return w;
}

// Rows that are left over, or a job of fewer than a tile has: n_row at a time, times every block.
AMX static void run_rows(const struct mm_job *j, int64_t row, int n_row, struct scratch *s) {
    configure(n_row);
    const struct weights w = weights_at(j, row, n_row, 1, 0, 1);
    if (j->k % DEPTH) copy_tail(j, &w, ROWS, s);
    struct block b;
    for (int64_t c0 = 0; c0 < j->n_col; c0 += b.n) {
        b = block_at(j, c0, s->columns);
        times_one(1, j, &w, b.x, s);
        store(j, &w, 0, s->sums[0], &b);
    }
}

// One block: the range is cut into runs, and the rows of a tile come from as many: long streams, which the processor reads ahead.
AMX static void run_few(const struct mm_job *j, struct scratch *s) {
    const struct block b = block_at(j, 0, s->columns);
    const int64_t run = (j->row1 - j->row0) / L;
    if (run > 0) configure(L);
    for (int64_t i = 0; i < run; i += FEW) {
        const int n_tile = run - i < FEW ? (int) (run - i) : FEW;
        const struct weights w = weights_at(j, j->row0 + i, L, run, 1, n_tile);
        if (j->k % DEPTH) copy_tail(j, &w, ROWS, s);
        times_one(FEW, j, &w, b.x, s);
        for (int t = 0; t < n_tile; t++) store(j, &w, t, s->sums[t], &b);
    }
    if (j->row0 + run * L < j->row1) run_rows(j, j->row0 + run * L, (int) (j->row1 - j->row0 - run * L), s);
}

// Two blocks at a time stay in the second-level cache while the rows of the range pass by, and so do these from the second time on.
AMX static void run_many(const struct mm_job *j, struct scratch *s) {
    const int64_t n_row = j->row1 - j->row0, whole = n_row / L * L;
    struct block b[2];
    if (whole > 0) configure(L);
    for (int64_t c0 = 0; c0 < j->n_col && whole > 0; c0 += b[0].n + b[1].n) {
        b[0] = block_at(j, c0, s->columns);
        const bool two = c0 + b[0].n < j->n_col;
        b[1] = two ? block_at(j, c0 + b[0].n, s->columns + steps_of(j->k) * WORDS) : (struct block){b[0].x, 0, 0, 0};
        for (int64_t i = 0; i < whole; i += two ? 2 * L : ROWS * L) {
            const int most = two ? 2 : ROWS, n_tile = (whole - i) / L < most ? (int) ((whole - i) / L) : most;
            const struct weights w = weights_at(j, j->row0 + i, L, 1, L, n_tile);
            if (j->k % DEPTH) copy_tail(j, &w, ROWS, s);
            if (two)
                times_two(j, &w, b[0].x, b[1].x, s);
            else
                times_one(ROWS, j, &w, b[0].x, s);
            for (int t = 0; t < n_tile; t++) store(j, &w, t, s->sums[t], &b[0]);
            for (int t = 0; two && t < n_tile; t++) store(j, &w, t, s->sums[2 + t], &b[1]);
        }
    }
    if (whole < n_row) run_rows(j, j->row0 + whole, (int) (n_row - whole), s);
}

AMX static void run(const struct mm_job *j) {
    const int64_t lane = j->act_idx ? 0 : j->col0 % COLS;
    if (lane + j->n_col <= COLS)
        run_few(j, j->scratch);
    else
        run_many(j, j->scratch);
    tile_release();
}

const struct mm_path mm_path_amx_bf16 = {.form = MM_BF16_BLOCKS,
                                         .row_step = L,
                                         .act_bytes = act_bytes,
                                         .scratch = scratch_bytes,
                                         .run = run,
                                         .block = COLS,
                                         .encode_lane = encode_lane};
#endif
