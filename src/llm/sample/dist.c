// Draws one candidate by its probability.
#include "sample/sample.h"

struct dist {
    SAMPLER_PLAIN;
    struct rng rng;
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

struct llama_sampler *llama_sampler_init_dist(uint32_t seed_wanted) {
    struct dist ctx = {.size_of_ctx = sizeof ctx};
    rng_start(&ctx.rng, seed_wanted);
    return sampler_new(&sampler_kind_dist, &ctx, sizeof ctx);
}

const struct sampler_kind sampler_kind_dist = {
    .iface = {.name = name, .apply = apply, .reset = reset, .clone = sampler_plain_clone,
              .free = sampler_plain_free, .copy_state = sampler_plain_copy},
    .seed = seed,
};
