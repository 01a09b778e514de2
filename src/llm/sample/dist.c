// Draws one candidate by its probability.
#include "sample/sample.h"
#include "ggml.h"

struct dist {
    SAMPLER_PLAIN;
    struct rng rng;
    struct ggml_tensor *u;  // [1] the random number of the present graph, NULL: none
};

static const char *name(const struct llama_sampler *smpl) {
    (void) smpl;
    return "dist";
}

static void apply(struct llama_sampler *smpl, llama_token_data_array *c) {
    struct dist *s = smpl->ctx;
    cand_softmax(c);
    cand_draw(c, &s->rng);
}

static void reset(struct llama_sampler *smpl) {
    struct dist *s = smpl->ctx;
    rng_start(&s->rng, s->rng.seed);
}

static uint32_t seed(const struct llama_sampler *smpl) { return ((const struct dist *) smpl->ctx)->rng.seed; }

// The first candidate at which the running sum of probabilities passes a random number, which is an input of the graph.
static void graph_apply(struct llama_sampler *smpl, struct ggml_context *ctx, struct ggml_cgraph *gf,
                        struct llama_sampler_data *d) {
    (void) gf;
    struct dist *s = smpl->ctx;
    s->u = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1);
    ggml_set_input(s->u);
    d->probs = ggml_soft_max(ctx, d->logits);
    struct ggml_tensor *passed = ggml_step(ctx, ggml_sub(ctx, ggml_cumsum(ctx, d->probs), s->u));
    sampler_graph_choose(ctx, d, ggml_argmax(ctx, passed));  // the first of equals
}

static void graph_set_input(struct llama_sampler *smpl) {
    struct dist *s = smpl->ctx;
    if (!s->u || !s->u->buffer) return;
    float u = (float) (rng_uniform(&s->rng) * (1 - 1e-6));  // below what rounding leaves of a sum of 1
    ggml_backend_tensor_set(s->u, &u, 0, sizeof u);
}

struct llama_sampler *llama_sampler_init_dist(uint32_t seed_wanted) {
    struct dist ctx = {.size_of_ctx = sizeof ctx};
    rng_start(&ctx.rng, seed_wanted);
    return sampler_new(&sampler_kind_dist, &ctx, sizeof ctx);
}

const struct sampler_kind sampler_kind_dist = {
    .iface = {.name = name,
              .apply = apply,
              .reset = reset,
              .clone = sampler_plain_clone,
              .free = sampler_plain_free,
              .copy_state = sampler_plain_copy,
              .backend_init = sampler_graph_ready,
              .backend_apply = graph_apply,
              .backend_set_input = graph_set_input},
    .seed = seed,
};
