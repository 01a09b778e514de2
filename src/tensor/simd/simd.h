// The SIMD vocabulary: one vector of VF_N floats (vf), its integers (vi) and its masks (vm), under the same names at every
// ISA level. A kernel is written once over these names and compiled once per level (kern/isa.def).
//
// What is promised, and what the kernels build on (DESIGN rules 6 and 7):
//  - Every operation is one correctly rounded IEEE operation, fma included, at every level. So an element-wise kernel gives
//    the same bits at all levels, and the scalar level (VF_N 1) checks the others exactly.
//  - Partial vectors (the _n forms) run the same arithmetic as full ones: an element's result does not depend on where in the
//    row it lies. Lanes beyond n load as zero and are not stored.
//  - Reductions over rows go through reduce.h, whose tree has 32 lanes whatever VF_N is: same bits at all levels again.
//  - vf_min(a, b) and vf_max(a, b) give b when either is NaN, so the operand that may be NaN goes second.
//
// math.h holds exp, log, tanh ... over this vocabulary: one formula for all levels.
#pragma once

#include "base/half.h"
#include "kern/isa.h"

#include <stdint.h>
#include <string.h>

#if defined(ISA_IS_scalar)
#include "simd/scalar.h"
#elif defined(__AVX512F__)
#include "simd/avx512.h"
#elif defined(__AVX2__)
#include "simd/avx2.h"
#elif defined(__ARM_NEON)
#include "simd/neon.h"
#else
#include "simd/scalar.h"
#endif

// In front of a loop of constant, short length that must become straight code (not at the scalar level, where it only swells).
#if VF_N == 1
#define SIMD_UNROLL
#elif defined(__clang__)
#define SIMD_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SIMD_UNROLL _Pragma("GCC unroll 32")
#endif

// Lanes of a vector that starts at element i of n, at most VF_N; 0 beyond the end.
static inline int vf_lanes(int64_t i, int64_t n) {
    const int64_t left = n - i;
    return left >= VF_N ? VF_N : left > 0 ? (int) left : 0;
}
