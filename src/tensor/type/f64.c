// f64: IEEE binary64.
#include "type/type_int.h"

static void decode(const void *x, float *y, int64_t n) {
    const double *a = x;
    for (int64_t i = 0; i < n; i++) y[i] = (float) a[i];
}

static void encode(const float *x, void *y, int64_t n) {
    double *b = y;
    for (int64_t i = 0; i < n; i++) b[i] = x[i];
}

static void dot(int64_t n, float *s, const void *x, const void *y) {
    const double *a = x, *b = y;
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    *s = (float) sum;
}

static bool check(const void *x, size_t bytes) {
    const double *a = x;
    for (size_t i = 0; i < bytes / sizeof(*a); i++)
        if (!isfinite(a[i])) return false;
    return true;
}

const struct type ISA_SYM(type_f64) = {
    .id = GGML_TYPE_F64,
    .name = "f64",
    .block = 1,
    .size = 8,
    .dot_type = GGML_TYPE_F64,
    .decode = decode,
    .encode = encode,
    .dot = dot,
    .check = check,
    .tolerance = 0.0,
};
