// Private to attn*.c.
#pragma once

#include "block/block.h"

// Where keys are: the full cache, the small one of windowed layers, or scratch inside the graph.
enum attn_view { VIEW_FULL = 0, VIEW_SMALL = 1, VIEW_SCRATCH = 2 };
// Added to the view: a mask that holds minus the distance instead of 0, for ALiBi; a mask of half floats.
enum { MASK_DISTANCES = 16, MASK_HALF = 32 };

void fill_query(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst);
void fill_cells(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst);
void fill_gather(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst);
void fill_scratch_table(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst);
void fill_mask(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst);
void fill_buckets(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst);
void fill_pool_pos(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst);
void fill_cell_pos(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst);
// Calls fn for every cell of the cache that row i of the micro-batch sees without a window.
void each_seen(int view, const struct graph *g, const struct ubatch *ub, int i,
               void (*fn)(void *ud, int32_t cell, int32_t index), void *ud);
