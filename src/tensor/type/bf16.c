// bf16: the upper half of binary32.
#include "type/type_int.h"
#include "type/float_int.h"

typedef uint16_t elem;
typedef uint16_t u16x8 __attribute__((vector_size(16)));

VEC f32x8 load8(const uint16_t *p) {
    u16x8 h;
    memcpy(&h, p, sizeof(h));
    return (f32x8) (__builtin_convertvector(h, i32x8) << 16);
}

static void decode(const void *x, float *y, int64_t n) {
    const uint16_t *a = x;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) v_store(y + i, load8(a + i));
    for (; i < n; i++) y[i] = bf16_to_f32(a[i]);
}

// Eight at a time: round to nearest even, or for NaN keep the upper bits and make it quiet.
VEC void store8(uint16_t *p, f32x8 v) {
    const u32x8 u = (u32x8) v;
    const u32x8 rounded = u + (((u >> 16) & 1) + 0x7fff), nan = (u32x8) ((i32x8) (u & 0x7fffffff) > 0x7f800000);
    const u16x8 r = __builtin_convertvector((((u | 0x400000) & nan) | (rounded & ~nan)) >> 16, u16x8);
    memcpy(p, &r, sizeof(r));
}

static void encode(const float *x, void *y, int64_t n) {
    uint16_t *b = y;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) store8(b + i, v_load(x + i));
    for (; i < n; i++) b[i] = f32_to_bf16(x[i]);
}

FLOAT_DOT

static bool check(const void *x, size_t bytes) {
    const uint16_t *h = x;
    unsigned bad = 0;
    for (size_t i = 0; i < bytes / sizeof(*h); i++) bad |= (h[i] & 0x7f80) == 0x7f80;
    return !bad;
}

const struct type ISA_SYM(type_bf16) = {
    .id = GGML_TYPE_BF16,
    .name = "bf16",
    .block = 1,
    .size = 2,
    .dot_type = GGML_TYPE_BF16,
    .decode = decode,
    .encode = encode,
    .dot = dot,
    .check = check,
    .tolerance = 1e-5,
};
