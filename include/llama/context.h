// Contexts: batches, decoding, outputs, performance.
#pragma once

#include "llama/types.h"

#ifdef __cplusplus
extern "C" {
#endif

LLAMA_API struct llama_context *llama_init_from_model(struct llama_model *model, struct llama_context_params params);
GGML_DEPRECATED(LLAMA_API struct llama_context *llama_new_context_with_model(struct llama_model *model, struct llama_context_params params), "use the newer call");
LLAMA_API void llama_free(struct llama_context *ctx);
LLAMA_API void llama_attach_threadpool(struct llama_context *ctx, ggml_threadpool_t threadpool, ggml_threadpool_t threadpool_batch);
LLAMA_API void llama_detach_threadpool(struct llama_context *ctx);
LLAMA_API uint32_t llama_n_ctx(const struct llama_context *ctx);
LLAMA_API uint32_t llama_n_ctx_seq(const struct llama_context *ctx);
LLAMA_API uint32_t llama_n_batch(const struct llama_context *ctx);
LLAMA_API uint32_t llama_n_ubatch(const struct llama_context *ctx);
LLAMA_API uint32_t llama_n_seq_max(const struct llama_context *ctx);
LLAMA_API uint32_t llama_n_rs_seq(const struct llama_context *ctx);
LLAMA_API const struct llama_model *llama_get_model(const struct llama_context *ctx);
LLAMA_API llama_memory_t llama_get_memory(const struct llama_context *ctx);
LLAMA_API enum llama_pooling_type llama_pooling_type(const struct llama_context *ctx);
LLAMA_API struct llama_batch llama_batch_get_one(llama_token *tokens, int32_t n_tokens);
LLAMA_API struct llama_batch llama_batch_init(int32_t n_tokens, int32_t embd, int32_t n_seq_max);
LLAMA_API void llama_batch_free(struct llama_batch batch);
LLAMA_API int32_t llama_encode(struct llama_context *ctx, struct llama_batch batch);
LLAMA_API int32_t llama_decode(struct llama_context *ctx, struct llama_batch batch);
LLAMA_API struct llama_batch_ext *llama_batch_ext_init(struct llama_context *ctx);
LLAMA_API void llama_batch_ext_free(struct llama_batch_ext *batch);
LLAMA_API void llama_batch_ext_clear(struct llama_batch_ext *batch);
LLAMA_API int32_t llama_batch_ext_add(struct llama_batch_ext *batch, llama_seq_id seq_id);
LLAMA_API int32_t llama_batch_ext_add_token(struct llama_batch_ext *batch, llama_seq_id seq_id, llama_token id);
LLAMA_API int32_t llama_batch_ext_add_embd(struct llama_batch_ext *batch, llama_seq_id seq_id, struct llama_embd embd);
LLAMA_API bool llama_batch_ext_add_seq(struct llama_batch_ext *batch, int32_t idx, llama_seq_id seq_id);
LLAMA_API bool llama_batch_ext_set_embd_token(struct llama_batch_ext *batch, int32_t idx, struct llama_embd embd);
LLAMA_API bool llama_batch_ext_set_embd_state(struct llama_batch_ext *batch, int32_t idx, struct llama_embd embd);
LLAMA_API bool llama_batch_ext_set_output_embd(struct llama_batch_ext *batch, int32_t idx, bool value);
LLAMA_API bool llama_batch_ext_set_output_logits(struct llama_batch_ext *batch, int32_t idx, bool value);
LLAMA_API bool llama_batch_ext_set_pos(struct llama_batch_ext *batch, int32_t idx, const llama_pos *pos);
LLAMA_API int32_t llama_process(struct llama_context *ctx, enum llama_process_type type, struct llama_batch_ext *batch);
LLAMA_API void llama_set_n_threads(struct llama_context *ctx, int32_t n_threads, int32_t n_threads_batch);
LLAMA_API int32_t llama_n_threads(struct llama_context *ctx);
LLAMA_API int32_t llama_n_threads_batch(struct llama_context *ctx);
LLAMA_API void llama_set_embeddings(struct llama_context *ctx, bool embeddings);
LLAMA_API void llama_set_causal_attn(struct llama_context *ctx, bool causal_attn);
LLAMA_API bool llama_get_causal_attn(const struct llama_context *ctx);
GGML_DEPRECATED(LLAMA_API void llama_set_warmup(struct llama_context *ctx, bool warmup), "use the newer call");
LLAMA_API void llama_set_abort_callback(struct llama_context *ctx, ggml_abort_callback abort_callback, void *abort_callback_data);
LLAMA_API void llama_synchronize(struct llama_context *ctx);
LLAMA_API float *llama_get_logits(struct llama_context *ctx);
LLAMA_API float *llama_get_logits_ith(struct llama_context *ctx, int32_t i);
LLAMA_API float *llama_get_embeddings(struct llama_context *ctx);
LLAMA_API float *llama_get_embeddings_ith(struct llama_context *ctx, int32_t i);
LLAMA_API float *llama_get_embeddings_seq(struct llama_context *ctx, llama_seq_id seq_id);
LLAMA_API llama_token llama_get_sampled_token_ith(struct llama_context *ctx, int32_t i);
LLAMA_API float *llama_get_sampled_probs_ith(struct llama_context *ctx, int32_t i);
LLAMA_API uint32_t llama_get_sampled_probs_count_ith(struct llama_context *ctx, int32_t i);
LLAMA_API float *llama_get_sampled_logits_ith(struct llama_context *ctx, int32_t i);
LLAMA_API uint32_t llama_get_sampled_logits_count_ith(struct llama_context *ctx, int32_t i);
LLAMA_API llama_token *llama_get_sampled_candidates_ith(struct llama_context *ctx, int32_t i);
LLAMA_API uint32_t llama_get_sampled_candidates_count_ith(struct llama_context *ctx, int32_t i);
LLAMA_API bool llama_set_sampler(struct llama_context *ctx, llama_seq_id seq_id, struct llama_sampler *smpl);
LLAMA_API struct llama_perf_context_data llama_perf_context(const struct llama_context *ctx);
LLAMA_API void llama_perf_context_print(const struct llama_context *ctx);
LLAMA_API void llama_perf_context_reset(struct llama_context *ctx);

#ifdef __cplusplus
}
#endif
