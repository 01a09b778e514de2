// The family's table: which path serves a type and a number of columns.
#include "kern/mm_int.h"

static const struct mm_path *path(enum ggml_type type, int64_t n_col, bool exact) {
    return ISA_SYM(mm_float_path)(type, n_col, exact);
}

const struct kern_mm ISA_SYM(kern_mm) = {path};
