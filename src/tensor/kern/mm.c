// The family's table: which path serves a type and a number of columns; and the sum of outer products.
#include "kern/mm_int.h"
#include "kern/mm_simd.h"

static const struct mm_path *path(enum ggml_type type, int64_t n_col, bool exact) {
#if defined(ISA_IS_avx512bf16)
    if (isa_active() == ISA_avx512amx) {
        const struct mm_path *amx = mm_amx_path(type, n_col, exact);
        if (amx) return amx;
    }
#endif
    const struct mm_path *p = exact ? NULL : ISA_SYM(mm_quant_path)(type, n_col);
    return p ? p : ISA_SYM(mm_float_path)(type, n_col, exact);
}

// C columns, VF_N rows of which n are wanted.
INLINE void outer_tile(int n, int C, int64_t k, const float *a, size_t a_stride, const float *b, size_t b_stride, float *y,
                       size_t y_stride) {
    vf acc[8];
    UNROLL for (int c = 0; c < C; c++) acc[c] = vf_load_n(y + (size_t) c * y_stride, n);
    for (int64_t j = 0; j < k; j++) {
        const vf x = vf_load_n(a + (size_t) j * a_stride, n);
        UNROLL for (int c = 0; c < C; c++) acc[c] = vf_fma(x, vf_set1(b[(size_t) c * b_stride + (size_t) j]), acc[c]);
    }
    UNROLL for (int c = 0; c < C; c++) vf_store_n(y + (size_t) c * y_stride, acc[c], n);
}

static void outer(int64_t n, int64_t n_col, int64_t k, const float *a, size_t a_stride, const float *b, size_t b_stride,
                  float *y, size_t y_stride) {
    for (int64_t i = 0; i < n; i += VF_N) {
        const int lanes = vf_lanes(i, n);
        int64_t c = 0;
        for (; c + 8 <= n_col; c += 8) {
            outer_tile(lanes, 8, k, a + i, a_stride, b + (size_t) c * b_stride, b_stride, y + (size_t) c * y_stride + i,
                       y_stride);
        }
        for (; c < n_col; c++) {
            outer_tile(lanes, 1, k, a + i, a_stride, b + (size_t) c * b_stride, b_stride, y + (size_t) c * y_stride + i,
                       y_stride);
        }
    }
}

const struct kern_mm ISA_SYM(kern_mm) = {outer, path};
