// Which cell of the cache holds which position of which sequence: bookkeeping only, no tensors, so that it can be tested
// against a naive model.
//
// Cells come in blocks of 64 consecutive positions of one sequence (cell mod 64 == index mod 64), because attention computes
// block by block and merges in order: a sequence's results then don't depend on what else lives in the cache. Each sequence
// has a table of blocks with a 64-bit set of the positions that exist; the table is laid out as the attention operation reads
// it and is used in place. Sequences share blocks (counted); a shared block is copied before one of them writes to it.
//
// A token's place in its sequence is its index. Normally index == position. Only where several tokens of one sequence have the
// same position (seq_div, images under M-RoPE) the sequence becomes irregular: indexes are then given in order of arrival.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define CELL_BLOCK GGML_ATTN_BLOCK
// A table begins at a multiple of so many blocks: attention merges blocks in groups, and the groups must not depend on how
// far the table has slid.
#define CELL_STRIPE GGML_ATTN_STRIPE

struct cell_entry {
    int32_t block;    // physical block, -1: none
    uint32_t lo, hi;  // which of its 64 positions exist
};

struct cell_copy {
    int32_t src, dst, n;  // n consecutive cells
};

struct cell_copies {
    struct cell_copy *v;
    int32_t n, cap;
    bool failed;  // out of memory while growing
};

struct cells {
    int32_t n_seq, n_block, n_logical;
    int32_t n_max;             // positions that a sequence may hold, 0: as many as its table has room for
    struct cell_entry *table;  // [n_seq][n_logical]
    bool owns_table;
    int32_t *base;               // [n_seq] logical block of table entry 0
    int32_t *pos_min, *pos_max;  // [n_seq] -1: empty
    int32_t *idx_max;            // [n_seq]
    int32_t *count;              // [n_seq] positions that exist
    bool *irregular;             // [n_seq]
    int32_t *ref;                // [n_block] sequences whose table names the block
    int32_t *free, n_free;       // stack of free blocks
    int32_t *pos;                // [n_block * 64] position of each cell
    int32_t *shift;              // [n_block * 64] rotation its key still needs
    bool any_shift;
    bool track_shift;  // keys are rotated by position
    void *snapshot;    // room for a copy of everything above
    size_t state_bytes;
};

// table: memory of n_seq * n_logical entries that outlives c, or NULL to allocate it.
MUST_USE enum err cells_init(struct cells *c, int n_seq, int n_block, int n_logical, bool track_shift, void *table);
void cells_free(struct cells *c);
// Bytes of the heap that the tables take; a table given to cells_init is not among them.
size_t cells_bytes(const struct cells *c);
void cells_clear(struct cells *c);
static inline size_t cells_table_bytes(int n_seq, int n_logical) {
    return (size_t) n_seq * (size_t) n_logical * sizeof(struct cell_entry);
}

// Remember the bookkeeping; go back to it. For placing a batch whole or not at all. No allocation.
void cells_save(struct cells *c);
void cells_restore(struct cells *c);

// Place one token of the given sequences (all get the same cell). cell: where; index: its index. A block that must be copied
// first is appended to copies. Returns false, with nothing changed, if no block is free, a sequence is full (n_max) or its span is
// too long.
// The sequences must agree (cells_same_block).
bool cells_place(struct cells *c, const int32_t *seq, int n_seq, int32_t pos, int32_t *cell, int32_t *index,
                 struct cell_copies *copies);
// The block that the next token at pos of this sequence would go to: -1 none yet. index (may be NULL): its index.
int32_t cells_target(const struct cells *c, int32_t seq, int32_t pos, int32_t *index);

// Positions [p0, p1) of one sequence; p0 < 0 means 0, p1 < 0 means no end.
void cells_rm(struct cells *c, int32_t seq, int32_t p0, int32_t p1);
void cells_cp(struct cells *c, int32_t src, int32_t dst, int32_t p0, int32_t p1, struct cell_copies *copies);
void cells_keep(struct cells *c, int32_t seq);
void cells_add(struct cells *c, int32_t seq, int32_t p0, int32_t p1, int32_t delta, struct cell_copies *copies);
void cells_div(struct cells *c, int32_t seq, int32_t p0, int32_t p1, int32_t d, struct cell_copies *copies);
// Free whole blocks that hold only indexes below first.
void cells_prune(struct cells *c, int32_t seq, int32_t first);

// Walk: the smallest existing index >= from, or -1; its cell and position.
int32_t cells_next(const struct cells *c, int32_t seq, int32_t from, int32_t *cell, int32_t *pos);
int32_t cells_count(const struct cells *c, int32_t seq);
bool cells_has(const struct cells *c, int32_t seq, int32_t pos);

void cell_copies_add(struct cell_copies *k, int32_t src, int32_t dst, int32_t n);
