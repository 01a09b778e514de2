// Candidates whose logit is within n standard deviations of the greatest, the best first; the others stay behind them with -inf.
// n <= 0: nothing changes. Tang et al. 2024.
#include "sample/sample.h"
#include <math.h>

struct top_n_sigma {
    SAMPLER_PLAIN;
    float n;
};

static const char *name(const struct llama_sampler *smpl) {
    (void) smpl;
    return "top-n-sigma";
}

static void apply(struct llama_sampler *smpl, llama_token_data_array *c) {
    const struct top_n_sigma *s = smpl->ctx;
    if (!(s->n > 0.0f) || c->size < 2) return;
    double sum = 0;
    size_t n = 0;
    float max = -INFINITY;
    for (size_t i = 0; i < c->size; i++) {
        float x = c->data[i].logit;
        if (!(x > -INFINITY && x < INFINITY)) continue;  // banned candidates are no part of the distribution
        sum += x;
        n++;
        if (x > max) max = x;
    }
    if (n == 0) return;
    double mean = sum / (double) n, squares = 0;
    for (size_t i = 0; i < c->size; i++) {
        float x = c->data[i].logit;
        if (x > -INFINITY && x < INFINITY) squares += (x - mean) * (x - mean);
    }
    const float least = (float) (max - s->n * sqrt(squares / (double) n));
    size_t n_kept = 0;
    for (size_t i = 0; i < c->size; i++) {
        if (c->data[i].logit >= least) {
            n_kept++;
        } else {
            c->data[i].logit = -INFINITY;
        }
    }
    cand_sort_front(c, n_kept);
    c->sorted = true;
    cand_softmax(c);
}

struct llama_sampler *llama_sampler_init_top_n_sigma(float n) {
    struct top_n_sigma ctx = {.size_of_ctx = sizeof ctx, .n = n};
    return sampler_new(&sampler_kind_top_n_sigma, &ctx, sizeof ctx);
}

const struct sampler_kind sampler_kind_top_n_sigma = {
    .iface = {.name = name,
              .apply = apply,
              .clone = sampler_plain_clone,
              .free = sampler_plain_free,
              .copy_state = sampler_plain_copy,
              .backend_init = sampler_graph_ready,
              .backend_apply = sampler_graph_host},
};
