// Builders: element-wise arithmetic, reductions, unary functions.
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

// A copy of a (any type).
GGML_API struct ggml_tensor *ggml_dup(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_dup_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// a + b, b repeated to a's shape (each size of b divides a's). a, b: float or quantized, in any mix. Result: a's type and
// shape.
GGML_API struct ggml_tensor *ggml_add(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_add_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

// a + b as a tensor of the given float type.
GGML_API struct ggml_tensor *ggml_add_cast(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                           enum ggml_type type);

// a[:, i, t] + b[:, ids[i, t]]: a [n, used, tokens], b [n, experts], ids [used, tokens] I32. Result as a. An id outside
// 0 .. experts - 1 fails when computed.
GGML_API struct ggml_tensor *ggml_add_id(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                         struct ggml_tensor *ids);

// a + b, b a single value. Use ggml_add.
GGML_DEPRECATED(GGML_API struct ggml_tensor *ggml_add1(struct ggml_context *ctx, struct ggml_tensor *a,
                                                       struct ggml_tensor *b),
                "use the newer call");
GGML_DEPRECATED(GGML_API struct ggml_tensor *ggml_add1_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                                               struct ggml_tensor *b),
                "use the newer call");

// a with b added inside the window that begins `offset` bytes in and has strides nb1, nb2, nb3 (bytes, of a packed a; in
// place: of a). a, b float; the window lies inside a.
GGML_API struct ggml_tensor *ggml_acc(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, size_t nb1,
                                      size_t nb2, size_t nb3, size_t offset);
GGML_API struct ggml_tensor *ggml_acc_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                              size_t nb1, size_t nb2, size_t nb3, size_t offset);

// a - b; as ggml_add.
GGML_API struct ggml_tensor *ggml_sub(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_sub_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

// a * b, element by element; as ggml_add.
GGML_API struct ggml_tensor *ggml_mul(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_mul_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

// a / b, element by element; as ggml_add.
GGML_API struct ggml_tensor *ggml_div(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_div_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

// a^2. a float; result as a.
GGML_API struct ggml_tensor *ggml_sqr(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sqr_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// Square root; NaN below 0.
GGML_API struct ggml_tensor *ggml_sqrt(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sqrt_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// Natural logarithm, within 1 unit in the last place; -infinity at 0, NaN below.
GGML_API struct ggml_tensor *ggml_log(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_log_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// exp(a) - 1 without cancellation near 0, within 1.5 units in the last place.
GGML_API struct ggml_tensor *ggml_expm1(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_expm1_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// log(1 + exp(a)), within 2 units in the last place.
GGML_API struct ggml_tensor *ggml_softplus(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_softplus_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// Sine of radians, within 1.6 units in the last place for every finite float.
GGML_API struct ggml_tensor *ggml_sin(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sin_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// Cosine; as ggml_sin.
GGML_API struct ggml_tensor *ggml_cos(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_cos_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// Sum of all elements: a single value of a's type. a float. Rows are summed in 32 lanes, rows added in order in double
// precision.
GGML_API struct ggml_tensor *ggml_sum(struct ggml_context *ctx, struct ggml_tensor *a);

// Sum over dimension 0: [1, ne1, ne2, ne3] of a's type. a float.
GGML_API struct ggml_tensor *ggml_sum_rows(struct ggml_context *ctx, struct ggml_tensor *a);

// Running sums along dimension 0, in double precision; result as a. a float.
GGML_API struct ggml_tensor *ggml_cumsum(struct ggml_context *ctx, struct ggml_tensor *a);

// Mean over dimension 0: [1, ne1, ne2, ne3] F32. a float.
GGML_API struct ggml_tensor *ggml_mean(struct ggml_context *ctx, struct ggml_tensor *a);

// Index of each row's largest value, the first of equals, NaN passed over: a [n, rows] float -> [rows] I32.
GGML_API struct ggml_tensor *ggml_argmax(struct ggml_context *ctx, struct ggml_tensor *a);

// How many elements of a and b (I32, same shape) are equal: a single I64.
GGML_API struct ggml_tensor *ggml_count_equal(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

// a tiled to b's shape, each size of which is a multiple of a's; b gives only its shape. Any type.
GGML_API struct ggml_tensor *ggml_repeat(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

// a tiled to the given shape.
GGML_API struct ggml_tensor *ggml_repeat_4d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1,
                                            int64_t ne2, int64_t ne3);

// The opposite: a (float) summed over its tiles to b's shape. Result: a's type. Tiles are added in order.
GGML_API struct ggml_tensor *ggml_repeat_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

// a and b, of one type, behind each other along dimension dim (0..3); the other sizes are equal.
GGML_API struct ggml_tensor *ggml_concat(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int dim);

// |a|. This and the functions that follow: element by element, a float, result as a; NaN stays NaN.
GGML_API struct ggml_tensor *ggml_abs(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_abs_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// -1, 0 or 1 by the sign of a.
GGML_API struct ggml_tensor *ggml_sgn(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sgn_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// -a.
GGML_API struct ggml_tensor *ggml_neg(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_neg_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// 1 where a > 0, else 0.
GGML_API struct ggml_tensor *ggml_step(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_step_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// Hyperbolic tangent, within 1.5 units in the last place.
GGML_API struct ggml_tensor *ggml_tanh(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_tanh_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// a where a > 0, else exp(a) - 1 (Clevert et al. 2016).
GGML_API struct ggml_tensor *ggml_elu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_elu_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// max(a, 0).
GGML_API struct ggml_tensor *ggml_relu(struct ggml_context *ctx, struct ggml_tensor *a);

// a where a > 0, else a * negative_slope.
GGML_API struct ggml_tensor *ggml_leaky_relu(struct ggml_context *ctx, struct ggml_tensor *a, float negative_slope,
                                             bool inplace);
GGML_API struct ggml_tensor *ggml_relu_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// 1 / (1 + exp(-a)), within 2.5 units in the last place.
GGML_API struct ggml_tensor *ggml_sigmoid(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sigmoid_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// a/2 (1 + tanh(sqrt(2/pi) (a + 0.044715 a^3))) (Hendrycks, Gimpel 2016), within 3.5 units in the last place: no table.
GGML_API struct ggml_tensor *ggml_gelu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_gelu_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// a Phi(a) with the exact normal distribution, within 4.5 units in the last place.
GGML_API struct ggml_tensor *ggml_gelu_erf(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_gelu_erf_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// a sigmoid(1.702 a), within 3.5 units in the last place.
GGML_API struct ggml_tensor *ggml_gelu_quick(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_gelu_quick_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// a sigmoid(a), within 3.5 units in the last place.
GGML_API struct ggml_tensor *ggml_silu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_silu_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// Gradient of silu: a * silu'(b); a the gradient, b the input, of one shape.
GGML_API struct ggml_tensor *ggml_silu_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

// a hardsigmoid(a).
GGML_API struct ggml_tensor *ggml_hardswish(struct ggml_context *ctx, struct ggml_tensor *a);

// (a + 3) / 6 limited to 0 .. 1.
GGML_API struct ggml_tensor *ggml_hardsigmoid(struct ggml_context *ctx, struct ggml_tensor *a);

// exp(a), within 1 unit in the last place.
GGML_API struct ggml_tensor *ggml_exp(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_exp_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// Largest integer not above a.
GGML_API struct ggml_tensor *ggml_floor(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_floor_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// Smallest integer not below a.
GGML_API struct ggml_tensor *ggml_ceil(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_ceil_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// Nearest integer, ties away from zero.
GGML_API struct ggml_tensor *ggml_round(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_round_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// Integer part.
GGML_API struct ggml_tensor *ggml_trunc(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_trunc_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// Expanded integral of ELU (Huang, Schlag 2024): softplus(alpha_p) a^2 + beta a for a > 0, else
// (expm1(min(a, eps)) - a) (beta + softplus(alpha_n)) + beta a.
GGML_API struct ggml_tensor *ggml_xielu(struct ggml_context *ctx, struct ggml_tensor *a, float alpha_n, float alpha_p,
                                        float beta, float eps);

#ifdef __cplusplus
}
#endif
