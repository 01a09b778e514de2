// Which nodes are computed as one, and which of their results need no memory. The device of the nodes says the first; the second
// follows from the graph: a result that is read by those nodes alone, and that no program may look at.
#include "alloc/gallocr.h"
#include "ops/op.h"

// Whoever may look at it: an output; an input, which the program writes; what has memory already.
static bool is_seen(const struct ggml_gallocr *g, const struct ggml_tensor *t) {
    const int flags = GGML_TENSOR_FLAG_INPUT | GGML_TENSOR_FLAG_OUTPUT | GGML_TENSOR_FLAG_PARAM | GGML_TENSOR_FLAG_LOSS;
    return (t->flags & flags) || (!t->view_src && t->data && !gallocr_owns(g, t->buffer));
}

// All uses of t are by the n nodes, directly or through views among them that have no other uses either.
static bool stays_inside(const struct ggml_gallocr *g, const struct ggml_cgraph *graph, int i, int n, int k) {
    const struct ggml_tensor *t = graph->nodes[k];
    int uses = 0;
    if (is_seen(g, t)) return false;
    const int all = graph_use_count(graph, t);
    for (int j = k + 1; j < i + n && uses < all; j++) {
        const struct ggml_tensor *u = graph->nodes[j];
        bool reads = false;
        for (int s = 0; s < GGML_MAX_SRC; s++) {
            if (u->src[s] != t) continue;
            uses++;
            reads = true;
        }
        const bool view = u->view_src && u->view_src == gallocr_root(graph->nodes[k]);
        if (reads && view && !stays_inside(g, graph, i, n, j)) return false;
    }
    return uses > 0 && uses == all;
}

int gallocr_span(const struct ggml_gallocr *g, const struct ggml_cgraph *graph, const int *node_ids, int i, uint64_t *none) {
    const int id = node_ids ? node_ids[i] : 0;
    const ggml_backend_dev_t dev = g->devices[id];
    *none = 0;
    if (g->singly || g->never || graph->grads || !graph->use_counts || !dev || !dev->iface->fuse) return 1;
    const int n = dev->iface->fuse(dev, graph, i);
    if (n <= 1 || n > MAX_SPAN || n > graph->n_nodes - i) return 1;
    for (int k = i; k < i + n; k++) {
        if (node_ids && node_ids[k] != id) return 1;
        if (graph->nodes[k]->flags & GGML_TENSOR_FLAG_INPUT) return 1;
    }
    for (int k = i; k < i + n; k++) {
        if (!graph->nodes[k]->view_src && stays_inside(g, graph, i, n, k)) *none |= (uint64_t) 1 << (k - i);
    }
    // Where all keep their memory the device computes them one by one: planned as one they could only need more of it at once.
    return *none ? n : 1;
}
