// Nothing is allocated once a scheduler has been reserved: graphs computed again, or built anew with the same shape, on one
// device or two. And what a graph costs outside the kernels, as a count that tests/model measures with callgrind.
#include "device/sched.h"
#include "ggml/plan.h"
#include "support/alloc.h"
#include "support/net.h"
#include "test.h"

struct rig {
    ggml_backend_t cpu, sim;
    struct net n;
    ggml_backend_buffer_t weights;
    ggml_backend_sched_t s;
};

static struct rig rig_new(bool two, bool parallel) {
    struct rig r = {.cpu = ggml_backend_cpu_init(),
                    .n = {.n_layer = 4, .n_embd = 64, .n_head = 4, .n_ff = 96, .n_token = 5}};
    ggml_backend_cpu_set_n_threads(r.cpu, 1);
    r.sim = two ? ggml_backend_init_by_name("SIM0", NULL) : NULL;
    net_weights(&r.n);
    r.weights = ggml_backend_alloc_ctx_tensors(r.n.weights, two ? r.sim : r.cpu);
    ggml_backend_buffer_set_usage(r.weights, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    net_fill_weights(&r.n);
    ggml_backend_t both[] = {r.sim, r.cpu};
    r.s = ggml_backend_sched_new(two ? both : &r.cpu, NULL, two ? 2 : 1, 1024, parallel, false);
    return r;
}

static void rig_free(struct rig *r) {
    ggml_backend_sched_free(r->s);
    ggml_backend_buffer_free(r->weights);
    ggml_free(r->n.weights);
    ggml_backend_free(r->cpu);
    ggml_backend_free(r->sim);
}

// Every input all zeros, without an allocation.
static void clear_inputs(const struct net *n) {
    static const float zeros[64 * 5];
    struct ggml_tensor *inputs[] = {n->x, n->pos, n->mask};
    for (int i = 0; i < 3; i++) {
        assert_true(ggml_nbytes(inputs[i]) <= sizeof zeros);
        ggml_backend_tensor_set(inputs[i], zeros, 0, ggml_nbytes(inputs[i]));
    }
}

static void check(bool two, bool parallel) {
    if (!ALLOC_COUNTED) skip();
    struct rig r = rig_new(two, parallel);
    struct ggml_context *graphs[8];
    struct ggml_cgraph *g[8];
    struct net nets[8];
    for (int i = 0; i < 8; i++) {
        net_build(&r.n);
        nets[i] = r.n;
        graphs[i] = r.n.graph_ctx;
        g[i] = r.n.graph;
    }
    assert_true(ggml_backend_sched_reserve(r.s, g[0]));
    alloc_start(0);
    for (int i = 1; i < 8; i++) {
        ggml_backend_sched_reset(r.s);
        assert_true(ggml_backend_sched_alloc_graph(r.s, g[i]));
        for (int k = 0; k < 3; k++) {
            clear_inputs(&nets[i]);
            assert_int_equal(ggml_backend_sched_graph_compute_async(r.s, g[i]), GGML_STATUS_SUCCESS);
        }
        ggml_backend_sched_synchronize(r.s);
    }
    assert_int_equal(alloc_stop(), 0);
    for (int i = 0; i < 8; i++) ggml_free(graphs[i]);
    rig_free(&r);
}

static void test_cpu(void **state) {
    (void) state;
    check(false, false);
}

static void test_two_devices(void **state) {
    (void) state;
    check(true, false);
}

static void test_parallel(void **state) {
    (void) state;
    check(true, true);
}

// Every allocation made to fail in turn, from the device to the result: an error each time, and nothing leaks.
static void test_faults(void **state) {
    (void) state;
    if (!ALLOC_COUNTED) skip();
    ggml_free(net_context());
    for (int k = 1; k < 500; k++) {
        struct net n = {.n_layer = 2, .n_embd = 32, .n_head = 2, .n_ff = 48, .n_token = 3};
        net_weights(&n);
        net_build(&n);
        const int64_t live = alloc_live;
        alloc_start(k);
        ggml_backend_t cpu = ggml_backend_cpu_init(), sim = ggml_backend_init_by_name("SIM0", NULL);
        if (cpu) ggml_backend_cpu_set_n_threads(cpu, 1);
        ggml_backend_buffer_t w = sim ? ggml_backend_alloc_ctx_tensors(n.weights, sim) : NULL;
        if (w) ggml_backend_buffer_set_usage(w, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        ggml_backend_t both[] = {sim, cpu};
        ggml_backend_sched_t s = cpu && w ? ggml_backend_sched_new(both, NULL, 2, 256, true, false) : NULL;
        bool ok = s && ggml_backend_sched_reserve(s, n.graph) && ggml_backend_sched_alloc_graph(s, n.graph);
        if (ok) clear_inputs(&n);
        ok = ok && ggml_backend_sched_graph_compute(s, n.graph) == GGML_STATUS_SUCCESS;
        const int64_t made = alloc_stop();
        ggml_backend_sched_free(s);
        ggml_backend_buffer_free(w);
        ggml_backend_free(sim);
        ggml_backend_free(cpu);
        assert_int_equal(alloc_live, live);
        ggml_free(n.graph_ctx);
        ggml_free(n.weights);
        ggml_clear_error();
        assert_true(ok || made >= k);
        if (ok && made < k) return;
    }
    fail();
}

static bool count(int i, struct ggml_tensor *a, struct ggml_tensor *b, void *data) {
    (void) i;
    float *x = net_values(a), *y = net_values(b);
    assert_memory_equal(x, y, ggml_nbytes(a));
    free(x);
    free(y);
    ++*(int *) data;
    return true;
}

static void test_graph_copy(void **state) {
    (void) state;
    struct rig r = rig_new(false, false);
    ggml_backend_t sim = ggml_backend_init_by_name("SIM0", NULL);
    net_build(&r.n);
    assert_true(ggml_backend_sched_alloc_graph(r.s, r.n.graph));
    net_set_inputs(&r.n, 3);
    struct ggml_backend_graph_copy c = ggml_backend_graph_copy(sim, r.n.graph);
    assert_non_null(c.graph);
    assert_int_equal(ggml_backend_graph_compute(sim, c.graph), GGML_STATUS_SUCCESS);
    assert_int_equal(ggml_backend_graph_compute(r.cpu, r.n.graph), GGML_STATUS_SUCCESS);
    float *x = net_values(r.n.out), *y = net_values(ggml_graph_node(c.graph, -1));
    assert_memory_equal(x, y, ggml_nbytes(r.n.out));
    free(x);
    free(y);
    ggml_backend_graph_copy_free(c);
    net_set_inputs(&r.n, 4);
    int n = 0;
    const struct ggml_tensor *some[] = {r.n.out};
    assert_true(ggml_backend_compare_graph_backend(r.cpu, sim, r.n.graph, count, &n, some, 1));
    assert_int_equal(n, 1);
    ggml_backend_free(sim);
    ggml_free(r.n.graph_ctx);
    rig_free(&r);
}

static void test_report(void **state) {
    (void) state;
    struct rig r = rig_new(true, false);
    net_build(&r.n);
    struct ggml_plan_report *p = ggml_backend_sched_plan_report(r.s, r.n.graph);
    assert_non_null(p);
    assert_int_equal(p->n_buffers, 2);
    assert_true(p->n_tensors > 20);
    assert_true(ggml_backend_sched_reserve(r.s, r.n.graph));
    assert_int_equal(p->buffers[0].peak, ggml_backend_sched_get_buffer_size(r.s, r.sim));
    assert_int_equal(p->buffers[1].peak, ggml_backend_sched_get_buffer_size(r.s, r.cpu));
    for (int b = 0; b < 2; b++) {
        size_t at_peak = 0;
        for (int i = 0; i < p->n_tensors; i++) {
            const struct ggml_plan_tensor *t = &p->tensors[i];
            if (t->buffer == b && t->at_peak && !(t->over >= 0 && t->first == p->buffers[b].peak_step)) at_peak += t->bytes;
        }
        assert_int_equal(at_peak, p->buffers[b].bound);
        assert_true(p->buffers[b].bound <= p->buffers[b].lb2 && p->buffers[b].lb2 <= p->buffers[b].lb1 &&
                    p->buffers[b].lb1 <= p->buffers[b].best_fit);
    }
    ggml_plan_report_free(p);
    assert_true(ggml_backend_sched_overhead(r.s) > 1000);
    ggml_free(r.n.graph_ctx);
    rig_free(&r);
}

int main(void) {
    setenv("LAMINA_SIM", "1", 1);
    quiet();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu),    cmocka_unit_test(test_two_devices), cmocka_unit_test(test_parallel),
        cmocka_unit_test(test_faults), cmocka_unit_test(test_graph_copy),  cmocka_unit_test(test_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
