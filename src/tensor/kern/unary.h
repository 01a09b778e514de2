// Element-wise functions of one row: y[i] = f(x[i]). y may be x. p: the function's parameters, NULL where it has none.
// Same bits at all ISA levels; errors as stated in simd/math.h.
#pragma once

#include "kern/kern.h"

#include <stdint.h>

typedef void (*kern_unary_fn)(int64_t n, float *y, const float *x, const float *p);

// X(name): the functions of ggml_unary under their names in unary.def, then those of operations of their own:
//   scale      x * p[0]                      scale_bias  x * p[0] + p[1], rounded once
//   leaky_relu x > 0 ? x : x * p[0]          clamp       x limited to p[0] .. p[1]
//   xielu      x > 0 ? p[1] x^2 + p[2] x : (expm1(min(x, p[3])) - x) p[0] + p[2] x
// clang-format off
#define KERN_UNARY(X) \
    X(abs) X(sgn) X(neg) X(step) X(tanh) X(elu) X(relu) X(sigmoid) X(gelu) X(gelu_quick) X(silu) X(hardswish) \
    X(hardsigmoid) X(exp) X(expm1) X(softplus) X(gelu_erf) X(xielu) X(floor) X(ceil) X(round) X(trunc) X(sqr) \
    X(sqrt) X(log) X(sin) X(cos) X(erf) X(leaky_relu) X(clamp) X(scale) X(scale_bias)
// clang-format on

struct kern_unary {
#define X(name) kern_unary_fn name;
    KERN_UNARY(X)
#undef X
};
