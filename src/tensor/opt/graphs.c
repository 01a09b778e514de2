// The graphs of training: the caller's forward graph with a loss, then its gradients, then the optimizer's steps.
#include "opt/opt_int.h"

#include <stdlib.h>
#include <string.h>

static bool fails(struct ggml_opt_context *c) {
    c->failed = true;
    return false;
}

// ---- the loss ------------------------------------------------------------------------------------------------------------

static struct ggml_tensor *like_outputs(struct ggml_opt_context *c, struct ggml_context *ctx) {
    struct ggml_tensor *labels = ggml_dup_tensor(ctx, c->params.outputs);
    ggml_set_input(labels);
    return ggml_set_name(labels, "labels");
}

static void count_hits(struct ggml_opt_context *c, struct ggml_context *ctx) {
    c->pred = ggml_set_name(ggml_argmax(ctx, c->params.outputs), "pred");
    c->ncorrect = ggml_set_name(ggml_count_equal(ctx, c->pred, ggml_argmax(ctx, c->labels)), "ncorrect");
    ggml_set_output(c->pred);
    ggml_set_output(c->ncorrect);
    ggml_build_forward_expand(c->gf, c->ncorrect);
}

// Sets c->loss, c->labels and, for classes, c->pred and c->ncorrect. Each loss but SUM is divided by the batches per step.
static bool add_loss(struct ggml_opt_context *c, struct ggml_context *ctx) {
    struct ggml_tensor *out = c->params.outputs, *loss = NULL;
    const float share = 1.0f / (float) c->params.opt_period;
    const float per_element = share / (float) ggml_nelements(out);
    c->labels = c->pred = c->ncorrect = NULL;
    c->loss_per_datapoint = c->params.loss_type != GGML_OPT_LOSS_TYPE_SUM;
    switch (c->params.loss_type) {
        case GGML_OPT_LOSS_TYPE_MEAN: loss = ggml_scale(ctx, ggml_sum(ctx, out), per_element); break;
        case GGML_OPT_LOSS_TYPE_SUM: loss = ggml_sum(ctx, out); break;
        case GGML_OPT_LOSS_TYPE_CROSS_ENTROPY:
            c->labels = like_outputs(c, ctx);
            loss = ggml_cross_entropy_loss(ctx, out, c->labels);
            if (c->params.opt_period > 1) loss = ggml_scale(ctx, loss, share);
            break;
        case GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR:
            c->labels = like_outputs(c, ctx);
            loss = ggml_scale(ctx, ggml_sum(ctx, ggml_sqr(ctx, ggml_sub(ctx, out, c->labels))), per_element);
            break;
        default:
            (void) err_set(ERR_INVALID, "ggml_opt: there is no kind of loss %d", (int) c->params.loss_type);
            return fails(c);
    }
    if (ggml_is_error(loss)) return fails(c);
    c->loss = ggml_set_name(loss, "loss");
    ggml_set_output(c->loss);
    ggml_set_loss(c->loss);
    ggml_build_forward_expand(c->gf, c->loss);
    if (c->params.loss_type == GGML_OPT_LOSS_TYPE_CROSS_ENTROPY) count_hits(c, ctx);
    return !c->gf->failure[0] || fails(c);
}

// ---- what outlives a graph -----------------------------------------------------------------------------------------------

static bool make_context(struct ggml_opt_context *c) {
    int n_param = 0;
    for (int i = 0; i < c->gf->n_nodes; i++) n_param += (c->gf->nodes[i]->flags & GGML_TENSOR_FLAG_PARAM) != 0;
    const size_t n_tensors = 3 * (size_t) n_param + 24;  // accumulator and momenta of each, loss and what belongs to it
    c->ctx_static = ggml_init((struct ggml_init_params){.mem_size = n_tensors * ggml_tensor_overhead(), .no_alloc = true});
    return c->ctx_static || fails(c);
}

// Accumulators and momenta, by the number of the node in the forward graph. Made once: graphs built anew must be alike.
static bool make_arrays(struct ggml_opt_context *c) {
    if (c->grad_accs) {
        if (c->n_nodes == c->gf->n_nodes) return true;
        (void) err_set(ERR_INVALID, "ggml_opt: the graph has %d nodes, the first one had %d; they must be alike",
                       c->gf->n_nodes, c->n_nodes);
        return fails(c);
    }
    const bool steps = c->params.build_type == GGML_OPT_BUILD_TYPE_OPT;
    const bool accumulate = !(c->static_graphs && steps && c->params.opt_period == 1);
    const bool momenta = steps && c->params.optimizer == GGML_OPT_OPTIMIZER_TYPE_ADAMW;
    c->n_nodes = c->gf->n_nodes;
    c->grad_accs = calloc((size_t) c->n_nodes * 3, sizeof *c->grad_accs);
    if (!c->grad_accs) {
        (void) err_set(ERR_NOMEM, "ggml_opt: no memory for %d nodes", c->n_nodes);
        return fails(c);
    }
    c->grad_m = c->grad_accs + c->n_nodes;
    c->grad_v = c->grad_m + c->n_nodes;
    for (int i = 0; i < c->n_nodes; i++) {
        const struct ggml_tensor *t = c->gf->nodes[i];
        const bool param = t->flags & GGML_TENSOR_FLAG_PARAM, loss = t->flags & GGML_TENSOR_FLAG_LOSS;
        if (loss || (param && accumulate)) {
            c->grad_accs[i] = ggml_new_tensor(c->ctx_static, GGML_TYPE_F32, GGML_MAX_DIMS, t->ne);
            tensor_name_from(c->grad_accs[i], "grad for ", t->name, NULL);
        }
        if (param && momenta) {
            c->grad_m[i] = ggml_new_tensor(c->ctx_static, GGML_TYPE_F32, GGML_MAX_DIMS, t->ne);
            c->grad_v[i] = ggml_new_tensor(c->ctx_static, GGML_TYPE_F32, GGML_MAX_DIMS, t->ne);
            tensor_name_from(c->grad_m[i], "AdamW m for ", t->name, NULL);
            tensor_name_from(c->grad_v[i], "AdamW v for ", t->name, NULL);
        }
    }
    return true;
}

// Gives memory to the static tensors on the scheduler's first device.
static bool allocate(struct ggml_opt_context *c) {
    if (c->buf_static || !ggml_get_first_tensor(c->ctx_static)) return true;
    c->buf_static =
        ggml_backend_alloc_ctx_tensors(c->ctx_static, ggml_backend_sched_get_backend(c->params.backend_sched, 0));
    if (!c->buf_static) return fails(c);
    ggml_backend_buffer_clear(c->buf_static, 0);
    return true;
}

// ---- the optimizer's steps -----------------------------------------------------------------------------------------------

static struct ggml_tensor *step_of(struct ggml_opt_context *c, int i, struct ggml_tensor *grad) {
    struct ggml_context *ctx = c->params.ctx_compute;
    struct ggml_tensor *node = c->gf->nodes[i];
    if (c->params.optimizer == GGML_OPT_OPTIMIZER_TYPE_SGD) return ggml_opt_step_sgd(ctx, node, grad, c->step_params);
    return ggml_opt_step_adamw(ctx, node, grad, c->grad_m[i], c->grad_v[i], c->step_params);
}

static bool add_steps(struct ggml_opt_context *c) {
    c->gb_opt = ggml_graph_dup(c->params.ctx_compute, c->gb_grad, true);
    if (!c->gb_opt) return fails(c);
    if (!c->step_params) {
        c->step_params =
            ggml_new_tensor_1d(c->ctx_static, GGML_TYPE_F32, c->params.optimizer == GGML_OPT_OPTIMIZER_TYPE_SGD ? 2 : 7);
        ggml_set_input(c->step_params);
        ggml_set_name(c->step_params, "optimizer parameters");
    }
    for (int i = c->n_nodes - 1; i >= 0; i--) {
        struct ggml_tensor *node = c->gf->nodes[i], *grad = ggml_graph_get_grad(c->gb_opt, node);
        if (!grad || !(node->flags & GGML_TENSOR_FLAG_PARAM)) continue;
        struct ggml_tensor *step = step_of(c, i, grad);
        tensor_name_from(step, "step for ", node->name, NULL);
        ggml_build_forward_expand(c->gb_opt, step);
    }
    return !c->gb_opt->failure[0] || fails(c);
}

bool opt_build(struct ggml_opt_context *c) {
    const bool first = c->ctx_static == NULL;
    ggml_set_output(c->params.outputs);
    if (first && !make_context(c)) return false;
    if (!add_loss(c, c->static_graphs ? c->ctx_static : c->params.ctx_compute)) return false;
    if (c->params.build_type == GGML_OPT_BUILD_TYPE_FORWARD) return allocate(c);
    if (!make_arrays(c)) return false;
    c->gb_grad = ggml_graph_dup(c->params.ctx_compute, c->gf, true);
    if (!c->gb_grad) return fails(c);
    ggml_build_backward_expand(c->params.ctx_compute, c->gb_grad, c->grad_accs);
    if (c->gb_grad->failure[0]) return fails(c);
    if (c->params.build_type == GGML_OPT_BUILD_TYPE_OPT && !add_steps(c)) return false;
    if (!allocate(c)) return false;
    if (first) ggml_graph_reset(c->gb_opt ? c->gb_opt : c->gb_grad);
    return true;
}
