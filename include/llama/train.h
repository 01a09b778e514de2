// Training a model.
#pragma once

#include "llama/types.h"

#ifdef __cplusplus
extern "C" {
#endif

LLAMA_API bool llama_opt_param_filter_all(const struct ggml_tensor *tensor, void *userdata);
LLAMA_API void llama_opt_init(struct llama_context *lctx, struct llama_model *model, struct llama_opt_params lopt_params);
LLAMA_API void llama_opt_epoch(struct llama_context *lctx, ggml_opt_dataset_t dataset, ggml_opt_result_t result_train,
                               ggml_opt_result_t result_eval, int64_t idata_split, ggml_opt_epoch_callback callback_train,
                               ggml_opt_epoch_callback callback_eval);

#ifdef __cplusplus
}
#endif
