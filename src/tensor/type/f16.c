// f16: IEEE binary16.
#include "type/type_int.h"
#include "type/float_int.h"

typedef uint16_t elem;

VEC f32x8 load8(const uint16_t *p) {
#ifdef __F16C__
    return (f32x8) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) (const void *) p));
#else
    f32x8 v;
    for (int i = 0; i < 8; i++) v[i] = f16_to_f32(p[i]);
    return v;
#endif
}

VEC void store8(uint16_t *p, f32x8 v) {
#ifdef __F16C__
    _mm_storeu_si128((__m128i *) (void *) p, _mm256_cvtps_ph((__m256) v, _MM_FROUND_TO_NEAREST_INT));
#else
    for (int i = 0; i < 8; i++) p[i] = f32_to_f16(v[i]);
#endif
}

static void decode(const void *x, float *y, int64_t n) {
    const uint16_t *a = x;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) v_store(y + i, load8(a + i));
    for (; i < n; i++) y[i] = f16_to_f32(a[i]);
}

static void encode(const float *x, void *y, int64_t n) {
    uint16_t *b = y;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) store8(b + i, v_load(x + i));
    for (; i < n; i++) b[i] = f32_to_f16(x[i]);
}

FLOAT_DOT

static bool check(const void *x, size_t bytes) {
    const uint16_t *h = x;
    unsigned bad = 0;
    for (size_t i = 0; i < bytes / sizeof(*h); i++) bad |= (h[i] & 0x7c00) == 0x7c00;
    return !bad;
}

const struct type ISA_SYM(type_f16) = {
    .id = GGML_TYPE_F16,
    .name = "f16",
    .block = 1,
    .size = 2,
    .dot_type = GGML_TYPE_F16,
    .decode = decode,
    .encode = encode,
    .dot = dot,
    .check = check,
    .tolerance = 1e-7,
};
