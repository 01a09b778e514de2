// Batches written token by token.
#pragma once

#include "llama.h"

// One more token of a sequence, whose logits are wanted if out.
static inline void put(struct llama_batch *b, int seq, int pos, int32_t token, bool out) {
    const int k = b->n_tokens++;
    b->token[k] = token;
    b->pos[k] = pos;
    b->n_seq_id[k] = 1;
    b->seq_id[k][0] = seq;
    b->logits[k] = out;
}
