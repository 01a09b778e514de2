// What the files of the matrix kernels share.
#pragma once

#include "kern/mm.h"

static inline const uint8_t *mm_job_column(const struct mm_job *j, int64_t c) {
    return j->act + (size_t) (j->act_idx ? j->act_idx[c] : j->col0 + c) * j->act_stride;
}

static inline float *mm_job_result(const struct mm_job *j, int64_t c) {
    return j->dst + (size_t) (j->dst_idx ? j->dst_idx[c] : c) * j->dst_stride;
}

// Rows that will be wanted soon, fetched to the second-level cache little by little: all at once they would keep what is wanted now waiting.
struct mm_ahead {
    struct mm_rows rows;
    size_t at;      // bytes of the first row that are done
    int64_t lines;  // a call
};

// n_call: calls until all is to be there.
static inline struct mm_ahead mm_ahead(struct mm_rows rows, int64_t n_call) {
    const int64_t lines = rows.n * (int64_t) ((rows.bytes + 63) / 64);
    return (struct mm_ahead){rows, 0, n_call > 0 ? (lines + n_call - 1) / n_call : 0};
}

static inline void mm_fetch(struct mm_ahead *a) {
    for (int64_t i = 0; i < a->lines && a->rows.n > 0; i++) {
        __builtin_prefetch(a->rows.p + a->at, 0, 2);
        a->at += 64;
        if (a->at < a->rows.bytes) continue;
        a->at = 0;
        a->rows.p += a->rows.stride;
        a->rows.n--;
    }
}

// Rows [r0, r1) of a job's weights, as far as there are so many; bytes from `at` of each.
static inline struct mm_rows mm_job_rows(const struct mm_job *j, int64_t r0, int64_t r1, size_t at, size_t bytes) {
    if (r1 > j->n_row) r1 = j->n_row;
    return (struct mm_rows){j->a + (size_t) r0 * j->a_stride + at, j->a_stride, bytes, r1 > r0 ? r1 - r0 : 0};
}

// Variant of integer columns: what their sums and scales are made for (mm_quant.def).
#define MM_VARIANT(sub, min, offset, per) ((offset) | (min) << 8 | ((sub) == 16) << 9 | ((per) == 256) << 10)

// Paths of the level being compiled; the integer one is NULL for types without an integer form.
const struct mm_path *ISA_SYM(mm_float_path)(enum ggml_type type, int64_t n_col, bool exact);
const struct mm_path *ISA_SYM(mm_quant_path)(enum ggml_type type, int64_t n_col);

// Those of the tile registers (level avx512amx); NULL when the types or the number of columns do not suit.
const struct mm_path *mm_amx_path(enum ggml_type type, int64_t n_col, bool exact);
