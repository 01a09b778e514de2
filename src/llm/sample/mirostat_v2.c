// Mirostat 2: candidates more surprising than mu are left out, and mu follows the surprise of what was chosen towards
// tau. Basu et al. 2020, algorithm 2.
#include "sample/sample.h"
#include <math.h>

struct mirostat_v2 {
    SAMPLER_PLAIN;
    float tau, eta, mu;
    struct rng rng;
};

static const char *name(const struct llama_sampler *smpl) {
    (void) smpl;
    return "mirostat-v2";
}

static void apply(struct llama_sampler *smpl, llama_token_data_array *c) {
    struct mirostat_v2 *s = smpl->ctx;
    if (c->size == 0) return;
    cand_softmax(c);
    int64_t best = cand_best(c);
    // -log2 p <= mu, as a bound on the logit; the most likely one always stays
    float max = c->data[best].logit, least = max - (s->mu * 0.69314718f + logf(c->data[best].p));
    if (max > -INFINITY && max < INFINITY) cand_filter_logit(c, least < max ? least : max, 1);
    cand_softmax(c);
    cand_draw(c, &s->rng);
    s->mu -= s->eta * (-log2f(c->data[c->selected].p) - s->tau);
}

static void reset(struct llama_sampler *smpl) {
    struct mirostat_v2 *s = smpl->ctx;
    s->mu = 2 * s->tau;
    rng_start(&s->rng, s->rng.seed);
}

static uint32_t seed(const struct llama_sampler *smpl) { return ((const struct mirostat_v2 *) smpl->ctx)->rng.seed; }

struct llama_sampler *llama_sampler_init_mirostat_v2(uint32_t seed_wanted, float tau, float eta) {
    struct mirostat_v2 ctx = {.size_of_ctx = sizeof ctx, .tau = tau, .eta = eta, .mu = 2 * tau};
    rng_start(&ctx.rng, seed_wanted);
    return sampler_new(&sampler_kind_mirostat_v2, &ctx, sizeof ctx);
}

const struct sampler_kind sampler_kind_mirostat_v2 = {
    .iface = {.name = name,
              .apply = apply,
              .reset = reset,
              .clone = sampler_plain_clone,
              .free = sampler_plain_free,
              .copy_state = sampler_plain_copy,
              .backend_init = sampler_graph_ready,
              .backend_apply = sampler_graph_host},
    .seed = seed,
};
