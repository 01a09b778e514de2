// What the processor can do at most, measured: the denominators of every share of peak that is printed.
#pragma once

#include "kern/kern.h"

#include <stddef.h>
#include <stdint.h>

// Each runs n rounds over 16 independent accumulators and gives the operations done (a multiply and an add are two).
struct kern_peak {
    double (*f32)(int64_t n);                     // F32 fused multiply-add
    double (*bf16)(int64_t n);                    // BF16 dot product; as f32 where there is none
    double (*i8)(int64_t n);                      // 8-bit integer dot product
    double (*read)(const void *p, size_t bytes);  // reads every byte of p, a multiple of 256; gives bytes
};
