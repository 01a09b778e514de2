// Exclude top choices: with probability p, of the candidates with at least probability t only the least likely stays.
// t > 0.5 or p <= 0: never. Method: P. Knispel 2024.
#include "sample/sample.h"

struct xtc {
    SAMPLER_PLAIN;
    float p, t;
    size_t min_keep;
    struct rng rng;
};

static const char *name(const struct llama_sampler *smpl) {
    (void) smpl;
    return "xtc";
}

static void apply(struct llama_sampler *smpl, llama_token_data_array *c) {
    struct xtc *s = smpl->ctx;
    if (!(s->p > 0.0f) || s->t > 0.5f || c->size < 2 || rng_uniform(&s->rng) > s->p) return;
    cand_softmax(c);
    int64_t last = -1;
    size_t n_top = 0;
    for (size_t i = 0; i < c->size; i++) {
        if (!(c->data[i].p >= s->t)) continue;
        n_top++;
        if (last < 0 || cand_before(&c->data[last], &c->data[i])) last = (int64_t) i;
    }
    if (n_top < 2 || c->size - (n_top - 1) < s->min_keep) return;
    llama_token spared = c->data[last].id;
    size_t k = 0;
    for (size_t i = 0; i < c->size; i++) {
        if (!(c->data[i].p >= s->t) || c->data[i].id == spared) c->data[k++] = c->data[i];
    }
    c->size = k;
    c->selected = -1;
}

static void reset(struct llama_sampler *smpl) {
    struct xtc *s = smpl->ctx;
    rng_start(&s->rng, s->rng.seed);
}

static uint32_t seed(const struct llama_sampler *smpl) { return ((const struct xtc *) smpl->ctx)->rng.seed; }

struct llama_sampler *llama_sampler_init_xtc(float p, float t, size_t min_keep, uint32_t seed_wanted) {
    struct xtc ctx = {.size_of_ctx = sizeof ctx, .p = p, .t = t, .min_keep = min_keep};
    rng_start(&ctx.rng, seed_wanted);
    return sampler_new(&sampler_kind_xtc, &ctx, sizeof ctx);
}

const struct sampler_kind sampler_kind_xtc = {
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
