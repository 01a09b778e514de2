// Training through llama.h. The tensor library trains (ggml-opt.h), but the graphs of this library write keys and values into a cache
// and read them back, and no gradient passes through a cache: so training a model is refused, with a sentence, instead of leaving
// the attention weights untouched without a word.
#include "llama/train.h"

#include "base/err.h"

bool llama_opt_param_filter_all(const struct ggml_tensor *tensor, void *userdata) {
    (void) tensor, (void) userdata;
    return true;
}

void llama_opt_init(struct llama_context *lctx, struct llama_model *model, struct llama_opt_params lopt_params) {
    (void) lctx, (void) model, (void) lopt_params;
    (void) err_set(ERR_UNSUPPORTED, "llama_opt_init: training a model is not supported, because gradients do not pass "
                                    "through the cache; ggml-opt.h trains graphs of your own");
}

void llama_opt_epoch(struct llama_context *lctx, ggml_opt_dataset_t dataset, ggml_opt_result_t result_train,
                     ggml_opt_result_t result_eval, int64_t idata_split, ggml_opt_epoch_callback callback_train,
                     ggml_opt_epoch_callback callback_eval) {
    (void) lctx, (void) dataset, (void) result_train, (void) result_eval, (void) idata_split, (void) callback_train,
        (void) callback_eval;
    (void) err_set(ERR_UNSUPPORTED, "llama_opt_epoch: there is no training to go on with; see llama_opt_init");
}
