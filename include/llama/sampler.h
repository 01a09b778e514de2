// Samplers: chains that choose the next token.
//
// A sampler changes a list of candidates (llama_token_data_array): it takes some out, changes logits, or chooses one by setting
// `selected`. A chain applies its samplers one after the other; usually filters first, then one that chooses (dist, greedy,
// mirostat, adaptive-p). Programs may make samplers of their own from a struct llama_sampler_i.
//
// Order of candidates: higher logit first, equal ones by lower id; NaN counts as the least. Filters leave at least one candidate,
// whatever their parameters. Owner: whoever made a sampler frees it (llama_sampler_free); a chain owns what was added to it.
// Threads: one at a time per sampler. Errors: a sentence at ggml_last_error(); constructors give NULL.
#pragma once

#include "llama/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- any sampler. Functions of the interface that are NULL do nothing.

// no_perf: true
LLAMA_API struct llama_sampler_chain_params llama_sampler_chain_default_params(void);
// A sampler of the program's own. iface must outlive it; iface->free frees ctx.
LLAMA_API struct llama_sampler *llama_sampler_init(struct llama_sampler_i *iface, llama_sampler_context_t ctx);
LLAMA_API const char *llama_sampler_name(const struct llama_sampler *smpl);
// Tells the sampler which token was taken.
LLAMA_API void llama_sampler_accept(struct llama_sampler *smpl, llama_token token);
LLAMA_API void llama_sampler_apply(struct llama_sampler *smpl, llama_token_data_array *cur_p);
// As newly made, with the same seed.
LLAMA_API void llama_sampler_reset(struct llama_sampler *smpl);
// A copy with its state. Errors: NULL (no memory, or a sampler with a context and no clone function).
LLAMA_API struct llama_sampler *llama_sampler_clone(const struct llama_sampler *smpl);
// Copies the state of src to dst, which was made in the same way.
LLAMA_API void llama_sampler_copy(const struct llama_sampler *src, struct llama_sampler *dst);
// NULL is fine. Not for samplers that a chain owns.
LLAMA_API void llama_sampler_free(struct llama_sampler *smpl);

// ---- chains

LLAMA_API struct llama_sampler *llama_sampler_chain_init(struct llama_sampler_chain_params params);
// The chain takes smpl over.
LLAMA_API void llama_sampler_chain_add(struct llama_sampler *chain, struct llama_sampler *smpl);
// i = -1: the chain itself if it is one, else NULL. Errors: NULL.
LLAMA_API struct llama_sampler *llama_sampler_chain_get(struct llama_sampler *chain, int32_t i);
LLAMA_API int32_t llama_sampler_chain_n(const struct llama_sampler *chain);
// Gives sampler i back to the caller. Errors: NULL.
LLAMA_API struct llama_sampler *llama_sampler_chain_remove(struct llama_sampler *chain, int32_t i);

// ---- samplers that choose. seed: LLAMA_DEFAULT_SEED takes one from the system, which llama_sampler_get_seed then tells.

// The most likely.
LLAMA_API struct llama_sampler *llama_sampler_init_greedy(void);
// One by probability. Nothing above -inf: the first of the list.
LLAMA_API struct llama_sampler *llama_sampler_init_dist(uint32_t seed);
// Mirostat (Basu et al. 2020): keeps the surprise of the text near tau bits, learning at rate eta. m: tokens for its estimate (100).
LLAMA_API struct llama_sampler *llama_sampler_init_mirostat(int32_t n_vocab, uint32_t seed, float tau, float eta, int32_t m);
LLAMA_API struct llama_sampler *llama_sampler_init_mirostat_v2(uint32_t seed, float tau, float eta);
// Prefers tokens of about the target probability (0 .. 1; below 0: as dist) and corrects for the average of those chosen, whose
// memory is about 1 / (1 - decay) tokens (decay 0 .. 0.99).
LLAMA_API struct llama_sampler *llama_sampler_init_adaptive_p(float target, float decay, uint32_t seed);

// ---- filters. min_keep: candidates to leave at least; 0 counts as 1.

// The k most likely (Fan et al. 2018). k <= 0: all.
LLAMA_API struct llama_sampler *llama_sampler_init_top_k(int32_t k);
// The fewest most likely whose probabilities reach p (Holtzman et al. 2019). p >= 1: all.
LLAMA_API struct llama_sampler *llama_sampler_init_top_p(float p, size_t min_keep);
// At least p times as likely as the most likely (Nguyen et al. 2024). p <= 0: all.
LLAMA_API struct llama_sampler *llama_sampler_init_min_p(float p, size_t min_keep);
// Information nearest to the expected, up to p of the probability (Meister et al. 2022). p >= 1: all.
LLAMA_API struct llama_sampler *llama_sampler_init_typical(float p, size_t min_keep);
// With probability p: of those at least t likely only the least likely stays. t > 0.5: never.
LLAMA_API struct llama_sampler *llama_sampler_init_xtc(float p, float t, size_t min_keep, uint32_t seed);
// Logits within n standard deviations of the greatest (Tang et al. 2024). n <= 0: all.
LLAMA_API struct llama_sampler *llama_sampler_init_top_n_sigma(float n);
// For filling in the middle, after top-k and top-p: joins candidates that begin alike, ends where the model is about to.
LLAMA_API struct llama_sampler *llama_sampler_init_infill(const struct llama_vocab *vocab);

// ---- samplers that change logits

// Divided by t. t <= 0: all but the most likely become -inf.
LLAMA_API struct llama_sampler *llama_sampler_init_temp(float t);
// t - delta .. t + delta by how unsure the model is, to the power of exponent. delta <= 0: as temp.
LLAMA_API struct llama_sampler *llama_sampler_init_temp_ext(float t, float delta, float exponent);
// Adds a bias to each listed token; several for one token add up, -INFINITY bans. logit_bias [n_logit_bias] is copied.
LLAMA_API struct llama_sampler *llama_sampler_init_logit_bias(int32_t n_vocab, int32_t n_logit_bias,
                                                              const llama_logit_bias *logit_bias);
// For tokens among the last penalty_last_n accepted (0: off; below 0: all of them): divided by penalty_repeat (multiplied if
// negative), minus penalty_freq per occurrence, minus penalty_present. Negative penalties make repeats more likely.
LLAMA_API struct llama_sampler *llama_sampler_init_penalties(int32_t n_vocab, int32_t penalty_last_n, float penalty_repeat,
                                                             float penalty_freq, float penalty_present);
// Tokens that would go on repeating a sequence of n >= dry_allowed_length tokens of the last dry_penalty_last_n (below 0: 65,536) lose
// dry_multiplier * dry_base ^ (n - dry_allowed_length). No sequence reaches over one of seq_breakers [num_breakers], copied.
LLAMA_API struct llama_sampler *llama_sampler_init_dry(const struct llama_vocab *vocab, float dry_multiplier, float dry_base,
                                                       int32_t dry_allowed_length, int32_t dry_penalty_last_n,
                                                       const char **seq_breakers, size_t num_breakers);

// ---- grammars: tokens that don't fit become -inf; those that end a generation fit where the text is whole. What GBNF can say
// stands at the top of src/llm/grammar/parse.c.

// grammar_str empty or NULL: everything passes. grammar_root NULL: "root". Errors: NULL with line and column of the mistake.
LLAMA_API struct llama_sampler *llama_sampler_init_grammar(const struct llama_vocab *vocab, const char *grammar_str,
                                                           const char *grammar_root);
GGML_DEPRECATED(LLAMA_API struct llama_sampler *llama_sampler_init_grammar_lazy(
                    const struct llama_vocab *vocab, const char *grammar_str, const char *grammar_root,
                    const char **trigger_words, size_t num_trigger_words, const llama_token *trigger_tokens,
                    size_t num_trigger_tokens),
                "use the newer call");
// Everything passes until a trigger: one of trigger_tokens, with which the grammar begins, or a pattern (PCRE2 syntax) found in the
// text so far (one that begins with ^ and ends with $: that is the text so far), with whose first group (or all of it) and what follows
// the grammar begins. All lists are copied.
LLAMA_API struct llama_sampler *
llama_sampler_init_grammar_lazy_patterns(const struct llama_vocab *vocab, const char *grammar_str, const char *grammar_root,
                                         const char **trigger_patterns, size_t num_trigger_patterns,
                                         const llama_token *trigger_tokens, size_t num_trigger_tokens);

// ---- use

// The seed in use, of a chain that of its last sampler that has one; LLAMA_DEFAULT_SEED if there is none.
LLAMA_API uint32_t llama_sampler_get_seed(const struct llama_sampler *smpl);
// Applies smpl to the logits of output idx (-1: the last), and tells it the token. If nothing was chosen, the most likely candidate left
// is taken. A chain keeps the candidates' memory: after its first token nothing is allocated. Errors: LLAMA_TOKEN_NULL.
LLAMA_API llama_token llama_sampler_sample(struct llama_sampler *smpl, struct llama_context *ctx, int32_t idx);
// Tokens that the chain sampled or accepted, and the time that took in milliseconds (0 in a chain made with no_perf).
LLAMA_API struct llama_perf_sampler_data llama_perf_sampler(const struct llama_sampler *chain);
LLAMA_API void llama_perf_sampler_print(const struct llama_sampler *chain);
LLAMA_API void llama_perf_sampler_reset(struct llama_sampler *chain);

#ifdef __cplusplus
}
#endif
