// Samplers that run inside the graph, per sequence. A sampler that can build its work as graph nodes does so behind the logits of its
// sequence's last output row; the token is known when the graph is done. Others run outside, as always.
#include <stdlib.h>
#include <string.h>

#include "run/context.h"

struct seq_sampler {
    struct llama_sampler *smpl;      // the caller's; NULL: none
    int32_t row;                     // output row of the current micro-batch, -1: none
    struct llama_sampler_data data;  // nodes of the current graph
    // results of the last batch; out_row -1: none
    int32_t out_row;
    llama_token token;
    float *probs, *logits;
    llama_token *cand;
    uint32_t n_probs, n_logits, n_cand;
};

struct context_samplers {
    int32_t n_seq;
    bool any;
    struct seq_sampler of[];
};

static bool can_build(struct llama_sampler *s, ggml_backend_buffer_type_t buft) {
    return s->iface->backend_init && s->iface->backend_apply && s->iface->backend_init(s, buft, 1);
}

static void free_results(struct seq_sampler *s) {
    free(s->probs);
    free(s->logits);
    free(s->cand);
    memset(s, 0, sizeof *s);
    s->row = s->out_row = -1;
    s->token = LLAMA_TOKEN_NULL;
}

static bool make_all(struct llama_context *ctx) {
    if (ctx->samplers) return true;
    const size_t n = (size_t) ctx->cp.n_seq_max;
    ctx->samplers = calloc(1, sizeof *ctx->samplers + n * sizeof ctx->samplers->of[0]);
    if (!ctx->samplers) return false;
    ctx->samplers->n_seq = ctx->cp.n_seq_max;
    for (size_t i = 0; i < n; i++) free_results(&ctx->samplers->of[i]);
    return true;
}

bool llama_set_sampler(struct llama_context *ctx, llama_seq_id seq_id, struct llama_sampler *smpl) {
    if (!ctx || seq_id < 0 || seq_id >= ctx->cp.n_seq_max) {
        (void) err_set(ERR_INVALID, "set_sampler: sequence %d", seq_id);
        return false;
    }
    if (!smpl && !ctx->samplers) return true;
    if (!make_all(ctx)) {
        (void) err_set(ERR_NOMEM, "no memory for samplers");
        return false;
    }
    struct seq_sampler *s = &ctx->samplers->of[seq_id];
    free_results(s);
    ctx->version++;
    const size_t nv = (size_t) ctx->model->hp.n_vocab;
    bool ok = true;
    if (smpl) {
        ok = can_build(smpl, ggml_backend_dev_buffer_type(ctx->model->output_dev));
        s->probs = ok ? malloc(nv * sizeof(float)) : NULL;
        s->logits = ok ? malloc(nv * sizeof(float)) : NULL;
        s->cand = ok ? malloc(nv * sizeof(llama_token)) : NULL;
        ok = s->probs && s->logits && s->cand;
        if (ok)
            s->smpl = smpl;
        else
            free_results(s);
    }
    ctx->samplers->any = false;
    for (int32_t i = 0; i < ctx->samplers->n_seq; i++) ctx->samplers->any |= ctx->samplers->of[i].smpl != NULL;
    return ok;
}

void samplers_free(struct llama_context *ctx) {
    for (int32_t i = 0; ctx->samplers && i < ctx->samplers->n_seq; i++) free_results(&ctx->samplers->of[i]);
    free(ctx->samplers);
    ctx->samplers = NULL;
}

bool samplers_any(const struct llama_context *ctx) { return ctx->samplers && ctx->samplers->any; }

void samplers_begin(struct llama_context *ctx) {
    for (int32_t i = 0; ctx->samplers && i < ctx->samplers->n_seq; i++) ctx->samplers->of[i].out_row = -1;
}

// Which output row each sequence's sampler works on; graphs for other rows are other graphs, which the number returned tells apart.
uint32_t samplers_rows(struct llama_context *ctx, const struct ubatch *ub) {
    if (!ctx->samplers || !ctx->samplers->any) return 0;
    uint32_t h = 1;
    for (int32_t q = 0; q < ctx->samplers->n_seq; q++) {
        struct seq_sampler *s = &ctx->samplers->of[q];
        s->row = -1;
        for (int32_t i = 0; s->smpl && i < ub->n.n_outputs; i++)
            if (ub->rows[ub->out[i]].seq[0] == q) s->row = i;
        h = h * 0x9e3779b1u + (uint32_t) (s->row + 1);
    }
    return h;
}

void samplers_build(struct llama_context *ctx) {
    struct graph *g = &ctx->at->g;
    if (!ctx->samplers || !ctx->samplers->any || !g->logits) return;
    for (int32_t q = 0; q < ctx->samplers->n_seq; q++) {
        struct seq_sampler *s = &ctx->samplers->of[q];
        memset(&s->data, 0, sizeof s->data);
        if (!s->smpl || s->row < 0 || s->row >= g->n.n_outputs) continue;
        s->data.logits = ggml_view_1d(g->ctx, g->logits, g->logits->ne[0], (size_t) s->row * g->logits->nb[1]);
        s->smpl->iface->backend_apply(s->smpl, g->ctx, g->gf, &s->data);
        struct ggml_tensor *t[] = {s->data.sampled, s->data.probs, s->data.candidates, s->data.logits};
        for (int k = 0; k < 4; k++) {
            if (!t[k]) continue;
            ggml_set_output(t[k]);
            ggml_build_forward_expand(g->gf, t[k]);
        }
        if (s->data.sampled && s->smpl->iface->backend_accept)
            s->smpl->iface->backend_accept(s->smpl, g->ctx, g->gf, s->data.sampled);
    }
}

void samplers_set_inputs(struct llama_context *ctx) {
    for (int32_t q = 0; ctx->samplers && q < ctx->samplers->n_seq; q++) {
        struct seq_sampler *s = &ctx->samplers->of[q];
        if (!s->smpl || s->row < 0) continue;
        if (s->smpl->iface->backend_set_input) s->smpl->iface->backend_set_input(s->smpl);
    }
}

static uint32_t fetch(const struct ggml_tensor *t, void *dst, size_t n_max) {
    if (!t) return 0;
    size_t n = (size_t) ggml_nelements(t);
    if (n > n_max) n = n_max;
    ggml_backend_tensor_get(t, dst, 0, n * 4);
    return (uint32_t) n;
}

void samplers_collect(struct llama_context *ctx, int32_t row0) {
    const size_t nv = (size_t) ctx->model->hp.n_vocab;
    for (int32_t q = 0; ctx->samplers && q < ctx->samplers->n_seq; q++) {
        struct seq_sampler *s = &ctx->samplers->of[q];
        if (!s->smpl || s->row < 0 || !s->data.logits) continue;
        s->out_row = row0 + s->row;
        s->token = LLAMA_TOKEN_NULL;
        (void) fetch(s->data.sampled, &s->token, 1);
        s->n_probs = fetch(s->data.probs, s->probs, nv);
        s->n_logits = fetch(s->data.logits, s->logits, nv);
        s->n_cand = fetch(s->data.candidates, s->cand, nv);
    }
}

// ---- results ----------------------------------------------------------------------------------------------------------------

static const struct seq_sampler *result(struct llama_context *ctx, int32_t i) {
    if (!ctx || !ctx->samplers || !ctx->samplers->any) return NULL;
    const struct outputs *o = &ctx->out;
    const int32_t row = i < 0 ? o->n + i : i < o->n_batch ? o->row_of[i] : -1;
    for (int32_t q = 0; row >= 0 && q < ctx->samplers->n_seq; q++)
        if (ctx->samplers->of[q].smpl && ctx->samplers->of[q].out_row == row) return &ctx->samplers->of[q];
    return NULL;
}

const struct llama_sampler *context_sampler_at(struct llama_context *ctx, int32_t i) {
    const struct seq_sampler *s = result(ctx, i);
    return s ? s->smpl : NULL;
}

llama_token llama_get_sampled_token_ith(struct llama_context *ctx, int32_t i) {
    const struct seq_sampler *s = result(ctx, i);
    return s ? s->token : LLAMA_TOKEN_NULL;
}

float *llama_get_sampled_probs_ith(struct llama_context *ctx, int32_t i) {
    const struct seq_sampler *s = result(ctx, i);
    return s && s->n_probs ? s->probs : NULL;
}

uint32_t llama_get_sampled_probs_count_ith(struct llama_context *ctx, int32_t i) {
    const struct seq_sampler *s = result(ctx, i);
    return s ? s->n_probs : 0;
}

float *llama_get_sampled_logits_ith(struct llama_context *ctx, int32_t i) {
    const struct seq_sampler *s = result(ctx, i);
    return s && s->n_logits ? s->logits : NULL;
}

// Nothing sampled inside the graph leaves the whole vocabulary: programs size their lists by this number and then read the logits.
uint32_t llama_get_sampled_logits_count_ith(struct llama_context *ctx, int32_t i) {
    const struct seq_sampler *s = result(ctx, i);
    return s && s->n_logits ? s->n_logits : ctx ? (uint32_t) ctx->model->hp.n_vocab : 0;
}

// All token ids in order, made at the first call.
static llama_token *all_ids(struct llama_context *ctx) {
    const uint32_t n = ctx->model->hp.n_vocab;
    if (!ctx->all_ids && !(ctx->all_ids = malloc(n * sizeof *ctx->all_ids))) {
        (void) err_set(ERR_NOMEM, "context: no memory for %u token ids", n);
        return NULL;
    }
    for (uint32_t t = 0; t < n; t++) ctx->all_ids[t] = (llama_token) t;
    return ctx->all_ids;
}

llama_token *llama_get_sampled_candidates_ith(struct llama_context *ctx, int32_t i) {
    const struct seq_sampler *s = result(ctx, i);
    if (s && s->n_cand) return s->cand;
    return ctx ? all_ids(ctx) : NULL;
}

uint32_t llama_get_sampled_candidates_count_ith(struct llama_context *ctx, int32_t i) {
    const struct seq_sampler *s = result(ctx, i);
    return s ? s->n_cand : 0;
}
