// Memory plans to look at: what a graph's intermediate results will need, before anything is allocated.
#pragma once

#include "ggml-backend.h"

#ifdef __cplusplus
extern "C" {
#endif

// One tensor that the plan gives memory to (views have none of their own).
struct ggml_plan_tensor {
    const char *op;  // name of the operation that writes it, "NONE" for inputs; static
    char name[GGML_MAX_NAME];
    enum ggml_type type;
    int64_t ne[4];
    int buffer;       // index of the buffer (backend) it lies in
    size_t bytes;     // padded to the buffer type's alignment
    size_t offset;    // in its buffer, or its chunk of it
    int chunk;        // which piece, where a buffer type's maximum size splits the plan
    int first, last;  // steps: 0 before the graph runs, i + 1 while node i runs, n_nodes + 1 after it
    int over;         // index of the tensor whose memory it takes over (same offset), or -1
    bool at_peak;     // live at the step of its buffer that makes the bound
    bool input, output;
};

struct ggml_plan_buffer {
    const char *name;  // of the buffer type; static
    size_t peak;       // bytes the plan uses
    // The most bytes live at once, with what this device allows to be overwritten and what it computes as one: peak >= bound.
    // The other bounds are for every node computed by itself.
    size_t bound;
    size_t lb1;       // with the operations that every device lets overwrite a source
    size_t lb2;       // with all that Lamina's kernels allow
    size_t best_fit;  // what placing in order of execution would use (operations of lb1 in place)
    int peak_step;    // a step at which `bound` bytes are live
    int n_chunks;
};

struct ggml_plan_report {
    int n_tensors, n_buffers, n_nodes;
    struct ggml_plan_tensor *tensors;
    struct ggml_plan_buffer *buffers;
    int64_t plan_us;  // time of the planning alone: reading the graph and placing
    int tries;        // placements it took
};

// Plans graph for buffers of those types, as ggml_gallocr_reserve_n would; nothing is allocated on them and the graph is
// not changed.
// node_ids [n_nodes], leaf_ids [n_leafs]: buffer of each, NULL: the first. The graph's tensors must not be placed yet.
// Owner: caller, ggml_plan_report_free. Errors: NULL, sentence recorded.
GGML_API struct ggml_plan_report *ggml_plan_report_new(struct ggml_cgraph *graph, ggml_backend_buffer_type_t *bufts,
                                                       int n_bufts, const int *node_ids, const int *leaf_ids);
// The same for a scheduler's buffers, its assignment of nodes and its copies between devices. Resets the scheduler.
GGML_API struct ggml_plan_report *ggml_backend_sched_plan_report(ggml_backend_sched_t sched, struct ggml_cgraph *graph);
GGML_API void ggml_plan_report_free(struct ggml_plan_report *report);

// Makes a graph that was allocated by this scheduler, and not changed since, the one at hand again, without a look at its nodes. False if its
// tensors may not lie where they did (buffers have grown since), or the scheduler has several backends or an evaluation
// callback: then ggml_backend_sched_reset and ggml_backend_sched_alloc_graph. Whether other graphs were computed in between does not
// matter; they share the memory, so inputs are to be set again.
GGML_API bool ggml_backend_sched_resume_graph(ggml_backend_sched_t sched, struct ggml_cgraph *graph);

// Bytes of scratch memory that a backend holds for computing (ggml_backend_sched_reserve has it sized in advance).
GGML_API size_t ggml_backend_work_size(ggml_backend_t backend);

// ---- what is neither data nor plan -----------------------------------------------------------------------------------
// Bytes asked of the heap, as a counter of allocations sees them; what the C library rounds them up to is not in it. Thread: as the
// object's.

// A context: itself, and its memory if that is its own. NULL: 0.
GGML_API size_t ggml_context_overhead(const struct ggml_context *ctx);
// A buffer, beside the bytes that it was made for: its handle, and what its device keeps of it. NULL: of memory that is somebody
// else's (ggml_backend_cpu_buffer_from_ptr), or of no bytes.
GGML_API size_t ggml_backend_buft_overhead(ggml_backend_buffer_type_t buft);
// The same for all buffers that ggml_backend_alloc_ctx_tensors_from_buft(ctx, buft) would make now.
GGML_API size_t ggml_backend_alloc_ctx_tensors_from_buft_overhead(struct ggml_context *ctx, ggml_backend_buffer_type_t buft);
// What a scheduler holds: its lists, the plan, the graph allocator's, and the handles of the compute buffers reserved so far, or
// planned with ggml_backend_sched_reserve_size.
GGML_API size_t ggml_backend_sched_overhead(ggml_backend_sched_t sched);
// What the graphs reserved or planned so far take on one of the scheduler's backends: bytes of its compute buffers, of scratch memory,
// and of the backend itself with its tables. 0 and a sentence if it is none of the scheduler's.
GGML_API size_t ggml_backend_sched_planned_size(ggml_backend_sched_t sched, ggml_backend_t backend);
GGML_API size_t ggml_backend_sched_work_size(ggml_backend_sched_t sched, ggml_backend_t backend);
GGML_API size_t ggml_backend_sched_table_size(ggml_backend_sched_t sched, ggml_backend_t backend);

#ifdef __cplusplus
}
#endif
