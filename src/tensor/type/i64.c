// i64: signed integers of 64 bits. Conversion from float truncates towards zero and saturates; NaN gives 0.
#include "type/type_int.h"

static void decode(const void *x, float *y, int64_t n) {
    const int64_t *a = x;
    for (int64_t i = 0; i < n; i++) y[i] = (float) a[i];
}

static inline int64_t convert(float f) {
    if (f >= 9223372036854775808.0f) return INT64_MAX;
    return f > -9223372036854775808.0f ? (int64_t) f : f != f ? 0 : INT64_MIN;
}

static void encode(const float *x, void *y, int64_t n) {
    int64_t *b = y;
    for (int64_t i = 0; i < n; i++) b[i] = convert(x[i]);
}

// The sum in 64-bit integers, which wraps rather than trap.
static void dot(int64_t n, float *s, const void *x, const void *y) {
    const int64_t *a = x, *b = y;
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (uint64_t) (int64_t) a[i] * (uint64_t) (int64_t) b[i];
    *s = (float) (int64_t) sum;
}

static bool check(const void *x, size_t bytes) {
    (void) x;
    (void) bytes;
    return true;
}

const struct type ISA_SYM(type_i64) = {
    .id = GGML_TYPE_I64,
    .name = "i64",
    .block = 1,
    .size = 8,
    .integer = true,
    .dot_type = GGML_TYPE_I64,
    .decode = decode,
    .encode = encode,
    .quantize = NULL,
    .dot = dot,
    .check = check,
    .tolerance = INFINITY,
};
