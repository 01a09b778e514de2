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
