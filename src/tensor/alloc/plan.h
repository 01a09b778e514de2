// The planner: where each piece of memory lies, given how many bytes are needed from when to when. It knows nothing of
// tensors or buffers; gallocr and the scheduler (through gallocr) translate.
//
// Time counts steps: 0 before the first node, i + 1 while node i runs. What a node reads and what it writes are both live
// during its step, unless the result takes over a source's memory: the two are then one block.
//
// Method (plan.c): blocks that live at the same time are neighbours; blocks are placed from the largest to the smallest at
// the lowest offset that no placed neighbour uses. Where the peak exceeds the most bytes live at once, the blocks that
// stick out are moved to the front of the order and all are placed again; then other orders are tried; then blocks are chosen
// from the lowest offset up, below the bound as a ceiling (plan_rise.c), which packs nearly all that can be packed; at last
// other choices of what to take over. A block that a smaller result takes over goes on as a smaller one.
// Greedy by size is Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference" (2020); repair is our
// own.
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct plan_item {
    size_t bytes;         // a multiple of the alignment; 0 takes no room
    int32_t first, last;  // steps, inclusive; items are given in ascending order of first
    int32_t take[2];      // items whose memory this one may take over, or -1: no fewer bytes, their last == this one's first
    int32_t over;         // result: which of them it took over, or -1
    int32_t block;        // scratch of the planner
    size_t offset;        // result; given when fixed
    bool fixed;           // must lie at `offset`; takes over nothing and nothing takes it over
};

struct plan_result {
    size_t peak;   // one past the highest byte used
    size_t bound;  // the most bytes live at once: no plan can do better
    int tries;     // placements made
};

// Scratch memory of the planner, reused from plan to plan. Zero-initialised; freed with plan_scratch_free.
struct plan_scratch {
    void *memory;
    size_t bytes;
    uint32_t *edge_to, *edge_next;
    size_t edge_room;
    void *rise;  // of placing from below
    size_t rise_bytes;
};

// Plans n items within n_steps steps. max_chunk: no item may straddle a multiple of it (SIZE_MAX: one piece).
// effort: how many times as much work as the first placement may be spent on repair (0: none).
// ERR_NOMEM, or ERR_INVALID when an item exceeds max_chunk.
MUST_USE enum err plan_solve(struct plan_scratch *s, struct plan_item *items, int n, int n_steps, size_t max_chunk,
                             int effort, struct plan_result *result);

// Grow the scratch so that plan_solve for up to n items in n_steps steps allocates nothing (in all but degenerate cases).
MUST_USE enum err plan_scratch_reserve(struct plan_scratch *s, int n, int n_steps);
void plan_scratch_free(struct plan_scratch *s);

// Placement in the order of execution, each item at the best fitting gap of the moment: what most programs do. For
// comparison.
MUST_USE enum err plan_best_fit(struct plan_item *items, int n, struct plan_result *result);
