// Private to attn*.c.
#pragma once

#include "block/block.h"

// Where keys are: the full cache, the small one of windowed layers, or scratch inside the graph.
enum attn_view { VIEW_FULL = 0, VIEW_SMALL = 1, VIEW_SCRATCH = 2 };
enum { MASK_DISTANCES = 16 };  // with a view: a mask that holds minus the distance instead of 0, for ALiBi

void fill_query(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst);
void fill_cells(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst);
void fill_gather(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst);
void fill_scratch_table(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst);
void fill_mask(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst);
void fill_buckets(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst);
void fill_pool_pos(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst);
void fill_cell_pos(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst);
// The bookkeeping of a cache; row i's index in it; one past the last index that row i sees without a window.
const struct cells *view_cells(const struct graph *g, int view);
int32_t row_index(const struct ubatch *ub, int i, int view);
int32_t row_sees(const struct graph *g, const struct ubatch *ub, int i, int view);

// compress.c: attention to a cache's cells and to keys made of blocks of positions, which lie behind them, sequence by sequence. The
// table shows the latter first; who sees what is for a mask to say.
struct more_inputs {
    struct ggml_tensor *query, *table;
};
struct more_inputs in_more(struct graph *g, enum attn_view view, const struct kv *kv, int64_t n_more);
