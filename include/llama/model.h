// Models: loading, facts, saving, quantizing. A model doesn't change while it is loaded: any number of threads and contexts may use it.
// Functions that can fail leave a sentence at ggml_last_error().
#pragma once

#include "llama/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Name of a file type for people ("Q4_K - Medium").
LLAMA_API const char *llama_ftype_name(enum llama_ftype ftype);
// "auto", "disabled" or "enabled".
LLAMA_API const char *llama_flash_attn_type_name(enum llama_flash_attn_type flash_attn_type);
// "auto", "none", "mmap", "mlock", "mmap+mlock" or "dio".
LLAMA_API const char *llama_load_mode_name(enum llama_load_mode load_mode);
// The mode of that name; AUTO if there is none.
LLAMA_API enum llama_load_mode llama_load_mode_from_str(const char *str);
// The library's version.
LLAMA_API const char *llama_version(void);
// All layers on devices if there are any, weights mapped.
LLAMA_API struct llama_model_params llama_model_default_params(void);
// 512 positions, batches of 2048, micro-batches of 512, one sequence, F16 cache, the machine's own number of threads.
LLAMA_API struct llama_context_params llama_context_default_params(void);
// Q5_1, all cores.
LLAMA_API struct llama_model_quantize_params llama_model_quantize_default_params(void);
// Nothing has to be initialized; the call is kept for programs that make it.
LLAMA_API void llama_backend_init(void);
// Nothing has to be freed.
LLAMA_API void llama_backend_free(void);
// How memory and threads are spread over the nodes of the machine. Before anything else.
LLAMA_API void llama_numa_init(enum ggml_numa_strategy numa);
// A model whose keys and tensor shapes are in metadata and whose data the callback writes (ggml_backend_tensor_set), once per tensor.
// metadata stays the caller's and isn't needed afterwards. NULL on failure.
LLAMA_API struct llama_model *llama_model_init_from_user(struct gguf_context *metadata,
                                                         llama_model_set_tensor_data_t set_tensor_data,
                                                         void *set_tensor_data_ud, struct llama_model_params params);
// As llama_model_load_from_file.
GGML_DEPRECATED(LLAMA_API struct llama_model *llama_load_model_from_file(const char *path_model,
                                                                         struct llama_model_params params),
                "use the newer call");
// Loads a model from a GGUF file. If it is the first of several shards (its metadata say so, not its name), the others are found beside it.
// NULL on failure: the sentence names the key, the tensor or the file.
LLAMA_API struct llama_model *llama_model_load_from_file(const char *path_model, struct llama_model_params params);
// The same from an open regular file, from its current place on. The file may be closed afterwards.
LLAMA_API struct llama_model *llama_model_load_from_file_ptr(FILE *file, struct llama_model_params params);
// The same from shards given in order.
LLAMA_API struct llama_model *llama_model_load_from_splits(const char **paths, size_t n_paths,
                                                           struct llama_model_params params);
// Writes keys and weights to a file, under a temporary name first. Failure: a sentence at ggml_last_error().
LLAMA_API void llama_model_save_to_file(const struct llama_model *model, const char *path_model);
// As llama_model_free.
GGML_DEPRECATED(LLAMA_API void llama_free_model(struct llama_model *model), "use the newer call");
// Frees the model and its adapters. Its contexts must be gone. NULL is fine.
LLAMA_API void llama_model_free(struct llama_model *model);
// Microseconds of a clock that only goes forward.
LLAMA_API int64_t llama_time_us(void);
// Devices that a model can be spread over.
LLAMA_API size_t llama_max_devices(void);
// Greatest n_seq_max.
LLAMA_API size_t llama_max_parallel_sequences(void);
// Greatest number of tensor_buft_overrides.
LLAMA_API size_t llama_max_tensor_buft_overrides(void);
// Files can be mapped.
LLAMA_API bool llama_supports_mmap(void);
// Memory can be locked.
LLAMA_API bool llama_supports_mlock(void);
// A device besides the CPU is there.
LLAMA_API bool llama_supports_gpu_offload(void);
// Devices of other machines are there.
LLAMA_API bool llama_supports_rpc(void);
// The vocabulary. Owner: the model.
LLAMA_API const struct llama_vocab *llama_model_get_vocab(const struct llama_model *model);
// Pairing of rotary dimensions.
LLAMA_API enum llama_rope_type llama_model_rope_type(const struct llama_model *model);
// Positions the model was trained for.
LLAMA_API int32_t llama_model_n_ctx_train(const struct llama_model *model);
// Width of the residual stream.
LLAMA_API int32_t llama_model_n_embd(const struct llama_model *model);
// Width of an embedding given as input.
LLAMA_API int32_t llama_model_n_embd_inp(const struct llama_model *model);
// Width of the embeddings that come out.
LLAMA_API int32_t llama_model_n_embd_out(const struct llama_model *model);
// Layers that run, without those of a draft head.
LLAMA_API int32_t llama_model_n_layer(const struct llama_model *model);
// Layers of a draft head in the file.
LLAMA_API int32_t llama_model_n_layer_nextn(const struct llama_model *model);
// Attention heads of the first layer.
LLAMA_API int32_t llama_model_n_head(const struct llama_model *model);
// Key heads of the first layer.
LLAMA_API int32_t llama_model_n_head_kv(const struct llama_model *model);
// Width of the sliding window, 0: none.
LLAMA_API int32_t llama_model_n_swa(const struct llama_model *model);
// Frequency scale from the file's keys.
LLAMA_API float llama_model_rope_freq_scale_train(const struct llama_model *model);
// Scores of a classifier or reranker.
LLAMA_API uint32_t llama_model_n_cls_out(const struct llama_model *model);
// Label of score i, NULL if there is none.
LLAMA_API const char *llama_model_cls_label(const struct llama_model *model, uint32_t i);
// A key's value as text, as snprintf: returns the full length, -1 if there is no such key or its value is an array (gguf.h reads those).
LLAMA_API int32_t llama_model_meta_val_str(const struct llama_model *model, const char *key, char *buf, size_t buf_size);
// Number of keys whose values aren't arrays.
LLAMA_API int32_t llama_model_meta_count(const struct llama_model *model);
// Name of a well-known key, NULL if unknown.
LLAMA_API const char *llama_model_meta_key_str(enum llama_model_meta_key key);
// Name of key i of those, as snprintf; -1 if there is none.
LLAMA_API int32_t llama_model_meta_key_by_index(const struct llama_model *model, int32_t i, char *buf, size_t buf_size);
// Value of key i of those as text, as snprintf; -1 if there is none.
LLAMA_API int32_t llama_model_meta_val_str_by_index(const struct llama_model *model, int32_t i, char *buf, size_t buf_size);
// One line: architecture, size, type; as snprintf.
LLAMA_API int32_t llama_model_desc(const struct llama_model *model, char *buf, size_t buf_size);
// The file's type by its own account.
LLAMA_API enum llama_ftype llama_model_ftype(const struct llama_model *model);
// Bytes of all weights.
LLAMA_API uint64_t llama_model_size(const struct llama_model *model);
// The chat template (of that name; NULL: the default one), NULL if there is none.
LLAMA_API const char *llama_model_chat_template(const struct llama_model *model, const char *name);
// Number of weights.
LLAMA_API uint64_t llama_model_n_params(const struct llama_model *model);
// llama_encode has something to do.
LLAMA_API bool llama_model_has_encoder(const struct llama_model *model);
// llama_decode has something to do.
LLAMA_API bool llama_model_has_decoder(const struct llama_model *model);
// Token that a decoder behind an encoder begins with; LLAMA_TOKEN_NULL for others.
LLAMA_API llama_token llama_model_decoder_start_token(const struct llama_model *model);
// All layers are recurrent.
LLAMA_API bool llama_model_is_recurrent(const struct llama_model *model);
// Some layers are recurrent, some attend.
LLAMA_API bool llama_model_is_hybrid(const struct llama_model *model);
// Tokens are filled in, not appended.
LLAMA_API bool llama_model_is_diffusion(const struct llama_model *model);
LLAMA_API uint32_t llama_model_quantize(const char *fname_inp, const char *fname_out,
                                        const llama_model_quantize_params *params);
GGML_DEPRECATED(LLAMA_API int32_t llama_n_ctx_train(const struct llama_model *model), "use the newer call");
GGML_DEPRECATED(LLAMA_API int32_t llama_n_embd(const struct llama_model *model), "use the newer call");
GGML_DEPRECATED(LLAMA_API int32_t llama_n_layer(const struct llama_model *model), "use the newer call");
GGML_DEPRECATED(LLAMA_API int32_t llama_n_head(const struct llama_model *model), "use the newer call");
// Name of shard split_no (from 0) of split_count: PREFIX-00001-of-00003.gguf. Its length, 0 if it doesn't fit.
LLAMA_API int32_t llama_split_path(char *split_path, size_t maxlen, const char *path_prefix, int32_t split_no,
                                   int32_t split_count);
// The prefix, if split_path ends as such a name does. Its length, else 0.
LLAMA_API int32_t llama_split_prefix(char *split_prefix, size_t maxlen, const char *split_path, int32_t split_no,
                                     int32_t split_count);
// What each backend says of its features, the processor's first: "CPU : AVX = 1 | AVX2 = 1 | ... | ". For logs. Valid until this thread's next call.
LLAMA_API const char *llama_print_system_info(void);
// The log sink in use.
LLAMA_API void llama_log_get(ggml_log_callback *log_callback, void **user_data);
// Where messages go (ggml_log_set); NULL: stderr from WARN on.
LLAMA_API void llama_log_set(ggml_log_callback log_callback, void *user_data);

#ifdef __cplusplus
}
#endif
