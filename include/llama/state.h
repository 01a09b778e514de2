// Saving and restoring the state of a context or of one sequence.
#pragma once

#include "llama/types.h"

#ifdef __cplusplus
extern "C" {
#endif

LLAMA_API size_t llama_state_get_size(struct llama_context *ctx);
GGML_DEPRECATED(LLAMA_API size_t llama_get_state_size(struct llama_context *ctx), "use the newer call");
LLAMA_API size_t llama_state_get_data(struct llama_context *ctx, uint8_t *dst, size_t size);
GGML_DEPRECATED(LLAMA_API size_t llama_copy_state_data(struct llama_context *ctx, uint8_t *dst), "use the newer call");
LLAMA_API size_t llama_state_set_data(struct llama_context *ctx, const uint8_t *src, size_t size);
GGML_DEPRECATED(LLAMA_API size_t llama_set_state_data(struct llama_context *ctx, const uint8_t *src), "use the newer call");
LLAMA_API bool llama_state_load_file(struct llama_context *ctx, const char *path_session, llama_token *tokens_out, size_t n_token_capacity, size_t *n_token_count_out);
GGML_DEPRECATED(LLAMA_API bool llama_load_session_file(struct llama_context *ctx, const char *path_session, llama_token *tokens_out, size_t n_token_capacity, size_t *n_token_count_out), "use the newer call");
LLAMA_API bool llama_state_save_file(struct llama_context *ctx, const char *path_session, const llama_token *tokens, size_t n_token_count);
GGML_DEPRECATED(LLAMA_API bool llama_save_session_file(struct llama_context *ctx, const char *path_session, const llama_token *tokens, size_t n_token_count), "use the newer call");
LLAMA_API size_t llama_state_seq_get_size(struct llama_context *ctx, llama_seq_id seq_id);
LLAMA_API size_t llama_state_seq_get_data(struct llama_context *ctx, uint8_t *dst, size_t size, llama_seq_id seq_id);
LLAMA_API size_t llama_state_seq_set_data(struct llama_context *ctx, const uint8_t *src, size_t size, llama_seq_id dest_seq_id);
LLAMA_API size_t llama_state_seq_save_file(struct llama_context *ctx, const char *filepath, llama_seq_id seq_id, const llama_token *tokens, size_t n_token_count);
LLAMA_API size_t llama_state_seq_load_file(struct llama_context *ctx, const char *filepath, llama_seq_id dest_seq_id, llama_token *tokens_out, size_t n_token_capacity, size_t *n_token_count_out);
LLAMA_API size_t llama_state_seq_get_size_ext(struct llama_context *ctx, llama_seq_id seq_id, llama_state_seq_flags flags);
LLAMA_API size_t llama_state_seq_get_data_ext(struct llama_context *ctx, uint8_t *dst, size_t size, llama_seq_id seq_id, llama_state_seq_flags flags);
LLAMA_API size_t llama_state_seq_set_data_ext(struct llama_context *ctx, const uint8_t *src, size_t size, llama_seq_id dest_seq_id, llama_state_seq_flags flags);

#ifdef __cplusplus
}
#endif
