// The most likely token; of equals the lowest id.
#include "sample/sample.h"
#include "ggml.h"

struct greedy {
    SAMPLER_PLAIN;
};

static const char *name(const struct llama_sampler *smpl) {
    (void) smpl;
    return "greedy";
}

static void apply(struct llama_sampler *smpl, llama_token_data_array *c) {
    (void) smpl;
    c->selected = cand_best(c);
}

// Inside a graph (llama_set_sampler).
static void graph_apply(struct llama_sampler *smpl, struct ggml_context *ctx, struct ggml_cgraph *gf,
                        struct llama_sampler_data *d) {
    (void) gf;
    (void) smpl;
    sampler_graph_choose(ctx, d, ggml_argmax(ctx, d->logits));
}

struct llama_sampler *llama_sampler_init_greedy(void) {
    struct greedy ctx = {.size_of_ctx = sizeof ctx};
    return sampler_new(&sampler_kind_greedy, &ctx, sizeof ctx);
}

const struct sampler_kind sampler_kind_greedy = {
    .iface = {.name = name,
              .apply = apply,
              .clone = sampler_plain_clone,
              .free = sampler_plain_free,
              .copy_state = sampler_plain_copy,
              .backend_init = sampler_graph_ready,
              .backend_apply = graph_apply},
    .exact = true,
};
