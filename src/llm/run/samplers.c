// Samplers that run inside the graph, per sequence.
#include <stdlib.h>

#include "run/context.h"

struct context_samplers {
    struct llama_sampler *of[1];  // [n_seq_max]
};

void samplers_free(struct llama_context *ctx) {
    free(ctx->samplers);
    ctx->samplers = NULL;
}

bool llama_set_sampler(struct llama_context *ctx, llama_seq_id seq_id, struct llama_sampler *smpl) {
    (void) ctx;
    (void) seq_id;
    (void) smpl;
    return false;
}

// Without a sampler in the graph nothing is sampled there: the samplers then work on the logits.
llama_token llama_get_sampled_token_ith(struct llama_context *ctx, int32_t i) {
    (void) ctx, (void) i;
    return LLAMA_TOKEN_NULL;
}

float *llama_get_sampled_probs_ith(struct llama_context *ctx, int32_t i) {
    (void) ctx, (void) i;
    return NULL;
}

uint32_t llama_get_sampled_probs_count_ith(struct llama_context *ctx, int32_t i) {
    (void) ctx, (void) i;
    return 0;
}

float *llama_get_sampled_logits_ith(struct llama_context *ctx, int32_t i) {
    (void) ctx, (void) i;
    return NULL;
}

uint32_t llama_get_sampled_logits_count_ith(struct llama_context *ctx, int32_t i) {
    (void) ctx, (void) i;
    return 0;
}

llama_token *llama_get_sampled_candidates_ith(struct llama_context *ctx, int32_t i) {
    (void) ctx, (void) i;
    return NULL;
}

uint32_t llama_get_sampled_candidates_count_ith(struct llama_context *ctx, int32_t i) {
    (void) ctx, (void) i;
    return 0;
}
