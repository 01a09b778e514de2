// Matrix products. A product's rows are weights as they lie in memory (any type), its columns are activations, encoded once
// per node into the form the kernel reads. Everything the caller chooses (ranges of rows and columns, threads, which of the
// two float paths) leaves the bits of each result alone: a result is one chain of operations fixed by k, type and ISA level.
//
// Float weights: k is cut into pieces of MM_PIECE lane words (F32 values, or pairs of BF16); in a piece, lane j sums the
// words j, j + L, j + 2L, ... in order (L lanes of the level), then the lanes are added in pairs, the pairs in pairs and so on,
// and the piece is added to the total. In tile registers (level avx512amx) values are sums of
// BF16 parts, one of BF16, two of F16, three of F32, and activations are rounded to as many; for 32 values of k at a time each product of
// parts that counts is added to the total: the sum of the first values of their pairs, in order, and that of the second ones.
// Quantized weights: activations become 8-bit integers with one F32 scale per 32; the integer sum of a group of 32 (or 16)
// is exact, and the groups are added in order: total = fma(weight scale * activation scale, sum, total). Types whose blocks
// hold 256 values and groups with scales of their own have one activation scale per block, which each group of 32 halves as often as
// its values allow (unit: the power of two that is left): part = fma(weight scale, unit * sum, part) over
// the groups of a block, then total = fma(activation scale, part, total). Scales of 16 that are small integers beside one of the block (Q2_K,
// Q3_K) are part of the integer sum. This path has the same bits at every level.
#pragma once

#include "ggml/types.h"
#include "kern/kern.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MM_PIECE = 1024 };

// Form of the encoded columns. Columns of equal form can be shared by several products.
enum mm_form {
    MM_F32,          // k floats, nothing else: rows of an F32 tensor serve as they are
    MM_F32_LANES,    // floats in lane order, for many columns
    MM_BF16,         // pairs of BF16
    MM_BF16_LANES,   // the same in lane order
    MM_BF16_BLOCKS,  // BF16 parts of values, 16 columns side by side (variant: how many)
    MM_I8,           // 8-bit integers, scales and sums per group
    MM_I8_BLOCKS,    // the same, 16 columns side by side
};

// A range of rows times some columns. dst[c * dst_stride + r] for column c and row r. Column c is the encoded column col0 + c; the
// index lists, if given, say which encoded column it is instead and where its result goes.
struct mm_job {
    const uint8_t *a;  // row 0
    size_t a_stride;   // bytes between rows
    int64_t n_row;     // rows there are (row1 <= n_row); kernels may read, never write, neighbours of the range
    int64_t row0, row1;
    int64_t k;
    const uint8_t *act;
    size_t act_stride;  // bytes between encoded columns
    const int32_t *act_idx;
    int64_t col0;
    float *dst;
    size_t dst_stride;  // floats between columns of the result
    const int32_t *dst_idx;
    int64_t n_col;
    void *scratch;         // path->scratch(k) bytes of this thread, 64-byte aligned
    size_t scratch_bytes;  // its size; more than a path's least may be used
    enum ggml_type type;   // of a
};

struct mm_path {
    enum mm_form form;
    int row_step;  // ranges of rows should start at multiples of this
    int variant;   // columns of equal form and variant are the same bytes
    size_t (*act_bytes)(int64_t k);
    void (*encode)(const float *x, int64_t k, void *act);
    size_t (*scratch)(const struct mm_job *j);
    void (*run)(const struct mm_job *j);
    // Where columns lie side by side in blocks: how many make one, and how one is written to its lane. 0, NULL where they do not.
    int block;
    void (*encode_lane)(const float *x, int64_t k, void *block, int lane);
};

// Writes x [k] as encoded column c of those at act, `stride` (path->act_bytes(k), rounded up to 64) bytes each.
static inline void mm_encode_column(const struct mm_path *p, const float *x, int64_t k, uint8_t *act, size_t stride,
                                    int64_t c) {
    if (p->block)
        p->encode_lane(x, k, act + (size_t) (c - c % p->block) * stride, (int) (c % p->block));
    else
        p->encode(x, k, act + (size_t) c * stride);
}

// Bytes of n encoded columns.
static inline size_t mm_columns_bytes(const struct mm_path *p, size_t stride, int64_t n) {
    return stride * (size_t) (p->block ? (n + p->block - 1) / p->block * p->block : n);
}

struct kern_mm {
    // y[c * y_stride + i] += sum over j < k of a[j * a_stride + i] * b[c * b_stride + j], in order of j, one fma each.
    void (*outer)(int64_t n, int64_t n_col, int64_t k, const float *a, size_t a_stride, const float *b, size_t b_stride,
                  float *y, size_t y_stride);
    // The path for weights of a type times n_col columns; exact: activations must not be rounded below F32.
    const struct mm_path *(*path)(enum ggml_type type, int64_t n_col, bool exact);
};
