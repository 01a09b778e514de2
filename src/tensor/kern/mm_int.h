// What the files of the matrix kernels share.
#pragma once

#include "kern/mm.h"

static inline const uint8_t *mm_job_column(const struct mm_job *j, int64_t c) {
    return j->act + (size_t) (j->act_idx ? j->act_idx[c] : j->col0 + c) * j->act_stride;
}

static inline float *mm_job_result(const struct mm_job *j, int64_t c) {
    return j->dst + (size_t) (j->dst_idx ? j->dst_idx[c] : c) * j->dst_stride;
}

// Variant of integer columns: what their sums and scales are made for (mm_quant.def).
#define MM_VARIANT(sub, min, offset, per) ((offset) | (min) << 8 | ((sub) == 16) << 10 | ((per) == 256) << 11)

// Paths of the level being compiled; the integer one is NULL for types without an integer form.
const struct mm_path *ISA_SYM(mm_float_path)(enum ggml_type type, int64_t n_col, bool exact);
const struct mm_path *ISA_SYM(mm_quant_path)(enum ggml_type type, int64_t n_col);

// Those of the tile registers (level avx512amx); NULL when the types or the number of columns do not suit.
const struct mm_path *mm_amx_float_path(enum ggml_type type, bool exact);
const struct mm_path *mm_amx_path(enum ggml_type type, int64_t n_col, bool exact);
