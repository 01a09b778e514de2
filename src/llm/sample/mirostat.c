// Mirostat: keeps the surprise of the chosen tokens near tau by adjusting a top-k. Basu et al. 2020, algorithm 1.
#include "sample/sample.h"
#include <math.h>

struct mirostat {
    SAMPLER_PLAIN;
    int32_t n_vocab, m;
    float tau, eta, mu;
    struct rng rng;
};

static const char *name(const struct llama_sampler *smpl) {
    (void) smpl;
    return "mirostat";
}

static void apply(struct llama_sampler *smpl, llama_token_data_array *c) {
    struct mirostat *s = smpl->ctx;
    if (c->size == 0) return;
    cand_softmax(c);
    // exponent of the Zipf distribution from the m most likely
    size_t m = s->m > 2 ? (size_t) s->m : 2;
    if (m > c->size) m = c->size;
    cand_sort_front(c, m);
    double num = 0, den = 0;
    for (size_t i = 0; i + 1 < m; i++) {
        if (!(c->data[i + 1].p > 0)) break;
        double t = log((double) (i + 2) / (double) (i + 1)), b = log((double) c->data[i].p / (double) c->data[i + 1].p);
        num += t * b;
        den += t * t;
    }
    double s_hat = den > 0 ? num / den : 1, eps = s_hat - 1, n = s->n_vocab > 0 ? s->n_vocab : (double) c->size;
    double k = pow(eps * exp2(s->mu) / (1 - pow(n, -eps)), 1 / s_hat);
    if (!(k >= 1)) k = 1;
    size_t keep = k < (double) c->size ? (size_t) k : c->size;
    cand_sort_front(c, keep);
    cand_keep(c, keep);
    cand_softmax(c);
    cand_draw(c, &s->rng);
    s->mu -= s->eta * (-log2f(c->data[c->selected].p) - s->tau);
}

static void reset(struct llama_sampler *smpl) {
    struct mirostat *s = smpl->ctx;
    s->mu = 2 * s->tau;
    rng_start(&s->rng, s->rng.seed);
}

static uint32_t seed(const struct llama_sampler *smpl) { return ((const struct mirostat *) smpl->ctx)->rng.seed; }

struct llama_sampler *llama_sampler_init_mirostat(int32_t n_vocab, uint32_t seed_wanted, float tau, float eta, int32_t m) {
    struct mirostat ctx = {.size_of_ctx = sizeof ctx, .n_vocab = n_vocab, .m = m, .tau = tau, .eta = eta, .mu = 2 * tau};
    rng_start(&ctx.rng, seed_wanted);
    return sampler_new(&sampler_kind_mirostat, &ctx, sizeof ctx);
}

const struct sampler_kind sampler_kind_mirostat = {
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
