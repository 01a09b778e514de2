// Element-wise operations on two or three rows. y may be any of the operands. Same bits at all ISA levels.
#pragma once

#include "kern/kern.h"

#include <stdint.h>

typedef void (*kern_binary_fn)(int64_t n, float *y, const float *a, const float *b);
// y = act(a) * b, the gated units; p: alpha, limit
typedef void (*kern_glu_fn)(int64_t n, float *y, const float *a, const float *b, const float *p);

struct kern_binary {
    kern_binary_fn add, sub, mul, div;
    void (*fma)(int64_t n, float *y, const float *a, const float *b, const float *c);  // a * b + c, rounded once
    void (*axpy)(int64_t n, float *y, float a, const float *x);                        // y += a * x, rounded once
    kern_glu_fn reglu, geglu, swiglu, geglu_erf, geglu_quick;
    kern_glu_fn swiglu_oai;    // a = min(a, limit): a sigmoid(alpha a) * (clamp(b, +-limit) + 1)
    kern_glu_fn swiglu_clamp;  // silu(min(a, limit)) * clamp(b, +-limit)
    void (*silu_back)(int64_t n, float *y, const float *dy, const float *x);  // dy * d silu(x)/dx
};
