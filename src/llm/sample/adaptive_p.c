// Adaptive-p: prefers tokens whose probability is near a target, and moves the target against the average of what was
// chosen, so that the average comes out right. Chooses; comes last, best after a mild min-p. Method: MrJackSpade 2025.
#include "sample/sample.h"
#include <math.h>

#define PEAK 5.0f  // logit at the target
#define SHARPNESS 10.0f
#define WIDTH 0.3f  // probability distance that counts as one

struct adaptive_p {
    SAMPLER_PLAIN;
    float target, decay;  // target < 0: draws without changing anything
    double sum, weight;   // of the original probabilities chosen so far, older ones decayed
    llama_token pending;  // chosen by apply; counts when it is accepted
    float pending_p;
    struct rng rng;
};

static const char *name(const struct llama_sampler *smpl) {
    (void) smpl;
    return "adaptive-p";
}

static void start(struct adaptive_p *s) {
    s->sum = s->target / (1.0 - s->decay);  // as if the target had been met forever
    s->weight = 1.0 / (1.0 - s->decay);
    s->pending = LLAMA_TOKEN_NULL;
}

static void apply(struct llama_sampler *smpl, llama_token_data_array *c) {
    struct adaptive_p *s = smpl->ctx;
    if (c->size == 0) return;
    cand_softmax(c);
    if (s->target < 0.0f) {
        cand_draw(c, &s->rng);
        return;
    }
    double target = 2.0 * s->target - s->sum / s->weight;
    target = target < 0.0 ? 0.0 : target > 1.0 ? 1.0 : target;
    for (size_t i = 0; i < c->size; i++) {
        llama_token_data *d = &c->data[i];
        float original = d->p;
        if (d->logit > -INFINITY) {
            float distance = fabsf((original - (float) target) / WIDTH);
            // near the target quadratic, far from it linear: far tokens stay possible
            d->logit = PEAK - SHARPNESS * distance * distance / (1.0f + distance);
        }
        d->p = original;
    }
    c->sorted = false;
    // draw from the new logits while p still holds the original probabilities
    double sum = 0, max = -INFINITY;
    for (size_t i = 0; i < c->size; i++) max = c->data[i].logit > max ? c->data[i].logit : max;
    for (size_t i = 0; i < c->size; i++) sum += c->data[i].logit > -INFINITY ? exp(c->data[i].logit - max) : 0.0;
    double u = rng_uniform(&s->rng) * sum, at = 0;
    c->selected = 0;
    for (size_t i = 0; i < c->size; i++) {
        if (!(c->data[i].logit > -INFINITY)) continue;
        c->selected = (int64_t) i;
        at += exp(c->data[i].logit - max);
        if (at > u) break;
    }
    s->pending = c->data[c->selected].id;
    s->pending_p = c->data[c->selected].p;
    cand_softmax(c);
}

static void accept(struct llama_sampler *smpl, llama_token token) {
    struct adaptive_p *s = smpl->ctx;
    if (s->target < 0.0f || token != s->pending) return;
    s->sum = s->pending_p + s->decay * s->sum;
    s->weight = 1.0 + s->decay * s->weight;
    s->pending = LLAMA_TOKEN_NULL;
}

static void reset(struct llama_sampler *smpl) {
    struct adaptive_p *s = smpl->ctx;
    start(s);
    rng_start(&s->rng, s->rng.seed);
}

static uint32_t seed(const struct llama_sampler *smpl) { return ((const struct adaptive_p *) smpl->ctx)->rng.seed; }

struct llama_sampler *llama_sampler_init_adaptive_p(float target, float decay, uint32_t seed_wanted) {
    struct adaptive_p ctx = {.size_of_ctx = sizeof ctx, .target = target > 1.0f ? 1.0f : target};
    ctx.decay = !(decay > 0.0f) ? 0.0f : decay > 0.99f ? 0.99f : decay;
    start(&ctx);
    rng_start(&ctx.rng, seed_wanted);
    return sampler_new(&sampler_kind_adaptive_p, &ctx, sizeof ctx);
}

const struct sampler_kind sampler_kind_adaptive_p = {
    .iface = {.name = name,
              .accept = accept,
              .apply = apply,
              .reset = reset,
              .clone = sampler_plain_clone,
              .free = sampler_plain_free,
              .copy_state = sampler_plain_copy,
              .backend_init = sampler_graph_ready,
              .backend_apply = sampler_graph_host},
    .seed = seed,
};
