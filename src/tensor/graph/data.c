// Filling tensors with constants where they are: in host memory or in a device's buffer.
#include "graph/graph_int.h"
#include "ggml-backend.h"

#include <string.h>

struct ggml_tensor *ggml_set_zero(struct ggml_tensor *tensor) {
    if (!tensor || ggml_is_error(tensor) || ggml_is_empty(tensor)) return tensor;
    if (tensor->buffer) {
        ggml_backend_tensor_memset(tensor, 0, 0, ggml_nbytes(tensor));
    } else if (tensor->data) {
        memset(tensor->data, 0, ggml_nbytes(tensor));
    } else {
        (void) err_set(ERR_INVALID, "ggml_set_zero: %s has no memory yet", tensor->name);
    }
    return tensor;
}

static void set_one(struct ggml_tensor *t) {
    const float one = 1.0f;
    if (t->buffer) {
        ggml_backend_tensor_set(t, &one, 0, sizeof one);
    } else if (t->data) {
        memcpy(t->data, &one, sizeof one);
    }
}

void ggml_graph_reset(struct ggml_cgraph *cgraph) {
    if (!cgraph) return;
    if (!cgraph->grads) {
        (void) err_set(ERR_INVALID, "ggml_graph_reset: the graph was made without gradients");
        return;
    }
    for (int i = 0; i < cgraph->n_nodes; i++) {
        struct ggml_tensor *node = cgraph->nodes[i];
        if (node->op == GGML_OP_OPT_STEP_ADAMW) {
            ggml_set_zero(node->src[2]);
            ggml_set_zero(node->src[3]);
        }
        struct ggml_tensor *acc = ggml_graph_get_grad_acc(cgraph, node);
        if (!acc) continue;
        if (node->flags & GGML_TENSOR_FLAG_LOSS) {
            set_one(acc);
        } else {
            ggml_set_zero(acc);
        }
    }
}
