// Derivatives of the element-wise functions, as graph nodes: what UNARY's and GLU's gradients are made of.
#pragma once

#include "ops/op.h"

// d f(x) / dx. x: contiguous rows of floats; y: f(x) if it is at hand, or NULL; params: the op_params of a UNARY node (XIELU
// has some), or NULL. Returns the error tensor, with the sentence recorded, for functions that have none.
struct ggml_tensor *slope_of(struct ggml_context *ctx, enum ggml_unary_op f, struct ggml_tensor *x, struct ggml_tensor *y,
                             const int32_t *params);
// 1 where lo < x < hi, else 0. Bounds may be infinite.
struct ggml_tensor *slope_inside(struct ggml_context *ctx, struct ggml_tensor *x, float lo, float hi);
