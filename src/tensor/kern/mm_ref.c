// The scalar level of the matrix kernels: the plain definition, which every other level is held against.
#include "kern/mm_int.h"

#ifdef ISA_IS_scalar
#include "type/type.h"

#include <string.h>

static size_t act_bytes(int64_t k) { return (size_t) k * 4; }
static void encode(const float *x, int64_t k, void *act) { memcpy(act, x, (size_t) k * 4); }
static size_t scratch(const struct mm_job *j) { return (size_t) j->k * 4; }

static void run(const struct mm_job *j) {
    const struct type *type = type_get(j->type);
    for (int64_t r = j->row0; r < j->row1; r++) {
        const float *w = j->scratch;
        type->decode(j->a + (size_t) r * j->a_stride, j->scratch, j->k);
        for (int64_t c = 0; c < j->n_col; c++) {
            const float *x = (const float *) mm_job_column(j, c);
            double s = 0;
            for (int64_t i = 0; i < j->k; i++) s += (double) w[i] * (double) x[i];
            mm_job_result(j, c)[r] = (float) s;
        }
    }
}

static const struct mm_path path_ref = {MM_F32, 1, act_bytes, encode, scratch, run};

const struct mm_path *ISA_SYM(mm_float_path)(enum ggml_type type, int64_t n_col, bool exact) {
    (void) type, (void) n_col, (void) exact;
    return &path_ref;
}
#endif
