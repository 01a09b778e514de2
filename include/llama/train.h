// Training a model's F32 weights on tokens.
//
//   llama_opt_init(ctx, model, params);
//   for (...) llama_opt_epoch(ctx, dataset, train, eval, n_train, NULL, NULL);
//   llama_model_save_to_file(model, path);
//
// The model is loaded with LLAMA_LOAD_MODE_NONE: a mapped file is never written. A datapoint of the dataset is one text of n_ctx_train
// tokens (I32) with as many labels, the tokens that should follow each; it is computed whole, beside the context's memory, and makes
// one step of the optimizer. Recurrent models, experts and encoders are refused.
// Errors: a sentence in ggml_last_error(); what went before stays trained. Thread: the context's.
#pragma once

#include "llama/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Every weight.
LLAMA_API bool llama_opt_param_filter_all(const struct ggml_tensor *tensor, void *userdata);
// Makes lctx ready to train the weights of its model that param_filter (NULL: all) accepts; forgets an earlier training and its momenta.
LLAMA_API void llama_opt_init(struct llama_context *lctx, struct llama_model *model, struct llama_opt_params lopt_params);
// Trains on datapoints [0, idata_split) in their order, then measures the loss of the rest. Results and callbacks may be NULL; a
// callback is told the datapoint just done (from 1 on) and how many there are.
LLAMA_API void llama_opt_epoch(struct llama_context *lctx, ggml_opt_dataset_t dataset, ggml_opt_result_t result_train,
                               ggml_opt_result_t result_eval, int64_t idata_split, ggml_opt_epoch_callback callback_train,
                               ggml_opt_epoch_callback callback_eval);

#ifdef __cplusplus
}
#endif
