// What the three float formats share. The including file defines elem and load8(p), which gives eight of them as f32x8.
#pragma once

#include "type/vec_int.h"

enum { DOT_LANES = 32 };

// The lanes' sum, pairwise, in an order that is the same at every level.
VEC float sum_lanes(f32x8 a, f32x8 b, f32x8 c, f32x8 d) { return v_hsum((a + c) + (b + d)); }

// Dot product of two rows of elem: element i goes to lane i mod 32; a tail is filled up with zeros and takes the same way.
#define FLOAT_DOT                                                                                                           \
    static void dot(int64_t n, float *s, const void *x, const void *y) {                                                    \
        const elem *a = x, *b = y;                                                                                          \
        f32x8 acc[4] = {v_set(0.0f), v_set(0.0f), v_set(0.0f), v_set(0.0f)};                                                \
        int64_t i = 0;                                                                                                      \
        for (; i + DOT_LANES <= n; i += DOT_LANES)                                                                          \
            for (int k = 0; k < 4; k++) acc[k] += load8(a + i + 8 * k) * load8(b + i + 8 * k);                              \
        if (i < n) {                                                                                                        \
            elem ta[DOT_LANES] = {0}, tb[DOT_LANES] = {0};                                                                  \
            memcpy(ta, a + i, (size_t) (n - i) * sizeof(elem));                                                             \
            memcpy(tb, b + i, (size_t) (n - i) * sizeof(elem));                                                             \
            for (int k = 0; k < 4; k++) acc[k] += load8(ta + 8 * k) * load8(tb + 8 * k);                                    \
        }                                                                                                                   \
        *s = sum_lanes(acc[0], acc[1], acc[2], acc[3]);                                                                     \
    }
