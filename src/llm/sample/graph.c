// Samplers inside the graph: what they share. See sample.h.
#include "sample/sample.h"
#include "ggml.h"
#include <math.h>

bool sampler_graph_ready(struct llama_sampler *smpl, ggml_backend_buffer_type_t buft, uint32_t n) {
    (void) smpl;
    (void) buft;
    (void) n;
    return true;
}

// Elements idx of x [n] as [k].
static struct ggml_tensor *pick(struct ggml_context *ctx, struct ggml_tensor *x, struct ggml_tensor *idx) {
    struct ggml_tensor *column = ggml_reshape_2d(ctx, x, 1, ggml_nelements(x));
    return ggml_reshape_1d(ctx, ggml_get_rows(ctx, column, idx), ggml_nelements(idx));
}

void sampler_graph_keep(struct ggml_context *ctx, struct llama_sampler_data *d, struct ggml_tensor *idx) {
    d->logits = pick(ctx, d->logits, idx);
    d->candidates = d->candidates ? pick(ctx, d->candidates, idx) : idx;
    d->probs = NULL;
}

void sampler_graph_choose(struct ggml_context *ctx, struct llama_sampler_data *d, struct ggml_tensor *idx) {
    d->sampled = d->candidates ? pick(ctx, d->candidates, idx) : idx;
}

// ---- apply as a node --------------------------------------------------------------------------------------------------

// The result's parts: candidates at work [n] of three values, then ids, logits and probabilities [n], then the token chosen.
enum { AT_IDS = 3, AT_LOGITS = 4, AT_PROBS = 5, AT_TOKEN = 6 };

static void run_host(struct ggml_tensor *dst, int ith, int nth, void *ud) {
    (void) nth;
    if (ith != 0) return;
    struct llama_sampler *smpl = ud;
    const int64_t n = ggml_nelements(dst->src[0]);
    const float *logits = dst->src[0]->data;
    const int32_t *ids = dst->src[1] ? dst->src[1]->data : NULL;
    int32_t *out = dst->data;
    llama_token_data_array c = {dst->data, (size_t) n, -1, false};
    for (int64_t i = 0; i < n; i++) c.data[i] = (llama_token_data){ids ? ids[i] : (llama_token) i, logits[i], 0.0f};
    llama_sampler_apply(smpl, &c);
    // Behind the end of the array stands the best one's id, so that even where all that is left was banned nothing else is the best.
    const int64_t best = cand_best(&c);
    const llama_token rest = best >= 0 ? c.data[best].id : 0;
    for (int64_t i = 0; i < n; i++) {
        const bool kept = i < (int64_t) c.size;
        const float v[2] = {kept ? c.data[i].logit : -INFINITY, kept ? c.data[i].p : 0.0f};
        out[AT_IDS * n + i] = kept ? c.data[i].id : rest;
        memcpy(&out[AT_LOGITS * n + i], &v[0], 4);
        memcpy(&out[AT_PROBS * n + i], &v[1], 4);
    }
    out[AT_TOKEN * n] = c.selected >= 0 && c.selected < (int64_t) c.size ? c.data[c.selected].id : LLAMA_TOKEN_NULL;
}

static bool draws(struct llama_sampler *smpl) {
    if (smpl->iface != &sampler_kind_chain.iface) return sampler_kind_of(smpl)->seed != NULL;
    for (int32_t i = 0; i < llama_sampler_chain_n(smpl); i++)
        if (draws(llama_sampler_chain_get(smpl, i))) return true;
    return false;
}

void sampler_graph_host(struct llama_sampler *smpl, struct ggml_context *ctx, struct ggml_cgraph *gf,
                        struct llama_sampler_data *d) {
    (void) gf;
    const int64_t n = ggml_nelements(d->logits);
    struct ggml_tensor *args[2] = {d->logits, d->candidates};
    struct ggml_tensor *t =
        ggml_custom_4d(ctx, GGML_TYPE_I32, AT_TOKEN * n + 1, 1, 1, 1, args, d->candidates ? 2 : 1, run_host, 1, smpl);
    d->candidates = ggml_view_1d(ctx, t, n, (size_t) (AT_IDS * n) * 4);
    d->logits = ggml_view_1d(ctx, t, n, (size_t) (AT_LOGITS * n) * 4);
    d->probs = draws(smpl) ? ggml_view_1d(ctx, t, n, (size_t) (AT_PROBS * n) * 4) : NULL;
    d->sampled = ggml_view_1d(ctx, t, 1, (size_t) (AT_TOKEN * n) * 4);
    // floats lie there, whatever the whole is called
    if (!ggml_is_error(d->logits)) d->logits->type = GGML_TYPE_F32;
    if (d->probs && !ggml_is_error(d->probs)) d->probs->type = GGML_TYPE_F32;
}
