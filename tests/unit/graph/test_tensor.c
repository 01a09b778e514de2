// Tensors: shapes that are refused, names, flags, the error tensor, views of views.
#include "test.h"
#include "graph/graph.h"

static struct ggml_context *c;

static int begin(void **state) {
    (void) state;
    quiet();
    ggml_clear_error();
    c = ggml_init((struct ggml_init_params){.mem_size = 1 << 20, .no_alloc = true});
    return 0;
}

static int end(void **state) {
    (void) state;
    ggml_free(c);
    return 0;
}

static void refuse(struct ggml_tensor *t, const char *sentence) {
    assert_true(ggml_is_error(t));
    assert_error(sentence);
}

static void test_refused_shapes(void **state) {
    (void) state;
    const int64_t ne[5] = {1, 1, 1, 1, 1};
    refuse(ggml_new_tensor(c, GGML_TYPE_F32, 0, ne), "0 dimensions");
    refuse(ggml_new_tensor(c, GGML_TYPE_F32, 5, ne), "5 dimensions");
    refuse(ggml_new_tensor_1d(c, (enum ggml_type) 4, 32), "no element type 4");
    refuse(ggml_new_tensor_1d(c, (enum ggml_type) - 1, 32), "no element type");
    refuse(ggml_new_tensor_1d(c, GGML_TYPE_COUNT, 32), "no element type");
    refuse(ggml_new_tensor_2d(c, GGML_TYPE_F32, 4, -1), "negative");
    refuse(ggml_new_tensor_1d(c, GGML_TYPE_Q4_0, 33), "blocks of 32");
    refuse(ggml_new_tensor_1d(c, GGML_TYPE_F32, INT64_MAX), "larger than 64 bits");
    refuse(ggml_new_tensor_4d(c, GGML_TYPE_I8, 1 << 30, 1 << 30, 1 << 30, 1), "larger than 64 bits");
    refuse(ggml_dup_tensor(c, NULL), "no tensor");
    refuse(ggml_view_tensor(c, NULL), "no tensor");
    assert_int_equal(ggml_used_mem(c), 0);
}

static void test_layout(void **state) {
    (void) state;
    struct ggml_tensor *t = ggml_new_tensor_3d(c, GGML_TYPE_Q4_0, 64, 3, 5);
    assert_int_equal(t->nb[0], 18);
    assert_int_equal(t->nb[1], 36);
    assert_int_equal(t->nb[2], 108);
    assert_int_equal(t->nb[3], 540);
    assert_int_equal(t->ne[3], 1);
    assert_int_equal(ggml_nbytes(t), 540);
    struct ggml_tensor *empty = ggml_new_tensor_2d(c, GGML_TYPE_F32, 0, 5);
    assert_int_equal(ggml_nbytes(empty), 0);
    assert_true(ggml_is_empty(empty));
}

static void test_names(void **state) {
    (void) state;
    struct ggml_tensor *t = ggml_new_tensor_1d(c, GGML_TYPE_F32, 1);
    char longer[100];
    memset(longer, 'n', 99);
    longer[99] = '\0';
    assert_string_equal(ggml_get_name(t), "");
    assert_int_equal(strlen(ggml_set_name(t, longer)->name), 63);
    assert_string_equal(ggml_format_name(t, "%s_%d", "w", 3)->name, "w_3");
    assert_string_equal(ggml_format_name(t, "%s+", t->name)->name, "w_3+");
    assert_string_equal(ggml_set_name(t, t->name + 2)->name, "3+");
    assert_string_equal(ggml_set_name(t, NULL)->name, "");
    tensor_name_number(t, "node_", 0);
    assert_string_equal(t->name, "node_0");
    tensor_name_number(t, "node_", 1203045);
    assert_string_equal(t->name, "node_1203045");
    tensor_name_from(t, longer, longer, " (view)");
    assert_int_equal(strlen(t->name), 63);
    assert_null(ggml_set_name(NULL, "x"));
    assert_string_equal(ggml_get_name(NULL), "");
}

static void test_flags(void **state) {
    (void) state;
    struct ggml_tensor *t = ggml_new_tensor_1d(c, GGML_TYPE_F32, 1);
    ggml_set_input(t);
    ggml_set_output(t);
    ggml_set_param(t);
    ggml_set_loss(t);
    assert_int_equal(t->flags,
                     GGML_TENSOR_FLAG_INPUT | GGML_TENSOR_FLAG_OUTPUT | GGML_TENSOR_FLAG_PARAM | GGML_TENSOR_FLAG_LOSS);
    struct ggml_tensor *wide = ggml_new_tensor_1d(c, GGML_TYPE_F32, 2);
    ggml_set_loss(wide);
    assert_error("a loss is one F32 value");
    struct ggml_tensor *result = ggml_reshape_2d(c, wide, 1, 2);
    ggml_set_param(result);
    assert_error("no operation writes");
    assert_int_equal(wide->flags | result->flags, 0);
    ggml_set_input(NULL);
}

static void test_error_tensor(void **state) {
    (void) state;
    struct ggml_tensor *e = tensor_error();
    const struct ggml_tensor before = *e;
    assert_true(ggml_is_error(e));
    assert_false(ggml_is_error(NULL));
    ggml_set_name(e, "x");
    ggml_format_name(e, "y");
    ggml_set_input(e);
    ggml_set_output(e);
    ggml_set_param(e);
    ggml_set_loss(e);
    ggml_set_zero(e);
    assert_ptr_equal(ggml_view_tensor(c, e), e);
    assert_ptr_equal(ggml_dup_tensor(c, e), e);
    assert_ptr_equal(ggml_view_1d(c, e, 1, 0), e);
    assert_ptr_equal(ggml_view_4d(c, e, 1, 1, 1, 1, 4, 4, 4, 0), e);
    assert_ptr_equal(ggml_reshape_1d(c, e, 1), e);
    assert_ptr_equal(ggml_reshape(c, ggml_new_tensor_1d(c, GGML_TYPE_F32, 1), e), e);
    assert_ptr_equal(ggml_permute(c, e, 0, 1, 2, 3), e);
    assert_ptr_equal(ggml_transpose(c, e), e);
    assert_int_equal(ggml_nbytes(e), 4);
    assert_int_equal(ggml_nelements(e), 1);
    assert_memory_equal(e, &before, sizeof before);
}

static void test_views_of_views(void **state) {
    (void) state;
    struct ggml_tensor *a = ggml_new_tensor_2d(c, GGML_TYPE_F32, 16, 8);
    struct ggml_tensor *v = ggml_view_2d(c, a, 8, 4, a->nb[1], 2 * a->nb[1] + 16);
    struct ggml_tensor *w = ggml_view_1d(c, v, 3, v->nb[1] + 4);
    assert_ptr_equal(v->view_src, a);
    assert_ptr_equal(w->view_src, a);
    assert_int_equal(w->view_offs, 3 * a->nb[1] + 20);
    assert_ptr_equal(w->src[0], v);
    static float memory[128];
    a->data = memory;
    struct ggml_tensor *x = ggml_view_1d(c, v, 3, 4);
    assert_ptr_equal(x->data, (char *) memory + 2 * a->nb[1] + 20);
}

static void test_unravel(void **state) {
    (void) state;
    const struct ggml_tensor *t = ggml_new_tensor_4d(c, GGML_TYPE_F32, 5, 4, 3, 2);
    for (int64_t i = 0; i < 120; i++) {
        int64_t k[4];
        ggml_unravel_index(t, i, &k[0], &k[1], &k[2], &k[3]);
        assert_int_equal(k[0] + 5 * (k[1] + 4 * (k[2] + 3 * k[3])), i);
        assert_true(k[0] < 5 && k[1] < 4 && k[2] < 3 && k[3] < 2);
    }
    ggml_unravel_index(t, 7, NULL, NULL, NULL, NULL);
}

static void test_typed_access(void **state) {
    (void) state;
    struct ggml_tensor *t = ggml_new_tensor_1d(c, GGML_TYPE_F16, 1);
    assert_null(ggml_get_data_f32(t));
    assert_error("is of type f16");
    assert_null(ggml_get_data(NULL));
    assert_int_equal(ggml_get_unary_op(t), GGML_UNARY_OP_COUNT);
    assert_error("element-wise function");
    assert_int_equal(ggml_get_glu_op(t), GGML_GLU_OP_COUNT);
    assert_error("gated unit");
}

// NULL is what a look-up by name gives: no size, no shape.
static void test_no_tensor(void **state) {
    (void) state;
    const struct ggml_tensor *t = ggml_new_tensor_1d(c, GGML_TYPE_F32, 1), *none = ggml_get_tensor(c, "no such tensor");
    assert_null(none);
    assert_int_equal(ggml_nelements(none), 0);
    assert_int_equal(ggml_nrows(none), 0);
    assert_int_equal(ggml_nbytes(none), 0);
    assert_int_equal(ggml_nbytes_pad(none), 0);
    assert_int_equal(ggml_element_size(none), 0);
    assert_int_equal(ggml_n_dims(none), 0);
    assert_false(ggml_is_contiguous(none) || ggml_is_contiguous_rows(none) || ggml_is_contiguous_channels(none));
    assert_false(ggml_is_contiguously_allocated(none) || ggml_is_empty(none) || ggml_is_view(none) || ggml_is_scalar(none));
    assert_false(ggml_is_transposed(none) || ggml_is_permuted(none) || ggml_is_vector(none) || ggml_is_matrix(none) ||
                 ggml_is_3d(none));
    assert_false(ggml_are_same_shape(t, none) || ggml_are_same_stride(none, t) || ggml_can_repeat(none, t) ||
                 ggml_can_repeat(t, none));
    // a graph that no context can hold
    assert_true(ggml_graph_overhead_custom(SIZE_MAX, true) > SIZE_MAX / 4);
    assert_null(ggml_new_graph_custom(c, SIZE_MAX, true));
    assert_error("nodes asked for");
}

int main(void) {
#define WITH_CONTEXT(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        WITH_CONTEXT(test_refused_shapes), WITH_CONTEXT(test_layout),       WITH_CONTEXT(test_names),
        WITH_CONTEXT(test_flags),          WITH_CONTEXT(test_error_tensor), WITH_CONTEXT(test_views_of_views),
        WITH_CONTEXT(test_unravel),        WITH_CONTEXT(test_typed_access), WITH_CONTEXT(test_no_tensor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
