// Samplers: what a sampler of ours is, and what they share. Programs see include/llama/sampler.h; a sampler is one file that
// ends in `const struct sampler_kind sampler_kind_<name>` and its public llama_sampler_init_<name>, plus a line in sample.def.
#pragma once

#include "base/err.h"
#include "llama/sampler.h"
#include <stdlib.h>
#include <string.h>

struct sampler_kind {
    struct llama_sampler_i iface;                        // first: a sampler's iface pointer is a pointer to its kind
    uint32_t (*seed)(const struct llama_sampler *smpl);  // NULL: it draws nothing
    bool exact;                                          // its graph nodes do to the last bit what apply does
};

#define SAMPLER(name) extern const struct sampler_kind sampler_kind_##name;
#include "sample/sample.def"

// The kind of a sampler of ours, NULL for one of the program's own.
const struct sampler_kind *sampler_kind_of(const struct llama_sampler *smpl);
// A sampler of a kind with `size` bytes of context, copied from init (NULL: zeros). NULL: no memory.
struct llama_sampler *sampler_new(const struct sampler_kind *kind, const void *init, size_t size);
// clone, copy_state and free for contexts without pointers; size in the first member as SAMPLER_PLAIN declares it.
struct llama_sampler *sampler_plain_clone(const struct llama_sampler *smpl);
void sampler_plain_copy(const struct llama_sampler *src, struct llama_sampler *dst);
void sampler_plain_free(struct llama_sampler *smpl);
#define SAMPLER_PLAIN size_t size_of_ctx

// ---- random numbers: PCG32 (O'Neill 2014), one stream per sampler. The seed goes through splitmix64, so that neighbouring
// seeds give unrelated streams; the same seed gives the same numbers on every machine.
struct rng {
    uint64_t state;
    uint32_t seed;  // the seed in use: LLAMA_DEFAULT_SEED was replaced by one from the system
};
void rng_start(struct rng *r, uint32_t seed);
double rng_uniform(struct rng *r);  // [0, 1) in steps of 2^-53

// ---- candidates
// Order everywhere: higher logit first, NaN last, equal logits by lower id.
static inline bool cand_before(const llama_token_data *a, const llama_token_data *b) {
    if (a->logit > b->logit) return true;
    if (a->logit < b->logit) return false;
    bool na = a->logit != a->logit, nb = b->logit != b->logit;
    return na != nb ? nb : a->id < b->id;
}
// Index of the first in order, -1 if there are none.
int64_t cand_best(const llama_token_data_array *c);
// p of every candidate. NaN and -inf: 0; any +inf: these share 1 evenly; nothing above -inf: the first of the array has 1.
void cand_softmax(llama_token_data_array *c);
// Brings the first k in order to the front, in order. In place, no memory.
void cand_sort_front(llama_token_data_array *c, size_t k);
// Keeps the first n (at least 1) of the array.
void cand_keep(llama_token_data_array *c, size_t n);
// Keeps those whose keep[] test holds, in their order; at least min_keep of the best (which costs sorting them).
void cand_filter_logit(llama_token_data_array *c, float least, size_t min_keep);
// Draws one by p (which must be set) and selects it.
void cand_draw(llama_token_data_array *c, struct rng *r);
// The candidate with this id, NULL if there is none. Constant time while the array is the whole vocabulary in order.
llama_token_data *cand_find(llama_token_data_array *c, llama_token id);

// A place to keep candidates for llama_sampler_sample, so that nothing is allocated per token; NULL if smpl is no chain.
struct cand_buffer {
    llama_token_data *data;
    size_t cap;
};
struct cand_buffer *chain_buffer(struct llama_sampler *smpl);
// Time spent in llama_sampler_sample counts as the chain's.
void chain_count(struct llama_sampler *smpl, int64_t t_us);

// ---- inside the graph (llama_set_sampler). Some samplers can be written as graph nodes, which any device may compute; every one of
// ours can also be one node that calls apply on the host. A chain decides which (chain.c). d->logits [n], d->candidates [n] i32 or NULL
// for the whole vocabulary in order.
bool sampler_graph_ready(struct llama_sampler *smpl, ggml_backend_buffer_type_t buft,
                         uint32_t n);  // .backend_init: always true
// .backend_apply of those without nodes of their own: apply, or a whole chain's, as one node. Candidates that went stay behind the others
// with a logit of -inf. The node works in its result's memory: running it allocates nothing.
void sampler_graph_host(struct llama_sampler *smpl, struct ggml_context *ctx, struct ggml_cgraph *gf,
                        struct llama_sampler_data *d);
// Keeps the candidates idx [k] i32 of d.
void sampler_graph_keep(struct ggml_context *ctx, struct llama_sampler_data *d, struct ggml_tensor *idx);
// Chooses candidate idx [1] i32.
void sampler_graph_choose(struct ggml_context *ctx, struct llama_sampler_data *d, struct ggml_tensor *idx);
