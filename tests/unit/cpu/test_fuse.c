// Nodes computed as one have the bits they have one by one.
#include "test.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/fuse/fuse.h"
#include "device/device.h"

#include <math.h>
#include <stdlib.h>

static struct ggml_context *c;
static uint64_t serial;

static int begin(void **state) {
    (void) state;
    quiet();
    ggml_clear_error();
    c = ggml_init((struct ggml_init_params){.mem_size = (size_t) 256 << 20});
    serial = 1;
    return 0;
}

static int end(void **state) {
    (void) state;
    ggml_free(c);
    return 0;
}

static float number(void) {
    serial = serial * 6364136223846793005u + 1442695040888963407u;
    return (float) ((double) (serial >> 40) / 8388608.0 - 1.0);
}

static struct ggml_tensor *numbers(enum ggml_type type, int64_t n0, int64_t n1) {
    struct ggml_tensor *t = ggml_new_tensor_2d(c, type, n0, n1);
    float *x = malloc((size_t) (n0 * n1) * sizeof *x);
    for (int64_t i = 0; i < n0 * n1; i++) x[i] = number();
    ggml_quantize_chunk(type, x, t->data, 0, n1, n0, NULL);
    free(x);
    return t;
}

// All nodes computed with n_threads, one by one or not.
static void compute(struct ggml_cgraph *g, int n_threads, bool singly) {
    struct ggml_cplan plan = ggml_graph_plan(g, n_threads, NULL);
    plan.work_data = malloc(plan.work_size + 1);
    memset(plan.work_data, 0xff, plan.work_size);
    assert_int_equal(cpu_graph_compute(g, &plan, NULL, singly), GGML_STATUS_SUCCESS);
    free(plan.work_data);
}

static const int threads[] = {1, 2, 3, 5};

static void check_same_bits(struct ggml_cgraph *g, struct ggml_tensor *const *results, int n) {
    uint8_t *expected[8];
    compute(g, 1, true);
    for (int i = 0; i < n; i++) {
        expected[i] = malloc(ggml_nbytes(results[i]));
        memcpy(expected[i], results[i]->data, ggml_nbytes(results[i]));
    }
    for (size_t k = 0; k < sizeof threads / sizeof *threads; k++) {
        for (int i = 0; i < n; i++) memset(results[i]->data, 0xff, ggml_nbytes(results[i]));
        compute(g, threads[k], false);
        for (int i = 0; i < n; i++) assert_memory_equal(results[i]->data, expected[i], ggml_nbytes(results[i]));
    }
    for (int i = 0; i < n; i++) free(expected[i]);
}

// ---- products of one activation -------------------------------------------------------------------------------------

static int span(const struct ggml_cgraph *g, int i, const char *name) {
    int n;
    const struct fuse *f = fuse_find(g, i, &n);
    if (!f) return 0;
    assert_string_equal(f->name, name);
    return n;
}

static void check_shared(const enum ggml_type types[3], int64_t k, int64_t m, int64_t n_col) {
    struct ggml_cgraph *g = ggml_new_graph(c);
    struct ggml_tensor *x = numbers(GGML_TYPE_F32, k, n_col), *y[3];
    for (int i = 0; i < 3; i++) {
        y[i] = ggml_mul_mat(c, numbers(types[i], k, m + 16 * i), x);
        ggml_build_forward_expand(g, i == 1 ? ggml_reshape_3d(c, y[i], 8, (m + 16) / 8, n_col) : y[i]);
    }
    assert_int_equal(span(g, 0, "shared"), 4);
    check_same_bits(g, y, 3);
}

static void test_products(void **state) {
    (void) state;
    static const enum ggml_type sets[][3] = {
        {GGML_TYPE_Q4_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_0}, {GGML_TYPE_Q4_K, GGML_TYPE_Q6_K, GGML_TYPE_Q4_K},
        {GGML_TYPE_F16, GGML_TYPE_F32, GGML_TYPE_BF16},   {GGML_TYPE_Q8_0, GGML_TYPE_F32, GGML_TYPE_Q4_1},
        {GGML_TYPE_F32, GGML_TYPE_F32, GGML_TYPE_F32},
    };
    static const int64_t columns[] = {1, 2, 7, 33, 80};
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++)
        for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) check_shared(sets[s], 512, 72, columns[i]);
    check_shared(sets[1], 2048, 40, 9);  // too many elements for every thread to encode them for itself
}

// A result may lie over what an earlier product read: then they run one after the other.
static void test_products_over_weights(void **state) {
    (void) state;
    struct ggml_cgraph *g = ggml_new_graph(c);
    struct ggml_tensor *x = numbers(GGML_TYPE_F32, 256, 3), *w = numbers(GGML_TYPE_F32, 256, 64);
    struct ggml_tensor *a = ggml_mul_mat(c, w, x), *b = ggml_mul_mat(c, numbers(GGML_TYPE_F32, 256, 64), x);
    ggml_build_forward_expand(g, a);
    ggml_build_forward_expand(g, b);
    assert_int_equal(span(g, 0, "shared"), 2);
    float *weights = malloc(ggml_nbytes(w)), *expected = malloc(ggml_nbytes(a));
    memcpy(weights, w->data, ggml_nbytes(w));
    compute(g, 1, true);
    memcpy(expected, a->data, ggml_nbytes(a));
    b->data = w->data;
    for (size_t k = 0; k < sizeof threads / sizeof *threads; k++) {
        memcpy(w->data, weights, ggml_nbytes(w));
        memset(a->data, 0xff, ggml_nbytes(a));
        compute(g, threads[k], false);
        assert_memory_equal(a->data, expected, ggml_nbytes(a));
    }
    free(weights);
    free(expected);
}

// Other activations, results that a later product reads, batches: no match.
static void test_no_products(void **state) {
    (void) state;
    struct ggml_tensor *x = numbers(GGML_TYPE_F32, 64, 3), *z = numbers(GGML_TYPE_F32, 64, 3);
    struct ggml_tensor *w = numbers(GGML_TYPE_F32, 64, 64);
    struct ggml_cgraph *g = ggml_new_graph(c);
    ggml_build_forward_expand(g, ggml_mul_mat(c, w, x));
    ggml_build_forward_expand(g, ggml_mul_mat(c, w, z));
    assert_int_equal(span(g, 0, ""), 0);
    g = ggml_new_graph(c);
    ggml_build_forward_expand(g, ggml_mul_mat(c, w, x));
    ggml_build_forward_expand(g, ggml_sqr(c, x));
    ggml_build_forward_expand(g, ggml_mul_mat(c, w, x));
    assert_int_equal(span(g, 0, ""), 0);
    // the second product's weights are the first one's result: they match by their form, and run in turn
    g = ggml_new_graph(c);
    struct ggml_tensor *a = ggml_mul_mat(c, w, x);
    struct ggml_tensor *b = ggml_mul_mat(c, a, x);
    ggml_build_forward_expand(g, b);
    check_same_bits(g, (struct ggml_tensor *const[]){a, b}, 2);
}

// The list of steps that a backend keeps serves the same graph again, and other graphs and thread counts in between.
static void test_kept_steps(void **state) {
    (void) state;
    ggml_backend_t cpu = ggml_backend_cpu_init();
    struct ggml_tensor *x = numbers(GGML_TYPE_F32, 256, 5), *y[2], *z;
    struct ggml_cgraph *g = ggml_new_graph(c), *h = ggml_new_graph(c);
    for (int i = 0; i < 2; i++) {
        y[i] = ggml_mul_mat(c, numbers(GGML_TYPE_Q8_0, 256, 96), x);
        ggml_build_forward_expand(g, y[i]);
    }
    z = ggml_add(c, y[0], y[1]);
    ggml_build_forward_expand(h, ggml_sqr(c, z));
    compute(g, 1, true);
    uint8_t *expected = malloc(ggml_nbytes(y[1]));
    memcpy(expected, y[1]->data, ggml_nbytes(y[1]));
    for (int round = 0; round < 8; round++) {
        ggml_backend_cpu_set_n_threads(cpu, 1 + round % 4);
        memset(y[1]->data, 0xff, ggml_nbytes(y[1]));
        assert_int_equal(device_graph_compute(cpu, g, round == 5 ? GGML_COMPUTE_NO_FUSE : 0), GGML_STATUS_SUCCESS);
        assert_memory_equal(y[1]->data, expected, ggml_nbytes(y[1]));
        if (round % 3 == 2) assert_int_equal(ggml_backend_graph_compute(cpu, h), GGML_STATUS_SUCCESS);
    }
    free(expected);
    ggml_backend_free(cpu);
}

int main(void) {
    setenv("GGML_OVERSUBSCRIBE", "1", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_products, begin, end),
        cmocka_unit_test_setup_teardown(test_products_over_weights, begin, end),
        cmocka_unit_test_setup_teardown(test_no_products, begin, end),
        cmocka_unit_test_setup_teardown(test_kept_steps, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
