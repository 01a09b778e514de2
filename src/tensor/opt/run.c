// The training context: making it, and the pair alloc - eval, one batch at a time.
#include "opt/opt_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ggml_opt_optimizer_params ggml_opt_get_default_optimizer_params(void *userdata) {
    (void) userdata;
    struct ggml_opt_optimizer_params p = {
        .adamw = {.alpha = 0.001f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .wd = 0.0f},
        .sgd = {.alpha = 1e-3f, .wd = 0.0f},
    };
    return p;
}

struct ggml_opt_optimizer_params ggml_opt_get_constant_optimizer_params(void *userdata) {
    return userdata ? *(struct ggml_opt_optimizer_params *) userdata : ggml_opt_get_default_optimizer_params(NULL);
}

struct ggml_opt_params ggml_opt_default_params(ggml_backend_sched_t backend_sched, enum ggml_opt_loss_type loss_type) {
    return (struct ggml_opt_params){
        .backend_sched = backend_sched,
        .loss_type = loss_type,
        .build_type = GGML_OPT_BUILD_TYPE_OPT,
        .opt_period = 1,
        .get_opt_pars = ggml_opt_get_default_optimizer_params,
        .optimizer = GGML_OPT_OPTIMIZER_TYPE_ADAMW,
    };
}

const char *ggml_opt_optimizer_name(enum ggml_opt_optimizer_type type) {
    return type == GGML_OPT_OPTIMIZER_TYPE_ADAMW ? "adamw" : type == GGML_OPT_OPTIMIZER_TYPE_SGD ? "sgd" : "undefined";
}

static enum err check(const struct ggml_opt_params *p) {
    if (!p->backend_sched || !p->get_opt_pars)
        return err_set(ERR_INVALID, "ggml_opt_init: no scheduler or no optimizer parameters");
    if (p->opt_period < 1)
        return err_set(ERR_INVALID, "ggml_opt_init: opt_period is %d, at least 1 is needed", (int) p->opt_period);
    if ((unsigned) p->optimizer >= GGML_OPT_OPTIMIZER_TYPE_COUNT) {
        return err_set(ERR_INVALID, "ggml_opt_init: there is no optimizer %d", (int) p->optimizer);
    }
    if (!p->ctx_compute) return ERR_OK;
    if (!p->inputs || !p->outputs || ggml_is_error(p->inputs) || ggml_is_error(p->outputs)) {
        return err_set(ERR_INVALID, "ggml_opt_init: a context for static graphs needs inputs and outputs");
    }
    return ERR_OK;
}

ggml_opt_context_t ggml_opt_init(struct ggml_opt_params params) {
    if (check(&params) != ERR_OK) return NULL;
    struct ggml_opt_context *c = calloc(1, sizeof *c);
    if (!c) {
        (void) err_set(ERR_NOMEM, "ggml_opt_init: no memory");
        return NULL;
    }
    c->params = params;
    c->build_type = params.build_type;
    c->static_graphs = params.ctx_compute != NULL;
    c->random = 0x9e3779b97f4a7c15ull;
    c->iter = 1;
    if (!c->static_graphs) return c;
    ggml_set_input(params.inputs);
    c->gf = ggml_new_graph_custom(params.ctx_compute, GGML_DEFAULT_GRAPH_SIZE, true);
    if (c->gf) {
        ggml_build_forward_expand(c->gf, params.outputs);
        if (opt_build(c)) return c;
    }
    ggml_opt_free(c);
    return NULL;
}

void ggml_opt_free(ggml_opt_context_t opt_ctx) {
    if (!opt_ctx) return;
    ggml_backend_buffer_free(opt_ctx->buf_static);
    ggml_free(opt_ctx->ctx_static);
    ggml_free(opt_ctx->ctx_copy);
    free(opt_ctx->grad_accs);
    free(opt_ctx);
}

void ggml_opt_reset(ggml_opt_context_t opt_ctx, bool optimizer) {
    if (!opt_ctx) return;
    opt_ctx->opt_i = 0;
    if (optimizer) opt_ctx->iter = 1;
    struct ggml_cgraph *g = optimizer && opt_ctx->gb_opt ? opt_ctx->gb_opt : opt_ctx->gb_grad;
    if (g) {
        ggml_graph_reset(g);
        return;
    }
    // Between graphs of the dynamic kind: the tensors themselves are there.
    for (int i = 0; i < opt_ctx->n_nodes; i++) {
        if (opt_ctx->grad_accs[i] && !ggml_is_scalar(opt_ctx->grad_accs[i])) ggml_set_zero(opt_ctx->grad_accs[i]);
        if (optimizer) ggml_set_zero(opt_ctx->grad_m[i]);
        if (optimizer) ggml_set_zero(opt_ctx->grad_v[i]);
    }
}

bool ggml_opt_static_graphs(ggml_opt_context_t opt_ctx) { return opt_ctx && opt_ctx->static_graphs; }
struct ggml_tensor *ggml_opt_inputs(ggml_opt_context_t opt_ctx) {
    return opt_ctx ? opt_ctx->params.inputs : NULL;
}
struct ggml_tensor *ggml_opt_outputs(ggml_opt_context_t opt_ctx) {
    return opt_ctx ? opt_ctx->params.outputs : NULL;
}
struct ggml_tensor *ggml_opt_labels(ggml_opt_context_t opt_ctx) {
    return opt_ctx ? opt_ctx->labels : NULL;
}
struct ggml_tensor *ggml_opt_loss(ggml_opt_context_t opt_ctx) {
    return opt_ctx ? opt_ctx->loss : NULL;
}
struct ggml_tensor *ggml_opt_pred(ggml_opt_context_t opt_ctx) {
    return opt_ctx ? opt_ctx->pred : NULL;
}
struct ggml_tensor *ggml_opt_ncorrect(ggml_opt_context_t opt_ctx) {
    return opt_ctx ? opt_ctx->ncorrect : NULL;
}
enum ggml_opt_optimizer_type ggml_opt_context_optimizer_type(ggml_opt_context_t opt_ctx) {
    return opt_ctx ? opt_ctx->params.optimizer : GGML_OPT_OPTIMIZER_TYPE_COUNT;
}

struct ggml_tensor *ggml_opt_grad_acc(ggml_opt_context_t opt_ctx, struct ggml_tensor *node) {
    if (!opt_ctx) return NULL;
    return ggml_graph_get_grad_acc(opt_ctx->gb_opt ? opt_ctx->gb_opt : opt_ctx->gb_grad, node);
}

// ---- alloc ---------------------------------------------------------------------------------------------------------------

void ggml_opt_prepare_alloc(ggml_opt_context_t opt_ctx, struct ggml_context *ctx_compute, struct ggml_cgraph *gf,
                            struct ggml_tensor *inputs, struct ggml_tensor *outputs) {
    if (!opt_ctx) return;
    if (opt_ctx->static_graphs || !ctx_compute || !gf || !inputs || !outputs) {
        (void) err_set(ERR_INVALID, "ggml_opt_prepare_alloc: %s",
                       opt_ctx->static_graphs ? "the context has graphs of its own"
                                              : "a context, a graph, inputs and outputs are needed");
        opt_ctx->failed = true;
        return;
    }
    opt_ctx->params.ctx_compute = ctx_compute;
    opt_ctx->params.inputs = inputs;
    opt_ctx->params.outputs = outputs;
    opt_ctx->gf = gf;
    opt_ctx->gb_grad = opt_ctx->gb_opt = NULL;
}

static struct ggml_tensor *mapped(const struct ggml_cgraph *g, struct ggml_tensor *const *copies, struct ggml_tensor *t) {
    if (!t || !tensor_set_contains(&g->visited, t)) return t;
    struct ggml_tensor *copy = copies[tensor_set_find(&g->visited, t)];
    return copy ? copy : t;
}

// A tensor like t, with the same memory if t has some, reading the copies of t's sources.
static struct ggml_tensor *copy_tensor(struct ggml_context *ctx, const struct ggml_cgraph *g,
                                       struct ggml_tensor *const *copies, const struct ggml_tensor *t) {
    struct ggml_tensor *copy = ggml_new_tensor(ctx, t->type, GGML_MAX_DIMS, t->ne);
    if (ggml_is_error(copy)) return copy;
    *copy = *t;
    copy->view_src = mapped(g, copies, t->view_src);
    for (int k = 0; k < GGML_MAX_SRC; k++) copy->src[k] = mapped(g, copies, t->src[k]);
    return copy;
}

// The scheduler writes addresses into the tensors it is given, and graphs share tensors: each is given a copy.
static struct ggml_cgraph *copy_graph(struct ggml_opt_context *c, const struct ggml_cgraph *g) {
    const size_t size = (size_t) g->size;
    ggml_free(c->ctx_copy);
    c->ctx_copy = ggml_init((struct ggml_init_params){
        .mem_size = (size_t) (g->n_nodes + g->n_leafs) * ggml_tensor_overhead() + ggml_graph_overhead_custom(size, false),
        .no_alloc = true,
    });
    struct ggml_tensor **copies = calloc(g->visited.size, sizeof *copies);
    struct ggml_cgraph *copy = c->ctx_copy && copies ? ggml_new_graph_custom(c->ctx_copy, size, false) : NULL;
    for (int i = 0; copy && i < g->n_leafs; i++) {
        copies[tensor_set_find(&g->visited, g->leafs[i])] = copy_tensor(c->ctx_copy, g, copies, g->leafs[i]);
    }
    for (int i = 0; copy && i < g->n_nodes; i++) {
        struct ggml_tensor *t = copy_tensor(c->ctx_copy, g, copies, g->nodes[i]);
        copies[tensor_set_find(&g->visited, g->nodes[i])] = t;
        ggml_build_forward_expand(copy, t);
    }
    free(copies);
    return copy;
}

static struct ggml_cgraph *graph_of(const struct ggml_opt_context *c) {
    if (c->build_type == GGML_OPT_BUILD_TYPE_FORWARD) return c->gf;
    return c->build_type == GGML_OPT_BUILD_TYPE_GRAD ? c->gb_grad : c->gb_opt;
}

void ggml_opt_alloc(ggml_opt_context_t opt_ctx, bool backward) {
    struct ggml_opt_context *c = opt_ctx;
    if (!c || c->failed) return;
    c->eval_ready = false;
    const bool steps = c->params.build_type == GGML_OPT_BUILD_TYPE_OPT;
    c->build_type = GGML_OPT_BUILD_TYPE_FORWARD;
    if (backward && c->params.build_type != GGML_OPT_BUILD_TYPE_FORWARD) {
        const bool last = (c->opt_i + 1) % c->params.opt_period == 0;
        c->build_type = steps && last ? GGML_OPT_BUILD_TYPE_OPT : GGML_OPT_BUILD_TYPE_GRAD;
    }
    if (!c->static_graphs) {
        if (!c->gf) {
            (void) err_set(ERR_INVALID, "ggml_opt_alloc: call ggml_opt_prepare_alloc with this batch's graph first");
            return;
        }
        if (!opt_build(c)) return;
    }
    if (backward && steps && c->opt_i == 0) ggml_graph_reset(c->gb_grad);  // accumulators; momenta belong to gb_opt
    struct ggml_cgraph *g = graph_of(c);
    if (c->static_graphs && c->allocated == g) {
        c->eval_ready = true;
        return;
    }
    ggml_backend_sched_reset(c->params.backend_sched);
    c->allocated = NULL;
    c->allocated_copy = c->static_graphs ? copy_graph(c, g) : g;
    if (!c->allocated_copy || !ggml_backend_sched_alloc_graph(c->params.backend_sched, c->allocated_copy)) return;
    c->allocated = g;
    c->eval_ready = true;
}

// ---- eval ----------------------------------------------------------------------------------------------------------------

static void set_step_params(struct ggml_opt_context *c) {
    const struct ggml_opt_optimizer_params p = c->params.get_opt_pars(c->params.get_opt_pars_ud);
    if (c->params.optimizer == GGML_OPT_OPTIMIZER_TYPE_SGD) {
        ggml_backend_tensor_set(c->step_params, (const float[2]){p.sgd.alpha, p.sgd.wd}, 0, 2 * sizeof(float));
        return;
    }
    const double t = (double) c->iter;
    const float v[7] = {
        p.adamw.alpha,
        p.adamw.beta1,
        p.adamw.beta2,
        p.adamw.eps,
        p.adamw.wd,
        (float) (1.0 / (1.0 - pow((double) p.adamw.beta1, t))),
        (float) (1.0 / (1.0 - pow((double) p.adamw.beta2, t))),
    };
    ggml_backend_tensor_set(c->step_params, v, 0, sizeof v);
}

void ggml_opt_eval(ggml_opt_context_t opt_ctx, ggml_opt_result_t result) {
    struct ggml_opt_context *c = opt_ctx;
    if (!c || c->failed) return;
    if (!c->eval_ready) {
        (void) err_set(ERR_INVALID, "ggml_opt_eval: nothing is allocated; call ggml_opt_alloc first");
        return;
    }
    if (c->build_type == GGML_OPT_BUILD_TYPE_OPT) set_step_params(c);
    const enum ggml_status status = ggml_backend_sched_graph_compute(c->params.backend_sched, c->allocated_copy);
    c->eval_ready = false;
    if (status == GGML_STATUS_SUCCESS) {
        if (c->build_type == GGML_OPT_BUILD_TYPE_OPT) c->iter++;
        if (c->build_type != GGML_OPT_BUILD_TYPE_FORWARD) c->opt_i = (c->opt_i + 1) % c->params.opt_period;
        if (result) opt_result_add(result, c);
    }
    if (c->static_graphs) return;
    c->gf = c->gb_grad = c->gb_opt = c->allocated = c->allocated_copy = NULL;  // they belong to the caller's context
}
