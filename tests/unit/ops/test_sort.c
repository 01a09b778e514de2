// ARGSORT and TOP_K: ties, zeros of both signs, NaN, long rows; and COUNT_EQUAL and ARGMAX on odd data.
#include "test.h"
#include "ggml-cpu.h"

#include <math.h>

typedef struct ggml_tensor T;

static struct ggml_context *c;

static int begin(void **state) {
    (void) state;
    quiet();
    c = ggml_init((struct ggml_init_params){.mem_size = (size_t) 16 << 20});
    return 0;
}

static int end(void **state) {
    (void) state;
    ggml_free(c);
    return 0;
}

static T *row(const float *x, int64_t n) {
    T *t = ggml_new_tensor_1d(c, GGML_TYPE_F32, n);
    memcpy(t->data, x, (size_t) n * sizeof *x);
    return t;
}

static T *run(T *t, int n_threads) {
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 8, false);
    ggml_build_forward_expand(g, t);
    assert_int_equal(ggml_graph_compute_with_ctx(c, g, n_threads), GGML_STATUS_SUCCESS);
    return t;
}

static void expect(const T *t, const int32_t *want, int n) {
    for (int i = 0; i < n; i++) assert_int_equal(((const int32_t *) t->data)[i], want[i]);
}

static void test_order(void **s) {
    (void) s;
    const float x[] = {2.0f, NAN, -0.0f, 0.0f, -INFINITY, 2.0f, INFINITY, -1e-45f, -NAN, 0.0f};
    expect(run(ggml_argsort(c, row(x, 10), GGML_SORT_ORDER_ASC), 1), (int32_t[]){4, 7, 2, 3, 9, 0, 5, 6, 1, 8}, 10);
    expect(run(ggml_argsort(c, row(x, 10), GGML_SORT_ORDER_DESC), 1), (int32_t[]){6, 0, 5, 2, 3, 9, 7, 4, 1, 8}, 10);
}

// Short rows are merged, long ones sorted by digits: both give what the definition says.
static void test_lengths(void **s) {
    (void) s;
    static const int lengths[] = {1, 2, 15, 16, 17, 100, 1023, 1024, 1025, 5000, 70000};
    for (int l = 0; l < 11; l++) {
        const int n = lengths[l];
        T *a = ggml_new_tensor_2d(c, GGML_TYPE_F32, n, 2);
        uint32_t seed = 9;
        for (int i = 0; i < 2 * n; i++) {
            seed = seed * 1664525u + 1013904223u;
            ((float *) a->data)[i] = (float) ((int) (seed >> 20) % 501 - 250) / 8.0f;
        }
        const T *t = run(ggml_argsort(c, a, GGML_SORT_ORDER_DESC), 2);
        for (int r = 0; r < 2; r++) {
            const int32_t *k = (const int32_t *) t->data + r * n;
            const float *x = (const float *) a->data + r * n;
            for (int i = 1; i < n; i++) assert_true(x[k[i - 1]] > x[k[i]] || (x[k[i - 1]] == x[k[i]] && k[i - 1] < k[i]));
        }
        ggml_reset(c);
    }
}

// Sets made by std::partial_sort of libstdc++, larger values first, equal ones by index.
static void test_top_k_ties(void **s) {
    (void) s;
    static const struct {
        int n, k;
        float x[32];
        int32_t want[16];
    } cases[] = {
        {12, 5, {1, 2, 0, 0, 2, 1, 2, 0, 0, 1, 0, 2}, {1, 4, 6, 11, 5}},
        {20, 7, {0, 0, 1, 2, 1, 0, 1, 2, 2, 1, 0, 0, 0, 2, 1, 1, 2, 1, 0, 0}, {3, 7, 8, 13, 16, 4, 9}},
        {28,
         9,
         {1, 1, 0, 1, 2, 0, 1, 0, 2, 2, 2, 0, 2, 0, 0, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 2, 2, 1},
         {4, 8, 9, 10, 12, 25, 26, 1, 3}},
    };
    for (int i = 0; i < 3; i++)
        expect(run(ggml_top_k(c, row(cases[i].x, cases[i].n), cases[i].k), 1), cases[i].want, cases[i].k);
    const float x[] = {NAN, 1.0f, 3.0f, 2.0f};
    run(ggml_top_k(c, row(x, 4), 4), 1);  // NaN makes no order, but no harm either
}

static void test_argmax(void **s) {
    (void) s;
    const float x[] = {NAN, 1.0f, 3.0f, 3.0f}, none[] = {NAN, NAN}, low[] = {-INFINITY, -INFINITY};
    expect(run(ggml_argmax(c, row(x, 4)), 1), (int32_t[]){2}, 1);
    expect(run(ggml_argmax(c, row(none, 2)), 1), (int32_t[]){0}, 1);
    expect(run(ggml_argmax(c, row(low, 2)), 1), (int32_t[]){0}, 1);
}

static void test_count_equal(void **s) {
    (void) s;
    T *a = ggml_new_tensor_4d(c, GGML_TYPE_I32, 5, 4, 3, 2), *b = ggml_new_tensor_4d(c, GGML_TYPE_I32, 3, 4, 5, 2);
    int64_t want = 0;
    for (int i = 0; i < 120; i++) ((int32_t *) a->data)[i] = i % 3, ((int32_t *) b->data)[i] = i % 4;
    T *p = ggml_permute(c, b, 2, 1, 0, 3);
    for (int i = 0; i < 120; i++) {
        const int i0 = i % 5, i1 = i / 5 % 4, i2 = i / 20 % 3, i3 = i / 60;
        want += ggml_get_i32_nd(a, i0, i1, i2, i3) == ggml_get_i32_nd(p, i0, i1, i2, i3);
    }
    for (int n = 1; n <= 3; n++) assert_int_equal(*(int64_t *) run(ggml_count_equal(c, a, p), n)->data, want);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {TEST(test_order), TEST(test_lengths), TEST(test_top_k_ties), TEST(test_argmax),
                                       TEST(test_count_equal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
