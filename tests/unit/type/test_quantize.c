// Quantizers under attack: zeros, denormals, huge and tiny values, NaN and infinity, strange importance weights, threads.
#include "type_test.h"
#include "ggml.h"
#include "ggml/ext.h"

#include <stdatomic.h>

enum { N = 512 };

static float ones[N];

static size_t quantize(const struct type *t, const float *x, void *y, const float *importance) {
    return ggml_quantize_chunk(t->id, x, y, 0, N / 256, 256, importance ? importance : t->needs_imatrix ? ones : NULL);
}

// Quantizes x; whatever it is, the blocks are valid and their values finite and not above the bound. Gives the error.
static double attack(const struct type *t, const char *what, const float *x, const float *importance, float bound) {
    uint8_t blocks[N * 4];
    float y[N], largest = 0.0f;
    const size_t bytes = quantize(t, x, blocks, importance);
    if (bytes != ggml_row_size(t->id, N)) fail_msg("%s refuses %s: %s", t->name, what, ggml_last_error());
    if (!ggml_validate_row_data(t->id, blocks, bytes)) fail_msg("%s of %s is not valid", t->name, what);
    t->decode(blocks, y, N);
    for (int i = 0; i < N; i++) {
        if (!isfinite(y[i])) fail_msg("%s of %s: element %d is %g", t->name, what, i, (double) y[i]);
        largest = fabsf(y[i]) > largest ? fabsf(y[i]) : largest;
    }
    if (largest > bound) fail_msg("%s of %s: decodes to %g, above %g", t->name, what, (double) largest, (double) bound);
    return nmse(x, y, N);
}

static void for_quantized(void (*f)(const struct type *t)) {
    for (int i = 0; i < N_TYPES; i++)
        if (type_get(all_types[i])->quantized) f(type_get(all_types[i]));
}

static void constant_and_tiny(const struct type *t) {
    static const float values[] = {0.0f,   -0.0f, 1e-40f, 1e-38f, 1e-30f, 1e-24f, 1e-20f,
                                   1e-12f, 1e-9f, 6e-8f,  1e-6f,  1e-4f,  1.0f};
    float x[N], w[N];
    uint64_t seed = 5;
    for (int k = 0; k < (int) (sizeof(values) / sizeof(values[0])); k++) {
        char what[64];
        for (int sign = 0; sign < 3; sign++) {
            for (int i = 0; i < N; i++)
                x[i] = sign == 0 ? values[k] : sign == 1 ? -values[k] : values[k] * random_unit(&seed);
            for (int i = 0; i < N; i++) w[i] = 1e-20f * (random_unit(&seed) + 1.0f);
            snprintf(what, sizeof(what), "rows of %g, sign %d", (double) values[k], sign);
            const float bound = values[k] * 4.0f + (values[k] < 1e-4f ? 6e-8f * 448.0f : 0.0f);
            attack(t, what, x, NULL, bound);
            attack(t, what, x, w, bound);
        }
    }
}
static void constants_and_tiny_values(void **state) {
    (void) state;
    for_quantized(constant_and_tiny);
}

static void zero_is_zero(const struct type *t) {
    float x[N] = {0}, y[N];
    uint8_t blocks[N * 4];
    x[7] = -0.0f;
    x[300] = 1e-42f;
    assert_true(quantize(t, x, blocks, NULL) > 0);
    t->decode(blocks, y, N);
    for (int i = 0; i < N; i++) assert_true(y[i] == 0.0f);
}
static void zeros_stay_zeros(void **state) {
    (void) state;
    for_quantized(zero_is_zero);
}

static void huge(const struct type *t) {
    float x[N];
    for (int i = 0; i < N; i++) x[i] = i % 2 ? 65504.0f : -65504.0f;
    attack(t, "alternating halves", x, NULL, 2.1f * 65504.0f);
    for (int i = 0; i < N; i++) x[i] = 1.0f;
    x[100] = 1e30f;
    attack(t, "one huge value", x, NULL, 3e30f);
    x[100] = -3.4e38f;
    x[101] = 3.4e38f;
    attack(t, "the largest floats", x, NULL, INFINITY);
    attack(t, "the largest floats, importance", x, ones, INFINITY);
    for (int i = 0; i < N; i++) x[i] = (i % 3 ? 3e38f : -3e38f);
    attack(t, "only the largest floats", x, ones, INFINITY);
}
static void huge_values(void **state) {
    (void) state;
    for_quantized(huge);
}

static void refused(const struct type *t) {
    const float bad[] = {NAN, INFINITY, -INFINITY};
    float x[N];
    uint8_t blocks[N * 4];
    char want[64];
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < N; i++) x[i] = 0.5f;
        x[256 + 77] = bad[k];
        ggml_clear_error();
        assert_int_equal(quantize(t, x, blocks, NULL), 0);
        snprintf(want, sizeof(want), "element 77 of row 1");
        assert_non_null(strstr(ggml_last_error(), want));
        assert_non_null(strstr(ggml_last_error(), t->name));
        // The row converter has no way to refuse: it spoils the block, so that nothing goes on unnoticed.
        t->encode(x, blocks, N);
        float y[N], sum = 0.0f;
        t->decode(blocks, y, N);
        for (int i = 0; i < N; i++) sum += y[i] * 0.0f;
        if (!isnan(sum)) fail_msg("%s encodes %g as finite values", t->name, (double) bad[k]);
        assert_false(ggml_validate_row_data(t->id, blocks, ggml_row_size(t->id, N)));
    }
}
static void bad_values_are_refused(void **state) {
    (void) state;
    for_quantized(refused);
}

static void weighted(const struct type *t) {
    float x[N], w[256], zero[256] = {0};
    uint8_t a[N * 4], b[N * 4];
    uint64_t seed = 9;
    for (int i = 0; i < N; i++) x[i] = random_unit(&seed);
    const double even = attack(t, "uniform data", x, ones, 2.5f);
    // No importance at all counts as the same importance for all.
    assert_true(quantize(t, x, a, zero) > 0 && quantize(t, x, b, ones) > 0);
    assert_memory_equal(a, b, ggml_row_size(t->id, N));
    // So does any common factor.
    for (int i = 0; i < 256; i++) w[i] = 0x1p-20f;
    assert_true(quantize(t, x, a, w) > 0);
    assert_memory_equal(a, b, ggml_row_size(t->id, N));
    for (int i = 0; i < 256; i++) w[i] = i < 32 ? 0.0f : 1.0f;
    attack(t, "importance 0 for one sub-block", x, w, 2.5f);
    for (int i = 0; i < 256; i++) w[i] = i % 2 ? 1e-38f : 3e38f;
    attack(t, "extreme importance", x, w, 2.5f);
    // Important elements come out better than others, where the format has a search.
    for (int i = 0; i < 256; i++) w[i] = i % 4 ? 0.01f : 1.0f;
    double e[2] = {0.0, 0.0};
    float y[N];
    assert_true(quantize(t, x, a, w) > 0);
    t->decode(a, y, N);
    for (int i = 0; i < N; i++) e[i % 4 != 0] += (double) (x[i] - y[i]) * (x[i] - y[i]) / (i % 4 ? 3 : 1);
    const bool searches = t->id != GGML_TYPE_Q8_0 && t->id != GGML_TYPE_Q8_1 && t->id != GGML_TYPE_Q8_K &&
                          t->id != GGML_TYPE_TQ1_0 && t->id != GGML_TYPE_TQ2_0 && t->id != GGML_TYPE_MXFP4;
    if (searches && !(e[0] < e[1])) fail_msg("%s: important elements have error %g, others %g", t->name, e[0], e[1]);
    assert_true(even <= t->tolerance * 1.05);
}
static void importance_weights(void **state) {
    (void) state;
    for_quantized(weighted);
}

static void bad_importance_is_refused(void **state) {
    (void) state;
    float x[N] = {1.0f}, w[256];
    uint8_t blocks[N * 4];
    const float bad[] = {NAN, INFINITY, -1.0f};
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < 256; i++) w[i] = 1.0f;
        w[31] = bad[k];
        ggml_clear_error();
        assert_int_equal(ggml_quantize_chunk(GGML_TYPE_Q4_K, x, blocks, 0, 2, 256, w), 0);
        assert_non_null(strstr(ggml_last_error(), "weight 31 of 256"));
    }
    ggml_clear_error();
    assert_int_equal(ggml_quantize_chunk(GGML_TYPE_IQ2_XS, x, blocks, 0, 2, 256, NULL), 0);
    assert_non_null(strstr(ggml_last_error(), "imatrix"));
}

static void bad_shapes_are_refused(void **state) {
    (void) state;
    float x[N] = {1.0f};
    uint8_t blocks[N * 4];
    assert_int_equal(ggml_quantize_chunk(GGML_TYPE_Q4_K, x, blocks, 0, 1, 255, NULL), 0);
    assert_int_equal(ggml_quantize_chunk(GGML_TYPE_Q4_K, x, blocks, 0, 1, 0, NULL), 0);
    assert_int_equal(ggml_quantize_chunk(GGML_TYPE_Q4_K, x, blocks, 0, -1, 256, NULL), 0);
    assert_int_equal(ggml_quantize_chunk(GGML_TYPE_Q4_K, x, blocks, 32, 1, 256, NULL), 0);
    assert_int_equal(ggml_quantize_chunk(GGML_TYPE_I32, x, blocks, 0, 1, 256, NULL), 0);
    assert_int_equal(ggml_quantize_chunk(GGML_TYPE_COUNT, x, blocks, 0, 1, 256, NULL), 0);
    assert_int_equal(ggml_quantize_chunk((enum ggml_type) 4, x, blocks, 0, 1, 256, NULL), 0);
    assert_int_equal(ggml_quantize_chunk(GGML_TYPE_Q4_K, x, blocks, 0, 0, 256, NULL), 0);
}

// Rows in any pieces, on any threads, give the same bytes.
struct part {
    enum ggml_type id;
    const float *x;
    uint8_t *y;
    _Atomic bool failed;
};

static void quantize_part(int ith, int nth, void *data) {
    struct part *p = data;
    for (int r = ith; r < 16; r += nth) {
        const size_t n = ggml_quantize_chunk(p->id, p->x, p->y, r * 256, 1, 256, ones);
        if (n != ggml_row_size(p->id, 256)) atomic_store(&p->failed, true);
    }
}

static void threads_give_the_same_bytes(void **state) {
    (void) state;
    float *x = malloc(16 * 256 * sizeof(float));
    uint8_t *a = malloc(16 * 256 * 8), *b = malloc(16 * 256 * 8);
    uint64_t seed = 13;
    for (int i = 0; i < 16 * 256; i++) x[i] = random_unit(&seed);
    for (int i = 0; i < N_TYPES; i++) {
        const struct type *t = type_get(all_types[i]);
        if (is_integer(t)) continue;
        const size_t bytes = ggml_row_size(t->id, 16 * 256);
        assert_true(ggml_quantize_chunk(t->id, x, a, 0, 16, 256, ones) == bytes);
        struct part part = {t->id, x, b, false};
        ggml_parallel(3, quantize_part, &part);
        assert_false(part.failed);
        assert_memory_equal(a, b, bytes);
    }
    free(x);
    free(a);
    free(b);
}

// Large activations: the sum in q8_1 can't be held by a half.
static void large_sums_stay_finite(void **state) {
    (void) state;
    const enum ggml_type ids[] = {GGML_TYPE_Q4_1, GGML_TYPE_Q5_1, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K};
    float x[256], w[256], y[256];
    uint8_t a[1024], b[1024];
    uint64_t seed = 1;
    for (int i = 0; i < 256; i++) {
        x[i] = 3000.0f;
        w[i] = random_unit(&seed) * 0.1f + 0.05f;
    }
    for (int k = 0; k < 4; k++) {
        const struct type *t = type_get(ids[k]), *u = type_get(t->dot_type);
        t->encode(w, a, 256);
        t->decode(a, y, 256);
        u->encode(x, b, 256);
        assert_true(u->check(b, (size_t) (256 / u->block) * u->size));
        double want = 0.0;
        for (int i = 0; i < 256; i++) want += 3000.0 * y[i];
        float got;
        t->dot(256, &got, a, b);
        assert_true(fabs(got - want) < 1e-3 * fabs(want));
    }
}

int main(void) {
    for (int i = 0; i < N; i++) ones[i] = 1.0f;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_and_tiny_values),
        cmocka_unit_test(zeros_stay_zeros),
        cmocka_unit_test(huge_values),
        cmocka_unit_test(bad_values_are_refused),
        cmocka_unit_test(importance_weights),
        cmocka_unit_test(bad_importance_is_refused),
        cmocka_unit_test(bad_shapes_are_refused),
        cmocka_unit_test(threads_give_the_same_bytes),
        cmocka_unit_test(large_sums_stay_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
