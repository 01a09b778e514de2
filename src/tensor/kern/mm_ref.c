// The scalar level of the matrix kernels: the plain definition, which every other level is held against.
#include "kern/mm_int.h"

#ifdef ISA_IS_scalar
#include "kern/mm_groups.h"
#include "kern/mm_record.h"
#include "type/type.h"

#include <math.h>
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

static const struct mm_path path_ref = {MM_F32, 1, 0, act_bytes, encode, scratch, run, 0, NULL};

const struct mm_path *ISA_SYM(mm_float_path)(enum ggml_type type, int64_t n_col, bool exact) {
    (void) type, (void) n_col, (void) exact;
    return &path_ref;
}

// Integer sums of a group are exact at every level, and so is the order in which they are scaled and added: this gives the very
// bits of the vector levels.
static float run_group(int sub, int min, int per, const struct mm_group *g, const struct mm_record *x, float acc) {
    for (int part = 0; part < 32 / sub; part++) {
        int32_t s = mm_record_start(x, part, min, false, per);
        for (int i = part * sub; i < (part + 1) * sub; i++) s += g->q[i] * x->q[i];
        if (per == 256)
            acc = fmaf(g->s[part], f32_from_bits((uint32_t) s) - x->base, acc);
        else
            acc = fmaf(g->s[part] * x->d, (float) s, acc);
        for (int h = 0; h < min; h++) acc = fmaf(g->m[part + h], x->sum[part + h], acc);
    }
    return acc;
}

static float run_element(int sub, int min, int per, int64_t n, const struct mm_group *g, const struct mm_record *x) {
    float total = 0;
    for (int64_t i = 0; i < n; i += per / 32) {
        if (per == 32) {
            total = run_group(sub, min, per, g + i, x + i, total);
            continue;
        }
        float acc = 0;
        for (int64_t j = i; j < i + per / 32; j++) acc = run_group(sub, min, per, g + j, x + j, acc);
        total = fmaf(x[i].d, acc, total);
    }
    return total;
}

static size_t quant_scratch(const struct mm_job *j) { return (size_t) (j->k / 32) * sizeof(struct mm_group); }

static void run_quant(const struct mm_job *j, void (*groups)(const void *, struct mm_group *), int sub, int min, int per) {
    const struct type *type = type_get(j->type);
    struct mm_group *g = j->scratch;
    const int64_t n = j->k / 32;
    for (int64_t r = j->row0; r < j->row1; r++) {
        const uint8_t *w = j->a + (size_t) r * j->a_stride;
        for (int64_t i = 0; i < j->k / type->block; i++) groups(w + (size_t) i * type->size, g + i * (type->block / 32));
        for (int64_t c = 0; c < j->n_col; c++) {
            const struct mm_record *x = (const struct mm_record *) mm_job_column(j, c);
            mm_job_result(j, c)[r] = run_element(sub, min, per, n, g, x);
        }
    }
}

#define QUANT(ID, name, sub, min, offset, max, per)                                                                         \
    static void encode_##name(const float *x, int64_t k, void *act) { mm_record_encode(x, k, act, sub, min, 0, per); }      \
    static void run_##name(const struct mm_job *j) { run_quant(j, groups_##name, sub, min, per); }                          \
    static const struct mm_path path_##name = {                                                                             \
        MM_I8, 1, MM_VARIANT(sub, min, 0, per), mm_record_bytes, encode_##name, quant_scratch, run_##name, 0, NULL};
#include "kern/mm_quant.def"
#undef QUANT

const struct mm_path *ISA_SYM(mm_quant_path)(enum ggml_type type, int64_t n_col) {
    (void) n_col;
    switch (type) {
#define QUANT(ID, name, ...)                                                                                                \
    case GGML_TYPE_##ID:                                                                                                    \
        return &path_##name;
#include "kern/mm_quant.def"
#undef QUANT
        default: return NULL;
    }
}
#endif
