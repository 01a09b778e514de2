// f32: IEEE binary32.
#include "type/type_int.h"
#include "type/float_int.h"

typedef float elem;
VEC f32x8 load8(const float *p) { return v_load(p); }

static void decode(const void *x, float *y, int64_t n) { memcpy(y, x, (size_t) n * sizeof(float)); }
static void encode(const float *x, void *y, int64_t n) { memcpy(y, x, (size_t) n * sizeof(float)); }

FLOAT_DOT

static bool check(const void *x, size_t bytes) {
    const uint32_t *u = x;
    uint32_t bad = 0;
    for (size_t i = 0; i < bytes / sizeof(*u); i++) bad |= (u[i] & 0x7f800000u) == 0x7f800000u;
    return !bad;
}

const struct type ISA_SYM(type_f32) = {
    .id = GGML_TYPE_F32,
    .name = "f32",
    .block = 1,
    .size = 4,
    .dot_type = GGML_TYPE_F32,
    .decode = decode,
    .encode = encode,
    .dot = dot,
    .check = check,
    .tolerance = 0.0,
};
