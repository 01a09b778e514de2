// Graphs: building, walking, printing.
#pragma once

#include "ggml/types.h"

#ifdef __cplusplus
extern "C" {
#endif

GGML_API struct ggml_tensor *ggml_build_forward_select(struct ggml_cgraph *cgraph, struct ggml_tensor **tensors, int n_tensors, int idx);
GGML_API void ggml_build_forward_expand(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor);
GGML_API void ggml_build_forward_order(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor);
GGML_API void ggml_build_backward_expand(struct ggml_context *ctx, struct ggml_cgraph *cgraph, struct ggml_tensor **grad_accs);
GGML_API struct ggml_cgraph *ggml_new_graph(struct ggml_context *ctx);
GGML_API struct ggml_cgraph *ggml_new_graph_custom(struct ggml_context *ctx, size_t size, bool grads);
GGML_API struct ggml_cgraph *ggml_graph_dup(struct ggml_context *ctx, struct ggml_cgraph *cgraph, bool force_grads);
GGML_API void ggml_graph_cpy(struct ggml_cgraph *src, struct ggml_cgraph *dst);
GGML_API void ggml_graph_reset(struct ggml_cgraph *cgraph);
GGML_API void ggml_graph_clear(struct ggml_cgraph *cgraph);
GGML_API int ggml_graph_size(struct ggml_cgraph *cgraph);
GGML_API struct ggml_tensor *ggml_graph_node(struct ggml_cgraph *cgraph, int i);
GGML_API struct ggml_tensor * *ggml_graph_nodes(struct ggml_cgraph *cgraph);
GGML_API int ggml_graph_n_nodes(struct ggml_cgraph *cgraph);
GGML_API void ggml_graph_add_node(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor);
GGML_API size_t ggml_graph_overhead(void);
GGML_API size_t ggml_graph_overhead_custom(size_t size, bool grads);
GGML_API struct ggml_tensor *ggml_graph_get_tensor(const struct ggml_cgraph *cgraph, const char *name);
GGML_API struct ggml_tensor *ggml_graph_get_grad(const struct ggml_cgraph *cgraph, const struct ggml_tensor *node);
GGML_API struct ggml_tensor *ggml_graph_get_grad_acc(const struct ggml_cgraph *cgraph, const struct ggml_tensor *node);
GGML_API void ggml_graph_print(const struct ggml_cgraph *cgraph);
GGML_API void ggml_graph_dump_dot(const struct ggml_cgraph *gb, const struct ggml_cgraph *cgraph, const char *filename);

#ifdef __cplusplus
}
#endif
