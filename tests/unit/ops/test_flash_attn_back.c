// FLASH_ATTN_BACK against the gradients of the same attention built from products and a softmax.
#include "test.h"
#include "ggml-cpu.h"

#include <math.h>

typedef struct ggml_tensor T;

static struct ggml_context *c;

static int begin(void **state) {
    (void) state;
    quiet();
    ggml_clear_error();
    c = ggml_init((struct ggml_init_params){.mem_size = (size_t) 16 << 20});
    return 0;
}

static int end(void **state) {
    (void) state;
    ggml_free(c);
    return 0;
}

static T *numbers(int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3, float phase) {
    T *t = ggml_new_tensor_4d(c, GGML_TYPE_F32, ne0, ne1, ne2, ne3);
    for (int64_t i = 0; i < ggml_nelements(t); i++) ((float *) t->data)[i] = sinf((float) (i * i % 1013) + phase);
    return t;
}

static void compute(struct ggml_cgraph *g, int n_threads) {
    assert_int_equal(ggml_graph_compute_with_ctx(c, g, n_threads), GGML_STATUS_SUCCESS);
}

static void check(int64_t heads, int64_t heads_kv, int64_t n_query, int64_t n_kv, bool causal) {
    enum { D = 8, B = 2 };
    T *q = numbers(D, n_query, heads, B, 0), *k = numbers(D, n_kv, heads_kv, B, 1), *v = numbers(n_kv, D, heads_kv, B, 2);
    T *d = numbers(D, n_query, heads, B, 3);
    ggml_set_param(q);
    ggml_set_param(k);
    ggml_set_param(v);
    T *scores = ggml_scale(c, ggml_mul_mat(c, k, q), 1.0f / sqrtf(D));
    if (causal) scores = ggml_diag_mask_inf(c, scores, (int) (n_kv - n_query));
    T *loss = ggml_sum(c, ggml_mul(c, ggml_mul_mat(c, v, ggml_soft_max(c, scores)), d));
    ggml_set_loss(loss);
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 256, true);
    ggml_build_forward_expand(g, loss);
    ggml_build_backward_expand(c, g, NULL);
    assert_string_equal(ggml_last_error(), "");
    ggml_graph_reset(g);
    compute(g, 2);

    T *back = ggml_flash_attn_back(c, q, k, v, d, causal);
    assert_false(ggml_is_error(back));
    struct ggml_cgraph *f = ggml_new_graph(c);
    ggml_build_forward_expand(f, back);
    float *first = NULL;
    for (int n = 1; n <= 4; n++) {
        memset(back->data, 0xff, ggml_nbytes(back));
        compute(f, n);
        if (!first) {
            first = malloc(ggml_nbytes(back));
            memcpy(first, back->data, ggml_nbytes(back));
        }
        assert_memory_equal(back->data, first, ggml_nbytes(back));
    }
    const float *x = first;
    T *const of[3] = {q, k, v};
    for (int i = 0; i < 3; i++) {
        const float *expected = ggml_graph_get_grad(g, of[i])->data;
        for (int64_t j = 0; j < ggml_nelements(of[i]); j++) assert_float_equal(x[j], expected[j], 1e-5);
        x += GGML_PAD(ggml_nelements(of[i]), 4);
    }
    free(first);
}

static void test_plain(void **state) {
    (void) state;
    check(3, 3, 5, 7, false);
}

static void test_causal(void **state) {
    (void) state;
    check(2, 2, 4, 9, true);
    check(2, 2, 6, 6, true);
}

static void test_grouped(void **state) {
    (void) state;
    check(6, 2, 3, 5, true);
}

static void test_refused(void **state) {
    (void) state;
    T *q = numbers(8, 3, 2, 1, 0), *k = numbers(8, 5, 2, 1, 0), *v = numbers(5, 8, 2, 1, 0), *d = numbers(8, 3, 2, 1, 0);
    assert_false(ggml_is_error(ggml_flash_attn_back(c, q, k, v, d, true)));
    assert_true(ggml_is_error(ggml_flash_attn_back(c, q, k, k, d, true)));
    assert_error("do not fit");
    assert_true(ggml_is_error(ggml_flash_attn_back(c, q, k, v, k, true)));
    assert_true(ggml_is_error(ggml_flash_attn_back(c, k, q, numbers(3, 8, 2, 1, 0), k, true)));
    assert_error("causal");
    assert_true(ggml_is_error(ggml_flash_attn_back(c, q, k, NULL, d, true)));
    assert_error("missing");
    assert_true(ggml_is_error(ggml_flash_attn_back(c, q, ggml_transpose(c, numbers(5, 8, 2, 1, 0)), v, d, true)));
    assert_error("gaps");
}

int main(void) {
#define WITH(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {WITH(test_plain), WITH(test_causal), WITH(test_grouped), WITH(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
