// The most likely token; of equals the lowest id.
#include "sample/sample.h"

struct greedy {
    SAMPLER_PLAIN;
};

static const char *name(const struct llama_sampler *smpl) {
    (void) smpl;
    return "greedy";
}

static void apply(struct llama_sampler *smpl, llama_token_data_array *c) {
    (void) smpl;
    c->selected = cand_best(c);
}

// Inside a graph (llama_set_sampler).
static bool backend_init(struct llama_sampler *smpl, ggml_backend_buffer_type_t buft, uint32_t n_outputs) {
    (void) smpl, (void) buft, (void) n_outputs;
    return true;
}

static void backend_apply(struct llama_sampler *smpl, struct ggml_context *ctx, struct ggml_cgraph *gf, struct llama_sampler_data *data) {
    (void) smpl;
    const int64_t n = ggml_nelements(data->logits);
    struct ggml_tensor *best = ggml_argmax(ctx, ggml_reshape_2d(ctx, data->logits, n, 1));
    if (data->candidates) best = ggml_get_rows(ctx, ggml_reshape_2d(ctx, data->candidates, 1, n), best);
    data->sampled = best;
    ggml_build_forward_expand(gf, best);
}

struct llama_sampler *llama_sampler_init_greedy(void) {
    struct greedy ctx = {.size_of_ctx = sizeof ctx};
    return sampler_new(&sampler_kind_greedy, &ctx, sizeof ctx);
}

const struct sampler_kind sampler_kind_greedy = {
    .iface = {.name = name, .apply = apply, .clone = sampler_plain_clone,
              .free = sampler_plain_free, .copy_state = sampler_plain_copy,
              .backend_init = backend_init, .backend_apply = backend_apply},
};
