// Training through llama.h. A datapoint is one text, computed whole: attention works within it, on the keys and values of this
// graph itself, and nothing is read from or written to the context's memory, through which no gradient passes. So gradients are exact,
// whatever n_batch and n_ubatch are, and each datapoint makes one step of the optimizer.
#include "llama/train.h"

#include <stdlib.h>
#include <string.h>

#include "run/context.h"

struct training {
    ggml_opt_context_t opt;
    ggml_backend_sched_t sched;
    struct ggml_context *gctx;
    size_t n_nodes;  // that a graph has room for
    struct ggml_tensor **params;
    int n_params;
    int32_t n_ctx;  // tokens of a datapoint
    struct graph g;
    struct place_row *rows;                          // [n_ctx]
    int32_t *token, *label, *pos, *slot, *out, seq;  // [n_ctx]
    float *one_hot;                                  // [n_vocab]
};

bool llama_opt_param_filter_all(const struct ggml_tensor *tensor, void *userdata) {
    (void) tensor, (void) userdata;
    return true;
}

void training_free(struct llama_context *ctx) {
    struct training *t = ctx->training;
    if (!t) return;
    ggml_opt_free(t->opt);
    if (t->sched) ggml_backend_sched_free(t->sched);
    ggml_free(t->gctx);
    void *all[] = {t->params, t->rows, t->token, t->label, t->pos, t->slot, t->out, t->one_hot};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    free(t);
    ctx->training = NULL;
}

// ---- what can be trained ------------------------------------------------------------------------------------------------

static enum err check_model(const struct llama_context *ctx, const struct llama_model *m, uint32_t n_ctx_train) {
    const unsigned no_text = ARCH_ENCODER | ARCH_ENCODER_DECODER | ARCH_NO_LOGITS;
    if (ctx->model != m) return err_set(ERR_INVALID, "llama_opt_init: the context belongs to another model");
    if (m->params.no_alloc)
        return err_set(ERR_INVALID, "llama_opt_init: the model was loaded without its weights' data (no_alloc)");
    if (m->arch->flags & no_text)
        return err_set(ERR_UNSUPPORTED, "llama_opt_init: models of architecture %s don't predict the next token",
                       m->arch->name);
    if (ctx->mem && ctx->mem->rs)
        return err_set(ERR_UNSUPPORTED,
                       "llama_opt_init: layers of architecture %s keep states, through which no gradient passes",
                       m->arch->name);
    if (n_ctx_train > (uint32_t) ctx->cp.n_ctx_seq)
        return err_set(ERR_INVALID, "llama_opt_init: n_ctx_train is %u, the context has %d positions", n_ctx_train,
                       ctx->cp.n_ctx_seq);
    return ERR_OK;
}

static enum err check_param(const struct llama_model *m, const struct model_tensor *e) {
    if (e->t->type != GGML_TYPE_F32)
        return err_set(ERR_UNSUPPORTED,
                       "llama_opt_init: %s is %s; only F32 weights are trained (convert the model to F32, or filter)",
                       e->t->name, ggml_type_name(e->t->type));
    if (data_is_mapped(m, e))
        return err_set(ERR_INVALID,
                       "llama_opt_init: %s lies in the mapped file, which is never written; load the model with load_mode "
                       "LLAMA_LOAD_MODE_NONE (--no-mmap)",
                       e->t->name);
    if (e->copy)
        return err_set(ERR_UNSUPPORTED, "llama_opt_init: %s exists twice, on two devices; put its layers on one",
                       e->t->name);
    return ERR_OK;
}

static enum err choose_params(struct training *t, const struct llama_model *m, const struct llama_opt_params *p) {
    t->params = calloc((size_t) m->n_tensors + 1, sizeof(*t->params));
    if (!t->params) return err_set(ERR_NOMEM, "llama_opt_init: no memory");
    for (int i = 0; i < m->n_tensors; i++) {
        const struct model_tensor *e = &m->tensors[i];
        if (!p->param_filter(e->t, p->param_filter_ud)) continue;
        TRY(check_param(m, e));
        t->params[t->n_params++] = e->t;
    }
    return t->n_params ? ERR_OK : err_set(ERR_INVALID, "llama_opt_init: the filter leaves no weights to train");
}

// Marked while graphs are built alone: graphs that only compute count marked weights among their nodes too.
static void mark(const struct training *t, bool on) {
    for (int i = 0; i < t->n_params; i++)
        t->params[i]->flags = (t->params[i]->flags & ~GGML_TENSOR_FLAG_PARAM) | (on ? GGML_TENSOR_FLAG_PARAM : 0);
}

static enum err make(struct llama_context *ctx, struct training *t, const struct llama_opt_params *p) {
    const struct llama_model *m = ctx->model;
    TRY(choose_params(t, m, p));
    const size_t n = (size_t) t->n_ctx;
    t->rows = calloc(n, sizeof *t->rows);
    t->token = malloc(n * 4);
    t->label = malloc(n * 4);
    t->pos = malloc(n * 16);
    t->slot = calloc(n, 4);
    t->out = malloc(n * 4);
    t->one_hot = calloc((size_t) m->hp.n_vocab, sizeof *t->one_hot);
    // forward, for each node some of its gradient, and a step for each weight
    t->n_nodes = 8 * ctx->max_nodes + 8 * (size_t) t->n_params;
    const size_t bytes = t->n_nodes * ggml_tensor_overhead() + 3 * ggml_graph_overhead_custom(t->n_nodes, true);
    t->gctx = ggml_init((struct ggml_init_params){.mem_size = bytes, .no_alloc = true});
    t->sched = ggml_backend_sched_new(ctx->backends, NULL, ctx->n_backends, t->n_nodes, false, ctx->cp.op_offload);
    if (!t->rows || !t->token || !t->label || !t->pos || !t->slot || !t->out || !t->one_hot || !t->gctx || !t->sched)
        return err_set(ERR_NOMEM, "llama_opt_init: no memory for graphs of %zu nodes and %zu tokens", t->n_nodes, n);
    for (int32_t i = 0; i < t->n_ctx; i++) {
        t->rows[i] = (struct place_row){.seq = &t->seq, .n_seq = 1, .pos = i, .cell = i, .index = i};
        t->out[i] = i;
        for (int32_t k = 0; k < (m->hp.mrope ? 4 : 1); k++) t->pos[k * t->n_ctx + i] = k < 3 ? i : 0;
    }
    struct ggml_opt_params op = ggml_opt_default_params(t->sched, GGML_OPT_LOSS_TYPE_CROSS_ENTROPY);
    if (p->get_opt_pars) op.get_opt_pars = p->get_opt_pars;
    op.get_opt_pars_ud = p->get_opt_pars_ud;
    op.optimizer = p->optimizer_type;
    t->opt = ggml_opt_init(op);
    return t->opt ? ERR_OK : ERR_FAILED;
}

void llama_opt_init(struct llama_context *lctx, struct llama_model *model, struct llama_opt_params lopt_params) {
    ggml_clear_error();
    if (!lctx || !model) {
        (void) err_set(ERR_INVALID, "llama_opt_init: the context or the model is NULL");
        return;
    }
    training_free(lctx);
    if (!lopt_params.param_filter) lopt_params.param_filter = llama_opt_param_filter_all;
    if (check_model(lctx, model, lopt_params.n_ctx_train) != ERR_OK) return;
    struct training *t = lctx->training = calloc(1, sizeof *t);
    if (!t) {
        (void) err_set(ERR_NOMEM, "llama_opt_init: no memory");
        return;
    }
    t->n_ctx = lopt_params.n_ctx_train ? (int32_t) lopt_params.n_ctx_train : lctx->cp.n_ctx_seq;
    if (make(lctx, t, &lopt_params) != ERR_OK) training_free(lctx);
}

// ---- one datapoint ------------------------------------------------------------------------------------------------------

static enum err build(struct llama_context *ctx, struct training *t) {
    struct ubatch_shape n;
    memset(&n, 0, sizeof n);
    n.n_tokens = n.n_outputs = t->n_ctx;
    n.n_seqs = n.n_slots = 1;
    n.n_scratch = (t->n_ctx + CELL_BLOCK - 1) / CELL_BLOCK;
    n.has_token = n.want_logits = true;
    n.causal = ctx->cp.causal;
    ggml_reset(t->gctx);
    graph_open(ctx, &t->g, t->gctx, &n);
    t->g.train = true;
    t->g.gf = ggml_new_graph_custom(t->gctx, t->n_nodes, true);
    if (!t->g.gf) return err_set(ERR_NOMEM, "llama_opt_epoch: no room for a graph of %zu nodes", t->n_nodes);
    arch_build(ctx->model->arch, &t->g);
    if (!t->g.logits || ggml_is_error(t->g.logits)) return ERR_FAILED;
    ggml_build_forward_expand(t->g.gf, t->g.logits);
    ggml_opt_prepare_alloc(t->opt, t->gctx, t->g.gf, in_tokens(&t->g), t->g.logits);
    return ERR_OK;
}

static void set_labels(struct training *t) {
    struct ggml_tensor *labels = ggml_opt_labels(t->opt);
    for (int32_t i = 0; i < t->n_ctx; i++) {
        t->one_hot[t->label[i]] = 1.0f;
        ggml_backend_tensor_set(labels, t->one_hot, (size_t) i * labels->nb[1], labels->nb[1]);
        t->one_hot[t->label[i]] = 0.0f;
    }
}

static enum err check_tokens(const struct llama_context *ctx, const struct training *t, int64_t idata) {
    const int32_t nv = ctx->model->hp.n_vocab;
    for (int32_t i = 0; i < t->n_ctx; i++)
        for (int k = 0; k < 2; k++) {
            const int32_t v = k ? t->label[i] : t->token[i];
            if (v < 0 || v >= nv)
                return err_set(ERR_INVALID, "llama_opt_epoch: %s %d of datapoint %lld is %d; the vocabulary has ids 0 to %d",
                               k ? "label" : "token", i, (long long) idata, v, nv - 1);
        }
    return ERR_OK;
}

static enum err step(struct llama_context *ctx, struct training *t, ggml_opt_dataset_t data, ggml_opt_result_t result,
                     int64_t idata, bool train) {
    ggml_clear_error();
    ggml_opt_dataset_get_batch_host(data, t->token, (size_t) t->n_ctx * 4, t->label, idata);
    TRY(check_tokens(ctx, t, idata));
    TRY(build(ctx, t));
    ggml_opt_alloc(t->opt, train);
    if (*ggml_last_error()) return ERR_FAILED;
    const struct ubatch ub = {
        .n = t->g.n,
        .token = t->token,
        .pos = t->pos,
        .slot = t->slot,
        .rows = t->rows,
        .out = t->out,
        .seq = &t->seq,
    };
    TRY(graph_fill_inputs(ctx, &t->g, &ub));
    set_labels(t);
    ggml_backend_cpu_set_threadpool(ctx->cpu, ctx->pool_batch ? ctx->pool_batch : ctx->pool);
    ggml_backend_cpu_set_n_threads(ctx->cpu, ctx->cp.n_threads_batch);
    ggml_opt_eval(t->opt, result);
    return *ggml_last_error() ? ERR_FAILED : ERR_OK;
}

static enum err check_dataset(const struct training *t, ggml_opt_dataset_t dataset, int64_t split) {
    const struct ggml_tensor *d = ggml_opt_dataset_data(dataset), *l = ggml_opt_dataset_labels(dataset);
    if (!d || !l || d->type != GGML_TYPE_I32 || l->type != GGML_TYPE_I32)
        return err_set(ERR_INVALID, "llama_opt_epoch: datapoints and labels must be tokens (I32)");
    if (d->ne[0] != t->n_ctx || l->ne[0] != t->n_ctx)
        return err_set(ERR_INVALID, "llama_opt_epoch: datapoints have %lld tokens and %lld labels; n_ctx_train is %d",
                       (long long) d->ne[0], (long long) l->ne[0], t->n_ctx);
    if (split < 0 || split > ggml_opt_dataset_ndata(dataset))
        return err_set(ERR_INVALID, "llama_opt_epoch: idata_split is %lld of %lld datapoints", (long long) split,
                       (long long) ggml_opt_dataset_ndata(dataset));
    return ERR_OK;
}

static enum err loop(struct llama_context *ctx, ggml_opt_dataset_t dataset, ggml_opt_result_t result, bool train,
                     int64_t first, int64_t end, ggml_opt_epoch_callback callback) {
    struct training *t = ctx->training;
    const int64_t t0 = ggml_time_us();
    for (int64_t i = first; i < end; i++) {
        mark(t, true);
        const enum err e = step(ctx, t, dataset, result, i, train);
        mark(t, false);
        TRY(e);
        if (callback) callback(train, t->opt, dataset, result, i - first + 1, end - first, t0);
    }
    return ERR_OK;
}

void llama_opt_epoch(struct llama_context *lctx, ggml_opt_dataset_t dataset, ggml_opt_result_t result_train,
                     ggml_opt_result_t result_eval, int64_t idata_split, ggml_opt_epoch_callback callback_train,
                     ggml_opt_epoch_callback callback_eval) {
    ggml_clear_error();
    if (!lctx || !dataset || !lctx->training) {
        (void) err_set(ERR_INVALID, "llama_opt_epoch: %s",
                       lctx && dataset ? "there is no training to go on with; llama_opt_init comes first"
                                       : "the context or the dataset is NULL");
        return;
    }
    const int64_t n = ggml_opt_dataset_ndata(dataset);
    if (check_dataset(lctx->training, dataset, idata_split) != ERR_OK) return;
    if (loop(lctx, dataset, result_train, true, 0, idata_split, callback_train) != ERR_OK) return;
    (void) loop(lctx, dataset, result_eval, false, idata_split, n, callback_eval);
}
