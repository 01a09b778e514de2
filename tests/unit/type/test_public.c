// The public functions of ggml/quant.h: facts, traits, halves, validation, and their refusals.
#include "type_test.h"
#include "ggml-cpu.h"
#include "ggml/ext.h"

static void facts(void **state) {
    (void) state;
    for (int i = 0; i < N_TYPES; i++) {
        const enum ggml_type id = all_types[i];
        const struct type *t = type_get(id);
        const struct ggml_type_traits *traits = ggml_get_type_traits(id);
        const struct ggml_type_traits_cpu *cpu = ggml_get_type_traits_cpu(id);
        assert_int_equal(t->id, id);
        assert_int_equal(ggml_blck_size(id), t->block);
        assert_int_equal(ggml_type_size(id), t->size);
        assert_int_equal(ggml_row_size(id, 1024), (size_t) (1024 / t->block) * t->size);
        assert_string_equal(ggml_type_name(id), t->name);
        assert_true(ggml_is_quantized(id) == t->quantized);
        assert_string_equal(traits->type_name, t->name);
        assert_int_equal(traits->blck_size, t->block);
        assert_int_equal(traits->type_size, t->size);
        assert_true(traits->is_quantized == t->quantized);
        const bool integer = id == GGML_TYPE_I8 || id == GGML_TYPE_I16 || id == GGML_TYPE_I32 || id == GGML_TYPE_I64;
        assert_true(traits->to_float == (integer ? NULL : t->decode));
        assert_true((cpu->vec_dot == NULL) == integer);
        assert_int_equal(cpu->vec_dot_type, t->dot_type);
        assert_int_equal(cpu->nrows, 1);
        assert_true((cpu->from_float == NULL) == (t->search_only || integer));
        assert_true(ggml_quantize_requires_imatrix(id) == t->needs_imatrix);
        assert_true(type_get(t->dot_type) && t->encode && t->decode && t->dot && t->check);
        assert_int_equal(t->block % type_get(t->dot_type)->block, 0);
    }
    ggml_quantize_init(GGML_TYPE_IQ2_S);
    ggml_quantize_free();
}

// Rows of a wave through the public tables, as programs check a library's formats: the error of a row, and of a product.
static void waves(void **state) {
    (void) state;
    enum { N = 4096 };
    static float a[N], b[N], y[N];
    static char qa[8 * N], qb[8 * N];
    double exact = 0;
    for (int i = 0; i < N; i++) {
        a[i] = 0.1f + 2 * cosf((float) i);
        b[i] = 0.1f + 2 * cosf((float) i + 1);
        exact += (double) a[i] * b[i];
    }
    for (int i = 0; i < N_TYPES; i++) {
        const enum ggml_type id = all_types[i];
        const struct ggml_type_traits *traits = ggml_get_type_traits(id);
        const struct ggml_type_traits_cpu *cpu = ggml_get_type_traits_cpu(id);
        if (!traits->to_float || !cpu->from_float) continue;
        const double bits = 8.0 * (double) traits->type_size / (double) traits->blck_size;
        cpu->from_float(a, qa, N);
        traits->to_float(qa, y, N);
        double squares = 0;
        for (int k = 0; k < N; k++) squares += ((double) a[k] - y[k]) * ((double) a[k] - y[k]);
        assert_true(sqrt(squares) / N < (bits > 4.6 ? 0.002 : bits > 3.0 ? 0.004 : bits > 2.6 ? 0.0075 : 0.01));
        const struct ggml_type_traits_cpu *other = ggml_get_type_traits_cpu(cpu->vec_dot_type);
        other->from_float(b, qb, N);
        float product = 0;
        cpu->vec_dot(N, &product, 0, qa, 0, qb, 0, 1);
        assert_true(fabs(product - exact) / N < (bits > 3.0 ? 0.02 : bits > 2.6 ? 0.04 : bits > 1.6 ? 0.15 : 0.25));
    }
}

static void unknown_types(void **state) {
    (void) state;
    const int ids[] = {-1, 4, 5, 31, 36, GGML_TYPE_COUNT, 1000};
    for (int i = 0; i < 7; i++) {
        const enum ggml_type id = (enum ggml_type) ids[i];
        assert_null(type_get(id));
        ggml_clear_error();
        assert_int_equal(ggml_blck_size(id), 0);
        assert_non_null(strstr(ggml_last_error(), "is not an element type"));
        assert_int_equal(ggml_type_size(id), 0);
        assert_int_equal(ggml_row_size(id, 32), 0);
        assert_string_equal(ggml_type_name(id), "NONE");
        assert_false(ggml_is_quantized(id));
        assert_false(ggml_validate_row_data(id, "", 0));
        assert_false(ggml_quantize_requires_imatrix(id));
    }
    assert_null(ggml_get_type_traits(GGML_TYPE_COUNT));
    assert_null(ggml_get_type_traits_cpu(GGML_TYPE_COUNT));
    assert_null(type_get_at(GGML_TYPE_F32, ISA_COUNT));
}

static void row_sizes(void **state) {
    (void) state;
    ggml_clear_error();
    assert_int_equal(ggml_row_size(GGML_TYPE_Q4_K, 255), 0);
    assert_non_null(strstr(ggml_last_error(), "multiple of 256"));
    assert_int_equal(ggml_row_size(GGML_TYPE_F32, -1), 0);
    assert_int_equal(ggml_row_size(GGML_TYPE_F32, INT64_MAX), 0);
    assert_int_equal(ggml_row_size(GGML_TYPE_Q8_0, 0), 0);
    assert_int_equal(ggml_row_size(GGML_TYPE_Q8_0, 1ll << 40), (1ull << 35) * 34);
}

static void file_types(void **state) {
    (void) state;
    assert_int_equal(ggml_ftype_to_ggml_type(GGML_FTYPE_ALL_F32), GGML_TYPE_F32);
    assert_int_equal(ggml_ftype_to_ggml_type(GGML_FTYPE_MOSTLY_Q5_0), GGML_TYPE_Q5_0);
    assert_int_equal(ggml_ftype_to_ggml_type(GGML_FTYPE_MOSTLY_IQ1_M), GGML_TYPE_IQ1_M);
    assert_int_equal(ggml_ftype_to_ggml_type(GGML_FTYPE_MOSTLY_Q2_0), GGML_TYPE_Q2_0);
    ggml_clear_error();
    assert_int_equal(ggml_ftype_to_ggml_type(GGML_FTYPE_MOSTLY_Q4_1_SOME_F16), GGML_TYPE_COUNT);
    assert_non_null(strstr(ggml_last_error(), "file type 4"));
    assert_int_equal(ggml_ftype_to_ggml_type(GGML_FTYPE_UNKNOWN), GGML_TYPE_COUNT);
    assert_int_equal(ggml_ftype_to_ggml_type((enum ggml_ftype) 100), GGML_TYPE_COUNT);
}

static void validation(void **state) {
    (void) state;
    float f[4] = {1.0f, 2.0f, -3.0f, 0.0f};
    assert_true(ggml_validate_row_data(GGML_TYPE_F32, f, sizeof(f)));
    f[3] = NAN;
    assert_false(ggml_validate_row_data(GGML_TYPE_F32, f, sizeof(f)));
    f[3] = -INFINITY;
    assert_false(ggml_validate_row_data(GGML_TYPE_F32, f, sizeof(f)));
    const double d[2] = {1.0, NAN};
    assert_true(ggml_validate_row_data(GGML_TYPE_F64, d, 8));
    assert_false(ggml_validate_row_data(GGML_TYPE_F64, d, 16));
    const uint16_t h[3] = {0x3c00, 0x7bff, 0x7c00};
    assert_true(ggml_validate_row_data(GGML_TYPE_F16, h, 4));
    assert_false(ggml_validate_row_data(GGML_TYPE_F16, h, 6));
    const uint16_t b[2] = {0x3f80, 0xff81};
    assert_true(ggml_validate_row_data(GGML_TYPE_BF16, b, 2));
    assert_false(ggml_validate_row_data(GGML_TYPE_BF16, b, 4));
    assert_true(ggml_validate_row_data(GGML_TYPE_I8, "abc", 3));
    ggml_clear_error();
    assert_false(ggml_validate_row_data(GGML_TYPE_Q8_0, h, 5));
    assert_non_null(strstr(ggml_last_error(), "whole number"));
    // Each quantized type, its scale made NaN or infinite in the last block.
    for (int i = 0; i < N_TYPES; i++) {
        const struct type *t = type_get(all_types[i]);
        if (!t->quantized) continue;
        uint8_t blocks[2 * 300] = {0};
        assert_true(ggml_validate_row_data(t->id, blocks, 2 * t->size));
        memset(blocks + t->size, 0xff, t->size);
        assert_false(ggml_validate_row_data(t->id, blocks, 2 * t->size));
        assert_true(ggml_validate_row_data(t->id, blocks, t->size));
    }
}

static void single_halves(void **state) {
    (void) state;
    assert_int_equal(ggml_fp32_to_fp16(65519.0f), 0x7bff);
    assert_int_equal(ggml_fp32_to_fp16(65520.0f), 0x7c00);
    assert_int_equal(ggml_fp32_to_fp16(-1e-40f), 0x8000);
    assert_int_equal(ggml_fp32_to_bf16(1.0f).bits, 0x3f80);
    assert_true(ggml_fp16_to_fp32(0x0001) == 0x1p-24f);
    assert_true(ggml_bf16_to_fp32((ggml_bf16_t){0xc000}) == -2.0f);
    const float x[11] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1e10f, -0.0f};
    float y[11];
    ggml_bf16_t r[11], s[11];
    int32_t i[11];
    ggml_fp32_to_bf16_row(x, r, 11);
    ggml_fp32_to_bf16_row_ref(x, s, 11);
    assert_memory_equal(r, s, sizeof(r));
    ggml_cpu_fp32_to_fp32(x, y, 11);
    assert_memory_equal(x, y, sizeof(x));
    ggml_cpu_fp32_to_i32(x, i, 11);
    assert_int_equal(i[8], 9);
    assert_int_equal(i[9], INT32_MAX);
    ggml_fp16_t h[11];
    ggml_cpu_fp32_to_fp16(x, h, 11);
    ggml_cpu_fp16_to_fp32(h, y, 11);
    assert_true(y[8] == 9.0f && isinf(y[9]));
    ggml_cpu_fp32_to_bf16(x, r, 11);
    ggml_cpu_bf16_to_fp32(r, y, 11);
    assert_true(y[6] == 7.0f);
}

// Integers truncate, saturate and take NaN for 0.
static void integers(void **state) {
    (void) state;
    const float x[8] = {1.9f, -1.9f, 1e20f, -1e20f, NAN, 127.5f, -128.5f, 3e9f};
    int8_t a[8];
    int16_t b[8];
    int32_t c[8];
    int64_t d[8];
    type_get(GGML_TYPE_I8)->encode(x, a, 8);
    type_get(GGML_TYPE_I16)->encode(x, b, 8);
    type_get(GGML_TYPE_I32)->encode(x, c, 8);
    type_get(GGML_TYPE_I64)->encode(x, d, 8);
    assert_true(a[0] == 1 && a[1] == -1 && a[2] == 127 && a[3] == -128 && a[4] == 0 && a[5] == 127 && a[6] == -128 &&
                a[7] == 127);
    assert_true(b[2] == 32767 && b[3] == -32768 && b[4] == 0 && b[5] == 127 && b[6] == -128);
    assert_true(c[2] == INT32_MAX && c[3] == INT32_MIN && c[4] == 0 && c[7] == INT32_MAX);
    assert_true(d[2] == INT64_MAX && d[3] == INT64_MIN && d[4] == 0 && d[7] == 3000000000);
}

static void vec_dots(void **state) {
    (void) state;
    float x[64], s = 0.0f, t = 0.0f;
    uint8_t a[256], b[256];
    for (int i = 0; i < 64; i++) x[i] = (float) i - 20.0f;
    const struct ggml_type_traits_cpu *cpu = ggml_get_type_traits_cpu(GGML_TYPE_Q4_0);
    cpu->from_float(x, a, 64);
    ggml_get_type_traits_cpu(cpu->vec_dot_type)->from_float(x, b, 64);
    cpu->vec_dot(64, &s, 0, a, 0, b, 0, 1);
    type_get(GGML_TYPE_Q4_0)->dot(64, &t, a, b);
    assert_true(s == t && s > 0.0f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts),         cmocka_unit_test(waves),      cmocka_unit_test(unknown_types),
        cmocka_unit_test(row_sizes),     cmocka_unit_test(file_types), cmocka_unit_test(validation),
        cmocka_unit_test(single_halves), cmocka_unit_test(integers),   cmocka_unit_test(vec_dots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
