// Rotations of one row by pairs. Same bits at all ISA levels.
#pragma once

#include "kern/kern.h"

#include <stdint.h>

struct kern_rope {
    // c = m cos(t), s = m sin(t) over n angles in radians
    void (*angles)(int64_t n, float *c, float *s, const float *t, float m);
    // Pairs (x[j], x[j + off]), j < n, turned: y[j] = x[j] c - x[j + off] s, y[j + off] = x[j] s + x[j + off] c. y may be x.
    void (*halves)(int64_t n, int64_t off, float *y, const float *x, const float *c, const float *s);
    // Pairs (x[2j], x[2j + 1]). y may be x.
    void (*pairs)(int64_t n, float *y, const float *x, const float *c, const float *s);
};
