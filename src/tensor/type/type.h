// Element types. One type is one file (q4_0.c, ...) that ends in
//     const struct type ISA_SYM(type_<name>) = { ... };
// compiled once per ISA level, and one line TYPE(id, name) in type.def. Parts that need no ISA variants (quantizers
// that search) stand between #ifdef ISA_IS_scalar and are NULL in the other levels' tables, which are filled from
// the scalar one at first use.
#pragma once

#include "base/err.h"
#include "kern/isa.h"

struct type {
    enum ggml_type id;
    const char *name;       // "q4_0"
    int64_t block;          // elements per block
    size_t size;            // bytes per block
    bool quantized;
    enum ggml_type dot_type;  // the type of the second operand of dot
    bool needs_imatrix;       // quantize refuses to work without importance weights

    // Row functions. n: elements, a multiple of block. No alignment is assumed beyond the type's own element.
    void (*decode)(const void *x, float *y, int64_t n);
    // Reference encoder (round to nearest; codebook types: best effort), used by set_rows, cpy and from_float.
    void (*encode)(const float *x, void *y, int64_t n);
    // Encoder with search, for files. imatrix [n_per_row] or NULL. Returns bytes written, 0 on failure (sentence recorded).
    size_t (*quantize)(const float *x, void *y, int64_t n_rows, int64_t n_per_row, const float *imatrix);
    // *s = sum_i x_i * y_i over n elements, y of dot_type. Fixed order of accumulation.
    void (*dot)(int64_t n, float *s, const void *x, const void *y);
    // False if any block holds a value that cannot have been written by an encoder (NaN or infinite scales).
    bool (*check)(const void *x, size_t bytes);
    double tolerance;  // bound on the normalised mean squared error of encode, then decode, of uniform data
};

// NULL for ids that are unknown, retired or out of range.
const struct type *type_get(enum ggml_type id);
// The same at a given ISA level, for tests.
const struct type *type_get_at(enum ggml_type id, enum isa level);
