// Samplers inside the graph: what they share. See sample.h.
#include "sample/sample.h"
#include "ggml.h"

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
