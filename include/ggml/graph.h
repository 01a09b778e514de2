// Graphs: building, walking, printing.
//
// A graph is a list of nodes (results of operations, and parameters) in an order in which each node's sources come before
// it, and of leafs (weights, inputs, constants). It lies in a context and is freed with it. Functions that return graphs
// give NULL on failure, and all accept NULL. A graph that something went wrong with (a builder's error tensor, too many
// nodes) keeps the sentence and computes to GGML_STATUS_FAILED.
// Thread: one thread at a time per graph and context.
#pragma once

#include "ggml/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// New empty graph with room for `size` nodes and as many leafs (GGML_DEFAULT_GRAPH_SIZE in the first form), and for
// gradients if asked. It takes ggml_graph_overhead_custom(size, grads) bytes of ctx. NULL: ctx is full, or size above 33
// million.
GGML_API struct ggml_cgraph *ggml_new_graph(struct ggml_context *ctx);
GGML_API struct ggml_cgraph *ggml_new_graph_custom(struct ggml_context *ctx, size_t size, bool grads);
GGML_API size_t ggml_graph_overhead(void);
GGML_API size_t ggml_graph_overhead_custom(size_t size, bool grads);

// Adds tensor and all that it is made from, unless they are in the graph already; nothing is computed. Tensors without a
// name get one ("node_17", "leaf_3"). Sources are walked depth first, in the order of src[].
GGML_API void ggml_build_forward_expand(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor);
// The same, but fixes only the place in the order: what is added is computed only if something that is computed needs it.
GGML_API void ggml_build_forward_order(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor);
// Adds all n_tensors alternatives, so that each has its memory, and marks only tensors[idx] to be computed. Returns
// tensors[idx].
GGML_API struct ggml_tensor *ggml_build_forward_select(struct ggml_cgraph *cgraph, struct ggml_tensor **tensors,
                                                       int n_tensors, int idx);
// Adds the gradients of the tensor marked by ggml_set_loss with respect to those marked by ggml_set_param (Linnainmaa's
// reverse accumulation). cgraph: holds the forward nodes, made with grads. ctx: takes the new tensors.
//   grad_accs [n_nodes]: per forward node a tensor of its shape, F32, in which its gradient is summed up over computations
//   until
//   ggml_graph_reset; entries, or the whole, may be NULL. Gradients are F32, contiguous, and stay valid as any other node.
// Before the first computation call ggml_graph_reset: it sets the loss's own gradient to 1.
// Errors: an operation without a gradient, or in place, on the way makes the graph one that fails.
GGML_API void ggml_build_backward_expand(struct ggml_context *ctx, struct ggml_cgraph *cgraph,
                                         struct ggml_tensor **grad_accs);

// Copies a graph's lists (the tensors are shared). dup makes the copy in ctx, with gradients if the source has them or
// force_grads.
GGML_API struct ggml_cgraph *ggml_graph_dup(struct ggml_context *ctx, struct ggml_cgraph *cgraph, bool force_grads);
GGML_API void ggml_graph_cpy(struct ggml_cgraph *src, struct ggml_cgraph *dst);
// Gradient accumulators to zero, the loss's to one, AdamW's momenta to zero. Needs allocated tensors.
GGML_API void ggml_graph_reset(struct ggml_cgraph *cgraph);
// Empties the graph; its tensors stay in their context.
GGML_API void ggml_graph_clear(struct ggml_cgraph *cgraph);

// Room for nodes; number of nodes; the list itself; one node, counted from the end if i < 0 (-1 is the last; NULL if
// outside).
GGML_API int ggml_graph_size(struct ggml_cgraph *cgraph);
GGML_API int ggml_graph_n_nodes(struct ggml_cgraph *cgraph);
GGML_API struct ggml_tensor **ggml_graph_nodes(struct ggml_cgraph *cgraph);
GGML_API struct ggml_tensor *ggml_graph_node(struct ggml_cgraph *cgraph, int i);
// Appends a node as it is, without its sources.
GGML_API void ggml_graph_add_node(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor);
// First leaf or node of that name, NULL if there is none.
GGML_API struct ggml_tensor *ggml_graph_get_tensor(const struct ggml_cgraph *cgraph, const char *name);
// Gradient of a node, and the accumulator that it is summed up in; NULL if it has none.
GGML_API struct ggml_tensor *ggml_graph_get_grad(const struct ggml_cgraph *cgraph, const struct ggml_tensor *node);
GGML_API struct ggml_tensor *ggml_graph_get_grad_acc(const struct ggml_cgraph *cgraph, const struct ggml_tensor *node);

// Lists nodes and leafs through the log sink.
GGML_API void ggml_graph_print(const struct ggml_cgraph *cgraph);
// Writes the graph in the dot language of Graphviz. gb: the graph with gradients if that is another one, or NULL.
GGML_API void ggml_graph_dump_dot(const struct ggml_cgraph *gb, const struct ggml_cgraph *cgraph, const char *filename);

#ifdef __cplusplus
}
#endif
