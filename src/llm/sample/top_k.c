// The k most likely candidates, in order. k <= 0: all of them. Fan et al. 2018.
#include "sample/sample.h"
#include "ggml.h"

struct top_k {
    SAMPLER_PLAIN;
    int32_t k;
};

static const char *name(const struct llama_sampler *smpl) {
    (void) smpl;
    return "top-k";
}

static void apply(struct llama_sampler *smpl, llama_token_data_array *c) {
    const struct top_k *s = smpl->ctx;
    if (s->k <= 0) return;
    cand_sort_front(c, (size_t) s->k);
    cand_keep(c, (size_t) s->k);
    c->sorted = true;
}

static void graph_apply(struct llama_sampler *smpl, struct ggml_context *ctx, struct ggml_cgraph *gf,
                        struct llama_sampler_data *d) {
    (void) gf;
    const struct top_k *s = smpl->ctx;
    if (s->k <= 0 || s->k >= ggml_nelements(d->logits)) return;
    sampler_graph_keep(ctx, d, ggml_argsort_top_k(ctx, d->logits, s->k));
}

struct llama_sampler *llama_sampler_init_top_k(int32_t k) {
    struct top_k ctx = {.size_of_ctx = sizeof ctx, .k = k};
    return sampler_new(&sampler_kind_top_k, &ctx, sizeof ctx);
}

const struct sampler_kind sampler_kind_top_k = {
    .iface = {.name = name,
              .apply = apply,
              .clone = sampler_plain_clone,
              .free = sampler_plain_free,
              .copy_state = sampler_plain_copy,
              .backend_init = sampler_graph_ready,
              .backend_apply = graph_apply},
    .exact = true,
};
