// The inside of the scheduler. A graph goes through five steps: every tensor gets a backend (sched_assign.c, four passes),
// the nodes are cut into splits of one backend each with the copies between them (sched_split.c), gallocr gives everything
// memory (sched.c), and the splits run in order (sched_run.c).
//
// The graph itself is not changed: a node that must read a copy instead of its source is run as a shadow, a copy of its
// struct with other sources, made after its memory is known. So a graph can be split again, and its tensors may be freed
// at any time.
#pragma once

#include "alloc/gallocr.h"
#include "device/device.h"

enum {
    SCHED_MAX_BACKENDS = 16,
    SCHED_MAX_COPIES = 4,  // sets of inputs when consecutive graphs overlap
    SCHED_MAX_SPLIT_INPUTS = 30,
    SCHED_TENSORS_PER_BLOCK = 64,
    SCHED_NOWHERE = -1,  // not assigned yet
    SCHED_FOREIGN = -2,  // in a buffer that no backend of this scheduler can use: always read through a copy
};

// What the scheduler knows of a tensor of the graph at hand.
struct sched_entry {
    struct ggml_tensor *tensor;
    int32_t root;     // entry of its view_src, or its own
    int32_t copies;   // head of the list of its copies, -1
    int32_t version;  // of a root: how often an operation in place has written it so far (splitting)
    int16_t backend;
    const char *cause;  // which rule assigned it, for the debug print
};

// A source on another backend: one tensor per set of inputs.
struct sched_copy {
    struct ggml_tensor *source;
    struct ggml_tensor *to[SCHED_MAX_COPIES];
    struct ggml_tensor *marker;  // with several sets: an empty tensor that reads the source
    int32_t next;                // of the same source
    int32_t version;
    int16_t backend, source_backend;
    bool user_input;
};

// A node that reads a copy: source i_src is `copy`.
struct sched_patch {
    struct ggml_tensor *node;
    struct ggml_tensor *original;  // what the node reads in the graph
    int32_t copy;
    int32_t position;  // of the node in the scheduler's own graph
    int16_t i_src;
};

struct sched_split {
    int backend;
    int i_start, i_end;        // nodes of the graph at hand
    int first_copy, n_copies;  // copies to make before it runs
    int own_start, own_end;    // the same nodes in the scheduler's own graph
    struct ggml_cgraph graph;
};

struct sched_preset {
    struct ggml_tensor *tensor;
    int backend;
};

// An input that has a set of places of its own, so that the next one can be written while this graph runs.
struct sched_rotated {
    struct ggml_tensor *input;
    struct ggml_tensor *others[SCHED_MAX_COPIES];  // [0] unused: the input itself
    int32_t flags;                                 // of the input, while gallocr is shown it as something to keep
};

// Tensors of the scheduler's own; blocks, so that addresses stay.
struct sched_tensors {
    struct ggml_tensor **blocks;
    int n_blocks, n_used;
};

struct ggml_backend_sched {
    int n_backends;
    ggml_backend_t backends[SCHED_MAX_BACKENDS];
    ggml_backend_buffer_type_t bufts[SCHED_MAX_BACKENDS];
    ggml_backend_event_t events[SCHED_MAX_BACKENDS][SCHED_MAX_COPIES];
    ggml_gallocr_t galloc;
    bool op_offload;
    int debug;

    // The graph at hand, as entries.
    struct ggml_cgraph *graph;
    const struct ggml_tensor **keys;
    int32_t *values;
    size_t map_size;
    struct sched_entry *entries;
    int n_entries, entry_room;
    int32_t *node_entry, *node_src;  // src: entries of node i's sources at i * GGML_MAX_SRC
    int node_room;

    struct sched_preset *presets;
    int n_presets, preset_room;
    struct sched_split *splits;
    int n_splits, split_room;
    struct sched_copy *copies;
    int n_copies, copy_room;
    struct sched_patch *patches;
    int n_patches, patch_room;
    struct sched_rotated *rotated;
    int n_rotated, rotated_room;
    struct sched_tensors pool;

    // The graph as gallocr sees it: the nodes and the copies between them.
    struct ggml_cgraph own;
    int own_nodes_room, own_leafs_room;
    int *node_ids, *leaf_ids;
    bool own_in_use;  // false: one backend, the graph at hand is taken as it is

    int n_sets, set, next_set;                           // sets of inputs, the one in use, the next one
    struct ggml_stream_needs needs[SCHED_MAX_BACKENDS];  // of the graphs reserved or planned so far
    bool is_reset, is_alloc;
    ggml_backend_sched_eval_callback callback;
    void *callback_data;
};

// Lists all tensors of graph as entries, presets applied.
MUST_USE enum err sched_enter(struct ggml_backend_sched *s, struct ggml_cgraph *graph);
int32_t sched_find(const struct ggml_backend_sched *s, const struct ggml_tensor *t);  // entry, or -1
// Passes 1 to 4: every entry gets a backend.
MUST_USE enum err sched_assign(struct ggml_backend_sched *s);
// Pass 5: splits, copies, patches, and the scheduler's own graph.
MUST_USE enum err sched_split(struct ggml_backend_sched *s);
struct ggml_tensor *sched_new_tensor(struct ggml_backend_sched *s);  // until the next split; NULL: no memory
enum ggml_status sched_run(struct ggml_backend_sched *s);
void sched_print(const struct ggml_backend_sched *s);
void sched_print_plan(struct ggml_backend_sched *s, struct ggml_cgraph *graph, const int *node_ids, const int *leaf_ids);

// Whether backend b can read e where it lies or will lie.
bool sched_readable(const struct ggml_backend_sched *s, const struct sched_entry *e, int b);
bool sched_is_view(const struct ggml_tensor *t);  // a node that only makes a view: nothing runs
// First backend that can use the buffer and run op; SCHED_NOWHERE if none.
int sched_backend_of_buffer(const struct ggml_backend_sched *s, ggml_backend_buffer_t buffer, const struct ggml_tensor *op);
// Array growth for the lists above; `room` counts elements.
MUST_USE enum err sched_grow(void **p, int *room, int need, size_t size);

static inline ggml_backend_buffer_t sched_buffer(const struct ggml_tensor *t) {
    return t->view_src ? t->view_src->buffer : t->buffer;
}
