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
