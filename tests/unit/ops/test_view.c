// view, reshape, permute, transpose: results to the byte, and what is refused.
#include "test.h"
#include "graph/graph.h"
#include "ops/op.h"
#include "ops/verify.h"

static struct ggml_context *c;

static int begin(void **state) {
    (void) state;
    quiet();
    ggml_clear_error();
    c = ggml_init((struct ggml_init_params){.mem_size = 4 << 20, .no_alloc = true});
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

static void expect(const struct ggml_tensor *t, int64_t e0, int64_t e1, int64_t e2, int64_t e3, size_t b0, size_t b1,
                   size_t b2, size_t b3) {
    assert_false(ggml_is_error(t));
    const int64_t ne[4] = {e0, e1, e2, e3};
    const size_t nb[4] = {b0, b1, b2, b3};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(t->ne[i], ne[i]);
        assert_int_equal(t->nb[i], nb[i]);
    }
}

static void test_views(void **state) {
    (void) state;
    struct ggml_tensor *a = ggml_new_tensor_4d(c, GGML_TYPE_F32, 8, 6, 4, 2);
    expect(ggml_view_1d(c, a, 10, 8), 10, 1, 1, 1, 4, 40, 40, 40);
    expect(ggml_view_2d(c, a, 3, 5, 32, 4), 3, 5, 1, 1, 4, 32, 160, 160);
    expect(ggml_view_3d(c, a, 3, 5, 4, 32, 192, 4), 3, 5, 4, 1, 4, 32, 192, 768);
    expect(ggml_view_4d(c, a, 3, 5, 4, 2, 32, 192, 768, 4), 3, 5, 4, 2, 4, 32, 192, 768);
    expect(ggml_view_2d(c, a, 0, 5, 32, 1536), 0, 5, 1, 1, 4, 32, 160, 160);  // nothing, at the very end
    expect(ggml_view_2d(c, a, 8, 40, 16, 0), 8, 40, 1, 1, 4, 16, 640, 640);   // overlapping windows
    struct ggml_tensor *q = ggml_new_tensor_2d(c, GGML_TYPE_Q8_0, 64, 4);
    expect(ggml_view_2d(c, q, 32, 4, 68, 34), 32, 4, 1, 1, 34, 68, 272, 272);
}

static void test_refused_views(void **state) {
    (void) state;
    struct ggml_tensor *a = ggml_new_tensor_2d(c, GGML_TYPE_F32, 8, 6), *q = ggml_new_tensor_1d(c, GGML_TYPE_Q8_0, 64);
    const size_t used = ggml_used_mem(c);
    refuse(ggml_view_1d(c, NULL, 1, 0), "no tensor");
    refuse(ggml_view_1d(c, a, 49, 0), "196 bytes from offset 0");
    refuse(ggml_view_1d(c, a, 1, 192), "has 192");
    refuse(ggml_view_1d(c, a, 1, SIZE_MAX - 3), "has 192");
    refuse(ggml_view_1d(c, a, -1, 0), "-1 steps");
    refuse(ggml_view_1d(c, a, INT64_MAX, 0), "steps");
    refuse(ggml_view_2d(c, a, 8, 7, 32, 0), "has 192");
    refuse(ggml_view_2d(c, a, 8, 6, 36, 0), "has 192");
    refuse(ggml_view_2d(c, a, 8, INT64_MAX, 4, 0), "steps");
    refuse(ggml_view_2d(c, a, 8, 2, SIZE_MAX / 2, 0), "steps");
    refuse(ggml_view_1d(c, a, 1, 2), "inside an element");
    refuse(ggml_view_2d(c, a, 1, 2, 6, 0), "whole number of elements");
    refuse(ggml_view_1d(c, q, 16, 0), "blocks of 32");
    refuse(ggml_view_1d(c, q, 32, 8), "inside an element");
    assert_int_equal(ggml_used_mem(c), used);
}

static void test_reshape(void **state) {
    (void) state;
    struct ggml_tensor *a = ggml_new_tensor_2d(c, GGML_TYPE_F32, 12, 10);
    expect(ggml_reshape_1d(c, a, 120), 120, 1, 1, 1, 4, 480, 480, 480);
    expect(ggml_reshape_3d(c, a, 4, 3, 10), 4, 3, 10, 1, 4, 16, 48, 480);
    expect(ggml_reshape(c, a, ggml_new_tensor_2d(c, GGML_TYPE_I8, 60, 2)), 60, 2, 1, 1, 4, 240, 480, 480);
    refuse(ggml_reshape_2d(c, a, 11, 10), "120 elements do not fill [11, 10, 1, 1]");
    refuse(ggml_reshape_4d(c, a, INT64_MAX, INT64_MAX, 1, 1), "do not fill");
    refuse(ggml_reshape_2d(c, a, -12, -10), "negative");
    refuse(ggml_reshape_1d(c, ggml_transpose(c, a), 120), "not contiguous");
    refuse(ggml_reshape_1d(c, ggml_view_2d(c, a, 6, 10, 48, 0), 60), "not contiguous");
    refuse(ggml_reshape_1d(c, NULL, 1), "no tensor");
    refuse(ggml_reshape(c, a, NULL), "no tensor of the wanted shape");
    refuse(ggml_reshape_2d(c, ggml_new_tensor_1d(c, GGML_TYPE_Q4_0, 64), 16, 4), "blocks of 32");
}

static void test_permute(void **state) {
    (void) state;
    struct ggml_tensor *a = ggml_new_tensor_4d(c, GGML_TYPE_F32, 8, 6, 4, 2);
    expect(ggml_permute(c, a, 0, 2, 1, 3), 8, 4, 6, 2, 4, 192, 32, 768);
    expect(ggml_permute(c, a, 1, 2, 0, 3), 4, 8, 6, 2, 192, 4, 32, 768);  // dimension i goes to position axis_i
    expect(ggml_transpose(c, a), 6, 8, 4, 2, 32, 4, 192, 768);
    refuse(ggml_permute(c, a, 0, 0, 1, 2), "axes (0, 0, 1, 2)");
    refuse(ggml_permute(c, a, 0, 1, 2, 4), "axes");
    refuse(ggml_permute(c, a, -1, 1, 2, 3), "axes");
    refuse(ggml_permute(c, NULL, 0, 1, 2, 3), "no tensor");
    refuse(ggml_transpose(c, NULL), "no tensor");
}

// The heads of GPT-2 with a flat cache, as every introduction to this library draws them.
static void test_gpt2_views(void **state) {
    (void) state;
    const int64_t n = 5, past = 7, l = n + past, embd = 768, heads = 12, head = 64, context = 1024;
    struct ggml_tensor *cur = ggml_new_tensor_2d(c, GGML_TYPE_F32, 3 * embd, n);
    struct ggml_tensor *q_cur = ggml_view_2d(c, cur, embd, n, cur->nb[1], 0);
    expect(q_cur, embd, n, 1, 1, 4, 9216, 9216 * 5, 9216 * 5);
    struct ggml_tensor *q = ggml_permute(c, ggml_new_tensor_3d(c, GGML_TYPE_F32, head, heads, n), 0, 2, 1, 3);
    expect(q, head, n, heads, 1, 4, 3072, 256, 3072 * 5);
    struct ggml_tensor *k_flat = ggml_new_tensor_1d(c, GGML_TYPE_F32, embd * context);
    struct ggml_tensor *k = ggml_view_1d(c, k_flat, l * embd, 0);
    k = ggml_permute(c, ggml_reshape_3d(c, k, head, heads, l), 0, 2, 1, 3);
    expect(k, head, l, heads, 1, 4, 3072, 256, 3072 * 12);
    assert_ptr_equal(k->view_src, k_flat);
    struct ggml_tensor *v =
        ggml_permute(c, ggml_reshape_3d(c, ggml_view_1d(c, k_flat, l * embd, 0), head, heads, l), 1, 2, 0, 3);
    expect(v, l, head, heads, 1, 3072, 4, 256, 3072 * 12);
    assert_true(ggml_is_transposed(v));
}

static void test_verify(void **state) {
    (void) state;
    struct ggml_tensor *a = ggml_new_tensor_2d(c, GGML_TYPE_F32, 8, 6);
    struct ggml_tensor *t =
        ggml_transpose(c, ggml_permute(c, ggml_reshape_3d(c, ggml_view_1d(c, a, 24, 0), 2, 3, 4), 2, 0, 1, 3));
    struct ggml_cgraph *g = ggml_new_graph(c);
    ggml_build_forward_expand(g, t);
    assert_int_equal(graph_verify(g), ERR_OK);
    assert_true(ggml_graph_verify(g));
    const struct ggml_tensor good = *t;
    t->ne[1]++;
    assert_false(ggml_graph_verify(g));
    assert_int_equal(graph_verify(g), ERR_INVALID);
    *t = good;
    t->view_offs = 1000;
    assert_int_equal(graph_verify(g), ERR_INVALID);
    assert_error("at offset 1000");
    *t = good;
    t->src[0] = NULL;
    assert_int_equal(graph_verify(g), ERR_INVALID);
    assert_error("source 0 is missing");
    *t = good;
    t->src[3] = tensor_error();
    assert_int_equal(graph_verify(g), ERR_INVALID);
    assert_error("error tensor");
    *t = good;
    t->op = (enum ggml_op) 12345;
    assert_int_equal(graph_verify(g), ERR_INVALID);
    assert_error("no operation 12345");
    *t = good;
    assert_int_equal(graph_verify(g), ERR_OK);
    struct ggml_tensor *permuted = t->src[0];
    permuted->op_params[0] = 9;
    assert_int_equal(graph_verify(g), ERR_INVALID);
    assert_error("axes");
}

static void test_registry(void **state) {
    (void) state;
    assert_null(op_get(GGML_OP_COUNT));
    assert_null(op_get((enum ggml_op) - 1));
    assert_string_equal(ggml_op_name(GGML_OP_MUL_MAT), "MUL_MAT");
    assert_string_equal(ggml_op_name(GGML_OP_COUNT), "unknown");
    assert_string_equal(ggml_op_symbol(GGML_OP_RESHAPE), "reshape(x)");
    assert_string_equal(ggml_unary_op_name(GGML_UNARY_OP_GELU_ERF), "GELU_ERF");
    assert_string_equal(ggml_unary_op_name(GGML_UNARY_OP_COUNT), "unknown");
    assert_string_equal(ggml_glu_op_name(GGML_GLU_OP_SWIGLU_OAI), "SWIGLU_OAI");
    assert_string_equal(ggml_glu_op_name((enum ggml_glu_op) - 1), "unknown");
    assert_string_equal(ggml_op_desc(NULL), "unknown");
    for (int i = 0; i < GGML_OP_COUNT; i++) {
        const struct op *op = op_get((enum ggml_op) i);
        if (!op) continue;
        assert_int_equal(op->id, i);
        assert_string_equal(op->name, ggml_op_name((enum ggml_op) i));
        assert_non_null(op->symbol);
        assert_non_null(op->infer);
        assert_true((op->flags & OP_VIEW) || op->run);
    }
}

int main(void) {
#define WITH_CONTEXT(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        WITH_CONTEXT(test_views),    WITH_CONTEXT(test_refused_views), WITH_CONTEXT(test_reshape),
        WITH_CONTEXT(test_permute),  WITH_CONTEXT(test_gpt2_views),    WITH_CONTEXT(test_verify),
        WITH_CONTEXT(test_registry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
