// Misuse: each refusal gives the error tensor and a sentence that says what does not fit; bad indices found while running give
// FAILED, and nothing is read or written there.
#include "test.h"
#include "ggml-cpu.h"

typedef struct ggml_tensor T;

static struct ggml_context *c;

static int begin(void **state) {
    (void) state;
    quiet();
    ggml_clear_error();
    c = ggml_init((struct ggml_init_params){.mem_size = (size_t) 4 << 20});
    return 0;
}

static int end(void **state) {
    (void) state;
    ggml_free(c);
    return 0;
}

static T *f32(int64_t n0, int64_t n1, int64_t n2, int64_t n3) {
    return ggml_new_tensor_4d(c, GGML_TYPE_F32, n0, n1, n2, n3);
}
static T *typed(enum ggml_type type, int64_t n0, int64_t n1) { return ggml_new_tensor_2d(c, type, n0, n1); }
static T *i32(int64_t n0, int64_t n1) { return typed(GGML_TYPE_I32, n0, n1); }

#define REFUSED(expr, part)                                                                                                 \
    do {                                                                                                                    \
        assert_true(ggml_is_error(expr));                                                                                   \
        assert_error(part);                                                                                                 \
    } while (0)

static void test_arithmetic(void **s) {
    (void) s;
    T *a = f32(6, 4, 1, 1);
    REFUSED(ggml_add(c, a, f32(5, 4, 1, 1)), "cannot be repeated");
    REFUSED(ggml_mul(c, f32(3, 4, 1, 1), a), "cannot be repeated");
    REFUSED(ggml_add(c, a, NULL), "missing");
    REFUSED(ggml_sub(c, NULL, a), "missing");
    REFUSED(ggml_add(c, i32(6, 4), a), "must be F32, F16 or BF16");
    REFUSED(ggml_add_cast(c, a, a, GGML_TYPE_Q4_0), "the result can be");
    REFUSED(ggml_add_id(c, f32(6, 2, 3, 1), a, i32(2, 4)), "ADD_ID");
    REFUSED(ggml_add_id(c, f32(6, 2, 3, 1), a, f32(2, 3, 1, 1)), "must be i32");
    REFUSED(ggml_div(c, a, ggml_add(c, a, NULL)), "missing");  // the error tensor goes through
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void test_add1(void **s) {
    (void) s;
    REFUSED(ggml_add1(c, f32(6, 4, 1, 1), f32(6, 1, 1, 1)), "single value");
}
#pragma GCC diagnostic pop

static void test_functions(void **s) {
    (void) s;
    T *a = f32(7, 4, 1, 1);
    REFUSED(ggml_unary(c, a, (enum ggml_unary_op) 99), "no function 99");
    REFUSED(ggml_silu(c, i32(7, 4)), "must be F32");
    REFUSED(ggml_gelu(c, typed(GGML_TYPE_Q8_0, 32, 4)), "must be F32");
    REFUSED(ggml_scale(c, i32(7, 4), 2.0f), "must be F32");
    REFUSED(ggml_silu_back(c, a, f32(7, 5, 1, 1)), "differ");
    REFUSED(ggml_swiglu(c, a), "no two halves");
    REFUSED(ggml_swiglu_split(c, a, f32(7, 5, 1, 1)), "differ");
    REFUSED(ggml_swiglu_split(c, a, NULL), "missing");
    REFUSED(ggml_glu(c, f32(8, 1, 1, 1), (enum ggml_glu_op) 50, false), "no unit 50");
}

static void test_norms(void **s) {
    (void) s;
    T *a = f32(8, 4, 6, 1);
    REFUSED(ggml_rms_norm(c, a, -1.0f), "eps");
    REFUSED(ggml_norm(c, i32(8, 4), 1e-5f), "must be F32");
    REFUSED(ggml_group_norm(c, a, 0, 1e-5f), "groups");
    REFUSED(ggml_rms_norm_back(c, a, f32(8, 4, 5, 1), 1e-5f), "differ");
    REFUSED(ggml_soft_max_ext(c, a, f32(8, 3, 1, 1), 1.0f, 0.0f), "mask");
    REFUSED(ggml_soft_max_ext(c, a, f32(7, 4, 1, 1), 1.0f, 0.0f), "mask");
    REFUSED(ggml_soft_max_ext(c, a, f32(8, 4, 4, 1), 1.0f, 0.0f), "mask");
    REFUSED(ggml_soft_max_ext(c, a, i32(8, 4), 1.0f, 0.0f), "F16 or F32");
    REFUSED(ggml_soft_max_ext(c, a, NULL, 1.0f, 8.0f), "needs a mask");
    T *y = ggml_soft_max(c, a);
    ggml_soft_max_add_sinks(y, f32(5, 1, 1, 1));
    assert_error("sinks for 6 heads");
    assert_null(y->src[2]);
    ggml_soft_max_add_sinks(a, f32(6, 1, 1, 1));
    assert_error("not a SOFT_MAX");
}

static void test_rope(void **s) {
    (void) s;
    T *a = f32(32, 4, 5, 1), *pos = i32(5, 1);
    int none[4] = {0}, some[4] = {4, 6, 6, 0};
    REFUSED(ggml_rope(c, a, pos, 34, 0), "do not fit heads of 32");
    REFUSED(ggml_rope(c, a, pos, 31, 0), "do not fit");
    REFUSED(ggml_rope(c, a, i32(6, 1), 32, 0), "positions");
    REFUSED(ggml_rope(c, a, f32(5, 1, 1, 1), 32, 0), "must be i32");
    REFUSED(ggml_rope(c, a, pos, 32, 3), "no mode 3");
    REFUSED(ggml_rope_ext(c, a, pos, NULL, 32, 0, 0, 0.0f, 1, 0, 1, 0, 0), "must be positive");
    REFUSED(ggml_rope_ext(c, a, pos, f32(10, 1, 1, 1), 32, 0, 0, 1e4f, 1, 0, 1, 0, 0), "frequency factors");
    REFUSED(ggml_rope_multi(c, a, i32(20, 1), NULL, 32, none, GGML_ROPE_TYPE_MROPE, 0, 1e4f, 1, 0, 1, 0, 0), "not all zero");
    REFUSED(ggml_rope_multi(c, a, pos, NULL, 32, some, GGML_ROPE_TYPE_MROPE, 0, 1e4f, 1, 0, 1, 0, 0), "wanted [20]");
    REFUSED(ggml_rope_set_offset(ggml_rope(c, a, pos, 16, 0), 17), "from 17 on");
    REFUSED(ggml_rope_set_offset(a, 1), "not a ROPE");
}

static void test_copies(void **s) {
    (void) s;
    T *a = f32(6, 4, 1, 1);
    REFUSED(ggml_cpy(c, a, f32(5, 5, 1, 1)), "as many elements");
    REFUSED(ggml_cpy(c, a, NULL), "no tensor to copy to");
    REFUSED(ggml_cont_2d(c, a, 5, 5), "as many elements");
    REFUSED(ggml_cast(c, a, GGML_TYPE_Q4_0), "whole blocks");
    REFUSED(ggml_cast(c, a, (enum ggml_type) 4), "unknown type");
    REFUSED(ggml_cont(c, ggml_transpose(c, typed(GGML_TYPE_Q4_0, 64, 32))), "permuted");
    REFUSED(ggml_get_rows(c, a, f32(3, 1, 1, 1)), "I32 or I64");
    REFUSED(ggml_get_rows(c, a, i32(3, 2)), "do not fit");
    REFUSED(ggml_set_rows(c, a, f32(6, 2, 1, 1), i32(3, 1)), "do not fit");
    REFUSED(ggml_set_rows(c, a, f32(5, 2, 1, 1), i32(2, 1)), "do not fit");
    REFUSED(ggml_set_rows(c, NULL, a, i32(4, 1)), "missing");
    REFUSED(ggml_get_rows_back(c, a, i32(4, 1), f32(5, 9, 1, 1)), "GET_ROWS_BACK");
    REFUSED(ggml_concat(c, a, f32(5, 4, 1, 1), 1), "differ in dimension 0");
    REFUSED(ggml_concat(c, a, a, 4), "no dimension 4");
    REFUSED(ggml_concat(c, a, typed(GGML_TYPE_F16, 6, 4), 0), "must be f32");
    REFUSED(ggml_repeat(c, f32(5, 4, 1, 1), a), "whole number of tiles");
    REFUSED(ggml_repeat_back(c, a, f32(4, 4, 1, 1)), "whole number of tiles");
    REFUSED(ggml_set_2d(c, a, f32(3, 3, 1, 1), a->nb[1], 13 * 4), "does not lie in");
    REFUSED(ggml_set_1d(c, a, f32(3, 1, 1, 1), 2), "does not lie in");
    REFUSED(ggml_set_1d(c, a, f32(3, 1, 1, 1), SIZE_MAX - 3), "does not lie in");
    REFUSED(ggml_acc(c, a, f32(6, 5, 1, 1), a->nb[1], a->nb[2], a->nb[3], 0), "does not lie in");
    REFUSED(ggml_set_1d(c, a, i32(3, 1), 0), "must be f32");
}

static void test_masks_and_reductions(void **s) {
    (void) s;
    T *a = f32(6, 4, 2, 1);
    REFUSED(ggml_tri(c, a, GGML_TRI_TYPE_LOWER), "not square");
    REFUSED(ggml_tri(c, f32(4, 4, 1, 1), (enum ggml_tri_type) 7), "no triangle");
    REFUSED(ggml_diag(c, a), "row vector");
    REFUSED(ggml_fill(c, typed(GGML_TYPE_Q8_0, 32, 1), 1.0f), "cannot be filled");
    REFUSED(ggml_argmax(c, a), "not a matrix");
    REFUSED(ggml_count_equal(c, a, a), "must be i32");
    REFUSED(ggml_sum(c, i32(6, 1)), "must be F32");
    REFUSED(ggml_top_k(c, a, 7), "7 of 6");
    REFUSED(ggml_argsort(c, a, (enum ggml_sort_order) 5), "no order 5");
    REFUSED(ggml_argsort_top_k(c, a, 0), "0 of 6");
    REFUSED(ggml_arange(c, 5, 1, 1), "no sequence");
    REFUSED(ggml_arange(c, 0, 1, 0), "no sequence");
    REFUSED(ggml_pad(c, a, -1, 0, 0, 0), "-1 behind");
    REFUSED(ggml_pad(c, typed(GGML_TYPE_Q8_0, 32, 1), 1, 0, 0, 0), "no single elements");
    REFUSED(ggml_pad_reflect_1d(c, a, 6, 0), "mirrored");
}

static void test_images(void **s) {
    (void) s;
    T *k = f32(3, 3, 4, 5), *x = f32(8, 7, 4, 1);
    REFUSED(ggml_conv_2d(c, k, f32(8, 7, 3, 1), 1, 1, 0, 0, 1, 1), "differ in channels");
    REFUSED(ggml_conv_2d(c, k, f32(2, 2, 4, 1), 1, 1, 0, 0, 1, 1), "does not fit");
    REFUSED(ggml_conv_2d(c, k, x, 0, 1, 0, 0, 1, 1), "stride 0");
    REFUSED(ggml_conv_2d_direct(c, k, x, 1, 1, -1, 0, 1, 1), "padding -1");
    REFUSED(ggml_conv_2d_direct(c, k, f32(8, 7, 3, 1), 1, 1, 0, 0, 1, 1), "differ in channels");
    REFUSED(ggml_conv_3d_direct(c, k, x, 1, 1, 1, 0, 0, 0, 1, 1, 1, 3, 1, 1), "differ in channels");
    REFUSED(ggml_conv_2d_dw_direct(c, k, x, 1, 1, 0, 0, 1, 1), "differ in channels");
    REFUSED(ggml_im2col(c, k, x, 1, 1, 0, 0, 1, 1, true, GGML_TYPE_Q8_0), "the result can be");
    REFUSED(ggml_im2col_3d(c, k, x, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, GGML_TYPE_F32), "0 channels");
    REFUSED(ggml_conv_3d(c, f32(3, 3, 2, 4), f32(8, 7, 4, 0), 4, 1, 1, 1, 0, 0, 0, 1, 1, 1), "4 channels");
    REFUSED(ggml_im2col_back(c, f32(9, 9, 1, 1), k, (int64_t[4]){8, 7, 4, 1}, 1, 1, 0, 0, 1, 1, true), "does not belong");
    REFUSED(ggml_conv_transpose_1d(c, f32(3, 4, 5, 1), f32(8, 5, 1, 1), 1, 1, 1), "padding 1");
    REFUSED(ggml_conv_transpose_1d(c, f32(3, 4, 5, 1), f32(8, 6, 1, 1), 1, 0, 1), "do not fit");
    REFUSED(ggml_conv_transpose_2d_p0(c, f32(3, 3, 5, 4), x, 0), "stride 0");
    REFUSED(ggml_col2im_1d(c, f32(10, 4, 1, 1), 2, 3, 0), "COL2IM_1D");
    REFUSED(ggml_pool_1d(c, x, GGML_OP_POOL_AVG, 9, 1, 0), "does not fit");
    REFUSED(ggml_pool_2d(c, x, (enum ggml_op_pool) 5, 2, 2, 2, 2, 0, 0), "no pooling");
    REFUSED(ggml_pool_2d(c, x, GGML_OP_POOL_MAX, 2, 2, 2, 2, 2, 0), "padding 2");
    REFUSED(ggml_pool_2d_back(c, f32(3, 3, 4, 1), x, GGML_OP_POOL_MAX, 2, 2, 2, 2, 0, 0), "does not belong");
    REFUSED(ggml_upscale(c, x, 0, GGML_SCALE_MODE_NEAREST), "below 1");
    REFUSED(ggml_interpolate(c, x, 8, 8, 4, 1, 9), "no mode");
    REFUSED(ggml_interpolate(c, x, 8, 8, 4, 1, GGML_SCALE_MODE_BICUBIC | GGML_SCALE_FLAG_ANTIALIAS), "bilinear only");
    REFUSED(ggml_interpolate(c, x, 0, 8, 4, 1, 0), "UPSCALE");
    REFUSED(ggml_timestep_embedding(c, f32(4, 1, 1, 1), 1, 100), "1 dimensions");
    REFUSED(ggml_win_part(c, x, 0), "windows of 0");
    REFUSED(ggml_win_unpart(c, f32(4, 3, 3, 5), 7, 6, 3), "do not give");
    REFUSED(ggml_get_rel_pos(c, f32(4, 8, 1, 1), 4, 4), "table");
    REFUSED(ggml_add_rel_pos(c, f32(16, 16, 2, 1), f32(4, 4, 4, 3), f32(4, 4, 4, 3)), "do not fit");
    REFUSED(ggml_map_custom1(c, x, NULL, 1, NULL), "function is missing");
}

static void nothing(T *dst, int ith, int nth, void *userdata) { (void) dst, (void) ith, (void) nth, (void) userdata; }

static void test_custom(void **s) {
    (void) s;
    T *a = f32(4, 1, 1, 1), *many[11];
    for (int i = 0; i < 11; i++) many[i] = a;
    REFUSED(ggml_custom_4d(c, GGML_TYPE_F32, 4, 1, 1, 1, many, 11, nothing, 1, NULL), "at most 10");
    REFUSED(ggml_custom_inplace(c, a, many, 10, nothing, 1, NULL), "at most 9");
    REFUSED(ggml_custom_4d(c, GGML_TYPE_F32, 4, 1, 1, 1, many, 1, nothing, 0, NULL), "0 tasks");
    REFUSED(ggml_custom_4d(c, GGML_TYPE_Q8_0, 5, 1, 1, 1, many, 1, nothing, 1, NULL), "rows of 5");
}

// ---- indices that only the data can show to be bad ----------------------------------------------------------------------------

static enum ggml_status run(T *t, int n_threads) {
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 16, false);
    ggml_build_forward_expand(g, t);
    return ggml_graph_compute_with_ctx(c, g, n_threads);
}

static void test_bad_index(void **s) {
    (void) s;
    static const int32_t bad[] = {-1, 4, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 4; i++) {
        T *a = f32(6, 4, 1, 1), *ids = i32(2, 1), *src = f32(6, 2, 1, 1), *b = f32(6, 2, 1, 1);
        ggml_set_f32(a, 1.0f);
        ggml_set_f32(src, 5.0f);
        ggml_set_f32(b, 0.0f);
        ((int32_t *) ids->data)[0] = 2;
        ((int32_t *) ids->data)[1] = bad[i];
        assert_int_equal(run(ggml_get_rows(c, a, ids), 1 + i % 2), GGML_STATUS_FAILED);
        assert_error("outside the 4 rows");
        assert_int_equal(run(ggml_set_rows(c, a, src, ids), 1 + i % 2), GGML_STATUS_FAILED);
        assert_error("outside the 4 rows");
        for (int e = 0; e < 24; e++) assert_true(((float *) a->data)[e] == (e / 6 == 2 ? 5.0f : 1.0f));
        assert_int_equal(run(ggml_get_rows_back(c, src, ids, a), 1), GGML_STATUS_FAILED);
        assert_error("outside the 4 rows");
        assert_int_equal(run(ggml_add_id(c, ggml_reshape_3d(c, b, 6, 2, 1), a, ids), 1), GGML_STATUS_FAILED);
        assert_error("outside the 4 rows");
    }
}

static void test_index_i64(void **s) {
    (void) s;
    T *a = f32(6, 4, 1, 1), *ids = ggml_new_tensor_1d(c, GGML_TYPE_I64, 1);
    ggml_set_f32(a, 1.0f);
    *(int64_t *) ids->data = (int64_t) 1 << 40;
    assert_int_equal(run(ggml_set_rows(c, a, f32(6, 1, 1, 1), ids), 1), GGML_STATUS_FAILED);
    assert_error("outside the 4 rows");
    *(int64_t *) ids->data = 3;
    T *y = ggml_get_rows(c, a, ids);
    assert_int_equal(run(y, 1), GGML_STATUS_SUCCESS);
    assert_true(((float *) y->data)[5] == 1.0f);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {TEST(test_arithmetic),
                                       TEST(test_add1),
                                       TEST(test_functions),
                                       TEST(test_norms),
                                       TEST(test_rope),
                                       TEST(test_copies),
                                       TEST(test_masks_and_reductions),
                                       TEST(test_images),
                                       TEST(test_custom),
                                       TEST(test_bad_index),
                                       TEST(test_index_i64)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
