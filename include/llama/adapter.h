// Adapters: LoRA and control vectors.
#pragma once

#include "llama/types.h"

#ifdef __cplusplus
extern "C" {
#endif

LLAMA_API struct llama_adapter_lora *llama_adapter_lora_init(struct llama_model *model, const char *path_lora);
LLAMA_API struct llama_adapter_lora *llama_adapter_lora_init_from_file_ptr(struct llama_model *model, FILE *file);
LLAMA_API int32_t llama_adapter_meta_val_str(const struct llama_adapter_lora *adapter, const char *key, char *buf, size_t buf_size);
LLAMA_API int32_t llama_adapter_meta_count(const struct llama_adapter_lora *adapter);
LLAMA_API int32_t llama_adapter_meta_key_by_index(const struct llama_adapter_lora *adapter, int32_t i, char *buf, size_t buf_size);
LLAMA_API int32_t llama_adapter_meta_val_str_by_index(const struct llama_adapter_lora *adapter, int32_t i, char *buf, size_t buf_size);
LLAMA_API void llama_adapter_lora_free(struct llama_adapter_lora *adapter);
LLAMA_API uint64_t llama_adapter_get_alora_n_invocation_tokens(const struct llama_adapter_lora *adapter);
LLAMA_API const llama_token *llama_adapter_get_alora_invocation_tokens(const struct llama_adapter_lora *adapter);
LLAMA_API int32_t llama_set_adapters_lora(struct llama_context *ctx, struct llama_adapter_lora **adapters, size_t n_adapters, float *scales);
LLAMA_API int32_t llama_set_adapter_cvec(struct llama_context *ctx, const float *data, size_t len, int32_t n_embd, int32_t il_start, int32_t il_end);

#ifdef __cplusplus
}
#endif
