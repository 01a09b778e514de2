// Contexts: batches, decoding, outputs, performance. A context is used by one thread at a time; several contexts of a model may be used
// by several threads. All memory is allocated when the context is made: computing allocates nothing.
// Results depend on the model, the tokens and the processor's level alone: not on the number of threads, the batch, the micro-batch,
// or what else is in the memory.
#pragma once

#include "llama/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Draft heads. A context of type MTP runs a draft head of a model that was loaded with load_mtp: from the state of a position and the token
// that follows there it predicts the token after that one. Its memory is its own and takes positions like any. Every entry of its batches
// is a token with a state [n_embd]: llama_batch has both arrays, token and embd (the states), llama_batch_ext has
// llama_batch_ext_set_embd_state. The state is what llama_get_embeddings_ith of the model's own context gives for the position before that
// token (embeddings on, pooling none: behind the last norm, which heads are trained on). The outputs are logits and, with embeddings on, the
// state to continue the head's own guess with. A file with several heads has one for each step: a context with ctx_other a context of the model
// (or NULL) runs the first, with ctx_other a context of type MTP the one after that. ctx_other is looked at only here, and may be freed before.

// Makes a context; the model must outlive it. NULL after a sentence at ggml_last_error() that names the parameter, or the bytes that are
// missing. What is adjusted: n_ctx up to a multiple of 256 (per sequence, unless kv_unified); n_batch down to n_ctx, n_ubatch to n_batch
// (and up to it where tokens see each other). n_ctx 0 means the model's own, bounded by half of the free memory.
LLAMA_API struct llama_context *llama_init_from_model(struct llama_model *model, struct llama_context_params params);
// As llama_init_from_model.
GGML_DEPRECATED(LLAMA_API struct llama_context *llama_new_context_with_model(struct llama_model *model,
                                                                             struct llama_context_params params),
                "use the newer call");
// Frees the context. NULL is fine.
LLAMA_API void llama_free(struct llama_context *ctx);
// Computes with these thread pools: the second for batches of more than one token (NULL: the first for all). They stay the caller's.
LLAMA_API void llama_attach_threadpool(struct llama_context *ctx, ggml_threadpool_t threadpool,
                                       ggml_threadpool_t threadpool_batch);
// Computes with threads of its own again.
LLAMA_API void llama_detach_threadpool(struct llama_context *ctx);
// Positions that the memory has room for, all sequences together.
LLAMA_API uint32_t llama_n_ctx(const struct llama_context *ctx);
// Positions that one sequence has room for.
LLAMA_API uint32_t llama_n_ctx_seq(const struct llama_context *ctx);
// Tokens that a batch may have.
LLAMA_API uint32_t llama_n_batch(const struct llama_context *ctx);
// Tokens that are computed at once.
LLAMA_API uint32_t llama_n_ubatch(const struct llama_context *ctx);
// Sequences: ids are 0 .. n_seq_max - 1.
LLAMA_API uint32_t llama_n_seq_max(const struct llama_context *ctx);
// Snapshots of recurrent state kept per sequence.
LLAMA_API uint32_t llama_n_rs_seq(const struct llama_context *ctx);
// The context's model.
LLAMA_API const struct llama_model *llama_get_model(const struct llama_context *ctx);
// The context's memory, NULL for models without one. Owner: the context.
LLAMA_API llama_memory_t llama_get_memory(const struct llama_context *ctx);
// How embeddings of a sequence are made from those of its tokens.
LLAMA_API enum llama_pooling_type llama_pooling_type(const struct llama_context *ctx);
// A batch of these tokens for sequence 0, continuing it, with the last one's output. Owns nothing.
LLAMA_API struct llama_batch llama_batch_get_one(llama_token *tokens, int32_t n_tokens);
// A batch with room for n_tokens tokens (or, embd > 0, embeddings of embd values), each in up to n_seq_max sequences. The content is the
// caller's to fill; pos has room for four positions per token. Empty (NULL pointers) after a sentence if there is no memory.
LLAMA_API struct llama_batch llama_batch_init(int32_t n_tokens, int32_t embd, int32_t n_seq_max);
// Frees what llama_batch_init made.
LLAMA_API void llama_batch_free(struct llama_batch batch);
// Runs the encoder, or an embedding or diffusion model, without memory: every token sees its whole sequence. 0; -1 bad batch; < -1
// failed. Sequences must fit into a micro-batch whole.
LLAMA_API int32_t llama_encode(struct llama_context *ctx, struct llama_batch batch);
// Adds the batch to the memory and computes it. 0; 1: no room in the memory; 2: aborted, micro-batches that were done stay (of
// recurrent models without n_rs_seq, the sequences of the one that was not done are empty); -1: bad batch; < -1: failed. With 1 and -1
// nothing has changed; a sentence is at ggml_last_error(). A batch is placed whole or not at all. Positions of a sequence continue where
// it ends, one by one.
LLAMA_API int32_t llama_decode(struct llama_context *ctx, struct llama_batch batch);
// A batch to be filled by calls, with room for n_batch entries of this context. NULL: no memory.
LLAMA_API struct llama_batch_ext *llama_batch_ext_init(struct llama_context *ctx);
// Frees it. NULL is fine.
LLAMA_API void llama_batch_ext_free(struct llama_batch_ext *batch);
// Removes all entries.
LLAMA_API void llama_batch_ext_clear(struct llama_batch_ext *batch);
// Adds an entry to a sequence; its token or embedding is set afterwards. Its index, or -1.
LLAMA_API int32_t llama_batch_ext_add(struct llama_batch_ext *batch, llama_seq_id seq_id);
// Adds a token. Its index, or -1 (full, no such sequence).
LLAMA_API int32_t llama_batch_ext_add_token(struct llama_batch_ext *batch, llama_seq_id seq_id, llama_token id);
// Adds an embedding (n_embd_inp values in one row or several, copied). Its index, or -1.
LLAMA_API int32_t llama_batch_ext_add_embd(struct llama_batch_ext *batch, llama_seq_id seq_id, struct llama_embd embd);
// Entry idx belongs to this sequence too.
LLAMA_API bool llama_batch_ext_add_seq(struct llama_batch_ext *batch, int32_t idx, llama_seq_id seq_id);
// Entry idx is this embedding (n_embd_inp values in one row or several, copied) in place of a token's.
LLAMA_API bool llama_batch_ext_set_embd_token(struct llama_batch_ext *batch, int32_t idx, struct llama_embd embd);
// Entry idx continues this state (one row of n_embd values, copied). False after a sentence if the context isn't of type MTP.
LLAMA_API bool llama_batch_ext_set_embd_state(struct llama_batch_ext *batch, int32_t idx, struct llama_embd embd);
// Whether entry idx gives an embedding.
LLAMA_API bool llama_batch_ext_set_output_embd(struct llama_batch_ext *batch, int32_t idx, bool value);
// Whether entry idx gives logits.
LLAMA_API bool llama_batch_ext_set_output_logits(struct llama_batch_ext *batch, int32_t idx, bool value);
// Position of entry idx: one value, or four (t, h, w, e) for an entry with an embedding in models with M-RoPE, so its embedding is set
// first. All entries have one, or none (then they continue).
LLAMA_API bool llama_batch_ext_set_pos(struct llama_batch_ext *batch, int32_t idx, const llama_pos *pos);
// llama_encode or llama_decode of the batch, with their results.
LLAMA_API int32_t llama_process(struct llama_context *ctx, enum llama_process_type type, struct llama_batch_ext *batch);
// Threads for single tokens and for batches; <= 0 means the default for this machine.
LLAMA_API void llama_set_n_threads(struct llama_context *ctx, int32_t n_threads, int32_t n_threads_batch);
// Threads for single tokens.
LLAMA_API int32_t llama_n_threads(struct llama_context *ctx);
// Threads for batches.
LLAMA_API int32_t llama_n_threads_batch(struct llama_context *ctx);
// Whether embeddings are given besides logits, from the next batch on. Every entry then has an output, whatever n_outputs_max
// says: the first batch that needs more rows than were reserved makes them.
LLAMA_API void llama_set_embeddings(struct llama_context *ctx, bool embeddings);
// Whether a token sees only what stands before it. False: a batch must fit into a micro-batch.
LLAMA_API void llama_set_causal_attn(struct llama_context *ctx, bool causal_attn);
// Whether attention is causal.
LLAMA_API bool llama_get_causal_attn(const struct llama_context *ctx);
// No effect: there is nothing to warm up.
GGML_DEPRECATED(LLAMA_API void llama_set_warmup(struct llama_context *ctx, bool warmup), "use the newer call");
// Asked between parts of the computation; true stops it (llama_decode gives 2).
LLAMA_API void llama_set_abort_callback(struct llama_context *ctx, ggml_abort_callback abort_callback,
                                        void *abort_callback_data);
// Waits until the computation is done. The other calls do it themselves where needed.
LLAMA_API void llama_synchronize(struct llama_context *ctx);
// Logits of the outputs of the last batch, [n_outputs][n_vocab] in batch order; NULL if there are none. Owner: the context, until the next batch.
LLAMA_API float *llama_get_logits(struct llama_context *ctx);
// Logits [n_vocab] of batch entry i; i < 0 counts outputs from the last, -1. NULL after a sentence if that entry gave none. Valid until the
// next batch.
LLAMA_API float *llama_get_logits_ith(struct llama_context *ctx, int32_t i);
// Embeddings of the outputs, [n_outputs][n_embd_out]; NULL if there are none (embeddings off, or pooled).
LLAMA_API float *llama_get_embeddings(struct llama_context *ctx);
// Embedding [n_embd_out] of batch entry i, as llama_get_logits_ith.
LLAMA_API float *llama_get_embeddings_ith(struct llama_context *ctx, int32_t i);
// Pooled embedding of a sequence [n_embd_out], or, with pooling rank, its scores [n_cls_out]. NULL if there is none.
LLAMA_API float *llama_get_embeddings_seq(struct llama_context *ctx, llama_seq_id seq_id);
// Token that a sampler inside the graph chose for entry i; LLAMA_TOKEN_NULL if there was none.
LLAMA_API llama_token llama_get_sampled_token_ith(struct llama_context *ctx, int32_t i);
// Probabilities that the sampler left, NULL if none.
LLAMA_API float *llama_get_sampled_probs_ith(struct llama_context *ctx, int32_t i);
// Their number.
LLAMA_API uint32_t llama_get_sampled_probs_count_ith(struct llama_context *ctx, int32_t i);
// Logits that the sampler left, NULL if none: llama_get_logits_ith has them all.
LLAMA_API float *llama_get_sampled_logits_ith(struct llama_context *ctx, int32_t i);
// Their number; n_vocab if there are none, which is the number of those of llama_get_logits_ith.
LLAMA_API uint32_t llama_get_sampled_logits_count_ith(struct llama_context *ctx, int32_t i);
// Tokens that those belong to; all ids in order where the sampler left all or there is none. NULL only without memory.
LLAMA_API llama_token *llama_get_sampled_candidates_ith(struct llama_context *ctx, int32_t i);
// How many the sampler left; 0 where it chose none.
LLAMA_API uint32_t llama_get_sampled_candidates_count_ith(struct llama_context *ctx, int32_t i);
// Runs a sampler (or a chain) inside the graph for a sequence; NULL: no longer. It works on the sequence's last output of each batch, with
// what was accepted until then, and chooses what llama_sampler_sample outside would; llama_sampler_sample then gives that token and accepts it.
// Every sampler of the library can, and a program's own that has the backend functions; a chain must not mix those with samplers that can't be
// written as nodes (greedy, dist, top-k, min-p, temp and logit-bias can). False otherwise: then it runs outside, as always. A chain must not
// change while it is set. On devices whose memory isn't the host's, chains of those six run as nodes there, equal up to rounding. Owner: the
// caller, for as long as it is set.
LLAMA_API bool llama_set_sampler(struct llama_context *ctx, llama_seq_id seq_id, struct llama_sampler *smpl);
// Times (ms) and counts since the last reset. At least 1 in the counts, so that quotients are finite.
LLAMA_API struct llama_perf_context_data llama_perf_context(const struct llama_context *ctx);
// The same through the log, at INFO.
LLAMA_API void llama_perf_context_print(const struct llama_context *ctx);
// Begins anew.
LLAMA_API void llama_perf_context_reset(struct llama_context *ctx);

#ifdef __cplusplus
}
#endif
