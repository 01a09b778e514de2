// Softmax of one row, and its parts. Same bits at all ISA levels.
#pragma once

#include "kern/kern.h"

#include <stdint.h>

struct kern_softmax {
    // y = x * scale + slope * mask (mask NULL: x * scale); products rounded. Returns the largest (NaN passed over). y may be x.
    float (*logits)(int64_t n, float *y, const float *x, float scale, const float *mask, float slope);
    // y = exp(x - max), returns the sum in 32 lanes. y may be x.
    float (*exp_sum)(int64_t n, float *y, const float *x, float max);
    void (*scale)(int64_t n, float *y, float s);  // y *= s
    // dx = (dy - sum(y dy)) y scale. dx may be dy or y.
    void (*back)(int64_t n, float *dx, const float *dy, const float *y, float scale);
};
