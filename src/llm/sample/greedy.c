// The most likely token; of equals the lowest id.
#include "sample/sample.h"

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

struct llama_sampler *llama_sampler_init_greedy(void) {
    struct greedy ctx = {.size_of_ctx = sizeof ctx};
    return sampler_new(&sampler_kind_greedy, &ctx, sizeof ctx);
}

const struct sampler_kind sampler_kind_greedy = {
    .iface = {.name = name, .apply = apply, .clone = sampler_plain_clone,
              .free = sampler_plain_free, .copy_state = sampler_plain_copy},
};
