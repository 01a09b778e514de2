// The inside of the graph allocator: what it knows of a graph between planning it and giving its tensors their addresses.
#pragma once

#include "alloc/plan.h"
#include "graph/graph.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml/device.h"

// GALLOCR_EFFORT: how much more work than the first placement may go into meeting the bound.
// REF_EXTERNAL: has memory that is not the allocator's. REF_NONE: has none, and needs none: its device computes it together with all
// that read it.
enum { GALLOCR_EFFORT = 12, REF_EXTERNAL = -1, REF_NONE = -2, MAX_POOLS = 64, MAX_CHUNKS = 64, MAX_SPAN = 64 };

// A tensor that the allocator gives memory to (never a view). Parallel to the planner's items.
struct slot {
    struct ggml_tensor *root;  // the tensor of the graph at hand, while one is being fitted
    size_t size;               // bytes reserved for it
    void *address;             // once the buffers exist
    ggml_backend_buffer_t buffer;
    int16_t pool, chunk;
    bool output, input;  // as flagged when it was planned
    bool pinned;         // the result of an earlier graph, to be read where it is
};

// What is remembered of a node, to recognise a graph of the same shape.
struct node_ref {
    int32_t slot;       // of the node's root, or REF_EXTERNAL, or REF_NONE
    int32_t first_src;  // index into src_slots
    int32_t step;       // at which it runs: the same for all nodes that are computed as one
    int16_t span;       // nodes that are computed as one, at the first of them; 0 at the others
    int16_t n_src;
    int16_t buffer_id;
    uint16_t op;
    int16_t takes;  // source whose memory the node took over, or -1
    bool is_view;   // nothing runs
};

struct leaf_ref {
    int32_t slot;
    int32_t buffer_id;
};

struct chunk {
    ggml_backend_buffer_t buffer;
    size_t need;  // bytes the current plan uses
    size_t most;  // bytes of the neediest plan reserved so far, whether there is a buffer for it or not
};

// Buffer types that are equal share one pool.
struct pool {
    ggml_backend_buffer_type_t buft;
    struct chunk chunks[MAX_CHUNKS];
    int n_chunks, most_chunks;  // of the current plan; of any so far, 0: none was reserved
    size_t bound, peak;         // of the current plan
};

// Everything the allocator reads off a graph.
struct layout {
    int n_nodes, n_leafs, n_slots, n_refs;
    int node_room, leaf_room, slot_room, ref_room;
    struct node_ref *nodes;
    struct leaf_ref *leafs;
    int32_t *src_slots;  // slots of the nodes' sources, nodes in order
    struct slot *slots;
    struct plan_item *items;  // of the slots
    bool planned, backed;     // offsets are there; buffers are too
    bool singly;              // planned without asking devices what they compute as one
    int n_fused;              // nodes without memory
};

// Scratch for reading a graph: every tensor met, by address.
struct tensor_map {
    const struct ggml_tensor **keys;
    int32_t *values;  // entry number
    size_t size;      // a power of two
    int32_t *entry_slot;
    bool *entry_read;  // some node reads it
    int n_entries, entry_room;
};

struct ggml_gallocr {
    int n_ids;
    int pool_of_id[MAX_POOLS];
    ggml_backend_dev_t devices[MAX_POOLS];  // of the ids: who computes the nodes
    bool singly;                            // somebody wants to see every node
    bool never;                             // GGML_NO_FUSE is set
    int n_pools;
    struct pool *pools;
    struct layout layout;  // the plan in force
    struct layout other;   // the plan before it, if its graph had another shape: prompts and generation take turns
    struct tensor_map map;
    struct plan_scratch scratch;
    struct plan_item *pool_items;  // items of one pool, when there are several
    int32_t *pool_index;
    int pool_room;
    int tries;       // placements that the last plan took
    uint64_t epoch;  // another number for each allocator, and whenever a buffer moves: what was placed before is then void
};

// Reads graph into g->layout and g->map: slots, lifetimes, what may take over what.
MUST_USE enum err gallocr_read(struct ggml_gallocr *g, const struct ggml_cgraph *graph, const int *node_ids,
                               const int *leaf_ids);
// Nodes from i on that are computed as one, and, as bits counted from i, those of them that need no memory: nobody else reads or
// may look at them. ids: of the nodes, or NULL.
int gallocr_span(const struct ggml_gallocr *g, const struct ggml_cgraph *graph, const int *node_ids, int i, uint64_t *none);
// Places the slots: offsets, chunks and their needs.
MUST_USE enum err gallocr_place(struct ggml_gallocr *g, int effort);
// FIT_YES: the graph has the shape that was planned and nothing in it is larger than its slot; its tensors have their
// addresses. First the leafs, then the nodes. FIT_ERROR: a device refused a tensor. ids: as for reserve_n; NULL: whatever
// was planned.
enum fit { FIT_NO, FIT_YES, FIT_ERROR };
enum fit gallocr_fit_leafs(struct ggml_gallocr *g, const struct ggml_cgraph *graph, const int *leaf_ids);
enum fit gallocr_fit_nodes(struct ggml_gallocr *g, const struct ggml_cgraph *graph, const int *node_ids);

// Puts the other plan in force if it is for as many nodes and leafs as graph has; false if not. After FIT_NO, for another try.
bool gallocr_turn(struct ggml_gallocr *g, const struct ggml_cgraph *graph);

// Whether a tensor's memory is the allocator's own: left from an earlier graph or plan, and its to give again. A pool keeps
// its buffer handles when it grows, so that this holds for addresses that are out of date, too.
bool gallocr_owns(const struct ggml_gallocr *g, ggml_backend_buffer_t buffer);

// Whether node's result may be written over its source i_src: the operation and the device allow it and every element has
// the same offset in both. *wide: only Lamina's kernels allow it (the set of bound LB2), not every device.
bool gallocr_may_take(const struct ggml_tensor *node, int i_src, ggml_backend_buffer_type_t buft, bool *wide);

// Bytes that a tensor takes in a buffer type. Nearly all are packed and need no more than their last stride.
static inline size_t gallocr_bytes(ggml_backend_buffer_type_t buft, const struct ggml_tensor *t) {
    if (!buft->iface->get_alloc_size && t->ne[0] > 0 && t->nb[2] == t->nb[1] * (size_t) t->ne[1] &&
        t->nb[3] == t->nb[2] * (size_t) t->ne[2]) {
        return t->nb[3] * (size_t) t->ne[3];
    }
    return ggml_backend_buft_get_alloc_size(buft, t);
}

static inline struct ggml_tensor *gallocr_root(struct ggml_tensor *t) { return t->view_src ? t->view_src : t; }

// Heap bytes of the allocator's own bookkeeping, and of its buffers' handles.
size_t gallocr_overhead(const struct ggml_gallocr *g);
// Bytes of the buffers of id that all plans reserved so far, with memory or without, take.
size_t gallocr_planned_size(const struct ggml_gallocr *g, int id);
