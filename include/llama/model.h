// Models: loading, facts, saving, quantizing.
#pragma once

#include "llama/types.h"

#ifdef __cplusplus
extern "C" {
#endif

LLAMA_API const char *llama_ftype_name(enum llama_ftype ftype);
LLAMA_API const char *llama_flash_attn_type_name(enum llama_flash_attn_type flash_attn_type);
LLAMA_API const char *llama_load_mode_name(enum llama_load_mode load_mode);
LLAMA_API enum llama_load_mode llama_load_mode_from_str(const char *str);
LLAMA_API const char *llama_version(void);
LLAMA_API struct llama_model_params llama_model_default_params(void);
LLAMA_API struct llama_context_params llama_context_default_params(void);
LLAMA_API struct llama_model_quantize_params llama_model_quantize_default_params(void);
LLAMA_API void llama_backend_init(void);
LLAMA_API void llama_backend_free(void);
LLAMA_API void llama_numa_init(enum ggml_numa_strategy numa);
LLAMA_API struct llama_model *llama_model_init_from_user(struct gguf_context *metadata, llama_model_set_tensor_data_t set_tensor_data, void *set_tensor_data_ud, struct llama_model_params params);
GGML_DEPRECATED(LLAMA_API struct llama_model *llama_load_model_from_file(const char *path_model, struct llama_model_params params), "use the newer call");
LLAMA_API struct llama_model *llama_model_load_from_file(const char *path_model, struct llama_model_params params);
LLAMA_API struct llama_model *llama_model_load_from_file_ptr(FILE *file, struct llama_model_params params);
LLAMA_API struct llama_model *llama_model_load_from_splits(const char **paths, size_t n_paths, struct llama_model_params params);
LLAMA_API void llama_model_save_to_file(const struct llama_model *model, const char *path_model);
GGML_DEPRECATED(LLAMA_API void llama_free_model(struct llama_model *model), "use the newer call");
LLAMA_API void llama_model_free(struct llama_model *model);
LLAMA_API int64_t llama_time_us(void);
LLAMA_API size_t llama_max_devices(void);
LLAMA_API size_t llama_max_parallel_sequences(void);
LLAMA_API size_t llama_max_tensor_buft_overrides(void);
LLAMA_API bool llama_supports_mmap(void);
LLAMA_API bool llama_supports_mlock(void);
LLAMA_API bool llama_supports_gpu_offload(void);
LLAMA_API bool llama_supports_rpc(void);
LLAMA_API const struct llama_vocab *llama_model_get_vocab(const struct llama_model *model);
LLAMA_API enum llama_rope_type llama_model_rope_type(const struct llama_model *model);
LLAMA_API int32_t llama_model_n_ctx_train(const struct llama_model *model);
LLAMA_API int32_t llama_model_n_embd(const struct llama_model *model);
LLAMA_API int32_t llama_model_n_embd_inp(const struct llama_model *model);
LLAMA_API int32_t llama_model_n_embd_out(const struct llama_model *model);
LLAMA_API int32_t llama_model_n_layer(const struct llama_model *model);
LLAMA_API int32_t llama_model_n_layer_nextn(const struct llama_model *model);
LLAMA_API int32_t llama_model_n_head(const struct llama_model *model);
LLAMA_API int32_t llama_model_n_head_kv(const struct llama_model *model);
LLAMA_API int32_t llama_model_n_swa(const struct llama_model *model);
LLAMA_API float llama_model_rope_freq_scale_train(const struct llama_model *model);
LLAMA_API uint32_t llama_model_n_cls_out(const struct llama_model *model);
LLAMA_API const char *llama_model_cls_label(const struct llama_model *model, uint32_t i);
LLAMA_API int32_t llama_model_meta_val_str(const struct llama_model *model, const char *key, char *buf, size_t buf_size);
LLAMA_API int32_t llama_model_meta_count(const struct llama_model *model);
LLAMA_API const char *llama_model_meta_key_str(enum llama_model_meta_key key);
LLAMA_API int32_t llama_model_meta_key_by_index(const struct llama_model *model, int32_t i, char *buf, size_t buf_size);
LLAMA_API int32_t llama_model_meta_val_str_by_index(const struct llama_model *model, int32_t i, char *buf, size_t buf_size);
LLAMA_API int32_t llama_model_desc(const struct llama_model *model, char *buf, size_t buf_size);
LLAMA_API enum llama_ftype llama_model_ftype(const struct llama_model *model);
LLAMA_API uint64_t llama_model_size(const struct llama_model *model);
LLAMA_API const char *llama_model_chat_template(const struct llama_model *model, const char *name);
LLAMA_API uint64_t llama_model_n_params(const struct llama_model *model);
LLAMA_API bool llama_model_has_encoder(const struct llama_model *model);
LLAMA_API bool llama_model_has_decoder(const struct llama_model *model);
LLAMA_API llama_token llama_model_decoder_start_token(const struct llama_model *model);
LLAMA_API bool llama_model_is_recurrent(const struct llama_model *model);
LLAMA_API bool llama_model_is_hybrid(const struct llama_model *model);
LLAMA_API bool llama_model_is_diffusion(const struct llama_model *model);
LLAMA_API uint32_t llama_model_quantize(const char *fname_inp, const char *fname_out, const llama_model_quantize_params *params);
GGML_DEPRECATED(LLAMA_API int32_t llama_n_ctx_train(const struct llama_model *model), "use the newer call");
GGML_DEPRECATED(LLAMA_API int32_t llama_n_embd(const struct llama_model *model), "use the newer call");
GGML_DEPRECATED(LLAMA_API int32_t llama_n_layer(const struct llama_model *model), "use the newer call");
GGML_DEPRECATED(LLAMA_API int32_t llama_n_head(const struct llama_model *model), "use the newer call");
LLAMA_API int32_t llama_split_path(char *split_path, size_t maxlen, const char *path_prefix, int32_t split_no, int32_t split_count);
LLAMA_API int32_t llama_split_prefix(char *split_prefix, size_t maxlen, const char *split_path, int32_t split_no, int32_t split_count);
LLAMA_API const char *llama_print_system_info(void);
LLAMA_API void llama_log_get(ggml_log_callback *log_callback, void **user_data);
LLAMA_API void llama_log_set(ggml_log_callback log_callback, void *user_data);

#ifdef __cplusplus
}
#endif
