// Element types. One type is one file (q4_0.c, ...) that ends in
//     const struct type ISA_SYM(type_<name>) = { ... };
// compiled once per ISA level of the folder (cmake/libraries.cmake, TYPE_LEVELS), and one line TYPE(ID, name) in type.def.
// A function that is NULL in a level's table is taken from the scalar one. Every function gives the same bits at every
// level.
#pragma once

#include "base/err.h"
#include "kern/isa.h"

struct type {
    enum ggml_type id;
    const char *name;  // "q4_0"
    int64_t block;     // elements per block
    size_t size;       // bytes per block
    bool quantized;
    bool integer;             // public tables offer no row functions: rounding to integers is no way to store weights
    bool search_only;         // encode is a slow search; public tables don't offer it as a row converter
    bool needs_imatrix;       // quantize refuses to work without importance weights
    enum ggml_type dot_type;  // the type of the second operand of dot

    // Row functions. n: elements, a multiple of block. No alignment is assumed beyond the type's own element.
    void (*decode)(const void *x, float *y, int64_t n);
    // Integer form of the table-driven types: x_i = s[i / 16] * q_i, with q_i in -127 .. 127. NULL: none is offered.
    void (*ints)(const void *x, int8_t *q, float *s, int64_t n);
    // Row converter used by set_rows, cpy and from_float. Integers truncate and saturate. A NaN or an infinity in x spoils
    // its block (it decodes to NaN or infinity), but nothing else.
    void (*encode)(const float *x, void *y, int64_t n);
    // Encoder with search, for files; NULL: encode serves. x must be finite. imatrix [n_per_row], finite and not negative,
    // or NULL. Returns bytes written. Any number of threads may work on different rows.
    size_t (*quantize)(const float *x, void *y, int64_t n_rows, int64_t n_per_row, const float *imatrix);
    // *s = sum_i x_i * y_i over n elements, y of dot_type. Fixed order of accumulation.
    void (*dot)(int64_t n, float *s, const void *x, const void *y);
    // False if any block holds a value that no encoder writes for finite data (a scale that is NaN or infinite, ...).
    bool (*check)(const void *x, size_t bytes);
    double tolerance;  // bound on the normalised mean squared error of encode, then decode, of uniform data
};

// By id, what is the same at every level: names, sizes, kinds, which functions there are. NULL: unknown, or retired.
extern const struct type *const type_table[GGML_TYPE_COUNT];
static inline const struct type *type_facts(enum ggml_type id) {
    return (unsigned) id < GGML_TYPE_COUNT ? type_table[id] : NULL;
}
// The type at the active ISA level; NULL for ids that are unknown, retired or out of range.
const struct type *type_get(enum ggml_type id);
// The same at a given ISA level, for tests.
const struct type *type_get_at(enum ggml_type id, enum isa level);
