// Inside of the planner: what its two ways to place share. plan.c places blocks in some order, each at the lowest offset that is free;
// plan_rise.c places them from the lowest offset up, below a given height.
#pragma once

#include "alloc/plan.h"

#define NONE UINT32_MAX

// Items that take over one another's memory lie at one offset and never grow.
struct block {
    size_t bytes, offset;  // bytes: when it begins, which is the most
    size_t bytes_last;     // when it ends
    int32_t first, last;
    uint32_t edges;  // head of the list of neighbours, by edge index
    uint32_t n_edges;
    uint32_t part, part_last;  // list of its later, smaller parts, or NONE
    bool fixed;
};

// A block has these bytes from this step on: the result of the step before took over only a part of it.
struct part {
    size_t bytes;
    int32_t from;
    uint32_t next;
};

struct key {
    uint64_t value;  // ascending
    uint32_t block;
};

// Views into the scratch memory during one call.
struct packer {
    struct plan_scratch *s;
    struct plan_item *items;
    int n, n_steps;
    size_t max_chunk;
    struct block *blocks;
    struct part *parts;
    uint32_t n_blocks, n_edges, n_parts;
    uint32_t most_edges;  // of one block
    bool has_fixed;
    uint32_t *active;  // blocks alive at the sweep's step
    uint32_t *order, *moved;
    uint32_t *by_offset;  // placed blocks, ascending by offset
    uint32_t n_placed;
    uint32_t *near;  // placed neighbours of the block at hand
    struct key *keys, *spare;
    size_t *live;  // bytes live at each step
    size_t *best;  // offsets of the best placement so far, per item
    int32_t *best_over;
    size_t bound, work, limit;
};

static inline size_t plan_bytes_at(const struct packer *p, const struct block *b, int32_t step) {
    size_t bytes = b->bytes;
    for (uint32_t k = b->part; k != NONE && p->parts[k].from <= step; k = p->parts[k].next) bytes = p->parts[k].bytes;
    return bytes;
}

static inline uint64_t plan_units(const struct block *b) { return b->bytes / 32; }
static inline uint64_t plan_steps(const struct block *b) { return (uint64_t) (b->last - b->first) + 1; }

static inline uint64_t plan_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 40;
}

// Remembers the placement at hand if its peak is the lowest so far.
void plan_keep(struct packer *p, struct plan_result *r, size_t peak);

// Places the blocks as they are formed below `height`, spending about `work`, and keeps what it finds; *found: whether. Too many blocks
// for that work, blocks with given offsets and buffers of limited size it leaves to others. ERR_NOMEM.
MUST_USE enum err plan_rise(struct packer *p, struct plan_result *r, size_t height, size_t work, bool *found);

// Makes the room that plan_rise with up to `work` would want for the blocks at hand, whether it is called or not: a graph of nearly the
// same shape that comes later, and may miss its bound, then allocates nothing. ERR_NOMEM.
MUST_USE enum err plan_rise_reserve(const struct packer *p, size_t work);
