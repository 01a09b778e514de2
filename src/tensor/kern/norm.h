// Reductions and normalisations of one row. Sums run in 32 lanes (simd/reduce.h): same bits at all ISA levels. y may be x.
#pragma once

#include "kern/kern.h"

#include <stdint.h>

struct kern_norm {
    float (*sum)(int64_t n, const float *x);
    float (*sum_sqr)(int64_t n, const float *x);
    float (*sum_dev)(int64_t n, const float *x, float mean);  // of (x - mean)^2
    float (*dot)(int64_t n, const float *x, const float *y);  // products rounded, then summed
    float (*max)(int64_t n, const float *x);                  // -infinity for n 0; NaN is passed over
    // y = x / sqrt(mean(x^2) + eps), times w when there is one (rounded twice, as two operations would)
    void (*rms)(int64_t n, float *y, const float *x, const float *w, float eps);
    // y = (x - mean) / sqrt(var + eps), var biased
    void (*layer)(int64_t n, float *y, const float *x, float eps);
    // y = x / max(sqrt(sum x^2), eps)
    void (*l2)(int64_t n, float *y, const float *x, float eps);
    void (*shift_scale)(int64_t n, float *y, const float *x, float shift, float scale);  // (x + shift) * scale
    // Gradient of rms: (dy - x sum(x dy) / (sum x^2 + n eps)) / sqrt(mean(x^2) + eps)
    void (*rms_back)(int64_t n, float *dx, const float *dy, const float *x, float eps);
};
