// Training: datasets, optimizers, losses, results.
//
// The short way is ggml_opt_fit. The long way: ggml_opt_init with a model's inputs and outputs, then per batch
// ggml_opt_alloc, fill inputs and labels (ggml_opt_dataset_get_batch), ggml_opt_eval. Datapoints lie along dimension 1 of
// inputs and outputs. What is to be trained is marked by ggml_set_param.
//
// Errors: functions that make something give NULL; the others record a sentence and do nothing. A context that could not
// build its graphs computes nothing any more. Owner: what init gives out belongs to the caller (the free functions take
// NULL). Thread: one at a time per context.
#pragma once

#include "ggml.h"
#include "ggml-backend.h"

#ifdef __cplusplus
extern "C" {
#endif

// What is made as small as possible.
enum ggml_opt_loss_type {
    GGML_OPT_LOSS_TYPE_MEAN = 0,                // mean of the outputs
    GGML_OPT_LOSS_TYPE_SUM = 1,                 // sum of the outputs
    GGML_OPT_LOSS_TYPE_CROSS_ENTROPY = 2,       // outputs are logits, labels distributions; mean over datapoints
    GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR = 3,  // of outputs and labels
};

// How far graphs are built.
enum ggml_opt_build_type {
    GGML_OPT_BUILD_TYPE_FORWARD = 10,  // loss only
    GGML_OPT_BUILD_TYPE_GRAD = 20,     // and gradients
    GGML_OPT_BUILD_TYPE_OPT = 30,      // and the optimizer's steps
};

enum ggml_opt_optimizer_type {
    GGML_OPT_OPTIMIZER_TYPE_ADAMW = 0,  // Loshchilov, Hutter 2019
    GGML_OPT_OPTIMIZER_TYPE_SGD = 1,    // stochastic gradient descent with weight decay
    GGML_OPT_OPTIMIZER_TYPE_COUNT = 2,
};

typedef struct ggml_opt_dataset *ggml_opt_dataset_t;
typedef struct ggml_opt_context *ggml_opt_context_t;
typedef struct ggml_opt_result *ggml_opt_result_t;

// alpha: learning rate; beta1, beta2: decay of the momenta; eps: added to the root of the second one; wd: weight decay per
// unit of alpha.
struct ggml_opt_optimizer_params {
    struct {
        float alpha;
        float beta1;
        float beta2;
        float eps;
        float wd;
    } adamw;
    struct {
        float alpha;
        float wd;
    } sgd;
};

// Asked before each step.
typedef struct ggml_opt_optimizer_params (*ggml_opt_get_optimizer_params)(void *);

struct ggml_opt_params {
    ggml_backend_sched_t backend_sched;  // what computes
    struct ggml_context *ctx_compute;    // for graphs that are built once (no_alloc, with room for all their nodes), or NULL
    struct ggml_tensor *inputs;          // with ctx_compute: allocated by the caller
    struct ggml_tensor *outputs;         // with ctx_compute: what the model makes of inputs
    enum ggml_opt_loss_type loss_type;
    enum ggml_opt_build_type build_type;
    int32_t opt_period;  // batches whose gradients make one step
    ggml_opt_get_optimizer_params get_opt_pars;
    void *get_opt_pars_ud;
    enum ggml_opt_optimizer_type optimizer;
};

// (train or evaluation, context, dataset, result so far, batch just done from 1 on, batches in all, start of the loop in us)
typedef void (*ggml_opt_epoch_callback)(bool, ggml_opt_context_t, ggml_opt_dataset_t, ggml_opt_result_t, int64_t, int64_t,
                                        int64_t);

// ---- datasets ------------------------------------------------------------------------------------------------------------

// ndata datapoints of ne_datapoint values and ne_label labels (0: none), in host memory, to be filled by the caller through
// the tensors data [ne_datapoint, ndata] and labels [ne_label, ndata]. ndata_shard neighbours, a divisor of ndata, stay
// together.
GGML_API ggml_opt_dataset_t ggml_opt_dataset_init(enum ggml_type type_data, enum ggml_type type_label, int64_t ne_datapoint,
                                                  int64_t ne_label, int64_t ndata, int64_t ndata_shard);
GGML_API void ggml_opt_dataset_free(ggml_opt_dataset_t dataset);
GGML_API int64_t ggml_opt_dataset_ndata(ggml_opt_dataset_t dataset);
GGML_API struct ggml_tensor *ggml_opt_dataset_data(ggml_opt_dataset_t dataset);
GGML_API struct ggml_tensor *ggml_opt_dataset_labels(ggml_opt_dataset_t dataset);
// Puts the first idata datapoints (all if negative) into another order, with the context's generator.
GGML_API void ggml_opt_dataset_shuffle(ggml_opt_context_t opt_ctx, ggml_opt_dataset_t dataset, int64_t idata);
// Copies batch number ibatch into tensors [ne_datapoint, n], [ne_label, n] (labels may be NULL), or to host memory.
GGML_API void ggml_opt_dataset_get_batch(ggml_opt_dataset_t dataset, struct ggml_tensor *data_batch,
                                         struct ggml_tensor *labels_batch, int64_t ibatch);
GGML_API void ggml_opt_dataset_get_batch_host(ggml_opt_dataset_t dataset, void *data_batch, size_t nb_data_batch,
                                              void *labels_batch, int64_t ibatch);

// ---- contexts ------------------------------------------------------------------------------------------------------------

// AdamW: alpha 0.001, beta 0.9 and 0.999, eps 1e-8, no decay; SGD: alpha 0.001. The second gives *userdata back, a struct of
// that kind.
GGML_API struct ggml_opt_optimizer_params ggml_opt_get_default_optimizer_params(void *userdata);
GGML_API struct ggml_opt_optimizer_params ggml_opt_get_constant_optimizer_params(void *userdata);
// Build type OPT, AdamW with its defaults, a step per batch, no context for static graphs.
GGML_API struct ggml_opt_params ggml_opt_default_params(ggml_backend_sched_t backend_sched,
                                                        enum ggml_opt_loss_type loss_type);
GGML_API ggml_opt_context_t ggml_opt_init(struct ggml_opt_params params);
GGML_API void ggml_opt_free(ggml_opt_context_t opt_ctx);
// Gradients to zero; with optimizer also momenta and the number of the step.
GGML_API void ggml_opt_reset(ggml_opt_context_t opt_ctx, bool optimizer);
// Whether graphs were built once; the tensors of the graph in use. labels, pred and ncorrect are NULL for losses without
// them.
//   labels: as outputs; loss [1]; pred [n] i32: the largest class; ncorrect [1] i64
GGML_API bool ggml_opt_static_graphs(ggml_opt_context_t opt_ctx);
GGML_API struct ggml_tensor *ggml_opt_inputs(ggml_opt_context_t opt_ctx);
GGML_API struct ggml_tensor *ggml_opt_outputs(ggml_opt_context_t opt_ctx);
GGML_API struct ggml_tensor *ggml_opt_labels(ggml_opt_context_t opt_ctx);
GGML_API struct ggml_tensor *ggml_opt_loss(ggml_opt_context_t opt_ctx);
GGML_API struct ggml_tensor *ggml_opt_pred(ggml_opt_context_t opt_ctx);
GGML_API struct ggml_tensor *ggml_opt_ncorrect(ggml_opt_context_t opt_ctx);
// Where the gradient of a node is summed up, NULL if it is not.
GGML_API struct ggml_tensor *ggml_opt_grad_acc(ggml_opt_context_t opt_ctx, struct ggml_tensor *node);
GGML_API enum ggml_opt_optimizer_type ggml_opt_context_optimizer_type(ggml_opt_context_t);
GGML_API const char *ggml_opt_optimizer_name(enum ggml_opt_optimizer_type);

// Without static graphs: before each ggml_opt_alloc, the batch's own graph (made with gradients, expanded by outputs) in a
// context with room for its gradients. Parameters must come in the same order each time.
GGML_API void ggml_opt_prepare_alloc(ggml_opt_context_t opt_ctx, struct ggml_context *ctx_compute, struct ggml_cgraph *gf,
                                     struct ggml_tensor *inputs, struct ggml_tensor *outputs);
// Gives memory to the next batch's graph: backward for training, else only the loss is computed.
GGML_API void ggml_opt_alloc(ggml_opt_context_t opt_ctx, bool backward);
// Computes it, makes a step when opt_period batches are done, and adds to result (may be NULL).
GGML_API void ggml_opt_eval(ggml_opt_context_t opt_ctx, ggml_opt_result_t result);

// ---- results -------------------------------------------------------------------------------------------------------------

GGML_API ggml_opt_result_t ggml_opt_result_init(void);
GGML_API void ggml_opt_result_free(ggml_opt_result_t result);
GGML_API void ggml_opt_result_reset(ggml_opt_result_t result);
// Datapoints seen; loss (mean over batches; for SUM the sum) and its standard error; predictions [ndata]; share of hits and
// its standard error. NAN where there are too few batches or no classes. unc may be NULL.
GGML_API void ggml_opt_result_ndata(ggml_opt_result_t result, int64_t *ndata);
GGML_API void ggml_opt_result_loss(ggml_opt_result_t result, double *loss, double *unc);
GGML_API void ggml_opt_result_pred(ggml_opt_result_t result, int32_t *pred);
GGML_API void ggml_opt_result_accuracy(ggml_opt_result_t result, double *accuracy, double *unc);

// ---- loops ---------------------------------------------------------------------------------------------------------------

// Trains on the first idata_split datapoints (all if negative) and evaluates on the rest. Static graphs only; ndata and
// idata_split are multiples of the batch. Results and callbacks may be NULL.
GGML_API void ggml_opt_epoch(ggml_opt_context_t opt_ctx, ggml_opt_dataset_t dataset, ggml_opt_result_t result_train,
                             ggml_opt_result_t result_eval, int64_t idata_split, ggml_opt_epoch_callback callback_train,
                             ggml_opt_epoch_callback callback_eval);
// A callback that shows a bar through the log sink.
GGML_API void ggml_opt_epoch_callback_progress_bar(bool train, ggml_opt_context_t opt_ctx, ggml_opt_dataset_t dataset,
                                                   ggml_opt_result_t result, int64_t ibatch, int64_t ibatch_max,
                                                   int64_t t_start_us);
// A whole training. nbatch_logical: datapoints per step, a multiple of inputs' batch and a divisor of the dataset;
// val_split: share of the data, from its end, that is only evaluated on. get_opt_pars is asked with a pointer to the epoch,
// an int64_t from 1 on.
GGML_API void ggml_opt_fit(ggml_backend_sched_t backend_sched, struct ggml_context *ctx_compute, struct ggml_tensor *inputs,
                           struct ggml_tensor *outputs, ggml_opt_dataset_t dataset, enum ggml_opt_loss_type loss_type,
                           enum ggml_opt_optimizer_type optimizer, ggml_opt_get_optimizer_params get_opt_pars,
                           int64_t nepoch, int64_t nbatch_logical, float val_split, bool silent);

#ifdef __cplusplus
}
#endif
