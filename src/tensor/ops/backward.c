// Extends a graph by the gradients of its loss: from the last node to the first, each node that matters hands its gradient
// on to its sources (reverse accumulation). What matters is found in a first pass, from the parameters on.
#include "ops/backward.h"

#include <stdlib.h>
#include <string.h>

static size_t slot_of(const struct backward *b, const struct ggml_tensor *t) {
    return tensor_set_find(&b->graph->visited, t);
}

struct ggml_tensor *backward_grad(const struct backward *b, const struct ggml_tensor *t) {
    return b->graph->grads[slot_of(b, t)];
}

bool backward_wants(const struct backward *b, const struct ggml_tensor *s) {
    return s && tensor_set_contains(&b->graph->visited, s) && b->needed[slot_of(b, s)];
}

// Makes `grad` the gradient of s, which it already contains.
static enum err store(struct backward *b, const struct ggml_tensor *s, struct ggml_tensor *grad) {
    if (ggml_is_error(grad)) return ERR_INVALID;  // the builder has recorded why
    b->graph->grads[slot_of(b, s)] = grad;
    if (!grad->name[0]) tensor_name_from(grad, "grad for ", s->name, NULL);
    ggml_build_forward_expand(b->graph, grad);
    return b->graph->failure[0] ? ERR_NOMEM : ERR_OK;
}

enum err backward_add(struct backward *b, struct ggml_tensor *s, struct ggml_tensor *grad) {
    if (!backward_wants(b, s)) return ERR_OK;
    if (ggml_is_error(grad)) return ERR_INVALID;
    if (!ggml_are_same_shape(grad, s)) grad = ggml_repeat_back(b->ctx, grad, s);
    if (grad->type != GGML_TYPE_F32) grad = ggml_cast(b->ctx, grad, GGML_TYPE_F32);
    if (!ggml_is_contiguous(grad)) grad = ggml_cont(b->ctx, grad);
    const size_t slot = slot_of(b, s);
    struct ggml_tensor *sum = b->graph->grads[slot];
    if (!sum) return store(b, s, grad);
    // Into an accumulator the sum is written in place: it must be there after the computation.
    return store(b, s, b->graph->grad_accs[slot] ? ggml_add_inplace(b->ctx, sum, grad) : ggml_add(b->ctx, sum, grad));
}

enum err backward_add_part(struct backward *b, struct ggml_tensor *s, struct ggml_tensor *grad, size_t nb1, size_t nb2,
                           size_t nb3, size_t offset) {
    if (!backward_wants(b, s)) return ERR_OK;
    const size_t slot = slot_of(b, s);
    struct ggml_tensor *sum = b->graph->grads[slot];
    if (!sum) {
        struct ggml_tensor *zero = ggml_new_tensor(b->ctx, GGML_TYPE_F32, GGML_MAX_DIMS, s->ne);
        sum = ggml_fill(b->ctx, zero, 0.0f);
    }
    const bool in_place = b->graph->grad_accs[slot] != NULL;
    return store(b, s,
                 in_place ? ggml_acc_inplace(b->ctx, sum, grad, nb1, nb2, nb3, offset)
                          : ggml_acc(b->ctx, sum, grad, nb1, nb2, nb3, offset));
}

// grad [n, r, m] summed over r, as [n, m].
static struct ggml_tensor *sum_middle(struct ggml_context *ctx, struct ggml_tensor *grad, int64_t n, int64_t r, int64_t m) {
    if (r == 1) return grad;
    struct ggml_tensor *x = ggml_permute(ctx, ggml_reshape_3d(ctx, grad, n, r, m), 0, 2, 1, 3);
    return ggml_repeat_back(ctx, x, ggml_new_tensor_2d(ctx, GGML_TYPE_F32, n, m));
}

struct ggml_tensor *backward_unbroadcast(struct ggml_context *ctx, struct ggml_tensor *grad,
                                         const struct ggml_tensor *like) {
    if (ggml_is_error(grad) || ggml_are_same_shape(grad, like)) return grad;
    const int64_t n = grad->ne[0] * grad->ne[1], r2 = grad->ne[2] / like->ne[2], r3 = grad->ne[3] / like->ne[3];
    const int64_t n3 = grad->ne[3];
    struct ggml_tensor *x = sum_middle(ctx, grad, n, r2, like->ne[2] * n3);
    x = sum_middle(ctx, x, n * like->ne[2], r3, like->ne[3]);
    return ggml_reshape_4d(ctx, x, like->ne[0], like->ne[1], like->ne[2], like->ne[3]);
}

// ---- which tensors need a gradient ---------------------------------------------------------------------------------------

// Sources that no gradient flows to: integers (row indices, positions), those that give only their shape or their place, and
// what functions with steps make of their argument.
static bool passes_nothing(const struct ggml_tensor *t, int k) {
    switch (t->op) {
        case GGML_OP_CPY:
        case GGML_OP_ROPE:
        case GGML_OP_ROPE_BACK:
        case GGML_OP_GET_ROWS:
        case GGML_OP_GET_ROWS_BACK:
        case GGML_OP_IM2COL_BACK:
        case GGML_OP_REPEAT_BACK: return k == 1;
        case GGML_OP_ADD_ID: return k == 2;
        case GGML_OP_IM2COL: return k == 0;
        case GGML_OP_ARGMAX:
        case GGML_OP_ARGSORT:
        case GGML_OP_TOP_K:
        case GGML_OP_COUNT_EQUAL: return true;
        case GGML_OP_UNARY: {
            const enum ggml_unary_op f = (enum ggml_unary_op) tensor_param_i32(t, 0);
            return f == GGML_UNARY_OP_SGN || f == GGML_UNARY_OP_STEP || f == GGML_UNARY_OP_FLOOR ||
                   f == GGML_UNARY_OP_CEIL || f == GGML_UNARY_OP_ROUND || f == GGML_UNARY_OP_TRUNC;
        }
        default: return false;
    }
}

static bool is_view_op(const struct ggml_tensor *t) {
    const struct op *op = op_get(t->op);
    return t->op == GGML_OP_CPY || (op && (op->flags & OP_VIEW));
}

static enum err check_source(const struct ggml_tensor *t, const struct ggml_tensor *s) {
    if (s->type == GGML_TYPE_F32 || s->type == GGML_TYPE_F16 || s->type == GGML_TYPE_BF16) return ERR_OK;
    return err_set(ERR_UNSUPPORTED, "gradient of %s (%s): its source %s is of type %s; F32, F16 and BF16 have gradients",
                   t->name, ggml_op_desc(t), s->name, ggml_type_name(s->type));
}

// Whether node t needs a gradient, given which of the nodes before it do.
static enum err node_needs(const struct backward *b, const struct ggml_tensor *t, bool *needs) {
    *needs = t->flags & (GGML_TENSOR_FLAG_PARAM | GGML_TENSOR_FLAG_LOSS);
    for (int k = 0; k < GGML_MAX_SRC; k++) {
        const struct ggml_tensor *s = t->src[k];
        if (!s || passes_nothing(t, k) || !backward_wants(b, s)) continue;
        TRY(check_source(t, s));
        *needs = true;
    }
    if (*needs && t->view_src && !is_view_op(t)) {
        return err_set(ERR_UNSUPPORTED,
                       "gradient of %s (%s): an operation in place destroys what its gradient needs; use the plain "
                       "operation",
                       t->name, ggml_op_desc(t));
    }
    return ERR_OK;
}

static enum err find_needed(struct backward *b, bool *needed, int n_nodes, struct ggml_tensor **grad_accs) {
    struct ggml_cgraph *g = b->graph;
    bool any_param = false, any_loss = false;
    for (int i = 0; i < n_nodes; i++) {
        struct ggml_tensor *t = g->nodes[i];
        any_param |= (t->flags & GGML_TENSOR_FLAG_PARAM) != 0;
        any_loss |= (t->flags & GGML_TENSOR_FLAG_LOSS) != 0;
        bool needs = false;
        if (t->type != GGML_TYPE_I32) TRY(node_needs(b, t, &needs));
        if (!needs) continue;
        const size_t slot = slot_of(b, t);
        needed[slot] = true;
        struct ggml_tensor *acc = grad_accs ? grad_accs[i] : NULL;
        if (!acc && (t->flags & GGML_TENSOR_FLAG_LOSS)) {  // the loss's gradient is 1: ggml_graph_reset writes it here
            acc = ggml_new_tensor(b->ctx, GGML_TYPE_F32, GGML_MAX_DIMS, t->ne);
            if (ggml_is_error(acc)) return ERR_NOMEM;
            tensor_name_from(acc, "grad for ", t->name, NULL);
        }
        g->grads[slot] = g->grad_accs[slot] = acc;
    }
    if (any_param && any_loss) return ERR_OK;
    return err_set(ERR_INVALID, "ggml_build_backward_expand: the graph has no %s; mark it with %s",
                   any_param ? "loss" : "parameters", any_param ? "ggml_set_loss" : "ggml_set_param");
}

// ---- the second pass -----------------------------------------------------------------------------------------------------

static bool source_wants(const struct backward *b, const struct ggml_tensor *t) {
    for (int k = 0; k < GGML_MAX_SRC; k++) {
        if (!passes_nothing(t, k) && backward_wants(b, t->src[k])) return true;
    }
    return false;
}

static enum err differentiate(struct backward *b, struct ggml_tensor *t) {
    if (!backward_wants(b, t) || !backward_grad(b, t) || !source_wants(b, t)) return ERR_OK;
    const struct op *op = op_get(t->op);
    if (op->backward) return op->backward(b, t);
    return err_set(ERR_UNSUPPORTED, "gradient of %s: operation %s has none", t->name, ggml_op_desc(t));
}

static enum err expand(struct ggml_context *ctx, struct ggml_cgraph *g, struct ggml_tensor **grad_accs) {
    if (g->failure[0]) return ERR_INVALID;
    if (!g->grads) return err_set(ERR_INVALID, "ggml_build_backward_expand: the graph was made without room for gradients");
    const int n_nodes = g->n_nodes;
    memset(g->grads, 0, g->visited.size * sizeof *g->grads);
    memset(g->grad_accs, 0, g->visited.size * sizeof *g->grad_accs);
    bool *needed = calloc(g->visited.size, sizeof *needed);
    if (!needed) return err_set(ERR_NOMEM, "ggml_build_backward_expand: no memory");
    struct backward b = {.ctx = ctx, .graph = g, .needed = needed};
    enum err e = find_needed(&b, needed, n_nodes, grad_accs);
    for (int i = n_nodes - 1; i >= 0 && e == ERR_OK; i--) e = differentiate(&b, g->nodes[i]);
    free(needed);
    return e;
}

void ggml_build_backward_expand(struct ggml_context *ctx, struct ggml_cgraph *cgraph, struct ggml_tensor **grad_accs) {
    if (!cgraph) {
        (void) err_set(ERR_INVALID, "ggml_build_backward_expand: no graph given (NULL)");
        return;
    }
    if (expand(ctx, cgraph, grad_accs) != ERR_OK) graph_set_failed(cgraph);
    graph_touch(cgraph);
}
