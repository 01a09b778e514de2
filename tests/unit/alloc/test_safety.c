// Proof that plans are safe: graphs run in a NaN-filled buffer of exactly the planned size with guards at both ends, and
// every output has the bits of a run in which nothing shares memory. What a plan got wrong would show as NaN, as other
// bits or in a guard.
#include "alloc/gallocr.h"
#include "support/guarded.h"
#include "support/net.h"
#include "support/random_graph.h"
#include "test.h"

struct fixture {
    ggml_backend_t cpu;
    ggml_backend_dev_t dev;
};

// Compares all outputs of two runs of graphs built alike.
static void compare(struct ggml_cgraph *a, struct ggml_cgraph *b) {
    assert_int_equal(ggml_graph_n_nodes(a), ggml_graph_n_nodes(b));
    int n = 0;
    for (int i = 0; i < ggml_graph_n_nodes(a); i++) {
        struct ggml_tensor *x = ggml_graph_node(a, i), *y = ggml_graph_node(b, i);
        if (!(x->flags & GGML_TENSOR_FLAG_OUTPUT)) continue;
        assert_memory_equal(x->data, y->data, ggml_nbytes(x));
        n++;
    }
    assert_true(n > 0);
}

// Every tensor of the graph's context in memory of its own.
static ggml_backend_buffer_t apart(struct ggml_context *c) {
    ggml_backend_buffer_t b = ggml_backend_alloc_ctx_tensors_from_buft(c, ggml_backend_cpu_buffer_type());
    assert_non_null(b);
    ggml_backend_buffer_clear(b, 0xff);
    return b;
}

static void check_random(struct fixture *f, uint64_t seed, size_t max_size, ggml_backend_dev_t dev) {
    struct random_graph plain, tight;
    const int n = 10 + (int) (seed * 7 % 140);
    random_graph_build(&plain, seed, n);
    random_graph_build(&tight, seed, n);
    ggml_backend_buffer_t b = apart(plain.c);
    random_graph_set(&plain);
    assert_int_equal(ggml_backend_graph_compute(f->cpu, plain.g), GGML_STATUS_SUCCESS);

    struct guarded g;
    ggml_gallocr_t ga = ggml_gallocr_new(guarded_make(&g, max_size, dev));
    size_t planned = 0;
    ggml_gallocr_reserve_n_size(ga, tight.g, NULL, NULL, &planned);
    assert_true(ggml_gallocr_alloc_graph(ga, tight.g));
    assert_int_equal(ggml_gallocr_get_buffer_size(ga, 0), planned);
    random_graph_set(&tight);
    assert_int_equal(ggml_backend_graph_compute(f->cpu, tight.g), GGML_STATUS_SUCCESS);
    compare(plain.g, tight.g);
    ggml_gallocr_free(ga);
    assert_false(g.broken);
    assert_int_equal(g.n_alive, 0);
    ggml_backend_buffer_free(b);
    ggml_free(plain.c);
    ggml_free(tight.c);
}

static void test_random_graphs(void **state) {
    for (uint64_t seed = 0; seed < 150; seed++) check_random(*state, seed, SIZE_MAX, ((struct fixture *) *state)->dev);
}

static void test_random_any_device(void **state) {
    for (uint64_t seed = 200; seed < 260; seed++) check_random(*state, seed, SIZE_MAX, NULL);
}

static void test_random_chunks(void **state) {
    for (uint64_t seed = 300; seed < 360; seed++)
        check_random(*state, seed, 4096 + 64 * (seed % 10), ((struct fixture *) *state)->dev);
}

static void test_net(void **state) {
    struct fixture *f = *state;
    for (int n_token = 1; n_token <= 33; n_token += 8) {
        struct net n = {.n_layer = 4, .n_embd = 64, .n_head = 4, .n_ff = 96, .n_token = n_token};
        net_weights(&n);
        ggml_backend_buffer_t w = ggml_backend_alloc_ctx_tensors(n.weights, f->cpu);
        net_fill_weights(&n);
        net_build(&n);
        struct net plain = n;
        ggml_backend_buffer_t b = apart(plain.graph_ctx);
        net_set_inputs(&plain, 5);
        assert_int_equal(ggml_backend_graph_compute(f->cpu, plain.graph), GGML_STATUS_SUCCESS);
        struct guarded g;
        ggml_gallocr_t ga = ggml_gallocr_new(guarded_make(&g, SIZE_MAX, f->dev));
        net_build(&n);
        assert_true(ggml_gallocr_alloc_graph(ga, n.graph));
        assert_int_equal(ggml_gallocr_get_buffer_size(ga, 0), ga->pools[0].bound);
        net_set_inputs(&n, 5);
        assert_int_equal(ggml_backend_graph_compute(f->cpu, n.graph), GGML_STATUS_SUCCESS);
        compare(plain.graph, n.graph);
        ggml_gallocr_free(ga);
        assert_false(g.broken);
        ggml_backend_buffer_free(b);
        ggml_backend_buffer_free(w);
        ggml_free(plain.graph_ctx);
        ggml_free(n.graph_ctx);
        ggml_free(n.weights);
    }
}

struct attention {
    struct ggml_context *c;
    struct ggml_cgraph *g;
    struct ggml_tensor *x, *k, *v, *q, *a;
};

static struct attention attention_new(int n_q, int n_kv, int n_head, int n_head_kv) {
    struct attention t = {.c = ggml_init((struct ggml_init_params){1 << 20, NULL, true})};
    t.g = ggml_new_graph_custom(t.c, 64, false);
    t.x = ggml_new_tensor_3d(t.c, GGML_TYPE_F32, 64, n_head, n_q);
    t.k = ggml_new_tensor_3d(t.c, GGML_TYPE_F32, 64, n_kv, n_head_kv);
    t.v = ggml_new_tensor_3d(t.c, GGML_TYPE_F32, 64, n_kv, n_head_kv);
    ggml_set_input(t.x), ggml_set_input(t.k), ggml_set_input(t.v);
    t.q = ggml_scale(t.c,
                     ggml_concat(t.c, ggml_view_3d(t.c, t.x, 64, n_head, 1, t.x->nb[1], t.x->nb[2], 0),
                                 ggml_view_3d(t.c, t.x, 64, n_head, n_q - 1, t.x->nb[1], t.x->nb[2], t.x->nb[2]), 2),
                     0.5f);
    t.a = ggml_flash_attn_ext(t.c, ggml_permute(t.c, t.q, 0, 2, 1, 3), t.k, t.v, NULL, 0.125f, 0, 0);
    struct ggml_tensor *out = ggml_add(t.c, ggml_reshape_3d(t.c, t.a, 64, n_head, n_q), t.x);
    ggml_set_output(out);
    ggml_build_forward_expand(t.g, out);
    return t;
}

static void attention_set(struct attention *t) {
    net_fill(t->x, 1);
    net_fill(t->k, 2);
    net_fill(t->v, 3);
}

// Attention writes its result over its queries, whether threads take runs of rows or stripes of positions.
static void test_attention_in_place(void **state) {
    struct fixture *f = *state;
    static const int shapes[][4] = {{2, 700, 4, 2}, {3, 64, 8, 8}, {70, 130, 6, 2}, {200, 300, 4, 1}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct attention plain = attention_new(shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3]);
        struct attention tight = attention_new(shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3]);
        ggml_backend_buffer_t b = apart(plain.c);
        attention_set(&plain);
        assert_int_equal(ggml_backend_graph_compute(f->cpu, plain.g), GGML_STATUS_SUCCESS);
        struct guarded g;
        ggml_gallocr_t ga = ggml_gallocr_new(guarded_make(&g, SIZE_MAX, f->dev));
        assert_true(ggml_gallocr_alloc_graph(ga, tight.g));
        assert_ptr_equal(tight.a->data, tight.q->data);
        attention_set(&tight);
        for (int threads = 1; threads <= 4; threads += 3) {
            ggml_backend_cpu_set_n_threads(f->cpu, threads);
            attention_set(&tight);
            assert_int_equal(ggml_backend_graph_compute(f->cpu, tight.g), GGML_STATUS_SUCCESS);
            compare(plain.g, tight.g);
        }
        ggml_gallocr_free(ga);
        assert_false(g.broken);
        ggml_backend_buffer_free(b);
        ggml_free(plain.c);
        ggml_free(tight.c);
    }
}

static int set_up(void **state) {
    static struct fixture f;
    f.cpu = ggml_backend_cpu_init();
    f.dev = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    ggml_backend_free(((struct fixture *) *state)->cpu);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_graphs),      cmocka_unit_test(test_random_any_device),
        cmocka_unit_test(test_random_chunks),      cmocka_unit_test(test_net),
        cmocka_unit_test(test_attention_in_place),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
