// Parts of FLASH_ATTN_EXT shared by its files: flash_attn_ext.c (builders, shapes, descriptor), flash_attn_run.c (how the
// work is cut), flash_attn_block.c (one block of keys for the rows of a run).
#pragma once

#include <math.h>
#include <string.h>

#include "kern/attn.h"
#include "ops/op.h"
#include "type/type.h"

// Places in op_params (4-byte words) and in src.
enum { FA_SCALE = 0, FA_MAX_BIAS, FA_SOFTCAP, FA_PREC, FA_N_KV_MAX, FA_N_PARAM };
enum { FA_Q = 0, FA_K, FA_V, FA_MASK, FA_SINKS, FA_QUERY, FA_TABLE };

size_t flash_attn_scratch(const struct ggml_tensor *t, int n_threads);
void flash_attn_run(struct task *k, struct ggml_tensor *t);

// What follows from the node's shapes, the number of threads and the query rows.
struct attn_plan {
    const struct ggml_tensor *q, *k, *v, *mask, *sinks, *query, *table;
    struct ggml_tensor *dst;
    const struct kern_attn *kern;
    const struct type *k_type, *v_type;
    int64_t d, dv, dvp, ld;  // dvp: dv padded; ld: d padded, floats of an unpacked row of keys
    int64_t n_q, n_head, n_kv, n_3;
    int64_t group, n_unit;     // heads per unit, units
    int64_t per_run, n_run;    // queries per run at most, runs per unit
    int64_t n_row;             // all rows of the node
    int64_t stripe0, stripe1;  // stripes that any query can see
    int64_t block0, block1;    // the same in blocks
    int64_t window;            // stripes per pass when split along positions, 0 when not
    bool by_block;             // there are so few stripes that threads take single blocks
    int64_t together;          // units that a thread takes along a stripe side by side
    float scale, max_bias, cap;
    int64_t row_max;  // rows of a run of one unit at most
};

// A run: some neighbouring queries of one unit that have the same keys. Row = query * group + head in the unit.
struct attn_run {
    const struct attn_plan *p;
    struct task *task;
    int64_t unit, i3, q0, n_q;  // unit, queries q0 .. q0 + n_q
    int n_row, tiles;
    float *q, *raw, *k, *v, *work;  // packed queries, unpacked rows, keys transposed, values
    float *bias;                    // [n_row][64]
    const float **row_bias;         // [n_row], or NULL for none
    float *slope;                   // [n_row]
    uint64_t *visible;              // [n_row]
    struct attn_state stripe, total;
    struct attn_run *beside;  // [together] the runs that go side by side, this one being the first of them
    int64_t next;             // the block whose rows will be wanted next, or -1
    int64_t shift;            // from this unit to the one that will want them
    int part, n_part;         // this run asks for this part of them
};

static inline const int32_t *attn_query(const struct attn_plan *p, int64_t i) {
    return (const int32_t *) p->query->data + 4 * i;
}
static inline int64_t attn_head(const struct attn_run *r, int row) { return r->unit * r->p->group + row % r->p->group; }
static inline int64_t attn_row_query(const struct attn_run *r, int row) { return r->q0 + row / r->p->group; }

// Merges block b into r->stripe. Bad table entries fail the task.
void flash_attn_block(struct attn_run *r, int64_t b);
