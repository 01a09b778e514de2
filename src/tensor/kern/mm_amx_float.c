// Float weights in the tile registers. A value is a sum of BF16 parts: a BF16 value is one, F16 are two and F32 three, exactly;
// activations are rounded to as many. The products of parts that count are added in one order, of 32 values of k at a time, in tiles that
// hold the sums of all of k for 16 rows and 16 columns. A result is one chain over k, whatever else is in the tiles, so one column goes
// the same way as many. Compiled with level avx512bf16, used at avx512amx.
#include "kern/mm_int.h"

#if defined(ISA_IS_avx512bf16)
#include "base/half.h"
#include "kern/mm_amx.h"
#include "kern/mm_simd.h"

#include <math.h>
#include <string.h>

enum { L = MM_L, COLS = 16, DEPTH = 32, WORDS = DEPTH / 2 * COLS, PANEL_BYTES = 1 << 20, TILES = 8, RING = 8 };

struct part {  // of the values of 16 rows, 32 of k
    uint16_t v[L][DEPTH];
};

// Behind it two blocks of columns, for those that do not lie side by side, then tiles of weights.
struct scratch {
    float sums[4][L][COLS];
    uint32_t columns[];
};

static int64_t steps_of(int64_t k) { return (k + DEPTH - 1) / DEPTH; }

INLINE int parts_of(enum ggml_type type) { return type == GGML_TYPE_BF16 ? 1 : type == GGML_TYPE_F16 ? 2 : 3; }

INLINE int64_t column_words(const struct mm_job *j) { return 2 * steps_of(j->k) * parts_of(j->type) * WORDS; }

INLINE struct part *tiles_of(const struct mm_job *j) {
    return (struct part *) (void *) (((struct scratch *) j->scratch)->columns + column_words(j));
}

static size_t least_bytes(const struct mm_job *j) {
    return sizeof(struct scratch) + (size_t) column_words(j) * sizeof(uint32_t) +
           sizeof(struct part) * RING * (size_t) parts_of(j->type);
}

// A tile of whole rows; not 0 where they are empty.
INLINE size_t tile_bytes(const struct mm_job *j) {
    return sizeof(struct part) * (size_t) (parts_of(j->type) * (steps_of(j->k) + !j->k));
}

// For many columns some tiles of rows are unpacked whole: an even number that stays in the second-level cache.
static size_t scratch_bytes(const struct mm_job *j) {
    const size_t tile = tile_bytes(j), n = PANEL_BYTES / tile / 2 * 2;
    return least_bytes(j) + (j->n_col > COLS ? tile * (n < 2 ? 2 : n < TILES ? n : TILES) : 0);
}

// ---- parts ----------------------------------------------------------------------------------------------------------

// The largest part: what BF16 can hold, the rest cut off.
INLINE vf head(vf x) { return vf_from_bits(vi_and(vf_bits(x), vi_set1(-0x10000))); }

// Pairs of BF16: the upper halves of a, and those of b.
INLINE vi pairs(vf a, vf b) { return vi_or(sr(vf_bits(a), 16), vi_and(vf_bits(b), vi_set1(-0x10000))); }

// 32 values of a row. Part p is at out[p]: values i and i + 16 side by side, but as they lie where they have one part.
INLINE void unpack_step(int P, const uint8_t *x, struct part *out, int r) {
    if (P == 1) {
        memcpy(out[0].v[r], x, DEPTH * 2);
        return;
    }
    vf a = P == 2 ? vf_load_f16((const uint16_t *) (const void *) x) : vf_load((const float *) (const void *) x);
    vf b = P == 2 ? vf_load_f16((const uint16_t *) (const void *) x + L) : vf_load((const float *) (const void *) x + L);
    UNROLL for (int p = 0; p < P - 1; p++) {
        vi_store(out[p].v[r], pairs(a, b));
        a = vf_sub(a, head(a));
        b = vf_sub(b, head(b));
    }
    vi_store(out[P - 1].v[r], pairs(a, b));
}

// The same where n <= 32 values are there.
INLINE void unpack_values(int P, const uint8_t *x, int64_t n, struct part *out, int r) {
    if (n >= DEPTH) {
        unpack_step(P, x, out, r);
        return;
    }
    uint8_t rest[DEPTH * 4] = {0};
    unpack_step(P, memcpy(rest, x, (size_t) n * (P == 3 ? 4 : 2)), out, r);
}

// The part of a value that comes next: the last is rounded. NaN stays one, which its upper half alone might not be.
INLINE vf next_part(vf x, bool last) {
    return last ? head(vf_from_bits(vi_add(vf_bits(x), vi_set1(0x8000)))) : vf_sel(vf_isnan(x), vf_set1(NAN), head(x));
}

// What is left of it; nothing of infinity and NaN.
INLINE vf rest_of(vf x, vf part) {
    const vf rest = vf_sub(x, part);
    return vf_sel(vf_isnan(rest), vf_zero(), rest);
}

// Word w of part p of step i of a column is out[((i * P + p) * 16 + w) * COLS].
INLINE void encode(int P, const float *x, int64_t k, uint32_t *out) {
    for (int64_t i = 0; i < k; i += DEPTH) {
        float rest[DEPTH] = {0};
        const float *from = x + i;
        if (k - i < DEPTH) from = memcpy(rest, from, (size_t) (k - i) * sizeof *rest);
        vf a = vf_load(from), b = vf_load(from + L);
        UNROLL for (int p = 0; p < P; p++, out += WORDS) {
            uint32_t words[DEPTH / 2];
            if (P == 1) {
                const __m512bh h = _mm512_cvtne2ps_pbh(b, a);
                memcpy(words, &h, sizeof words);
            } else {
                const vf ha = next_part(a, p == P - 1), hb = next_part(b, p == P - 1);
                vi_store(words, pairs(ha, hb));
                a = rest_of(a, ha);
                b = rest_of(b, hb);
            }
            for (int w = 0; w < DEPTH / 2; w++) out[w * COLS] = words[w];
        }
    }
}

// ---- tiles ----------------------------------------------------------------------------------------------------------

// Tiles 0 and 1: weights; 2 and 3: activations; 4 to 7: sums.
AMX_INLINE void configure(int n_col) {
    struct tile_config t = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        t.rows[i] = L;
        t.col_bytes[i] = (uint16_t) (i < 2 ? 64 : 4 * n_col);
    }
    tile_configure(&t);
}

// C: +=; A: weights; B: activations.
#define TILE_BF16(c, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)

// The products that count, in order: W and X load the parts that the i-th takes and the one before did not.
INLINE int n_product(int P) { return P * (P + 1) / 2; }
#define LOAD_PARTS(P, i, W, X)                                                                                              \
    do {                                                                                                                    \
        if ((i) == 0) W(0);                                                                                                 \
        if ((P) == 3 && (i) == 3) W(2);                                                                                     \
        if ((P) > 1 && (i) == 2 * (P) -2) W(1);                                                                             \
        if ((P) == 3 && (i) == 0) X(2);                                                                                     \
        if ((P) > 1 && (i) == (P) -2) X(1);                                                                                 \
        if ((i) == (P) -1) X(0);                                                                                            \
        if ((P) == 3 && (i) == 5) X(1);                                                                                     \
    } while (0)

// Two tiles of rows times two blocks of columns; sums 0 and 1 are the first block's.
AMX_INLINE void times_four(int P, int64_t steps, const struct part *a0, const struct part *a1, const uint32_t *x0,
                           const uint32_t *x1, struct scratch *s) {
    TILE_ZERO(4);
    TILE_ZERO(5);
    TILE_ZERO(6);
    TILE_ZERO(7);
    for (int64_t i = 0; i < steps; i++, a0 += P, a1 += P, x0 += P * WORDS, x1 += P * WORDS) {
#define W(p)                                                                                                                \
    do {                                                                                                                    \
        TILE_LOAD(0, a0 + (p), 64);                                                                                         \
        TILE_LOAD(1, a1 + (p), 64);                                                                                         \
    } while (0)
#define X(p)                                                                                                                \
    do {                                                                                                                    \
        TILE_LOAD(2, x0 + (p) *WORDS, 64);                                                                                  \
        TILE_LOAD(3, x1 + (p) *WORDS, 64);                                                                                  \
    } while (0)
        UNROLL for (int o = 0; o < n_product(P); o++) {
            LOAD_PARTS(P, o, W, X);
            TILE_BF16(4, 0, 2);
            TILE_BF16(5, 1, 2);
            TILE_BF16(6, 0, 3);
            TILE_BF16(7, 1, 3);
        }
#undef W
#undef X
    }
    TILE_STORE(4, s->sums[0], 64);
    TILE_STORE(5, s->sums[1], 64);
    TILE_STORE(6, s->sums[2], 64);
    TILE_STORE(7, s->sums[3], 64);
}

// Tile 4 += product o of a step of one tile of rows times n columns that lie side by side.
AMX_INLINE void times_one(int P, int o, const struct part *a, const uint32_t *x, int n) {
#define W(p) TILE_LOAD(0, a + (p), 64)
#define X(p) TILE_LOAD(2, x + (p) * (L * n), 4 * n)
    LOAD_PARTS(P, o, W, X);
    TILE_BF16(4, 0, 2);
#undef W
#undef X
}

// ---- rows times columns ---------------------------------------------------------------------------------------------

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
        const int64_t n = steps_of(j->k) * parts_of(j->type) * (DEPTH / 2);
        for (int64_t i = 0; i < n; i++) copy[i * COLS + c] = from[i * COLS + lane];
    }
    return b;
}

// Rows of a tile: n from `row` on, `apart` rows apart.
struct tile_rows {
    int64_t row, apart;
    int n;
};

INLINE const uint8_t *row_of(const struct mm_job *j, const struct tile_rows *t, int r) {
    return j->a + (size_t) (t->row + (r < t->n ? r : t->n - 1) * t->apart) * j->a_stride;
}

// A sum of parts is no number where a value is infinite, even if the sum of values is infinity: those are formed from the values.
static float plain_sum(const struct mm_job *j, int64_t row, const uint32_t *x, int lane) {
    const int P = parts_of(j->type);
    const uint8_t *a = j->a + (size_t) row * j->a_stride;
    float sum = 0;
    for (int64_t i = 0; i < j->k; i++) {
        float w, value = 0;
        for (int p = 0; p < P; p++) {
            const uint32_t word = x[((i / DEPTH * P + p) * L + i % L) * COLS + lane];
            value += f32_from_bits(i % DEPTH < L ? word << 16 : word & 0xffff0000u);
        }
        if (P == 3)
            memcpy(&w, a + 4 * i, 4);
        else
            w = f16_to_f32(((const uint16_t *) (const void *) a)[i]);
        sum = __builtin_fmaf(w, value, sum);
    }
    return sum;
}

INLINE void store_one(int P, const struct mm_job *j, const struct tile_rows *t, const struct block *b, int c, vf y) {
    float *to = mm_job_result(j, b->c0 + c) + t->row;
    if (P > 1 && vm_any(vf_isnan(y))) {
        float z[L];
        vf_store(z, y);
        for (int r = 0; r < t->n; r++)
            if (z[r] != z[r]) z[r] = plain_sum(j, t->row + r * t->apart, b->x, b->lane + c);
        y = vf_load(z);
    }
    if (t->apart == 1) {
        vf_store_span(to, y, 0, t->n);
        return;
    }
    float z[L];
    vf_store(z, y);
    for (int r = 0; r < t->n; r++) to[r * t->apart] = z[r];
}

// Results of a tile, which lie in sums row by row.
INLINE void store(int P, const struct mm_job *j, const struct tile_rows *t, float (*sums)[COLS], const struct block *b) {
    const struct rows rows = rows_at((const uint8_t *) sums, sizeof sums[0]);
    for (int q = 0; q < COLS; q += 4) {
        if (q + 4 <= b->lane || q >= b->lane + b->n) continue;
        vi v[4];
        load_words(&rows, 4 * (size_t) q, v);
        UNROLL for (int o = 0; o < 4; o++) {
            const int c = q + o - b->lane;
            if (c >= 0 && c < b->n) store_one(P, j, t, b, c, vf_from_bits(v[o]));
        }
    }
}

// The i-th tile of rows of a range that is cut into 16 runs: a row of each, then what is left over. Long streams, which the processor reads
// ahead.
INLINE struct tile_rows tile_of(const struct mm_job *j, int64_t i) {
    const int64_t n = j->row1 - j->row0, run = n / L;
    return i < run ? (struct tile_rows){j->row0 + i, run, L} : (struct tile_rows){j->row0 + run * L, 1, (int) (n % L)};
}

// A step of a tile that is whole is unpacked while the one before it is multiplied: a product that waited for the last would be in the way
// of what comes behind it, so some rows come between.
AMX_INLINE void few_step(int P, const struct rows *rows, size_t at, struct part *to, const struct part *before,
                         const uint32_t *x, int n) {
    enum {
        AHEAD = 512
    };  // bytes: at the end of a row they are those of the next, which processors do not guess from page to page
    UNROLL for (int r = 0; r < L; r++) {
        const uint8_t *row = rows_get(rows, r) + at;
        __builtin_prefetch(row + AHEAD);
        if (P == 3) __builtin_prefetch(row + AHEAD + 64);
        unpack_step(P, row, to, r);
        if ((r + 1) * n_product(P) / L != r * n_product(P) / L) times_one(P, r * n_product(P) / L, before, x, n);
    }
}

// One block. Its columns are laid side by side first: few of them stay in the first-level cache then.
AMX_INLINE void run_few(int P, const struct mm_job *j, const struct block *b, struct scratch *s) {
    const int64_t n_tile = (j->row1 - j->row0) / L + ((j->row1 - j->row0) % L > 0), n_step = steps_of(j->k);
    struct part *tiles = tiles_of(j);
    const size_t bytes = DEPTH * (P == 3 ? 4 : 2);
    const int n = b->n;
    uint32_t *columns = s->columns + n_step * P * WORDS;
    for (int64_t w = 0; w < n_step * P * L; w++) {
        for (int c = 0; c < n; c++) columns[w * n + c] = b->x[w * COLS + b->lane + c];
    }
    configure(n);
    for (int64_t i = 0; i < n_tile; i++) {
        const struct tile_rows t = tile_of(j, i);
        const struct rows rows = rows_at(row_of(j, &t, 0), (size_t) t.apart * j->a_stride);
        const uint32_t *x = columns;
        TILE_ZERO(4);
        for (int64_t step = 0; step <= n_step; step++) {
            struct part *to = tiles + step % RING * P;
            const struct part *before = tiles + (step + RING - 1) % RING * P;
            if (step > 0 && (step + 1) * DEPTH <= j->k && t.n == L) {
                few_step(P, &rows, (size_t) step * bytes, to, before, x, n);
            } else {
                for (int r = 0; step < n_step && r < L; r++)
                    unpack_values(P, row_of(j, &t, r) + (size_t) step * bytes, j->k - step * DEPTH, to, r);
                UNROLL for (int o = 0; o < n_product(P); o++) {
                    if (step > 0) times_one(P, o, before, x, n);
                }
            }
            if (step > 0) x += P * L * n;
        }
        TILE_STORE(4, s->sums[0], 64);
        store(P, j, &t, s->sums[0], &(struct block){b->x + b->lane, b->c0, 0, n});
    }
}

// Some tiles of rows are unpacked whole; they and two blocks of columns stay in the second-level cache while all columns pass by.
AMX_INLINE void run_many(int P, const struct mm_job *j, int most, struct scratch *s) {
    const int64_t steps = steps_of(j->k);
    const size_t bytes = DEPTH * (P == 3 ? 4 : 2);
    struct part *tiles = tiles_of(j);
    for (int64_t row = j->row0; row < j->row1; row += most * L) {
        struct tile_rows t[TILES];
        int n_tile = 0;
        for (; n_tile < most && row + n_tile * L < j->row1; n_tile++) {
            const int64_t first = row + n_tile * L, left = j->row1 - first;
            t[n_tile] = (struct tile_rows){first, 1, left < L ? (int) left : L};
            for (int r = 0; r < L; r++) {
                const uint8_t *a = row_of(j, t + n_tile, r);
                struct part *out = tiles + n_tile * steps * P;
                for (int64_t k = 0; k < j->k; k += DEPTH, a += bytes, out += P) unpack_values(P, a, j->k - k, out, r);
            }
        }
        struct block b[2];
        for (int64_t c0 = 0; c0 < j->n_col; c0 += b[0].n + b[1].n) {
            b[0] = block_at(j, c0, s->columns);
            b[1] = b[0];
            b[1].n = 0;
            if (c0 + b[0].n < j->n_col) b[1] = block_at(j, c0 + b[0].n, s->columns + steps * P * WORDS);
            for (int i = 0; i < n_tile; i += 2) {
                const int next = i + 1 < n_tile ? i + 1 : i;
                times_four(P, steps, tiles + i * steps * P, tiles + next * steps * P, b[0].x, b[1].x, s);
                for (int o = i; o <= next; o++) {
                    store(P, j, t + o, s->sums[o - i], b);
                    store(P, j, t + o, s->sums[2 + o - i], b + 1);
                }
            }
        }
    }
}

AMX_INLINE void run(int P, const struct mm_job *j) {
    struct scratch *s = j->scratch;
    // A job may have more columns than its scratch was made for.
    const size_t room = (j->scratch_bytes - least_bytes(j)) / tile_bytes(j);
    if (j->n_col > COLS && room >= 2) {
        configure(COLS);
        run_many(P, j, room < TILES ? (int) room / 2 * 2 : TILES, s);
    } else {
        struct block b;
        for (int64_t c0 = 0; c0 < j->n_col; c0 += b.n) {
            b = block_at(j, c0, s->columns);
            run_few(P, j, &b, s);
        }
    }
    tile_release();
}

#define PATH(name, P)                                                                                                       \
    AMX static void name##_run(const struct mm_job *j) { run(P, j); }                                                       \
    static size_t name##_bytes(int64_t k) { return (size_t) steps_of(k) * DEPTH * 2 * (P); }                                \
    static void name##_encode(const float *x, int64_t k, void *block, int lane) {                                           \
        encode(P, x, k, (uint32_t *) block + lane);                                                                         \
    }                                                                                                                       \
    static const struct mm_path path_##name = {.form = MM_BF16_BLOCKS,                                                      \
                                               .row_step = L,                                                               \
                                               .variant = P,                                                                \
                                               .act_bytes = name##_bytes,                                                   \
                                               .scratch = scratch_bytes,                                                    \
                                               .run = name##_run,                                                           \
                                               .block = COLS,                                                               \
                                               .encode_lane = name##_encode};
PATH(bf16, 1)
PATH(f16, 2)
PATH(f32, 3)

const struct mm_path *mm_amx_float_path(enum ggml_type type, bool exact) {
    if (exact && type != GGML_TYPE_F32) return NULL;
    return type == GGML_TYPE_BF16  ? &path_bf16
           : type == GGML_TYPE_F16 ? &path_f16
           : type == GGML_TYPE_F32 ? &path_f32
                                   : NULL;
}
#endif
