// Single elements by index, for every plain type and any layout; what is outside.
#include "test.h"
#include "ggml-cpu.h"

static struct ggml_context *c;

static int begin(void **state) {
    (void) state;
    quiet();
    ggml_clear_error();
    c = ggml_init((struct ggml_init_params){.mem_size = 1 << 20});
    return 0;
}

static int end(void **state) {
    (void) state;
    ggml_free(c);
    return 0;
}

static const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_F64,
                                       GGML_TYPE_I8,  GGML_TYPE_I16, GGML_TYPE_I32,  GGML_TYPE_I64};

static void test_all_types(void **state) {
    (void) state;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct ggml_tensor *t = ggml_new_tensor_3d(c, types[i], 5, 3, 2);
        assert_ptr_equal(ggml_set_f32(t, 3.0f), t);
        for (int k = 0; k < 30; k++) assert_float_equal(ggml_get_f32_1d(t, k), 3.0f, 0);
        ggml_set_f32_1d(t, 7, -5.0f);
        ggml_set_i32_1d(t, 8, 11);
        ggml_set_f32_nd(t, 4, 2, 1, 0, 2.0f);
        ggml_set_i32_nd(t, 0, 1, 1, 0, -9);
        assert_int_equal(ggml_get_i32_1d(t, 7), -5);
        assert_float_equal(ggml_get_f32_nd(t, 3, 1, 0, 0), 11.0f, 0);
        assert_float_equal(ggml_get_f32_1d(t, 29), 2.0f, 0);
        assert_int_equal(ggml_get_i32_nd(t, 0, 1, 1, 0), -9);
        struct ggml_tensor *p = ggml_permute(c, t, 1, 0, 2, 3);
        ggml_set_i32_nd(p, 2, 3, 1, 0, 6);
        assert_float_equal(ggml_get_f32_nd(t, 3, 2, 1, 0), 6.0f, 0);
        assert_float_equal(ggml_get_f32_1d(p, 3 * 5 + 3 * 3 + 2), 6.0f, 0);
        ggml_set_i32(p, 4);
        assert_float_equal(ggml_get_f32_1d(t, 13), 4.0f, 0);
        assert_ptr_equal(ggml_set_zero(t), t);
        assert_float_equal(ggml_get_f32_1d(t, 13), 0.0f, 0);
    }
}

static void test_exact_integers(void **state) {
    (void) state;
    struct ggml_tensor *t = ggml_new_i32(c, 16777217);  // not a float
    assert_int_equal(ggml_get_i32_1d(t, 0), 16777217);
    ggml_set_i32_1d(t, 0, INT32_MIN);
    assert_int_equal(ggml_get_i32_1d(t, 0), INT32_MIN);
    assert_float_equal(ggml_get_f32_1d(ggml_new_f32(c, 2.5f), 0), 2.5f, 0);
}

static void test_outside(void **state) {
    (void) state;
    struct ggml_tensor *t = ggml_set_f32(ggml_new_tensor_2d(c, GGML_TYPE_F32, 2, 2), 1.0f);
    assert_float_equal(ggml_get_f32_1d(t, 4), 0.0f, 0);
    assert_error("index");
    assert_float_equal(ggml_get_f32_1d(t, -1), 0.0f, 0);
    assert_error("index");
    ggml_set_f32_nd(t, 0, 2, 0, 0, 9.0f);
    assert_error("index 2 of dimension 1, which has 2");
    assert_int_equal(ggml_get_i32_nd(t, 0, 0, 0, 1), 0);
    assert_error("dimension 3");
    assert_int_equal(ggml_get_i32_1d(NULL, 0), 0);
    assert_error("no tensor");
    struct ggml_tensor *q = ggml_new_tensor_1d(c, GGML_TYPE_Q4_0, 32);
    ggml_set_f32_1d(q, 0, 1.0f);
    assert_error("no single elements");
    ggml_set_no_alloc(c, true);
    ggml_set_f32_1d(ggml_new_tensor_1d(c, GGML_TYPE_F32, 1), 0, 1.0f);
    assert_error("no memory");
    for (int i = 0; i < 4; i++) assert_float_equal(ggml_get_f32_1d(t, i), 1.0f, 0);
    ggml_set_f32(ggml_new_tensor_2d(c, GGML_TYPE_F32, 0, 3), 1.0f);  // nothing to set
}

int main(void) {
#define WITH_CONTEXT(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {WITH_CONTEXT(test_all_types), WITH_CONTEXT(test_exact_integers),
                                       WITH_CONTEXT(test_outside)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
