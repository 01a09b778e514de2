// Allocators: linear tensor allocator, graph allocator, whole contexts.
#pragma once

#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ggml_backend_buffer_type *ggml_backend_buffer_type_t;
typedef struct ggml_backend_buffer *ggml_backend_buffer_t;
typedef struct ggml_backend *ggml_backend_t;
typedef struct ggml_gallocr *ggml_gallocr_t;

// ---- one after the other -------------------------------------------------------------------------------------------

// A linear allocator: tensors one after the other in a buffer, never given back. A value; nothing to free. The buffer must
// outlive the tensors.
struct ggml_tallocr {
    ggml_backend_buffer_t buffer;
    void *base;
    size_t alignment;
    size_t offset;
};

// Starts at the buffer's first aligned byte. Errors: buffer NULL gives an allocator that places nothing.
GGML_API struct ggml_tallocr ggml_tallocr_new(ggml_backend_buffer_t buffer);
// Places tensor (which has no memory yet and is no view) at the next aligned offset; sets its data and buffer.
// GGML_STATUS_ALLOC_FAILED: the rest of the buffer is too small; tensor unchanged, the allocator goes on with smaller ones.
GGML_API enum ggml_status ggml_tallocr_alloc(struct ggml_tallocr *talloc, struct ggml_tensor *tensor);

// ---- graphs --------------------------------------------------------------------------------------------------------

// A graph allocator: plans the memory of a graph's results so that those never needed at the same time share their bytes,
// and gives the tensors their addresses. What has memory already (weights, caches) is left where it is.
// Owner: caller. Thread: one at a time. Errors: NULL.
GGML_API ggml_gallocr_t ggml_gallocr_new(ggml_backend_buffer_type_t buft);
// The same over n_bufs buffers, numbered as given (1 .. 64). Equal types share one buffer.
GGML_API ggml_gallocr_t ggml_gallocr_new_n(ggml_backend_buffer_type_t *bufts, int n_bufs);
// Frees the buffers too: tensors allocated from it have no memory any more. NULL is fine.
GGML_API void ggml_gallocr_free(ggml_gallocr_t galloc);
// Plans for a graph and makes its buffers at least as large; they never shrink. Give it the largest graph to come, before
// the first alloc_graph, and nothing is allocated afterwards. The graph's tensors are not touched.
// Rules of the plan: leafs and inputs (ggml_set_input) are all apart and may be written before the graph runs; outputs
// (ggml_set_output), and whatever no node reads, keep their memory to the end; other results may take the place of ones
// that no later node reads, also of their own sources where the operation allows it. Views lie in their sources.
// With a buffer type of limited size the plan is cut into pieces; a single tensor above the limit is an error.
// Errors: false, sentence recorded; the allocator can be used again, e.g. for a smaller graph.
GGML_API bool ggml_gallocr_reserve(ggml_gallocr_t galloc, struct ggml_cgraph *graph);
// The plan without the buffers: sizes [n_bufs] gets the bytes that reserve_n would allocate (0 for a type that an earlier
// number shares, and on errors). Afterwards the allocator plans again at its next use.
GGML_API void ggml_gallocr_reserve_n_size(ggml_gallocr_t galloc, struct ggml_cgraph *graph, const int *node_buffer_ids,
                                          const int *leaf_buffer_ids, size_t *sizes);
// node_buffer_ids [n_nodes], leaf_buffer_ids [n_leafs]: buffer number of each; NULL: 0.
GGML_API bool ggml_gallocr_reserve_n(ggml_gallocr_t galloc, struct ggml_cgraph *graph, const int *node_buffer_ids,
                                     const int *leaf_buffer_ids);
// Gives every tensor of the graph that has none its address. A graph fits the plan when it has as many nodes and leafs,
// wired in the same way, and nothing in it is larger than in its slot: then nothing is planned or allocated. If it does
// not fit, a single-buffer allocator reserves for it (which may move the buffer: earlier graphs lose their memory); with
// several buffers it is only planned anew within the room there is, and else the call fails: use reserve_n.
// A result of an earlier graph of this allocator that the new graph reads without computing it stays where it is and is kept
// intact, if it was marked with ggml_set_output; without the mark it may have been overwritten, which is logged as a
// warning.
// Errors: false, sentence recorded.
GGML_API bool ggml_gallocr_alloc_graph(ggml_gallocr_t galloc, struct ggml_cgraph *graph);
// Bytes allocated for a buffer number, all pieces together; 0 for a number that shares an earlier one's buffer.
GGML_API size_t ggml_gallocr_get_buffer_size(ggml_gallocr_t galloc, int buffer_id);

// ---- whole contexts ------------------------------------------------------------------------------------------------

// Bytes that the next call would allocate, exactly; 0 when a tensor exceeds the type's maximum size (sentence recorded).
GGML_API size_t ggml_backend_alloc_ctx_tensors_from_buft_size(struct ggml_context *ctx, ggml_backend_buffer_type_t buft);
// Memory for every tensor of ctx that has none, in the order of creation, and places its views. One buffer, or, beyond the
// type's maximum size, several behind one handle. NULL: nothing to allocate, or an error (sentence recorded; no tensor has
// changed).
// Owner: caller (ggml_backend_buffer_free; the tensors then have no memory any more, though they do not know it).
GGML_API struct ggml_backend_buffer *ggml_backend_alloc_ctx_tensors_from_buft(struct ggml_context *ctx,
                                                                              ggml_backend_buffer_type_t buft);
// The same in the backend's default buffer type.
GGML_API struct ggml_backend_buffer *ggml_backend_alloc_ctx_tensors(struct ggml_context *ctx, ggml_backend_t backend);

#ifdef __cplusplus
}
#endif
