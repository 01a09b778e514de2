// Attention over blocks of 64 key positions: the arithmetic of one small tile, and what surrounds it.
//
// A row is one query of one head, a tile some rows. For each block of keys a tile gets the scores, the block's own
// maximum m, sum l and weighted values o, and merges them into a running state by one formula. Scores run
// sequentially along the head dimension with lanes along positions, values sequentially along positions with lanes along the
// value dimension, so a row's bits do not depend on how many rows share its tile (DESIGN rule 7).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggml/enums.h"
#include "kern/kern.h"

// Rows are packed and multiplied in panels of ATTN_ROWS; a tile is up to ATTN_TILE rows.
enum { ATTN_BLOCK = 64, ATTN_ROWS = 6, ATTN_TILE = 2 * ATTN_ROWS, ATTN_PAD = 16 };

// Storage that kernels unpack themselves; a type's own decoder does the others, row by row.
enum attn_form { ATTN_F32, ATTN_F16, ATTN_BF16, ATTN_Q8_0, ATTN_OTHER };

// Which of them rows of a type are in.
static inline enum attn_form attn_form_of(enum ggml_type type) {
    switch (type) {
        case GGML_TYPE_F32: return ATTN_F32;
        case GGML_TYPE_F16: return ATTN_F16;
        case GGML_TYPE_BF16: return ATTN_BF16;
        case GGML_TYPE_Q8_0: return ATTN_Q8_0;
        default: return ATTN_OTHER;
    }
}

// Running softmax states of some rows. A row that has seen nothing has m = -inf, l = 0, and anything in o.
struct attn_state {
    float *m, *l;  // [n_row] largest score, sum of exp(score - m)
    float *o;      // [n_row][dvp] sum of exp(score - m) * value
};

// Memory that will be wanted soon: pieces of so many bytes, `stride` apart.
struct attn_lines {
    const char *at;
    size_t bytes, stride;
    int n;
};
// Its lines of 64 bytes are asked for while something is computed, evenly, as fast as memory gives them: all at once they would keep
// what is wanted now from coming.
struct attn_ahead {
    const char *at, *end;  // of the piece, what has not been asked for
    int step;              // lines to ask for at each call; 0: nothing is left
    struct attn_lines now, then;
};

struct attn_block {
    const float *q;  // panels [d][ATTN_ROWS] of the tile's queries, times the scale (over cap)
    const float *k;  // [d][64] keys of the block, transposed, or
    // k_half not NULL: the same in k_form, F16 or BF16; then n_row <= ATTN_ROWS.
    const uint16_t *k_half;
    enum attn_form k_form;
    const float *v;  // [64][v_step] values, or
    // v_raw not NULL: the values as they lie, v_stride bytes apart, F16, BF16 or Q8_0; then n_row <= ATTN_ROWS, dvp is a
    // multiple of ATTN_BLOCK and every row sees the same positions.
    const void *v_raw;
    size_t v_stride;
    enum attn_form v_form;
    int64_t v_step;
    struct attn_ahead *ahead;
    int64_t d, dvp;            // dvp: value size padded to a multiple of ATTN_PAD
    int n_row;                 // 1..ATTN_TILE
    const uint64_t *visible;   // [n_row] bit p: the row sees position p of the block
    const float *const *bias;  // [n_row] each [64], or NULL for none: slope * bias is added to the scores
    const float *slope;        // [n_row]
    float cap;                 // > 0: the score is cap * tanh(q . k)
    bool careful;              // values of positions that some row does not see may be inf or NaN: leave them out one by one
    float *work;               // ATTN_TILE * 64 floats
    struct attn_state state;   // of the tile's rows, merged into
};

struct kern_attn {
    void (*block)(const struct attn_block *b);
    // Lightning indexer: sum[64] += w[r] * max(0, q_r . k) over the rows r in order; q, k, d and n_row as in attn_block.
    void (*index)(const float *q, const float *k, int64_t d, int n_row, const float *w, float *sum);
    // Rows j of `set` (bits 0 .. n_row - 1), src + j * stride, of n values as F32 at out [n_row][ld]; zeros for rows not in
    // the set and from n to ld. form: how a row is stored; ATTN_OTHER is not for this call.
    void (*unpack)(enum attn_form form, const void *src, size_t stride, uint64_t set, int n_row, int64_t n, float *out,
                   int64_t ld, struct attn_ahead *ahead);
    // Keys of 64 positions, stride bytes apart, as kt [d][64], in 16 bits as they were or as F32; d a multiple of 32. Memory of
    // all positions is read, whatever lies there. NULL at levels that have nothing better than unpack and transpose.
    void (*turn_halves)(const void *src, size_t stride, int64_t d, uint16_t *kt, struct attn_ahead *ahead);
    void (*turn_q8_0)(const void *src, size_t stride, int64_t d, float *kt, struct attn_ahead *ahead);
    // Columns 0 .. 15 of kt[d][64] from rows[16][ld].
    void (*transpose)(const float *rows, int64_t ld, int64_t d, float *kt);
    // Bits of the positions j < n (n <= 64) whose mask value is not -inf. *bias: whether any of these values is not zero;
    // then out[64] holds the values in F32.
    uint64_t (*mask_f16)(const uint16_t *mask, int n, float *out, bool *bias);
    uint64_t (*mask_f32)(const float *mask, int n, float *out, bool *bias);
    bool (*finite)(const float *x, int64_t n);  // n a multiple of ATTN_PAD
    // Merge a later part (mb, lb, ob[dvp]) of a row into (m, l, o).
    void (*merge)(float *m, float *l, float *o, float mb, float lb, const float *ob, int64_t dvp);
    // dst[dv] = o / l after adding the sink's exp to l (sink = -inf: none); zeros if the row saw nothing.
    void (*finish)(float m, float l, const float *o, float sink, float *dst, int64_t dv);
};
