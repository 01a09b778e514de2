// Temperature: logits divided by t. t <= 0: only the most likely candidate stays possible.
#include "sample/sample.h"
#include "ggml.h"
#include <math.h>

struct temp {
    SAMPLER_PLAIN;
    float t;
};

static const char *name(const struct llama_sampler *smpl) {
    (void) smpl;
    return "temp";
}

static void apply(struct llama_sampler *smpl, llama_token_data_array *c) {
    const struct temp *s = smpl->ctx;
    if (s->t > 0.0f) {
        for (size_t i = 0; s->t != 1.0f && i < c->size; i++) c->data[i].logit /= s->t;
        return;
    }
    int64_t best = cand_best(c);
    for (int64_t i = 0; i < (int64_t) c->size; i++) {
        if (i != best) c->data[i].logit = -INFINITY;
    }
}

static void graph_apply(struct llama_sampler *smpl, struct ggml_context *ctx, struct ggml_cgraph *gf,
                        struct llama_sampler_data *d) {
    (void) gf;
    const struct temp *s = smpl->ctx;
    if (s->t > 0.0f) {
        if (s->t != 1.0f) d->logits = ggml_scale(ctx, d->logits, 1.0f / s->t);
    } else {
        sampler_graph_keep(ctx, d, ggml_argmax(ctx, d->logits));  // the only possible one
    }
}

struct llama_sampler *llama_sampler_init_temp(float t) {
    struct temp ctx = {.size_of_ctx = sizeof ctx, .t = t};
    return sampler_new(&sampler_kind_temp, &ctx, sizeof ctx);
}

const struct sampler_kind sampler_kind_temp = {
    .iface = {.name = name,
              .apply = apply,
              .clone = sampler_plain_clone,
              .free = sampler_plain_free,
              .copy_state = sampler_plain_copy,
              .backend_init = sampler_graph_ready,
              .backend_apply = graph_apply},
};
