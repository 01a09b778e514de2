// The common body of i8, i16, i32 and i64. The including file defines INT, INT_LO and INT_HI (the type and its ends), INT_LIMIT (2 to the
// number of its bits less one), INT_ID, INT_NAME and INT_SYMBOL. Conversion from float truncates towards zero and saturates; NaN gives 0.
#pragma once

#include "type/type_int.h"

static void decode(const void *x, float *y, int64_t n) {
    const INT *a = x;
    for (int64_t i = 0; i < n; i++) y[i] = (float) a[i];
}

static inline INT convert(float f) {
    if (f >= INT_LIMIT) return INT_HI;
    return f > -INT_LIMIT ? (INT) f : f != f ? 0 : INT_LO;
}

static void encode(const float *x, void *y, int64_t n) {
    INT *b = y;
    for (int64_t i = 0; i < n; i++) b[i] = convert(x[i]);
}

// The sum in 64-bit integers, which wraps rather than trap.
static void dot(int64_t n, float *s, const void *x, const void *y) {
    const INT *a = x, *b = y;
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (uint64_t) (int64_t) a[i] * (uint64_t) (int64_t) b[i];
    *s = (float) (int64_t) sum;
}

static bool check(const void *x, size_t bytes) {
    (void) x;
    (void) bytes;
    return true;
}

const struct type ISA_SYM(INT_SYMBOL) = {
    .id = INT_ID,
    .name = INT_NAME,
    .block = 1,
    .size = sizeof(INT),
    .integer = true,
    .dot_type = INT_ID,
    .decode = decode,
    .encode = encode,
    .quantize = NULL,
    .dot = dot,
    .check = check,
    .tolerance = INFINITY,
};
