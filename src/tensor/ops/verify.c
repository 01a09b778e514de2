// Checks a graph that this library did not build (or whose tensors a program has written to): every node is what its
// operation would make of its sources. Running a graph relies on this, since kernels check nothing but row indices.
#include "ops/verify.h"
#include "ops/op.h"

static enum err check_node(const struct ggml_tensor *t, int i) {
    const struct op *op = op_get(t->op);
    if (!op) return err_set(ERR_INVALID, "node %d (%s): there is no operation %d in this build", i, t->name, (int) t->op);
    if (t->op == GGML_OP_NONE) return ERR_OK;
    for (int k = 0; k < op->n_src; k++) {
        if (!t->src[k]) return err_set(ERR_INVALID, "node %d (%s): source %d is missing", i, ggml_op_name(t->op), k);
    }
    for (int k = 0; k < GGML_MAX_SRC; k++) {
        if (t->src[k] && ggml_is_error(t->src[k])) {
            return err_set(ERR_INVALID, "node %d (%s): source %d is the error tensor", i, ggml_op_name(t->op), k);
        }
    }
    struct op_shape shape = {.ne = {1, 1, 1, 1}};
    TRY(op->infer(t, &shape));
    bool same = shape.type == t->type;
    for (int d = 0; d < GGML_MAX_DIMS; d++) same &= shape.ne[d] == t->ne[d];
    if (same) return ERR_OK;
    return err_set(ERR_INVALID, "node %d (%s): is %s [%lld, %lld, %lld, %lld], its sources give %s [%lld, %lld, %lld, %lld]",
                   i, ggml_op_name(t->op), ggml_type_name(t->type), (long long) t->ne[0], (long long) t->ne[1],
                   (long long) t->ne[2], (long long) t->ne[3], ggml_type_name(shape.type), (long long) shape.ne[0],
                   (long long) shape.ne[1], (long long) shape.ne[2], (long long) shape.ne[3]);
}

static enum err check_view(const struct ggml_tensor *t, int i) {
    if (!t->view_src) return ERR_OK;
    const size_t root = ggml_nbytes(t->view_src), bytes = ggml_nbytes(t);
    if (!t->view_src->view_src && t->view_offs <= root && bytes <= root - t->view_offs) return ERR_OK;
    return err_set(ERR_INVALID, "node %d (%s): a view of %zu bytes at offset %zu into %s of %zu bytes", i, t->name, bytes,
                   t->view_offs, t->view_src->name, root);
}

enum err graph_verify(const struct ggml_cgraph *g) {
    if (!g) return err_set(ERR_INVALID, "no graph given (NULL)");
    if (g->failure[0]) return err_set(ERR_INVALID, "%s", g->failure);
    for (int i = 0; i < g->n_nodes; i++) {
        if (!g->nodes[i]) return err_set(ERR_INVALID, "node %d is NULL", i);
        TRY(check_view(g->nodes[i], i));
        TRY(check_node(g->nodes[i], i));
    }
    return ERR_OK;
}

bool ggml_graph_verify(const struct ggml_cgraph *cgraph) { return graph_verify(cgraph) == ERR_OK; }
