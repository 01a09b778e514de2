// Builders: callers' own functions, losses and optimizer steps.
//
// What holds for every builder: the result is a new tensor of ctx (owner: the context), nothing is computed yet. A builder
// that is misused, or given the error tensor, records a sentence (ggml_last_error) and returns the error tensor. Shapes are
// written [ne0, ne1, ne2, ne3], trailing 1s left out. "float" means F32, F16 or BF16: values are computed in F32 and rounded
// once to the result's type. Sources may have any strides unless a line says otherwise. The _inplace forms write over a and
// return a view of it. Results do not depend on the number of threads. Thread: a context belongs to one thread at a time.
#pragma once

#include "ggml/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*ggml_custom1_op_t)(struct ggml_tensor *, const struct ggml_tensor *, int, int, void *);
typedef void (*ggml_custom2_op_t)(struct ggml_tensor *, const struct ggml_tensor *, const struct ggml_tensor *, int, int,
                                  void *);
typedef void (*ggml_custom3_op_t)(struct ggml_tensor *, const struct ggml_tensor *, const struct ggml_tensor *,
                                  const struct ggml_tensor *, int, int, void *);
typedef void (*ggml_custom_op_t)(struct ggml_tensor *, int, int, void *);

// A tensor like a that fun(dst, a, ith, nth, userdata) fills: called once on each of nth threads, n_tasks of them at most
// (GGML_N_TASKS_MAX: all). fun and userdata stay valid as long as the graph runs.
GGML_API struct ggml_tensor *ggml_map_custom1(struct ggml_context *ctx, struct ggml_tensor *a, ggml_custom1_op_t fun,
                                              int n_tasks, void *userdata);
GGML_API struct ggml_tensor *ggml_map_custom1_inplace(struct ggml_context *ctx, struct ggml_tensor *a, ggml_custom1_op_t fun,
                                                      int n_tasks, void *userdata);

// The same with two sources.
GGML_API struct ggml_tensor *ggml_map_custom2(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                              ggml_custom2_op_t fun, int n_tasks, void *userdata);
GGML_API struct ggml_tensor *ggml_map_custom2_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                                      ggml_custom2_op_t fun, int n_tasks, void *userdata);

// The same with three sources.
GGML_API struct ggml_tensor *ggml_map_custom3(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                              struct ggml_tensor *c, ggml_custom3_op_t fun, int n_tasks, void *userdata);
GGML_API struct ggml_tensor *ggml_map_custom3_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                                      struct ggml_tensor *c, ggml_custom3_op_t fun, int n_tasks,
                                                      void *userdata);

// A tensor of the given type and shape that fun(dst, ith, nth, userdata) fills; it finds the n_args <= 10 sources in
// dst->src.
GGML_API struct ggml_tensor *ggml_custom_4d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0, int64_t ne1,
                                            int64_t ne2, int64_t ne3, struct ggml_tensor **args, int n_args,
                                            ggml_custom_op_t fun, int n_tasks, void *userdata);

// fun works on a itself; dst->src[0] is a, then come the n_args <= 9 args.
GGML_API struct ggml_tensor *ggml_custom_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor **args,
                                                 int n_args, ggml_custom_op_t fun, int n_tasks, void *userdata);
// Mean over rows of -sum(b log softmax(a)), in one order whatever the number of threads.
//   a [n_class, ...]: logits; b: labels, as a, each row a distribution; result [1] F32
GGML_API struct ggml_tensor *ggml_cross_entropy_loss(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
// Its gradient with respect to the logits. a [1]: gradient of the loss; b: logits; c: labels; result: as b, F32
GGML_API struct ggml_tensor *ggml_cross_entropy_loss_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                                          struct ggml_tensor *b, struct ggml_tensor *c);
// One step of an optimizer, written over a, which must be marked by ggml_set_param; also m and v (AdamW's momenta) are
// written.
//   a, grad, m, v: of one shape, F32
//   adamw_params [7]: alpha, beta1, beta2, eps, weight decay, 1 / (1 - beta1^t), 1 / (1 - beta2^t) for step t
//   sgd_params [2]: alpha, weight decay
GGML_API struct ggml_tensor *ggml_opt_step_adamw(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *grad,
                                                 struct ggml_tensor *m, struct ggml_tensor *v,
                                                 struct ggml_tensor *adamw_params);
GGML_API struct ggml_tensor *ggml_opt_step_sgd(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *grad,
                                               struct ggml_tensor *sgd_params);

#ifdef __cplusplus
}
#endif
