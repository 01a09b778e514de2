// Single elements of plain types.
#include "test.h"
#include "type/element.h"

static void test_round_trips(void **state) {
    (void) state;
    static const enum ggml_type types[] = {GGML_TYPE_F64, GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16,
                                           GGML_TYPE_I8,  GGML_TYPE_I16, GGML_TYPE_I32, GGML_TYPE_I64};
    static const double values[] = {0, 1, -1, 100, -128, 127};
    char memory[24];
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        assert_true(type_is_plain(types[i]));
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
            memset(memory, 0x77, sizeof memory);
            type_store(types[i], memory + 3, values[k]);  // any alignment
            assert_true(type_load(types[i], memory + 3) == values[k]);
            assert_int_equal(memory[2], 0x77);
            assert_int_equal(memory[3 + ggml_type_size(types[i])], 0x77);
        }
    }
    type_store(GGML_TYPE_I64, memory, 9007199254740992.0);
    assert_true(type_load(GGML_TYPE_I64, memory) == 9007199254740992.0);
    type_store(GGML_TYPE_I32, memory, -2147483648.0);
    assert_true(type_load(GGML_TYPE_I32, memory) == -2147483648.0);
    type_store(GGML_TYPE_I16, memory, -7.9);
    assert_true(type_load(GGML_TYPE_I16, memory) == -7);
    type_store(GGML_TYPE_F64, memory, 0.1);
    assert_true(type_load(GGML_TYPE_F64, memory) == 0.1);
}

static void test_others(void **state) {
    (void) state;
    assert_false(type_is_plain(GGML_TYPE_Q4_0));
    assert_false(type_is_plain(GGML_TYPE_Q8_K));
    assert_false(type_is_plain(GGML_TYPE_COUNT));
    assert_false(type_is_plain((enum ggml_type) 4));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trips), cmocka_unit_test(test_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
