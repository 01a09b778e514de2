// Products in the tile registers of Intel's AMX, for many columns. Quantized weights: a tile multiplication gives the integer sums
// of one group for 16 rows and up to 16 columns, which are scaled and added as everywhere: same bits as the other levels, so few
// columns keep to the vector path. Compiled with level avx512bf16, used at avx512amx.
#include "kern/mm_int.h"

#if defined(ISA_IS_avx512bf16)
#define MM_VNNI 1
#define SIGNED(max) 1
#include "kern/mm_amx.h"
#include "kern/mm_simd.h"
#include "kern/mm_unpack.h"
#include "kern/mm_record.h"
#include "type/type.h"

#include <stddef.h>

enum { L = MM_L, COLS = 16, LEAST = 3, PANELS = 8, PANEL_BYTES = 1 << 20, RANGE = 40, LINES = 8 };
enum { FEW_GROUPS = 24 };  // groups of a panel that stays in the first-level cache with a block of columns

#define TILE_I8(c, a, b) __asm__ volatile("tdpbssd %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)

// A group of 16 columns, side by side: a block of columns is those of all groups.
struct column_group {
    int8_t q[COLS][32];
    float d[COLS], base[COLS], sum[2][COLS];
};

// Tile 0: columns of activations, one per row of the tile, depth bytes each; 1: rows of weights, transposed by fours; 4 and 5: sums,
// a column per row, a weight row per lane.
AMX_INLINE void configure(int C, int depth) {
    struct tile_config t = {.palette = 1};
    t.rows[0] = t.rows[4] = t.rows[5] = (uint8_t) C;
    t.col_bytes[0] = (uint16_t) depth;
    t.rows[1] = (uint8_t) (depth / 4);
    t.col_bytes[1] = t.col_bytes[4] = t.col_bytes[5] = 64;
    tile_configure(&t);
}

// Integer sums of part `part` of a group: L rows, as many columns as are configured.
#define SUM_GROUP(t, sub, g, x, lane, part)                                                                                 \
    do {                                                                                                                    \
        TILE_LOAD(0, (x)->q[lane] + (part) * (sub), 32);                                                                    \
        TILE_LOAD(1, (g)->w[(part) * (sub) / 4], 64);                                                                       \
        TILE_ZERO(t);                                                                                                       \
        TILE_I8(t, 0, 1);                                                                                                   \
    } while (0)

// x units as a float, -2^22 <= x < 2^22, base being 1.5 * 2^23 units. Near tile instructions conversions and multiplications run at half
// speed, additions do not.
INLINE vf small_to_float(vi x, vf base) { return vf_sub(vf_from_bits(vi_add(x, vf_bits(base))), base); }

// acc[c] += the sums of one part of a group, scaled.
INLINE void scale_group(int min, int per, int C, const struct panel_group *g, const struct column_group *x, int lane,
                        int part, int32_t (*sums)[L], vf *acc) {
    const vf s = vf_load(g->s[part]);
    const float *at = x->d + lane;  // one address for all columns: the compiler would make one for each
    OPAQUE(at);
    const float *base = at + COLS, *of_min = base + COLS;
    UNROLL for (int c = 0; c < C; c++) {
        const vf sum = small_to_float(vi_load(sums[c]), vf_set1(per == 32 ? 0x1.8p23f : base[c]));
        acc[c] = vf_fma(per == 32 ? vf_mul(s, vf_set1(at[c])) : s, sum, acc[c]);
        UNROLL for (int h = 0; h < min; h++) acc[c] = vf_fma(vf_load(g->m[h]), vf_set1(of_min[h * COLS + c]), acc[c]);
    }
}

// A block of 256 is done: its part of the sums, scaled, to the totals.
INLINE void scale_block(int C, const struct column_group *x, int lane, vf *acc, float *total) {
    UNROLL for (int c = 0; c < C; c++) {
        vf_store(total + c * L, vf_fma(vf_set1(x->d[lane + c]), acc[c], vf_load(total + c * L)));
        acc[c] = vf_zero();
    }
}

// total[c * L ...] += n groups of L rows times C columns, those from `lane` of a block. Sums of one part are formed while those before them are stored and those
// before these are scaled.
AMX_INLINE void amx_tile(int sub, int min, int per, int C, const struct panel_group *g, int n, const struct column_group *x,
                         int lane, float *total) {
    enum { RING = 4 };
    _Alignas(64) int32_t buffer[RING][COLS][L];
    const int parts = 32 / sub, steps = n * parts;
    vf acc[COLS];
    UNROLL for (int c = 0; c < C; c++) acc[c] = per == 32 ? vf_load(total + c * L) : vf_zero();
    SUM_GROUP(4, sub, g, x, lane, 0);
    for (int i = 0; i <= steps; i += 2) {  // step i is part i % parts of group i / parts; g and x are those of i
        const int back = parts == 2, on = parts == 2 ? 0 : 1, on2 = parts == 2 ? 1 : 2;
        if (i + 1 < steps) SUM_GROUP(5, sub, g + on, x + on, lane, parts - 1);
        if (i < steps) TILE_STORE(4, buffer[i % RING], 64);
        if (i > 0) scale_group(min, per, C, g - 1, x - 1, lane, back, buffer[(i - 1) % RING], acc);
        if (per == 256 && i > 0 && i % (8 * parts) == 0) scale_block(C, x - 1, lane, acc, total);
        if (i + 2 < steps) SUM_GROUP(4, sub, g + on2, x + on2, lane, 0);
        if (i + 1 < steps) TILE_STORE(5, buffer[(i + 1) % RING], 64);
        if (i < steps) scale_group(min, per, C, g, x, lane, 0, buffer[i % RING], acc);
        g += on2;
        x += on2;
    }
    if (per == 256) return;
    UNROLL for (int c = 0; c < C; c++) vf_store(total + c * L, acc[c]);
}

typedef void tile_fn(const struct panel_group *g, int n, const struct column_group *x, int lane, float *total);

#define TILE(name, sub, min, per, C)                                                                                        \
    AMX static void name##_##C(const struct panel_group *g, int n, const struct column_group *x, int lane, float *total) {  \
        amx_tile(sub, min, per, C, g, n, x, lane, total);                                                                   \
    }
// By columns / 4: tiles take 4, 8 or 16.
#define TILES(name, sub, min, per)                                                                                          \
    TILE(name, sub, min, per, 4)                                                                                            \
    TILE(name, sub, min, per, 8)                                                                                            \
    TILE(name, sub, min, per, 16)                                                                                           \
    static tile_fn *const name[5] = {0, name##_4, name##_8, 0, name##_16};

TILES(tiles_32_0_32, 32, 0, 32)
TILES(tiles_32_1_32, 32, 1, 32)
TILES(tiles_32_0_256, 32, 0, 256)
TILES(tiles_32_1_256, 32, 1, 256)
TILES(tiles_32_2_256, 32, 2, 256)
TILES(tiles_16_0_256, 16, 0, 256)

// Scratch of a thread: a block of columns, where those of a job do not lie so, then as many panels of all groups as stay in the second-level cache.
struct scratch {
    uint8_t rows[L][GROUPS * 64];  // copies, when a matrix has fewer than L rows
    float total[PANELS][COLS][L];
    struct column_group columns[];
};

static int n_panels(int64_t n_group) {
    const int64_t n = PANEL_BYTES / ((n_group + 1) * (int64_t) sizeof(struct panel_group));
    return n < 1 ? 1 : n < PANELS ? (int) n : PANELS;
}

static size_t amx_scratch(const struct mm_job *j) {
    const int64_t n_group = j->k / 32;
    return sizeof(struct scratch) + (size_t) n_group * sizeof(struct column_group) +
           (size_t) (n_group * n_panels(n_group)) * sizeof(struct panel_group);
}

// L rows: lo, lo + step, ...; the lanes from .. to - 1 are wanted.
struct span {
    int64_t lo, step;
    int from, to;
};

// L rows from `first`, of which those before row1 are wanted; moved up if there are fewer.
static struct span span_at(const struct mm_job *j, int64_t first) {
    struct span s = {.lo = first + L <= j->row1 ? first : (j->row1 > L ? j->row1 - L : 0), .step = 1};
    s.from = (int) (first - s.lo);
    s.to = (int) (j->row1 - s.lo < L ? j->row1 - s.lo : L);
    return s;
}

INLINE void span_store(float *y, const struct span *s, const float *x) {
    if (s->step == 1) {
        vf_store_span(y + s->lo, vf_load(x), s->from, s->to);
        return;
    }
    for (int i = 0; i < L; i++) y[s->lo + i * s->step] = x[i];
}

static void unpack_rows(const struct mm_job *j, const struct type *type, unpack_fn *unpack, struct scratch *s,
                        const struct span *rows, int64_t group, int n, struct panel_group *out) {
    const size_t at = (size_t) (group * 32 / type->block) * type->size, bytes = (size_t) (n * 32 / type->block) * type->size;
    if (rows->lo + (L - 1) * rows->step < j->n_row) {
        unpack(j->a + (size_t) rows->lo * j->a_stride + at, j->a_stride * (size_t) rows->step, n, out, 1);
        return;
    }
    for (int r = 0; r < L; r++) {
        const int64_t row = rows->lo + r < j->n_row ? rows->lo + r : j->n_row - 1;
        memcpy(s->rows[r], j->a + (size_t) row * j->a_stride + at, bytes);
    }
    unpack(s->rows[0], sizeof s->rows[0], n, out, 1);
}

// C lanes from `lane` as the lanes a tile takes: 4, 8 or 16, of which those before `skip` and after C more are not wanted.
struct lanes {
    int first, n, skip;
};
INLINE struct lanes lanes_of(int lane, int C) {
    const int n = C <= 4 ? 4 : C <= 8 ? 8 : COLS, first = lane + n <= COLS ? lane : COLS - n;
    return (struct lanes){first, n, lane - first};
}

INLINE const struct column_group *block_of(const struct mm_job *j, int64_t column) {
    return (const void *) (j->act + (size_t) (column / COLS * COLS) * j->act_stride);
}

// Columns c0 .. c0 + C - 1 of a job as lanes of one block: as they lie, or copied to scratch.
static const struct column_group *find_block(const struct mm_job *j, int64_t c0, int C, int *lane) {
    const int64_t first = j->col0 + c0, n_group = j->k / 32;
    *lane = (int) (first % COLS);
    if (!j->act_idx && *lane + C <= COLS) return block_of(j, first);
    struct column_group *out = ((struct scratch *) j->scratch)->columns;
    for (int c = 0; c < C; c++) {
        const int64_t column = j->act_idx ? j->act_idx[c0 + c] : first + c;
        const struct column_group *x = block_of(j, column);
        const int l = (int) (column % COLS);
        for (int64_t i = 0; i < n_group; i++) {
            _mm256_storeu_si256((__m256i *) out[i].q[c], _mm256_loadu_si256((const __m256i *) x[i].q[l]));
            out[i].d[c] = x[i].d[l];
            out[i].base[c] = x[i].base[l];
            out[i].sum[0][c] = x[i].sum[0][l];
            out[i].sum[1][c] = x[i].sum[1][l];
        }
    }
    *lane = 0;
    return out;
}

// Up to 16 columns: what takes time is reading the weights. The range of rows is cut into L runs and lane l walks through run l: L
// long streams, which the processor reads ahead. Rows that are left over come last, side by side.
AMX static void amx_few(const struct mm_job *j, unpack_fn *unpack, tile_fn *const *tiles, int sub) {
    const struct type *type = type_get(j->type);
    struct scratch *s = j->scratch;
    const int64_t n_group = j->k / 32, run = (j->row1 - j->row0) / L;
    struct panel_group *panel = (struct panel_group *) (void *) (s->columns + n_group);
    const int C = (int) j->n_col, step = group_step(n_group, FEW_GROUPS);
    int lane;
    const struct column_group *x = find_block(j, 0, C, &lane);
    const struct lanes lanes = lanes_of(lane, C);
    configure(lanes.n, sub);
    for (int64_t row = 0; row < run || (row == run && j->row0 + run * L < j->row1); row++) {
        const struct span rows = row < run ? (struct span){j->row0 + row, run, 0, L} : span_at(j, j->row0 + run * L);
        memset(s->total[0], 0, sizeof s->total[0]);
        for (int64_t group = 0; group < n_group; group += step) {
            const int n = n_group - group < step ? (int) (n_group - group) : step;
            unpack_rows(j, type, unpack, s, &rows, group, n, panel);
            tiles[lanes.n / 4](panel, n, x + group, lanes.first, s->total[0][0]);
        }
        for (int c = 0; c < C; c++) span_store(mm_job_result(j, c), &rows, s->total[0][lanes.skip + c]);
    }
    tile_release();
}

// Columns of the tile from c0: up to the end of a block.
INLINE int n_tile_columns(const struct mm_job *j, int64_t c0) {
    const int64_t left = j->n_col - c0, room = j->act_idx ? COLS : COLS - (j->col0 + c0) % COLS;
    return (int) (left < room ? left : room);
}

// Rows that will be wanted next: lines of them are asked for while others are multiplied. All at once they would have to be waited for.
struct ahead {
    const uint8_t *at, *end;  // what has not been asked for of a row
    size_t bytes, stride;
    int64_t rows;  // that come after it
};

static struct ahead ahead_of(const struct mm_job *j, const struct type *type, int64_t row, int64_t n) {
    const size_t bytes = (size_t) (j->k / type->block) * type->size;
    const uint8_t *at = j->a + (size_t) row * j->a_stride;
    const int64_t rows = j->n_row - row < n ? j->n_row - row : n;
    return rows > 0 ? (struct ahead){at, at + bytes, bytes, j->a_stride, rows - 1} : (struct ahead){0};
}

static void look_ahead(struct ahead *h) {
    for (int i = 0; i < LINES && h->at < h->end; i++) {
        __builtin_prefetch(h->at, 0, 2);
        h->at += 64;
        if (h->at < h->end || h->rows-- <= 0) continue;
        h->end += h->stride;
        h->at = h->end - h->bytes;
    }
}

// Where range i of n begins: at whole blocks of 256, if groups make such.
INLINE int64_t range_start(int64_t n_group, int64_t i, int64_t n) {
    const int64_t at = n_group * i / n;
    return n_group % 8 ? at : at / 8 * 8;
}

// Many columns: a few panels of rows are unpacked whole. They stay in the second-level cache while all columns pass by, 16 at a
// time; a range of k of these is in the first while the panels pass by.
AMX static void amx_many(const struct mm_job *j, unpack_fn *unpack, tile_fn *const *tiles, int sub) {
    const struct type *type = type_get(j->type);
    struct scratch *s = j->scratch;
    const int64_t n_group = j->k / 32, n_range = (n_group + RANGE - 1) / RANGE;
    struct panel_group *panels = (struct panel_group *) (void *) (s->columns + n_group);
    const int step = group_step(n_group, GROUPS), most = n_panels(n_group);
    for (int64_t row = j->row0; row < j->row1; row += most * L) {
        struct span rows[PANELS];
        int n_panel = 0, configured = 0;
        for (; n_panel < most && row + n_panel * L < j->row1; n_panel++) {
            rows[n_panel] = span_at(j, row + n_panel * L);
            for (int64_t group = 0; group < n_group; group += step) {
                const int n = n_group - group < step ? (int) (n_group - group) : step;
                unpack_rows(j, type, unpack, s, rows + n_panel, group, n, panels + n_panel * n_group + group);
            }
        }
        struct ahead ahead = ahead_of(j, type, row + n_panel * L, most * L);  // the next range begins there, most often
        int C;
        for (int64_t c0 = 0; c0 < j->n_col; c0 += C) {
            int lane;
            C = n_tile_columns(j, c0);
            const struct column_group *x = find_block(j, c0, C, &lane);
            const struct lanes lanes = lanes_of(lane, C);
            if (lanes.n != configured) configure(lanes.n, sub);
            configured = lanes.n;
            for (int p = 0; p < n_panel; p++) {
                for (int c = 0; c < COLS; c++) vf_store(s->total[p][c], vf_zero());
            }
            for (int64_t i = 0; i < n_range; i++) {
                const int64_t group = range_start(n_group, i, n_range);
                const int n = (int) (range_start(n_group, i + 1, n_range) - group);
                for (int p = 0; p < n_panel; p++) {
                    if (group + n == n_group) {  // results, which come next
                        for (int c = 0; c < C; c++) __builtin_prefetch(mm_job_result(j, c0 + c) + rows[p].lo, 1);
                    }
                    look_ahead(&ahead);
                    tiles[lanes.n / 4](panels + p * n_group + group, n, x + group, lanes.first, s->total[p][0]);
                }
            }
            for (int c = 0; c < C; c++) {
                float *y = mm_job_result(j, c0 + c);
                for (int p = 0; p < n_panel; p++) span_store(y, rows + p, s->total[p][lanes.skip + c]);
            }
        }
        tile_release();
    }
}

INLINE void encode_lane(const float *x, int64_t k, struct column_group *block, int lane, int sub, int min, int per) {
    struct mm_record r[8];
    for (int64_t i = 0; i < k; i += per) {
        mm_record_encode(x + i, per, r, sub, min, 0, per);
        for (int g = 0; g < per / 32; g++, block++) {
            memcpy(block->q[lane], r[g].q, 32);
            block->d[lane] = r[g].d;
            block->base[lane] = r[g].base;
            for (int h = 0; h < 2; h++) block->sum[h][lane] = min ? r[g].sum[h] : 0;
        }
    }
}
#define ENCODE(name, sub, min, per)                                                                                         \
    static void name(const float *x, int64_t k, void *block, int lane) { encode_lane(x, k, block, lane, sub, min, per); }
ENCODE(encode_32_0_32, 32, 0, 32)
ENCODE(encode_32_0_256, 32, 0, 256)
ENCODE(encode_32_1_32, 32, 1, 32)
ENCODE(encode_32_1_256, 32, 1, 256)
ENCODE(encode_32_2_256, 32, 2, 256)
#define tiles_16_0_32 tiles_16_0_256   // of no use: see mm_amx_path
#define encode_16_0_32 encode_32_0_32  // sums are of no use without minima
#define encode_16_0_256 encode_32_0_256
static size_t block_bytes(int64_t k) { return (size_t) (k / 32) * (sizeof(struct column_group) / COLS); }

#define QUANT(ID, name, sub, min, offset, max, per)                                                                         \
    static void run_##name(const struct mm_job *j) {                                                                        \
        (j->n_col <= COLS ? amx_few : amx_many)(j, panel_##name, tiles_##sub##_##min##_##per, sub);                         \
    }                                                                                                                       \
    static const struct mm_path path_##name = {.form = MM_I8_BLOCKS,                                                        \
                                               .row_step = L,                                                               \
                                               .variant = min + per,                                                        \
                                               .act_bytes = block_bytes,                                                    \
                                               .scratch = amx_scratch,                                                      \
                                               .run = run_##name,                                                           \
                                               .block = COLS,                                                               \
                                               .encode_lane = encode_##sub##_##min##_##per};
#include "kern/mm_quant.def"
#undef QUANT

const struct mm_path *mm_amx_path(enum ggml_type type, int64_t n_col, bool exact) {
    const struct mm_path *p = mm_amx_float_path(type, exact);
    if (p || exact || n_col < LEAST) return p;
    const bool many = n_col > COLS;
    switch (type) {
#define QUANT(ID, name, sub, min, offset, max, per)                                                                         \
    case GGML_TYPE_##ID:                                                                                                    \
        return sub == 32 || (many && per == 256) ? &path_##name : NULL;  // else halves are faster in vectors
#include "kern/mm_quant.def"
#undef QUANT
        default: return NULL;
    }
}
#endif
