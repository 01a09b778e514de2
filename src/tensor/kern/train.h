// Losses and optimizer steps, one row at a time. Same bits at all ISA levels.
#pragma once

#include "kern/kern.h"

#include <stdint.h>

struct kern_train {
    // sum of b_i * (c - x_i), the terms with b_i = 0 left out (x may be -infinity there): with c = max + log(sum of exp(x - max))
    // the cross entropy of logits x and labels b.
    float (*cross_entropy)(int64_t n, const float *x, const float *b, float c);
    // dx = (e / sum - b) * scale; dx may be e
    void (*cross_entropy_back)(int64_t n, float *dx, const float *e, const float *b, float sum, float scale);
    // One AdamW step of parameters w with momenta m and v (Loshchilov, Hutter 2019).
    // p: alpha, beta1, beta2, eps, weight decay, 1 / (1 - beta1^t), 1 / (1 - beta2^t)
    void (*adamw)(int64_t n, float *w, const float *g, float *m, float *v, const float *p);
    // w = w * (1 - alpha * decay) - alpha * g; p: alpha, weight decay
    void (*sgd)(int64_t n, float *w, const float *g, const float *p);
};
