// Saving and restoring the state of a context or of one sequence. A state carries a version, a fingerprint of model and settings, and a
// checksum; what is foreign, damaged, cut off or too large for the context is refused whole (0 or false, a sentence at
// ggml_last_error()), and the context stays as it was. Continuing from a restored state gives the same bits. Files are written under a
// temporary name and renamed. Thread: none of these while the context computes.
#pragma once

#include "llama/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Bytes that llama_state_get_data would write now: last outputs and the memory of all sequences.
LLAMA_API size_t llama_state_get_size(struct llama_context *ctx);
GGML_DEPRECATED(LLAMA_API size_t llama_get_state_size(struct llama_context *ctx), "use the newer call");
// Writes the state to dst [size]; returns the bytes written, 0 if size is too small.
LLAMA_API size_t llama_state_get_data(struct llama_context *ctx, uint8_t *dst, size_t size);
GGML_DEPRECATED(LLAMA_API size_t llama_copy_state_data(struct llama_context *ctx, uint8_t *dst), "use the newer call");
// Restores a state; other sequences and outputs are gone. Returns the bytes read, 0 on failure.
LLAMA_API size_t llama_state_set_data(struct llama_context *ctx, const uint8_t *src, size_t size);
GGML_DEPRECATED(LLAMA_API size_t llama_set_state_data(struct llama_context *ctx, const uint8_t *src), "use the newer call");
// Restores a file of llama_state_save_file. The tokens saved with it go to tokens_out (room for n_token_capacity), their number to
// n_token_count_out.
LLAMA_API bool llama_state_load_file(struct llama_context *ctx, const char *path_session, llama_token *tokens_out,
                                     size_t n_token_capacity, size_t *n_token_count_out);
GGML_DEPRECATED(LLAMA_API bool llama_load_session_file(struct llama_context *ctx, const char *path_session,
                                                       llama_token *tokens_out, size_t n_token_capacity,
                                                       size_t *n_token_count_out),
                "use the newer call");
// Writes the context's state and a list of tokens to a file.
LLAMA_API bool llama_state_save_file(struct llama_context *ctx, const char *path_session, const llama_token *tokens,
                                     size_t n_token_count);
GGML_DEPRECATED(LLAMA_API bool llama_save_session_file(struct llama_context *ctx, const char *path_session,
                                                       const llama_token *tokens, size_t n_token_count),
                "use the newer call");
// Bytes that llama_state_seq_get_data would write now.
LLAMA_API size_t llama_state_seq_get_size(struct llama_context *ctx, llama_seq_id seq_id);
// Writes one sequence's memory to dst [size]; returns the bytes written, 0 on failure.
LLAMA_API size_t llama_state_seq_get_data(struct llama_context *ctx, uint8_t *dst, size_t size, llama_seq_id seq_id);
// Replaces sequence dest_seq_id by the saved one. Returns the bytes read, 0 on failure.
LLAMA_API size_t llama_state_seq_set_data(struct llama_context *ctx, const uint8_t *src, size_t size,
                                          llama_seq_id dest_seq_id);
// Writes one sequence and a list of tokens to a file; returns the bytes written, 0 on failure.
LLAMA_API size_t llama_state_seq_save_file(struct llama_context *ctx, const char *filepath, llama_seq_id seq_id,
                                           const llama_token *tokens, size_t n_token_count);
// Restores a file of llama_state_seq_save_file as sequence dest_seq_id; returns the bytes read, 0 on failure. Whatever a program has
// appended to the file lies behind those bytes and is the program's. With tokens_out NULL
// nothing is restored: n_token_count_out says how many tokens the file holds, and so how many tokens_out needs.
LLAMA_API size_t llama_state_seq_load_file(struct llama_context *ctx, const char *filepath, llama_seq_id dest_seq_id,
                                           llama_token *tokens_out, size_t n_token_capacity, size_t *n_token_count_out);
// As without _ext. LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY: only windowed layers and recurrent states, which can't be had back by
// cutting (the whole state if a model has no layers of the one kind or the other); LLAMA_STATE_SEQ_FLAGS_ON_DEVICE has no
// effect here. Reading needs the flags of writing.
LLAMA_API size_t llama_state_seq_get_size_ext(struct llama_context *ctx, llama_seq_id seq_id, llama_state_seq_flags flags);
LLAMA_API size_t llama_state_seq_get_data_ext(struct llama_context *ctx, uint8_t *dst, size_t size, llama_seq_id seq_id,
                                              llama_state_seq_flags flags);
LLAMA_API size_t llama_state_seq_set_data_ext(struct llama_context *ctx, const uint8_t *src, size_t size,
                                              llama_seq_id dest_seq_id, llama_state_seq_flags flags);

#ifdef __cplusplus
}
#endif
