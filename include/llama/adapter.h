// Adapters: LoRA and control vectors. An adapter belongs to a model; contexts choose among the model's adapters.
#pragma once

#include "llama/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Loads a low-rank adapter (a GGUF file of pairs NAME.lora_a, NAME.lora_b). NULL after a sentence at ggml_last_error(): no such file,
// damaged, of another architecture, tensors that the model doesn't have or of other shapes. Owner: the model frees it, or llama_adapter_lora_free.
LLAMA_API struct llama_adapter_lora *llama_adapter_lora_init(struct llama_model *model, const char *path_lora);
// The same from an open file, from its current place on.
LLAMA_API struct llama_adapter_lora *llama_adapter_lora_init_from_file_ptr(struct llama_model *model, FILE *file);
// A key's value as text, as snprintf: returns the full length, -1 if there is no such key or its value is an array.
LLAMA_API int32_t llama_adapter_meta_val_str(const struct llama_adapter_lora *adapter, const char *key, char *buf,
                                             size_t buf_size);
// Number of keys in the adapter's file whose values aren't arrays.
LLAMA_API int32_t llama_adapter_meta_count(const struct llama_adapter_lora *adapter);
// Name of key i of those, as snprintf; -1 if there is none.
LLAMA_API int32_t llama_adapter_meta_key_by_index(const struct llama_adapter_lora *adapter, int32_t i, char *buf,
                                                  size_t buf_size);
// Value of key i of those as text, as snprintf; -1 if there is none.
LLAMA_API int32_t llama_adapter_meta_val_str_by_index(const struct llama_adapter_lora *adapter, int32_t i, char *buf,
                                                      size_t buf_size);
// Frees an adapter. No context may use it any more.
LLAMA_API void llama_adapter_lora_free(struct llama_adapter_lora *adapter);
// Tokens after which an aLoRA becomes active; 0 for ordinary adapters.
LLAMA_API uint64_t llama_adapter_get_alora_n_invocation_tokens(const struct llama_adapter_lora *adapter);
// Those tokens. Owner: the adapter.
LLAMA_API const llama_token *llama_adapter_get_alora_invocation_tokens(const struct llama_adapter_lora *adapter);
// Uses these adapters from now on, and no others (n_adapters 0: none). scales [n_adapters]; 0 leaves one out. At most 16. 0, else -1 and
// nothing changed. Allocates: graphs are reserved anew.
LLAMA_API int32_t llama_set_adapters_lora(struct llama_context *ctx, struct llama_adapter_lora **adapters, size_t n_adapters,
                                          float *scales);
// Adds a vector to the residual stream after each layer il_start .. il_end (both included). data [n_layer - 1][n_embd] f32, rows for layers 1, 2,
// ...; rows beyond len values don't act. data NULL: no vectors any more. 0, else -1.
LLAMA_API int32_t llama_set_adapter_cvec(struct llama_context *ctx, const float *data, size_t len, int32_t n_embd,
                                         int32_t il_start, int32_t il_end);

#ifdef __cplusplus
}
#endif
