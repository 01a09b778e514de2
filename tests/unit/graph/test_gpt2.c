// The field's classic example, to the byte: attention of GPT-2 (12 heads of 64) for N new tokens after n_past, L = n_past + N,
// with keys and values in a flat cache. docs/tensors.md explains it.
#include "test.h"
#include "ggml-cpu.h"
#include "graph/graph.h"

enum { EMBD = 768, HEADS = 12, HEAD = 64, CONTEXT = 1024, N = 5, PAST = 7, L = N + PAST };

typedef struct ggml_tensor T;

static struct ggml_context *c;
static T *cache_k, *cache_v, *qkv;

static int begin(void **state) {
    (void) state;
    quiet();
    ggml_clear_error();
    c = ggml_init((struct ggml_init_params){.mem_size = 1 << 20, .no_alloc = true});
    qkv = ggml_new_tensor_2d(c, GGML_TYPE_F32, 3 * EMBD, N);
    cache_k = ggml_new_tensor_1d(c, GGML_TYPE_F32, EMBD * CONTEXT);
    cache_v = ggml_new_tensor_1d(c, GGML_TYPE_F32, EMBD * CONTEXT);
    return 0;
}

static int end(void **state) {
    (void) state;
    ggml_free(c);
    return 0;
}

static void expect(const T *t, int64_t e0, int64_t e1, int64_t e2, size_t b0, size_t b1, size_t b2) {
    assert_false(ggml_is_error(t));
    assert_true(t->ne[0] == e0 && t->ne[1] == e1 && t->ne[2] == e2 && t->ne[3] == 1);
    assert_int_equal(t->nb[0], b0);
    assert_int_equal(t->nb[1], b1);
    assert_int_equal(t->nb[2], b2);
}

static T *query(void) {
    T *cur = ggml_view_2d(c, qkv, EMBD, N, qkv->nb[1], 0);
    expect(cur, EMBD, N, 1, 4, 9216, 9216 * N);
    T *q = ggml_permute(c, ggml_cont_3d(c, cur, HEAD, HEADS, N), 0, 2, 1, 3);
    expect(q, HEAD, N, HEADS, 4, 3072, 256);
    return q;
}

// The first L rows of a flat cache as heads.
static T *heads_of(T *cache) { return ggml_reshape_3d(c, ggml_view_1d(c, cache, L * EMBD, 0), HEAD, HEADS, L); }

static T *keys(void) {
    T *k = ggml_permute(c, heads_of(cache_k), 0, 2, 1, 3);
    expect(k, HEAD, L, HEADS, 4, 3072, 256);
    assert_ptr_equal(k->view_src, cache_k);  // no copy was made on the way
    return k;
}

static void test_shapes(void **state) {
    (void) state;
    T *scores = ggml_mul_mat(c, keys(), query());  // keys go in as they lie
    expect(scores, L, N, HEADS, 4, 4 * L, 4 * L * N);
    T *p = ggml_soft_max(c, ggml_diag_mask_inf(c, ggml_scale(c, scores, 0.125f), PAST));
    expect(p, L, N, HEADS, 4, 4 * L, 4 * L * N);

    T *v = ggml_permute(c, heads_of(cache_v), 1, 2, 0, 3);
    expect(v, L, HEAD, HEADS, 3072, 4, 256);
    assert_ptr_equal(v->view_src, cache_v);
    assert_true(ggml_is_error(ggml_mul_mat(c, v, p)));  // values do not: their rows are no rows of memory
    assert_true(ggml_last_error()[0] != '\0');
    T *v_trans = ggml_cont_3d(c, v, L, HEAD, HEADS);
    expect(v_trans, L, HEAD, HEADS, 4, 4 * L, 256 * L);
    T *mixed = ggml_mul_mat(c, v_trans, p);
    expect(mixed, HEAD, N, HEADS, 4, 256, 256 * N);
    T *merged = ggml_cont_2d(c, ggml_permute(c, mixed, 0, 2, 1, 3), EMBD, N);
    expect(merged, EMBD, N, 1, 4, 3072, 3072 * N);
}

// New keys are copied to their place in the cache through a view of it.
static void test_cache_write(void **state) {
    (void) state;
    T *cur = ggml_view_2d(c, qkv, EMBD, N, qkv->nb[1], EMBD * sizeof(float));
    T *place = ggml_view_1d(c, cache_k, N * EMBD, PAST * EMBD * sizeof(float));
    T *copy = ggml_cpy(c, cur, place);
    assert_false(ggml_is_error(copy));
    assert_ptr_equal(copy->view_src, cache_k);
    assert_int_equal(copy->view_offs, PAST * EMBD * sizeof(float));
}

// By hand on small numbers: the same graph computes what the formula says.
static void test_values(void **state) {
    (void) state;
    struct ggml_context *m = ggml_init((struct ggml_init_params){.mem_size = 1 << 20});
    enum { D = 2, H = 2, LEN = 3 };
    T *k = ggml_new_tensor_3d(m, GGML_TYPE_F32, D, H, LEN), *q = ggml_new_tensor_3d(m, GGML_TYPE_F32, D, H, 1);
    for (int i = 0; i < D * H * LEN; i++) ((float *) k->data)[i] = (float) (i + 1);
    for (int i = 0; i < D * H; i++) ((float *) q->data)[i] = (float) (1 - i);
    T *s = ggml_mul_mat(m, ggml_permute(m, k, 0, 2, 1, 3), ggml_permute(m, q, 0, 2, 1, 3));
    struct ggml_cgraph *g = ggml_new_graph(m);
    ggml_build_forward_expand(g, s);
    assert_int_equal(ggml_graph_compute_with_ctx(m, g, 2), GGML_STATUS_SUCCESS);
    for (int h = 0; h < H; h++) {
        for (int l = 0; l < LEN; l++) {
            float sum = 0;
            for (int d = 0; d < D; d++) sum += (float) (l * D * H + h * D + d + 1) * (float) (1 - (h * D + d));
            assert_float_equal(((float *) s->data)[h * LEN + l], sum, 1e-5);
        }
    }
    ggml_free(m);
}

int main(void) {
#define WITH(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {WITH(test_shapes), WITH(test_cache_write), WITH(test_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
