// Every ISA level gives the scalar level's bits: decode, encode, quantize and dot, for ordinary data and for awkward ones.
#include "type_test.h"

enum { N = 2048 };

// Blocks of random bits whose scales are finite.
static void random_blocks(const struct type *t, uint8_t *p, uint64_t *seed) {
    for (int64_t b = 0; b < N / t->block; b++) {
        uint8_t *block = p + (size_t) b * t->size;
        do {
            for (size_t i = 0; i < t->size; i++) block[i] = (uint8_t) (random_u64(seed) >> 56);
        } while (!t->check(block, t->size));
    }
}

static void fill(float *x, int kind, uint64_t *seed) {
    for (int i = 0; i < N; i++) {
        const float u = random_unit(seed);
        switch (kind) {
            case 0: x[i] = u; break;
            case 1: x[i] = u * u * u * 0.03f; break;
            case 2: x[i] = i % 7 ? 0.0f : u; break;
            case 3: x[i] = ldexpf(u, (int) (random_u64(seed) % 60) - 30); break;
            case 4: x[i] = (i / 256) % 2 ? 1.0f : -0.0f; break;
            case 5: x[i] = roundf(u * 8.0f) * 0.5f; break;  // many ties
            default: x[i] = ldexpf(u, (int) (random_u64(seed) % 250) - 125); break;
        }
    }
}

static void same_bytes(const struct type *t, const char *what, int level, int kind, const void *a, const void *b, size_t n) {
    const uint8_t *p = a, *q = b;
    for (size_t i = 0; i < n; i++)
        if (p[i] != q[i])
            fail_msg("%s of %s, data %d: byte %zu differs between scalar and %s", what, t->name, kind, i,
                     isa_name((enum isa) level));
}

static void compare_level(const struct type *s, int level) {
    const struct type *t = type_get_at(s->id, (enum isa) level), *u = type_get_at(s->dot_type, (enum isa) level);
    const size_t bytes = (size_t) (N / t->block) * t->size;
    uint64_t seed = 7 + (uint64_t) s->id;
    uint8_t *blocks = calloc(bytes, 1), *a = calloc(bytes, 1), *b = calloc(bytes, 1);
    uint8_t *other = calloc((size_t) (N / u->block) * u->size, 1);
    float *x = malloc(N * sizeof(float)), *y = malloc(N * sizeof(float)), *w = malloc(N * sizeof(float)), p, q;
    random_blocks(s, blocks, &seed);
    s->decode(blocks, x, N);
    t->decode(blocks, y, N);
    same_bytes(s, "decoding", level, -1, x, y, N * sizeof(float));
    for (int kind = 0; kind < 7; kind++) {
        if (s->search_only && kind > 3) break;
        fill(x, kind, &seed);
        for (int i = 0; i < N; i++) w[i] = fabsf(random_unit(&seed));
        s->encode(x, a, N);
        t->encode(x, b, N);
        same_bytes(s, "encoding", level, kind, a, b, bytes);
        u->encode(x, other, N);
        s->dot(N, &p, blocks, other);
        t->dot(N, &q, blocks, other);
        same_bytes(s, "product", level, kind, &p, &q, sizeof(p));
        if (!s->quantize) continue;
        assert_true(s->quantize(x, a, N / 256, 256, w) == bytes);
        assert_true(t->quantize(x, b, N / 256, 256, w) == bytes);
        same_bytes(s, "quantization", level, kind, a, b, bytes);
    }
    free(blocks);
    free(a);
    free(b);
    free(other);
    free(x);
    free(y);
    free(w);
}

static void levels_agree(void **state) {
    (void) state;
    for (int level = 1; level < ISA_COUNT; level++) {
        if (!isa_available((enum isa) level)) continue;
        for (int i = 0; i < N_TYPES; i++) compare_level(type_get_at(all_types[i], ISA_scalar), level);
    }
}

// Odd lengths: the float formats have tails.
static void tails_agree(void **state) {
    (void) state;
    const enum ggml_type ids[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_F64, GGML_TYPE_I32};
    uint64_t seed = 3;
    float x[70], y[71], z[71];
    for (int k = 0; k < 5; k++) {
        const struct type *s = type_get_at(ids[k], ISA_scalar);
        for (int n = 0; n <= 70; n++) {
            for (int i = 0; i < n; i++) x[i] = random_unit(&seed) * 100.0f;
            for (int level = 0; level < ISA_COUNT; level++) {
                if (!isa_available((enum isa) level)) continue;
                const struct type *t = type_get_at(ids[k], (enum isa) level);
                double a[71] = {0}, b[71] = {0};
                float p = 1.0f, q = 2.0f;
                s->encode(x, a, n);
                t->encode(x, b, n);
                assert_memory_equal(a, b, sizeof(a));
                y[n] = z[n] = 42.0f;
                s->decode(a, y, n);
                t->decode(b, z, n);
                assert_memory_equal(y, z, (size_t) (n + 1) * sizeof(float));
                s->dot(n, &p, a, a);
                t->dot(n, &q, b, b);
                assert_memory_equal(&p, &q, sizeof(p));
            }
        }
    }
}

// All 65536 halves through both directions; NaN stays NaN.
static void halves_are_exact(void **state) {
    (void) state;
    uint16_t *h = malloc(65536 * 2), *back = malloc(65536 * 2);
    float *f = malloc(65536 * sizeof(float));
    for (int i = 0; i < 65536; i++) h[i] = (uint16_t) i;
    for (int k = 0; k < 2; k++) {
        const enum ggml_type id = k ? GGML_TYPE_BF16 : GGML_TYPE_F16;
        for (int level = 0; level < ISA_COUNT; level++) {
            if (!isa_available((enum isa) level)) continue;
            const struct type *t = type_get_at(id, (enum isa) level);
            t->decode(h, f, 65536);
            t->encode(f, back, 65536);
            for (int i = 0; i < 65536; i++) {
                const float want = k ? bf16_to_f32(h[i]) : f16_to_f32(h[i]);
                if (isnan(want))
                    assert_true(isnan(f[i]) && isnan(k ? bf16_to_f32(back[i]) : f16_to_f32(back[i])));
                else
                    assert_true(f32_bits(f[i]) == f32_bits(want) && back[i] == h[i]);
            }
        }
    }
    free(h);
    free(back);
    free(f);
}

// A product is that of the decoded values, up to float rounding.
static void products_are_of_the_values(void **state) {
    (void) state;
    uint64_t seed = 11;
    float *x = malloc(N * sizeof(float)), *a = malloc(N * sizeof(float)), *b = malloc(N * sizeof(float));
    void *p = malloc(N * sizeof(double)), *q = malloc(N * sizeof(double));
    for (int i = 0; i < N_TYPES; i++) {
        const struct type *t = type_get(all_types[i]), *u = type_get(t->dot_type);
        const float scale = is_integer(t) ? 100.0f : 1.0f;
        for (int k = 0; k < N; k++) x[k] = random_unit(&seed) * scale;
        t->encode(x, p, N);
        for (int k = 0; k < N; k++) x[k] = random_unit(&seed) * scale;
        u->encode(x, q, N);
        t->decode(p, a, N);
        u->decode(q, b, N);
        double want = 0.0, size = 0.0;
        for (int k = 0; k < N; k++) {
            want += (double) a[k] * b[k];
            size += fabs((double) a[k] * b[k]);
        }
        float got;
        t->dot(N, &got, p, q);
        if (!(fabs(got - want) <= 2e-6 * size)) fail_msg("%s: product %.9g, not %.9g", t->name, (double) got, want);
    }
    free(x);
    free(a);
    free(b);
    free(p);
    free(q);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_agree),
        cmocka_unit_test(tails_agree),
        cmocka_unit_test(halves_are_exact),
        cmocka_unit_test(products_are_of_the_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
