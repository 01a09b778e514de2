// The registry, and devices from shared libraries. This program has no copy of the library of its own: all calls go to the
// shared one, which the module uses too.
#include "test.h"

#include "ggml-backend.h"
#include "ggml-cpu.h"

static void test_registry(void **state) {
    (void) state;
    assert_int_equal(ggml_backend_reg_count(), 1);
    assert_string_equal(ggml_backend_reg_name(ggml_backend_reg_get(0)), "CPU");
    assert_null(ggml_backend_reg_get(9));
    assert_error("no device registry 9");
    assert_null(ggml_backend_dev_get(9));
    assert_error("no device 9");
    assert_null(ggml_backend_reg_by_name("none"));
    assert_null(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_GPU));
    assert_null(ggml_backend_init_by_name("none", NULL));
    assert_error("no device named 'none'");
    assert_null(ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_GPU, NULL));
    assert_error("no device of type");
    assert_null(ggml_backend_reg_dev_get(ggml_backend_cpu_reg(), 1));
    assert_error("has no device 1");
    ggml_backend_register(ggml_backend_cpu_reg());  // known already
    assert_int_equal(ggml_backend_reg_count(), 1);
    assert_int_equal(ggml_backend_dev_count(), 1);
}

static void test_load_and_use(void **state) {
    (void) state;
    ggml_backend_reg_t reg = ggml_backend_load(MODULE_DIR "/libggml-device-example.so");
    assert_non_null(reg);
    assert_ptr_equal(ggml_backend_load(MODULE_DIR "/libggml-device-example.so"), reg);
    assert_int_equal(ggml_backend_dev_count(), 2);
    ggml_backend_t b = ggml_backend_init_by_name("example0", NULL);
    assert_non_null(b);
    struct ggml_context *c = ggml_init((struct ggml_init_params){1 << 16, NULL, true});
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 16, false);
    struct ggml_tensor *x = ggml_new_tensor_1d(c, GGML_TYPE_F32, 4), *y = ggml_scale(c, x, 3.0f);
    ggml_build_forward_expand(g, y);
    ggml_backend_buffer_t buf = ggml_backend_alloc_ctx_tensors(c, b);
    const float in[4] = {1, 2, 3, 4};
    float out[4];
    ggml_backend_tensor_set(x, in, 0, sizeof(in));
    assert_int_equal(ggml_backend_graph_compute(b, g), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get(y, out, 0, sizeof(out));
    for (int i = 0; i < 4; i++) assert_true(out[i] == 3 * in[i]);
    ggml_backend_buffer_free(buf);
    ggml_free(c);
    ggml_backend_free(b);
    ggml_backend_unload(reg);
    assert_int_equal(ggml_backend_dev_count(), 1);
    assert_null(ggml_backend_dev_by_name("EXAMPLE0"));
}

static void test_load_all(void **state) {
    (void) state;
    ggml_backend_load_all_from_path(MODULE_DIR);
    ggml_backend_reg_t reg = ggml_backend_reg_by_name("EXAMPLE");
    assert_non_null(reg);
    ggml_backend_unload(reg);
    ggml_backend_load_all_from_path("/nowhere");
    setenv("GGML_BACKEND_PATH", "/nowhere:" MODULE_DIR, 1);
    ggml_backend_load_all();
    reg = ggml_backend_reg_by_name("EXAMPLE");
    assert_non_null(reg);
    ggml_backend_unload(reg);
    assert_int_equal(ggml_backend_reg_count(), 1);
}

static void test_bad_libraries(void **state) {
    (void) state;
    assert_null(ggml_backend_load("/nowhere/lib.so"));
    assert_error("cannot load device library");
    assert_null(ggml_backend_load("libm.so.6"));
    assert_error("not a device library");
    assert_null(ggml_backend_load(NULL));
    assert_error("no path");
    ggml_backend_unload(NULL);
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registry),
        cmocka_unit_test(test_load_and_use),
        cmocka_unit_test(test_load_all),
        cmocka_unit_test(test_bad_libraries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
