// Dynamic temperature: between t - delta where the model is sure and t + delta where every candidate is equally
// likely, by the normalised entropy to the power of exponent. delta <= 0: as temp.
#include "sample/sample.h"
#include <math.h>

struct temp_ext {
    SAMPLER_PLAIN;
    float t, delta, exponent;
};

static void scale(llama_token_data_array *c, float t) {
    int64_t best = cand_best(c);
    for (int64_t i = 0; i < (int64_t) c->size; i++) {
        if (t > 0.0f) {
            c->data[i].logit /= t;
        } else if (i != best) {
            c->data[i].logit = -INFINITY;
        }
    }
}

static const char *name(const struct llama_sampler *smpl) {
    (void) smpl;
    return "temp-ext";
}

static void apply(struct llama_sampler *smpl, llama_token_data_array *c) {
    const struct temp_ext *s = smpl->ctx;
    float t = s->t;
    if (s->delta > 0.0f) {
        if (c->size <= 1) return;
        cand_softmax(c);
        double entropy = 0;
        for (size_t i = 0; i < c->size; i++) {
            if (c->data[i].p > 0) entropy -= (double) c->data[i].p * log(c->data[i].p);
        }
        float least = s->t - s->delta > 0.0f ? s->t - s->delta : 0.0f, most = s->t + s->delta;
        t = least + (most - least) * powf((float) (entropy / log((double) c->size)), s->exponent);
    }
    scale(c, t);
    if (s->delta > 0.0f) cand_softmax(c);  // the probabilities above were of the unscaled logits
}

struct llama_sampler *llama_sampler_init_temp_ext(float t, float delta, float exponent) {
    struct temp_ext ctx = {.size_of_ctx = sizeof ctx, .t = t, .delta = delta, .exponent = exponent};
    return sampler_new(&sampler_kind_temp_ext, &ctx, sizeof ctx);
}

const struct sampler_kind sampler_kind_temp_ext = {
    .iface = {.name = name,
              .apply = apply,
              .clone = sampler_plain_clone,
              .free = sampler_plain_free,
              .copy_state = sampler_plain_copy,
              .backend_init = sampler_graph_ready,
              .backend_apply = sampler_graph_host},
};
