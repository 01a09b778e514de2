// Attention over blocks of 64 key positions: the arithmetic of one small tile, and what surrounds it.
//
// A tile is up to ATTN_ROWS rows; a row is one query of one head. For each block of keys a tile gets the scores, the block's own
// maximum m, sum l and weighted values o, and merges them into a running state by one formula (attn_merge). Scores run
// sequentially along the head dimension with lanes along positions, values sequentially along positions with lanes along the value
// dimension, so a row's bits do not depend on how many rows share its tile (DESIGN rule 7).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kern/kern.h"

enum { ATTN_BLOCK = 64, ATTN_ROWS = 6, ATTN_PAD = 16 };

// Running softmax states of some rows. m = -inf: the row has seen nothing yet and its o is undefined.
struct attn_state {
    float *m, *l;   // [n_row] largest score, sum of exp(score - m)
    float *o;       // [n_row][dvp] sum of exp(score - m) * value
};

struct attn_block {
    const float *q;            // [d][ATTN_ROWS] packed queries of the tile
    const float *k;            // [d][64] keys of the block, transposed
    const float *v;            // [64][dvp] values
    int64_t d, dvp;            // dvp: value size padded to a multiple of ATTN_PAD
    int n_row;                 // 1..ATTN_ROWS
    const uint64_t *visible;   // [n_row] bit p: the row sees position p of the block
    const float *const *bias;  // [n_row] each [64], or NULL for none: slope * bias is added to the scores
    const float *slope;        // [n_row]
    float scale, cap;          // score = scale * q.k, or cap * tanh(scale * q.k) when cap > 0 (scale is then already divided by it)
    bool careful;              // values of positions that some row does not see may be inf or NaN: leave them out one by one
    float *work;               // ATTN_ROWS * 64 floats
    struct attn_state state;   // of the tile's rows, merged into
};

struct kern_attn {
    void (*block)(const struct attn_block *b);
    // Lightning indexer: sum[64] += w[r] * max(0, q_r . k) over the rows r in order; q, k, d and n_row as in attn_block.
    void (*index)(const float *q, const float *k, int64_t d, int n_row, const float *w, float *sum);
    // kt[d][64] from rows[64][ld]
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
