// Products in the tile registers of Intel's AMX, for many columns. Quantized weights: a tile multiplication gives the integer sums
// of one group for 16 rows and up to 16 columns, which are scaled and added as everywhere: same bits as the other levels, so few
// columns keep to the vector path. Compiled with level avx512bf16, used at avx512amx.
#include "kern/mm_int.h"

#if defined(ISA_IS_avx512bf16)
#define MM_VNNI 1
#define SIGNED(max) 1
#include "kern/mm_simd.h"
#include "kern/mm_unpack.h"
#include "kern/mm_record.h"
#include "type/type.h"

#include <stddef.h>

#define AMX __attribute__((target("amx-tile,amx-int8,amx-bf16")))
#define AMX_INLINE static inline __attribute__((always_inline, target("amx-tile,amx-int8,amx-bf16")))

enum { L = MM_L, COLS = 16, LEAST = 3, GATHER = 96, SUM_ROWS = 128, SUM_COLS = 512 };

#define TILE_LOAD(t, p, stride)                                                                                             \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t : : "r"(p), "r"((size_t) (stride)) : "memory")
#define TILE_STORE(t, p, stride)                                                                                            \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" : : "r"(p), "r"((size_t) (stride)) : "memory")
#define TILE_ZERO(t) __asm__ volatile("tilezero %%tmm" #t : :)
#define TILE_I8(c, a, b) __asm__ volatile("tdpbssd %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)

struct tile_config {
    uint8_t palette, start_row, zero[14];
    uint16_t col_bytes[16];
    uint8_t rows[16];
};

// Tile 0: columns of activations, one per row of the tile, depth bytes each; 1: rows of weights, transposed by fours; 4: sums, a
// column per row, a weight row per lane.
AMX_INLINE void configure(int C, int depth) {
    struct tile_config t = {.palette = 1};
    t.rows[0] = t.rows[4] = (uint8_t) C;
    t.col_bytes[0] = (uint16_t) depth;
    t.rows[1] = (uint8_t) (depth / 4);
    t.col_bytes[1] = t.col_bytes[4] = 64;
    __asm__ volatile("ldtilecfg %0" : : "m"(t));
}

// Integer sums of part `part` of a group: L rows, as many columns as are configured.
AMX_INLINE void sum_group(int sub, const struct panel_group *g, const uint8_t *x, size_t stride, int part,
                          int32_t (*out)[L]) {
    TILE_LOAD(0, x + part * sub, stride);
    TILE_LOAD(1, g->w[part * sub / 4], 64);
    TILE_ZERO(4);
    TILE_I8(4, 0, 1);
    TILE_STORE(4, out, 64);
}

// total[c * L ...] += n groups of L rows times C columns, `stride` bytes apart. The sums of a group are formed while those of the
// one before are scaled.
AMX_INLINE void amx_tile(int sub, bool min, int C, const struct panel_group *g, int n, const uint8_t *x, size_t stride,
                         float *total) {
    enum { AHEAD = 2, RING = 4 };
    _Alignas(64) int32_t buffer[RING][COLS][L];
    const int parts = 32 / sub, steps = n * parts;
    vf acc[COLS];
    UNROLL for (int c = 0; c < C; c++) acc[c] = vf_load(total + c * L);
    const uint8_t *p[4] = {x, x + 4 * stride, x + 8 * stride, x + 12 * stride};
    const size_t s3 = 3 * stride;
    for (int i = 0; i < AHEAD && i < steps; i++) {
        sum_group(sub, g + i / parts, x + (size_t) (i / parts) * sizeof(struct mm_record), stride, i % parts, buffer[i]);
    }
    for (int i = 0; i < steps; i++) {
        const int part = sub == 32 ? 0 : i % 2, next = sub == 32 ? AHEAD : AHEAD / 2;
        if (i + AHEAD < steps) {
            sum_group(sub, g + next, p[0] + next * sizeof(struct mm_record), stride, part, buffer[(i + AHEAD) % RING]);
        }
        const vf s = vf_load(g->s[part]);
        int32_t(*sums)[L] = buffer[i % RING];
        UNROLL for (int c = 0; c < C; c++) {
            const int q = c % 4;
            const struct mm_record *y = (const struct mm_record *) (p[c / 4] + (q == 0   ? 0
                                                                                : q == 1 ? stride
                                                                                : q == 2 ? 2 * stride
                                                                                         : s3));
            if (sub == 32) __builtin_prefetch((const char *) y + COLS * stride);  // the columns that come next
            acc[c] = vf_fma(vf_mul(s, vf_set1(y->d)), vf_from_vi(vi_load(sums[c])), acc[c]);
            if (min) acc[c] = vf_fma(vf_load(g->m[part]), vf_set1(y->sum[part]), acc[c]);
        }
        if (part == parts - 1) {
            g++;
            UNROLL for (int q = 0; q < 4; q++) {
                p[q] += sizeof(struct mm_record);
                OPAQUE(p[q]);
            }
        }
    }
    UNROLL for (int c = 0; c < C; c++) vf_store(total + c * L, acc[c]);
}

typedef void tile_fn(const struct panel_group *g, int n, const uint8_t *x, size_t stride, float *total);

#define TILE(name, sub, min, C)                                                                                             \
    AMX static void name##_##C(const struct panel_group *g, int n, const uint8_t *x, size_t stride, float *total) {         \
        amx_tile(sub, min, C, g, n, x, stride, total);                                                                      \
    }
// clang-format off
#define TILES(name, sub, min) \
    TILE(name, sub, min, 1) TILE(name, sub, min, 2) TILE(name, sub, min, 3) TILE(name, sub, min, 4) \
    TILE(name, sub, min, 5) TILE(name, sub, min, 6) TILE(name, sub, min, 7) TILE(name, sub, min, 8) \
    TILE(name, sub, min, 9) TILE(name, sub, min, 10) TILE(name, sub, min, 11) TILE(name, sub, min, 12) \
    TILE(name, sub, min, 13) TILE(name, sub, min, 14) TILE(name, sub, min, 15) TILE(name, sub, min, 16) \
    static tile_fn *const name[17] = { \
        0, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6, name##_7, name##_8, \
        name##_9, name##_10, name##_11, name##_12, name##_13, name##_14, name##_15, name##_16};
// clang-format on

TILES(tiles_32_0, 32, false)
TILES(tiles_32_1, 32, true)
TILES(tiles_16_0, 16, false)
TILES(tiles_16_1, 16, true)

struct scratch {
    struct panel_group panel[GROUPS];
    uint8_t rows[L][GROUPS * 64];                                     // copies, when a matrix has fewer than L rows
    uint8_t columns[GATHER][GROUPS * sizeof(struct mm_record) + 64];  // copies, when columns are given by a list
    float sums[SUM_ROWS / L][SUM_COLS][L];  // results between ranges of k: those of dst lie too far apart
};

static size_t amx_scratch(const struct mm_job *j) {
    return j->k / 32 > GROUPS && j->n_col > 16 ? sizeof(struct scratch) : offsetof(struct scratch, sums);
}

struct span {
    int64_t lo;    // first row of the vector
    int from, to;  // its lanes that are wanted
};

// A range of n groups of one panel of rows times columns c0 .. c0 + n_col - 1, which lie at x.
AMX static void panel_times(const struct mm_job *j, tile_fn *const *tiles, int depth, struct span s,
                            const struct panel_group *panel, int64_t group, int n, int64_t c0, int64_t n_col,
                            const uint8_t *x, size_t stride, float (*sums)[L]) {
    const bool last = (group + n) * 32 == j->k;
    const int64_t n_tile = (n_col + COLS - 1) / COLS;
    float total[COLS * L];
    int configured = 0;
    for (int64_t t = 0; t < n_tile; t++) {
        const int64_t at = n_col * t / n_tile;
        const int C = (int) (n_col * (t + 1) / n_tile - at);
        if (C != configured) configure(C, depth);
        configured = C;
        for (int c = 0; c < C; c++) {
            const float *y = mm_job_result(j, c0 + at + c) + s.lo;
            vf_store(total + c * L, !group ? vf_zero() : sums ? vf_load(sums[c0 + at + c]) : vf_load_span(y, s.from, s.to));
            if (!sums || last) __builtin_prefetch(y, 1);
        }
        tiles[C](panel, n, x + (size_t) at * stride, stride, total);
        for (int c = 0; c < C; c++) {
            if (sums && !last)
                vf_store(sums[c0 + at + c], vf_load(total + c * L));
            else
                vf_store_span(mm_job_result(j, c0 + at + c) + s.lo, vf_load(total + c * L), s.from, s.to);
        }
    }
    __asm__ volatile("tilerelease" : :);
}

static void unpack_rows(const struct mm_job *j, const struct type *type, unpack_fn *unpack, struct scratch *s, int64_t lo,
                        int64_t group, int n, struct panel_group *out, int step) {
    const size_t at = (size_t) (group * 32 / type->block) * type->size, bytes = (size_t) (n * 32 / type->block) * type->size;
    if (lo + L <= j->n_row) {
        unpack(j->a + (size_t) lo * j->a_stride + at, j->a_stride, n, out, step);
        return;
    }
    for (int r = 0; r < L; r++) {
        const int64_t row = lo + r < j->n_row ? lo + r : j->n_row - 1;
        memcpy(s->rows[r], j->a + (size_t) row * j->a_stride + at, bytes);
    }
    unpack(s->rows[0], sizeof s->rows[0], n, out, step);
}

static void amx_piece(const struct mm_job *j, const struct type *type, unpack_fn *unpack, tile_fn *const *tiles, int sub,
                      int64_t group, int n, int64_t c0, int64_t n_col, const uint8_t *x, size_t stride) {
    struct scratch *s = j->scratch;
    const bool room = j->row1 - j->row0 <= SUM_ROWS && j->n_col <= SUM_COLS && j->scratch_bytes >= sizeof *s;
    for (int64_t row = j->row0; row < j->row1; row += L) {
        struct span rows = {.lo = row + L <= j->row1 ? row : (j->row1 > L ? j->row1 - L : 0)};
        rows.from = (int) (row - rows.lo);
        rows.to = (int) (j->row1 - rows.lo < L ? j->row1 - rows.lo : L);
        unpack_rows(j, type, unpack, s, rows.lo, group, n, s->panel, 1);
        panel_times(j, tiles, sub, rows, s->panel, group, n, c0, n_col, x, stride,
                    room ? s->sums[(row - j->row0) / L] : NULL);
    }
}

static void amx_run(const struct mm_job *j, unpack_fn *unpack, tile_fn *const *tiles, int sub) {
    const struct type *type = type_get(j->type);
    struct scratch *s = j->scratch;
    const int64_t n_group = j->k / 32;
    const int step = group_step(n_group);
    for (int64_t group = 0; group < n_group; group += step) {
        const int n = n_group - group < step ? (int) (n_group - group) : step;
        const size_t at = (size_t) group * sizeof(struct mm_record);
        if (!j->act_idx) {
            amx_piece(j, type, unpack, tiles, sub, group, n, 0, j->n_col, j->act + at, j->act_stride);
            continue;
        }
        for (int64_t c0 = 0; c0 < j->n_col; c0 += GATHER) {
            const int64_t n_col = j->n_col - c0 < GATHER ? j->n_col - c0 : GATHER;
            for (int64_t c = 0; c < n_col; c++) {
                memcpy(s->columns[c], mm_job_column(j, c0 + c) + at, (size_t) n * sizeof(struct mm_record));
            }
            amx_piece(j, type, unpack, tiles, sub, group, n, c0, n_col, s->columns[0], sizeof s->columns[0]);
        }
    }
}

#define QUANT(ID, name, sub, min, offset, max)                                                                              \
    static void encode_##name(const float *x, int64_t k, void *act) { mm_record_encode(x, k, act, sub, min, offset); }      \
    static void run_##name(const struct mm_job *j) { amx_run(j, panel_##name, tiles_##sub##_##min, sub); }                  \
    static const struct mm_path path_##name = {                                                                             \
        MM_I8, L, MM_VARIANT(sub, min, offset), mm_record_bytes, encode_##name, amx_scratch, run_##name};
#include "kern/mm_quant.def"
#undef QUANT

const struct mm_path *mm_amx_path(enum ggml_type type, int64_t n_col, bool exact) {
    if (exact || n_col < LEAST) return NULL;
    switch (type) {
#define QUANT(ID, name, sub, ...)                                                                                           \
    case GGML_TYPE_##ID:                                                                                                    \
        return sub == 32 ? &path_##name : NULL;  // halves are faster in vectors
#include "kern/mm_quant.def"
#undef QUANT
        default: return NULL;
    }
}
#endif
