// Candidates at least p times as likely as the most likely one. p <= 0: all. Nguyen et al. 2024.
#include "sample/sample.h"
#include "ggml.h"
#include <math.h>

struct min_p {
    SAMPLER_PLAIN;
    float p;
    size_t min_keep;
};

static const char *name(const struct llama_sampler *smpl) {
    (void) smpl;
    return "min-p";
}

static void apply(struct llama_sampler *smpl, llama_token_data_array *c) {
    const struct min_p *s = smpl->ctx;
    int64_t best = cand_best(c);
    if (!(s->p > 0.0f) || best < 0) return;
    float max = c->data[best].logit;
    if (!(max > -INFINITY)) return;
    // a share of the greatest probability is a distance from the greatest logit; no softmax needed
    cand_filter_logit(c, max == INFINITY ? max : max + logf(s->p < 1.0f ? s->p : 1.0f), s->min_keep);
}

// What is below the threshold gets log(0) added.
static void graph_apply(struct llama_sampler *smpl, struct ggml_context *ctx, struct ggml_cgraph *gf,
                        struct llama_sampler_data *d) {
    (void) gf;
    const struct min_p *s = smpl->ctx;
    if (!(s->p > 0.0f)) return;
    struct ggml_tensor *column = ggml_reshape_2d(ctx, d->logits, 1, ggml_nelements(d->logits));
    struct ggml_tensor *max = ggml_get_rows(ctx, column, ggml_argmax(ctx, d->logits));
    struct ggml_tensor *above =
        ggml_scale_bias(ctx, ggml_sub(ctx, d->logits, max), 1.0f, 1e-6f - logf(s->p < 1.0f ? s->p : 1.0f));
    d->logits = ggml_add(ctx, d->logits, ggml_log(ctx, ggml_step(ctx, above)));
}

struct llama_sampler *llama_sampler_init_min_p(float p, size_t min_keep) {
    struct min_p ctx = {.size_of_ctx = sizeof ctx, .p = p, .min_keep = min_keep};
    return sampler_new(&sampler_kind_min_p, &ctx, sizeof ctx);
}

const struct sampler_kind sampler_kind_min_p = {
    .iface = {.name = name,
              .apply = apply,
              .clone = sampler_plain_clone,
              .free = sampler_plain_free,
              .copy_state = sampler_plain_copy,
              .backend_init = sampler_graph_ready,
              .backend_apply = graph_apply},
};
