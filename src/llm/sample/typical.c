// Locally typical sampling: candidates whose information is nearest to the expected one, until they hold p of the
// probability. p >= 1: all. Meister et al. 2022.
#include "sample/sample.h"
#include <math.h>

struct typical {
    SAMPLER_PLAIN;
    float p;
    size_t min_keep;
};

static const char *name(const struct llama_sampler *smpl) {
    (void) smpl;
    return "typical";
}

static void apply(struct llama_sampler *smpl, llama_token_data_array *c) {
    const struct typical *s = smpl->ctx;
    if (!(s->p < 1.0f) || c->size == 0) return;
    cand_softmax(c);
    double entropy = 0;
    for (size_t i = 0; i < c->size; i++) {
        if (c->data[i].p > 0) entropy -= (double) c->data[i].p * log(c->data[i].p);
    }
    // order by distance: the logit lends its place, and p remembers it
    float best = c->data[cand_best(c)].logit, p_best = c->data[cand_best(c)].p;
    for (size_t i = 0; i < c->size; i++) {
        llama_token_data *d = &c->data[i];
        float distance = d->p > 0 ? (float) fabs(-log(d->p) - entropy) : INFINITY, logit = d->logit;
        d->logit = -distance;
        d->p = logit;
    }
    c->sorted = false;
    size_t n = 0, sorted = 0;
    double sum = 0;
    for (size_t step = 64; n < c->size && (n == 0 || sum <= s->p || n < s->min_keep); n++) {
        if (n == sorted) {
            sorted = step < c->size ? step : c->size;
            cand_sort_front(c, sorted);
            step *= 8;
        }
        sum += p_best * exp((double) c->data[n].p - best);
    }
    cand_keep(c, n);
    c->sorted = false;
    for (size_t i = 0; i < c->size; i++) {  // p as it was among all
        c->data[i].logit = c->data[i].p;
        c->data[i].p = (float) (p_best * exp((double) c->data[i].logit - best));
    }
}

struct llama_sampler *llama_sampler_init_typical(float p, size_t min_keep) {
    struct typical ctx = {.size_of_ctx = sizeof ctx, .p = p, .min_keep = min_keep};
    return sampler_new(&sampler_kind_typical, &ctx, sizeof ctx);
}

const struct sampler_kind sampler_kind_typical = {
    .iface = {.name = name,
              .apply = apply,
              .clone = sampler_plain_clone,
              .free = sampler_plain_free,
              .copy_state = sampler_plain_copy,
              .backend_init = sampler_graph_ready,
              .backend_apply = sampler_graph_host},
};
