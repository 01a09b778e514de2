// Nucleus sampling: the fewest most likely candidates whose probabilities reach p. p >= 1: all. Holtzman et al. 2019.
#include "sample/sample.h"

struct top_p {
    SAMPLER_PLAIN;
    float p;
    size_t min_keep;
};

static const char *name(const struct llama_sampler *smpl) {
    (void) smpl;
    return "top-p";
}

static void apply(struct llama_sampler *smpl, llama_token_data_array *c) {
    const struct top_p *s = smpl->ctx;
    if (!(s->p < 1.0f) || c->size == 0) return;
    cand_softmax(c);
    // sorted in growing steps: the nucleus is rarely more than a few dozen candidates
    size_t n = 0, sorted = 0;
    double sum = 0;
    for (size_t step = 64; n < c->size && (n == 0 || sum < s->p || n < s->min_keep); n++) {
        if (n == sorted) {
            sorted = step < c->size ? step : c->size;
            cand_sort_front(c, sorted);
            step *= 8;
        }
        sum += c->data[n].p;
    }
    cand_keep(c, n);
    c->sorted = true;
}

struct llama_sampler *llama_sampler_init_top_p(float p, size_t min_keep) {
    struct top_p ctx = {.size_of_ctx = sizeof ctx, .p = p, .min_keep = min_keep};
    return sampler_new(&sampler_kind_top_p, &ctx, sizeof ctx);
}

const struct sampler_kind sampler_kind_top_p = {
    .iface = {.name = name,
              .apply = apply,
              .clone = sampler_plain_clone,
              .free = sampler_plain_free,
              .copy_state = sampler_plain_copy,
              .backend_init = sampler_graph_ready,
              .backend_apply = sampler_graph_host},
};
