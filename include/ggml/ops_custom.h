// Builders: callers' own functions, losses and optimizer steps.
#pragma once

#include "ggml/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*ggml_custom1_op_t)(struct ggml_tensor *, const struct ggml_tensor *, int, int, void *);
typedef void (*ggml_custom2_op_t)(struct ggml_tensor *, const struct ggml_tensor *, const struct ggml_tensor *, int, int, void *);
typedef void (*ggml_custom3_op_t)(struct ggml_tensor *, const struct ggml_tensor *, const struct ggml_tensor *, const struct ggml_tensor *, int, int, void *);
typedef void (*ggml_custom_op_t)(struct ggml_tensor *, int, int, void *);

GGML_API struct ggml_tensor *ggml_map_custom1(struct ggml_context *ctx, struct ggml_tensor *a, ggml_custom1_op_t fun, int n_tasks, void *userdata);
GGML_API struct ggml_tensor *ggml_map_custom1_inplace(struct ggml_context *ctx, struct ggml_tensor *a, ggml_custom1_op_t fun, int n_tasks, void *userdata);
GGML_API struct ggml_tensor *ggml_map_custom2(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, ggml_custom2_op_t fun, int n_tasks, void *userdata);
GGML_API struct ggml_tensor *ggml_map_custom2_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, ggml_custom2_op_t fun, int n_tasks, void *userdata);
GGML_API struct ggml_tensor *ggml_map_custom3(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, struct ggml_tensor *c, ggml_custom3_op_t fun, int n_tasks, void *userdata);
GGML_API struct ggml_tensor *ggml_map_custom3_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, struct ggml_tensor *c, ggml_custom3_op_t fun, int n_tasks, void *userdata);
GGML_API struct ggml_tensor *ggml_custom_4d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3, struct ggml_tensor **args, int n_args, ggml_custom_op_t fun, int n_tasks, void *userdata);
GGML_API struct ggml_tensor *ggml_custom_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor **args, int n_args, ggml_custom_op_t fun, int n_tasks, void *userdata);
// Mean over rows of -sum(b log softmax(a)), in one order whatever the number of threads.
//   a [n_class, ...]: logits; b: labels, as a, each row a distribution; result [1] F32
GGML_API struct ggml_tensor *ggml_cross_entropy_loss(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
// Its gradient with respect to the logits. a [1]: gradient of the loss; b: logits; c: labels; result: as b, F32
GGML_API struct ggml_tensor *ggml_cross_entropy_loss_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, struct ggml_tensor *c);
// One step of an optimizer, written over a, which must be marked by ggml_set_param; also m and v (AdamW's momenta) are
// written.
//   a, grad, m, v: of one shape, F32
//   adamw_params [7]: alpha, beta1, beta2, eps, weight decay, 1 / (1 - beta1^t), 1 / (1 - beta2^t) for step t
//   sgd_params [2]: alpha, weight decay
GGML_API struct ggml_tensor *ggml_opt_step_adamw(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *grad, struct ggml_tensor *m, struct ggml_tensor *v, struct ggml_tensor *adamw_params);
GGML_API struct ggml_tensor *ggml_opt_step_sgd(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *grad, struct ggml_tensor *sgd_params);

#ifdef __cplusplus
}
#endif
