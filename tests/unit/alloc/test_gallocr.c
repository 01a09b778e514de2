// The graph allocator's rules: what is reserved, what fits, what may share memory, several buffers and pieces, failures.
#include "alloc/gallocr.h"
#include "support/alloc.h"
#include "support/guarded.h"
#include "support/net.h"
#include "test.h"

static struct ggml_context *context(void) { return ggml_init((struct ggml_init_params){1 << 20, NULL, true}); }

static struct ggml_tensor *input(struct ggml_context *c, int64_t n) {
    struct ggml_tensor *t = ggml_new_tensor_1d(c, GGML_TYPE_F32, n);
    ggml_set_input(t);
    return t;
}

// A chain of `extra` steps; what follows may be wired otherwise with as many nodes.
struct chain {
    struct ggml_context *c;
    struct ggml_cgraph *g;
    struct ggml_tensor *x, *y, *mid;
};

static struct chain chain_new(int64_t n, int extra, bool crossed) {
    struct chain h = {.c = context()};
    h.g = ggml_new_graph_custom(h.c, 128, false);
    h.x = input(h.c, n);
    struct ggml_tensor *a = ggml_relu(h.c, h.x), *b = ggml_sum(h.c, a), *t = a;
    h.mid = a;
    ggml_build_forward_expand(h.g, b);
    for (int i = 0; i < extra; i++) t = ggml_scale(h.c, t, 2.0f);
    h.y = crossed ? ggml_add(h.c, t, a) : ggml_add(h.c, t, b);
    ggml_set_output(h.y);
    ggml_build_forward_expand(h.g, h.y);
    return h;
}

static bool planned_again(ggml_gallocr_t ga, struct ggml_cgraph *g) {
    ga->tries = -1;
    assert_true(ggml_gallocr_alloc_graph(ga, g));
    return ga->tries != -1;
}

static void test_reuse(void **state) {
    (void) state;
    struct chain big = chain_new(1000, 4, false), same = chain_new(1000, 4, false), small = chain_new(10, 4, false);
    struct chain larger = chain_new(1001 * 8, 4, false), crossed = chain_new(400, 4, true), longer = chain_new(10, 5, false);
    ggml_gallocr_t ga = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    assert_true(ggml_gallocr_reserve(ga, big.g));
    assert_null(big.y->data);
    const size_t size = ggml_gallocr_get_buffer_size(ga, 0);
    assert_false(planned_again(ga, big.g));
    assert_non_null(big.y->data);
    assert_false(planned_again(ga, big.g));     // the same tensors, allocated already
    assert_false(planned_again(ga, same.g));    // another graph of that shape
    assert_false(planned_again(ga, small.g));   // nothing larger than in its slot
    assert_true(planned_again(ga, crossed.g));  // as many nodes, wired otherwise: other lifetimes
    assert_true(planned_again(ga, longer.g));   // another number of nodes
    assert_true(planned_again(ga, big.g));
    assert_int_equal(ggml_gallocr_get_buffer_size(ga, 0), size);
    assert_true(planned_again(ga, larger.g));
    assert_true(ggml_gallocr_get_buffer_size(ga, 0) > size);
    ggml_gallocr_free(ga);
    struct chain *all[] = {&big, &same, &small, &larger, &crossed, &longer};
    for (size_t i = 0; i < 6; i++) ggml_free(all[i]->c);
}

// Two shapes in turn, as prompts and generation: each keeps its plan.
static void test_taking_turns(void **state) {
    (void) state;
    ggml_gallocr_t ga = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    struct chain prompt = chain_new(1000, 6, false), token = chain_new(10, 4, false);
    assert_true(ggml_gallocr_reserve(ga, prompt.g));
    assert_true(ggml_gallocr_reserve(ga, token.g));
    assert_true(ggml_gallocr_reserve(ga, prompt.g));
    for (int i = 0; i < 3; i++) {
        struct chain p = chain_new(1000 - i, 6, false), t = chain_new(10 - i, 4, false);
        assert_false(planned_again(ga, p.g));
        assert_false(planned_again(ga, t.g));
        assert_ptr_equal(p.y->buffer, t.y->buffer);
        ggml_free(p.c);
        ggml_free(t.c);
    }
    struct chain large = chain_new(5000, 6, false), t = chain_new(10, 4, false), more = chain_new(20, 4, false);
    assert_true(planned_again(ga, large.g));  // moves the buffer, so the other plan's addresses are void
    assert_true(planned_again(ga, t.g));
    assert_true(planned_again(ga, more.g));  // takes the place of the plan for its own shape
    assert_false(planned_again(ga, large.g));
    struct chain *all[] = {&prompt, &token, &large, &t, &more};
    ggml_gallocr_free(ga);
    for (size_t i = 0; i < 5; i++) ggml_free(all[i]->c);
}

static void test_several_buffers(void **state) {
    (void) state;
    struct chain a = chain_new(100, 3, false), b = chain_new(100, 3, false), c = chain_new(10000, 3, false),
                 crossed = chain_new(20, 3, true);
    struct guarded g[2];
    ggml_backend_buffer_type_t types[2] = {guarded_make(&g[0], SIZE_MAX, NULL), guarded_make(&g[1], SIZE_MAX, NULL)};
    ggml_gallocr_t ga = ggml_gallocr_new_n(types, 2);
    int ids[64], leafs[4] = {0};
    for (int i = 0; i < 64; i++) ids[i] = i % 2;
    size_t sizes[2] = {0};
    ggml_gallocr_reserve_n_size(ga, a.g, ids, leafs, sizes);
    assert_true(sizes[0] > 0 && sizes[1] > 0);
    assert_int_equal(g[0].n_made + g[1].n_made, 0);
    assert_true(ggml_gallocr_reserve_n(ga, a.g, ids, leafs));
    assert_int_equal(ggml_gallocr_get_buffer_size(ga, 0), sizes[0]);
    assert_int_equal(ggml_gallocr_get_buffer_size(ga, 1), sizes[1]);
    assert_true(ggml_gallocr_alloc_graph(ga, a.g));
    for (int i = 0; i < ggml_graph_n_nodes(a.g); i++) {
        if (!ggml_graph_node(a.g, i)->view_src)
            assert_ptr_equal(ggml_backend_buffer_get_type(ggml_graph_node(a.g, i)->buffer), types[i % 2]);
    }
    assert_true(ggml_gallocr_alloc_graph(ga, b.g));
    assert_false(ggml_gallocr_alloc_graph(ga, c.g));  // only a single buffer re-reserves by itself
    assert_error("reserve again");
    assert_true(ggml_gallocr_alloc_graph(ga, crossed.g));  // wired otherwise, but it fits what is there
    ids[1] = 7;
    assert_false(ggml_gallocr_reserve_n(ga, c.g, ids, leafs));
    assert_error("buffer 7 of 2");
    ggml_gallocr_free(ga);
    assert_int_equal(g[0].n_alive + g[1].n_alive, 0);
    struct chain *all[] = {&a, &b, &c, &crossed};
    for (size_t i = 0; i < 4; i++) ggml_free(all[i]->c);
}

// reports.md 163: sizes that move between pieces while the total stays the same.
static void test_pieces(void **state) {
    (void) state;
    ggml_backend_t cpu = ggml_backend_cpu_init();
    const int64_t parts[][2] = {{60, 40}, {40, 60}, {70, 30}, {100, 1}, {1, 100}, {60, 40}};
    struct guarded g;
    ggml_gallocr_t ga = ggml_gallocr_new(guarded_make(&g, 104 * 32, NULL));
    for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++) {
        struct ggml_context *c = context();
        struct ggml_cgraph *gf = ggml_new_graph_custom(c, 32, false);
        struct ggml_tensor *a = input(c, 8 * parts[k][0]), *b = input(c, 8 * parts[k][1]);
        struct ggml_tensor *x = ggml_sum(c, ggml_sqr(c, a)), *y = ggml_sum(c, ggml_sqr(c, b)), *z = ggml_add(c, x, y);
        ggml_set_output(z);
        ggml_build_forward_expand(gf, z);
        assert_true(ggml_gallocr_alloc_graph(ga, gf));
        float one[1000];
        for (int i = 0; i < 1000; i++) one[i] = 1.0f;
        ggml_backend_tensor_set(a, one, 0, ggml_nbytes(a));
        ggml_backend_tensor_set(b, one, 0, ggml_nbytes(b));
        assert_int_equal(ggml_backend_graph_compute(cpu, gf), GGML_STATUS_SUCCESS);
        float sum;
        ggml_backend_tensor_get(z, &sum, 0, sizeof(sum));
        assert_float_equal(sum, 8.0f * (float) (parts[k][0] + parts[k][1]), 1e-6f);
        for (int i = 0; i < ggml_graph_n_nodes(gf); i++) {
            const struct ggml_tensor *t = ggml_graph_node(gf, i);
            assert_true((char *) t->data + ggml_nbytes(t) <=
                        (char *) ggml_backend_buffer_get_base(t->buffer) + ggml_backend_buffer_get_size(t->buffer));
        }
        ggml_free(c);
    }
    assert_true(g.n_made > 1);
    ggml_gallocr_free(ga);
    assert_false(g.broken);
    ggml_backend_free(cpu);
}

static void test_tensor_too_large(void **state) {
    (void) state;
    struct guarded g;
    ggml_backend_buffer_type_t type = guarded_make(&g, 1024, NULL);
    struct ggml_context *c = context();
    struct ggml_tensor *small = ggml_new_tensor_1d(c, GGML_TYPE_F32, 10),
                       *large = ggml_new_tensor_1d(c, GGML_TYPE_F32, 1000);
    (void) large;
    assert_null(ggml_backend_alloc_ctx_tensors_from_buft(c, type));
    assert_error("4000 bytes");
    assert_null(small->data);
    assert_int_equal(g.n_alive, 0);
    assert_int_equal(ggml_backend_alloc_ctx_tensors_from_buft_size(c, type), 0);
    ggml_clear_error();
    ggml_free(c);
    // many that fit one by one: several buffers behind one handle
    c = context();
    struct ggml_tensor *t[10];
    for (int i = 0; i < 10; i++) t[i] = ggml_new_tensor_1d(c, GGML_TYPE_F32, 100);
    const size_t size = ggml_backend_alloc_ctx_tensors_from_buft_size(c, type);
    ggml_backend_buffer_t b = ggml_backend_alloc_ctx_tensors_from_buft(c, type);
    assert_non_null(b);
    assert_int_equal(ggml_backend_buffer_get_size(b), size);
    assert_int_equal(g.n_alive, 5);
    ggml_backend_buffer_set_usage(b, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    for (int i = 0; i < 10; i++)
        assert_int_equal(ggml_backend_buffer_get_usage(t[i]->buffer), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    ggml_backend_buffer_clear(b, 0);
    assert_true(((float *) t[9]->data)[99] == 0.0f);
    ggml_backend_buffer_free(b);
    assert_int_equal(g.n_alive, 0);
    // in a graph
    struct chain h = chain_new(1000, 1, false);
    ggml_gallocr_t ga = ggml_gallocr_new(type);
    assert_false(ggml_gallocr_reserve(ga, h.g));
    assert_error("exceeds the largest buffer");
    ggml_gallocr_free(ga);
    ggml_free(h.c);
    ggml_free(c);
}

// reports.md 161: an input that has memory in one graph and none in the next, and back.
static void test_placed_and_not(void **state) {
    (void) state;
    ggml_gallocr_t ga = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    ggml_backend_buffer_t own = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), 4096);
    for (int i = 0; i < 4; i++) {
        struct chain h = chain_new(100, 2, false);
        if (i % 2)
            assert_int_equal(ggml_backend_tensor_alloc(own, h.x, ggml_backend_buffer_get_base(own)), GGML_STATUS_SUCCESS);
        assert_true(ggml_gallocr_alloc_graph(ga, h.g));
        assert_true((h.x->buffer == own) == (i % 2 == 1));
        assert_true(h.y->buffer != own && h.y->data);
        ggml_free(h.c);
    }
    ggml_backend_buffer_free(own);
    ggml_gallocr_free(ga);
}

// reports.md 154: the result of one graph read by the next one of the same allocator, not computed again.
static void test_result_of_earlier_graph(void **state) {
    (void) state;
    ggml_backend_t cpu = ggml_backend_cpu_init();
    ggml_gallocr_t ga = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    struct chain h = chain_new(64, 6, true);
    assert_true(ggml_gallocr_alloc_graph(ga, h.g));
    float x[64], y[64], z[64];
    for (int i = 0; i < 64; i++) x[i] = (float) i;
    ggml_backend_tensor_set(h.x, x, 0, sizeof(x));
    assert_int_equal(ggml_backend_graph_compute(cpu, h.g), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get(h.y, y, 0, sizeof(y));
    struct ggml_context *c = context();
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 32, false);
    struct ggml_tensor *a = ggml_sqr(c, h.y), *b = ggml_sqrt(c, a), *d = ggml_add(c, b, h.y);
    ggml_set_output(d);
    struct ggml_tensor *nodes[] = {a, b, d};
    for (int i = 0; i < 3; i++) {
        nodes[i]->flags |= GGML_TENSOR_FLAG_COMPUTE;
        ggml_graph_add_node(g, nodes[i]);
    }
    assert_true(ggml_gallocr_alloc_graph(ga, g));
    assert_int_equal(ggml_backend_graph_compute(cpu, g), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get(d, z, 0, sizeof(z));
    for (int i = 0; i < 64; i++) assert_float_equal(z[i], 2 * y[i], 1e-3f);
    ggml_free(c);
    ggml_free(h.c);
    ggml_gallocr_free(ga);
    ggml_backend_free(cpu);
}

static bool apart(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    const char *p = a->data, *q = b->data;
    return p + ggml_nbytes(a) <= q || q + ggml_nbytes(b) <= p;
}

// An input that nothing reads keeps memory of its own: its program may write to it. So does a result that nothing reads.
static void test_unread(void **state) {
    (void) state;
    struct ggml_context *c = context();
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 32, false);
    struct ggml_tensor *x = input(c, 100), *idle = input(c, 100), *side = ggml_neg(c, x), *t = x;
    ggml_build_forward_expand(g, idle);
    ggml_build_forward_expand(g, side);
    struct ggml_tensor *steps[6];
    for (int i = 0; i < 6; i++) ggml_build_forward_expand(g, steps[i] = t = ggml_soft_max(c, t));
    ggml_gallocr_t ga = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    assert_true(ggml_gallocr_alloc_graph(ga, g));
    assert_non_null(idle->data);
    assert_true(apart(idle, x) && apart(idle, side));
    for (int i = 0; i < 6; i++) assert_true(apart(idle, steps[i]) && apart(side, steps[i]));
    for (int i = 2; i < 6; i++) assert_ptr_equal(steps[i]->data, steps[1]->data);  // in place all the way
    ggml_gallocr_free(ga);
    ggml_free(c);
}

static void test_views(void **state) {
    (void) state;
    struct ggml_context *c = context();
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 32, false);
    struct ggml_tensor *x = input(c, 64), *a = ggml_exp(c, x);
    struct ggml_tensor *v = ggml_view_1d(c, a, 16, 64), *w = ggml_reshape_2d(c, v, 4, 4), *n = ggml_neg(c, w);
    struct ggml_tensor *late = ggml_add(c, ggml_sum(c, n), ggml_sum(c, ggml_sqr(c, a)));
    ggml_build_forward_expand(g, n);
    ggml_build_forward_expand(g, late);
    ggml_gallocr_t ga = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    assert_true(ggml_gallocr_alloc_graph(ga, g));
    assert_ptr_equal(v->data, (char *) a->data + 64);
    assert_ptr_equal(w->data, v->data);
    assert_ptr_equal(w->buffer, a->buffer);
    assert_true(apart(n, a));  // a is read again
    ggml_gallocr_free(ga);
    ggml_free(c);
}

// x + transpose(x) must not be written over x: the transposed view reads other elements.
static void test_read_twice(void **state) {
    (void) state;
    struct ggml_context *c = context();
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 32, false);
    struct ggml_tensor *x = ggml_new_tensor_2d(c, GGML_TYPE_F32, 8, 8);
    ggml_set_input(x);
    struct ggml_tensor *a = ggml_exp(c, x), *s = ggml_mul(c, a, ggml_transpose(c, a)), *d = ggml_mul(c, s, s);
    ggml_build_forward_expand(g, d);
    ggml_gallocr_t ga = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    assert_true(ggml_gallocr_alloc_graph(ga, g));
    assert_true(apart(a, s));
    assert_ptr_equal(d->data, s->data);  // s * s is safe
    ggml_gallocr_free(ga);
    ggml_free(c);
}

// A buffer that cannot be had: false, and a smaller graph works afterwards.
static void test_refused(void **state) {
    (void) state;
    struct guarded gd;
    struct chain a = chain_new(100, 3, false), b = chain_new(9999, 3, false), d = chain_new(100, 3, false);
    ggml_gallocr_t ga = ggml_gallocr_new(guarded_make(&gd, SIZE_MAX, NULL));
    assert_true(ggml_gallocr_alloc_graph(ga, a.g));
    gd.refuse = true;
    assert_false(ggml_gallocr_alloc_graph(ga, b.g));
    gd.refuse = false;
    assert_true(ggml_gallocr_alloc_graph(ga, d.g));
    ggml_gallocr_free(ga);
    assert_int_equal(gd.n_alive, 0);
    ggml_free(a.c);
    ggml_free(b.c);
    ggml_free(d.c);
    ggml_clear_error();
}

// Every allocation made to fail in turn: false each time, nothing leaks, and the next attempt works.
static void test_faults(void **state) {
    (void) state;
    if (!ALLOC_COUNTED) skip();
    struct guarded gd;
    ggml_backend_buffer_type_t types[2] = {guarded_make(&gd, 2048, NULL), ggml_backend_cpu_buffer_type()};
    int ids[64], leafs[4] = {0};
    for (int i = 0; i < 64; i++) ids[i] = i % 2;
    for (int k = 1; k < 200; k++) {
        struct chain h = chain_new(100, 3, false);
        const int64_t live = alloc_live;
        alloc_start(k);
        ggml_gallocr_t ga = ggml_gallocr_new_n(types, 2);
        const bool ok = ga && ggml_gallocr_reserve_n(ga, h.g, ids, leafs) && ggml_gallocr_alloc_graph(ga, h.g);
        const int64_t n = alloc_stop();
        ggml_gallocr_free(ga);
        assert_int_equal(gd.n_alive, 0);
        assert_int_equal(alloc_live, live);
        ggml_free(h.c);
        ggml_clear_error();
        assert_true(ok || n >= k);
        if (ok && n < k) return;
    }
    fail();
}

// Nothing is allocated for a graph that fits, nor for one that is planned anew within the room there is.
static void test_no_heap(void **state) {
    (void) state;
    if (!ALLOC_COUNTED) skip();
    struct chain a = chain_new(100, 6, false), b = chain_new(100, 6, false), crossed = chain_new(40, 6, true);
    ggml_gallocr_t ga = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    assert_true(ggml_gallocr_reserve(ga, a.g));
    alloc_start(0);
    assert_true(ggml_gallocr_alloc_graph(ga, a.g));
    assert_true(ggml_gallocr_alloc_graph(ga, b.g));
    assert_true(ggml_gallocr_alloc_graph(ga, crossed.g));
    assert_int_equal(alloc_stop(), 0);
    ggml_gallocr_free(ga);
    ggml_free(a.c);
    ggml_free(b.c);
    ggml_free(crossed.c);
}

static void test_misuse(void **state) {
    (void) state;
    assert_null(ggml_gallocr_new_n(NULL, 1));
    assert_null(ggml_gallocr_new(NULL));
    assert_false(ggml_gallocr_reserve(NULL, NULL));
    ggml_gallocr_t ga = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    assert_false(ggml_gallocr_alloc_graph(ga, NULL));
    assert_error("no graph");
    assert_int_equal(ggml_gallocr_get_buffer_size(ga, 5), 0);
    assert_error("no buffer 5");
    struct ggml_context *c = context();
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 32, false);
    struct ggml_tensor *bad = ggml_add(c, input(c, 3), input(c, 5));
    ggml_build_forward_expand(g, bad);
    assert_false(ggml_gallocr_alloc_graph(ga, g));
    ggml_clear_error();
    ggml_gallocr_free(ga);
    ggml_gallocr_free(NULL);
    ggml_free(c);
    struct ggml_tallocr ta = ggml_tallocr_new(NULL);
    assert_int_equal(ggml_tallocr_alloc(&ta, NULL), GGML_STATUS_FAILED);
    ggml_clear_error();
}

static void test_tallocr_full(void **state) {
    (void) state;
    struct ggml_context *c = context();
    ggml_backend_buffer_t b = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), 100);
    struct ggml_tallocr ta = ggml_tallocr_new(b);
    assert_int_equal(ggml_tallocr_alloc(&ta, ggml_new_tensor_1d(c, GGML_TYPE_F32, 20)), GGML_STATUS_SUCCESS);
    struct ggml_tensor *t = ggml_new_tensor_1d(c, GGML_TYPE_F32, 20);
    assert_int_equal(ggml_tallocr_alloc(&ta, t), GGML_STATUS_ALLOC_FAILED);
    assert_error("4 of the 100");
    assert_null(t->data);
    ggml_backend_buffer_free(b);
    ggml_free(c);
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_taking_turns),
        cmocka_unit_test(test_several_buffers),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_tensor_too_large),
        cmocka_unit_test(test_placed_and_not),
        cmocka_unit_test(test_result_of_earlier_graph),
        cmocka_unit_test(test_unread),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_read_twice),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_no_heap),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_tallocr_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
