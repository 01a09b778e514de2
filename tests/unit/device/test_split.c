// A network over several devices: the same bits as on the processor alone, however it is split; copies, pipelining,
// callbacks.
#include "device/sched.h"
#include "support/net.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { N_LAYER = 4 };

struct fixture {
    ggml_backend_t cpu, sim[2];
    struct net plain;  // all on the processor
    ggml_backend_buffer_t plain_weights;
    float *expected;
};

static struct net shape(int n_token) {
    return (struct net){.n_layer = N_LAYER, .n_embd = 64, .n_head = 4, .n_ff = 96, .n_token = n_token};
}

static float *run_plain(struct net *n, ggml_backend_t cpu, uint64_t seed) {
    net_build(n);
    ggml_gallocr_t ga = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    assert_true(ggml_gallocr_alloc_graph(ga, n->graph));
    net_set_inputs(n, seed);
    assert_int_equal(ggml_backend_graph_compute(cpu, n->graph), GGML_STATUS_SUCCESS);
    float *values = net_values(n->out);
    ggml_gallocr_free(ga);
    ggml_free(n->graph_ctx);
    return values;
}

static int set_up(void **state) {
    struct fixture *f = calloc(1, sizeof(*f));
    f->cpu = ggml_backend_cpu_init();
    f->sim[0] = ggml_backend_init_by_name("SIM0", NULL);
    f->sim[1] = ggml_backend_init_by_name("SIM1", NULL);
    assert_non_null(f->sim[0]);
    assert_non_null(f->sim[1]);
    f->plain = shape(12);
    net_weights(&f->plain);
    f->plain_weights = ggml_backend_alloc_ctx_tensors(f->plain.weights, f->cpu);
    net_fill_weights(&f->plain);
    f->expected = run_plain(&f->plain, f->cpu, 7);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;
    free(f->expected);
    ggml_backend_buffer_free(f->plain_weights);
    ggml_free(f->plain.weights);
    ggml_backend_free(f->cpu);
    ggml_backend_free(f->sim[0]);
    ggml_backend_free(f->sim[1]);
    free(f);
    return 0;
}

// Weights of layer il go to device of[il] (of[N_LAYER]: the output layer); -1 is the processor.
struct placed {
    struct net net;
    ggml_backend_buffer_t buffers[3];
};

static struct placed place(const struct fixture *f, const int *of, int n_token) {
    struct placed p = {.net = shape(n_token)};
    net_weights(&p.net);
    for (int d = -1; d < 2; d++) {
        const ggml_backend_t backend = d < 0 ? f->cpu : f->sim[d];
        p.buffers[d + 1] = ggml_backend_alloc_buffer(backend, 8 << 20);
        ggml_backend_buffer_set_usage(p.buffers[d + 1], GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        struct ggml_tallocr ta = ggml_tallocr_new(p.buffers[d + 1]);
        for (int il = 0; il < N_LAYER; il++) {
            if (of[il] != d) continue;
            for (int k = 0; k < 8; k++) assert_int_equal(ggml_tallocr_alloc(&ta, p.net.w[il][k]), GGML_STATUS_SUCCESS);
            assert_int_equal(ggml_tallocr_alloc(&ta, p.net.up[il]), GGML_STATUS_SUCCESS);
        }
        if (of[N_LAYER] == d) assert_int_equal(ggml_tallocr_alloc(&ta, p.net.head), GGML_STATUS_SUCCESS);
    }
    net_fill_weights(&p.net);
    return p;
}

static void drop(struct placed *p) {
    for (int i = 0; i < 3; i++) ggml_backend_buffer_free(p->buffers[i]);
    ggml_free(p->net.weights);
}

static void check_split(struct fixture *f, const int *of, int n_splits, bool parallel) {
    struct placed p = place(f, of, 12);
    ggml_backend_t backends[] = {f->sim[0], f->sim[1], f->cpu};
    ggml_backend_sched_t s = ggml_backend_sched_new(backends, NULL, 3, 1024, parallel, false);
    assert_non_null(s);
    net_build(&p.net);
    assert_true(ggml_backend_sched_reserve(s, p.net.graph));
    if (n_splits > 0) assert_int_equal(ggml_backend_sched_get_n_splits(s), n_splits);
    for (int round = 0; round < 3; round++) {  // the same graph allocated again after a reset
        ggml_backend_sched_reset(s);
        assert_true(ggml_backend_sched_alloc_graph(s, p.net.graph));
        net_set_inputs(&p.net, 7);
        assert_int_equal(ggml_backend_sched_graph_compute(s, p.net.graph), GGML_STATUS_SUCCESS);
        float *x = net_values(p.net.out);
        assert_memory_equal(x, f->expected, ggml_nbytes(p.net.out));
        free(x);
    }
    ggml_backend_sched_free(s);
    ggml_free(p.net.graph_ctx);
    drop(&p);
}

static void test_all_on_cpu(void **state) { check_split(*state, (const int[]){-1, -1, -1, -1, -1}, 1, false); }
static void test_last_layers(void **state) { check_split(*state, (const int[]){-1, -1, 0, 0, 0}, 2, false); }
static void test_output_only(void **state) { check_split(*state, (const int[]){-1, -1, -1, -1, 0}, 2, false); }
static void test_all_on_one(void **state) { check_split(*state, (const int[]){0, 0, 0, 0, 0}, 1, false); }
static void test_two_devices(void **state) { check_split(*state, (const int[]){-1, 0, 0, 1, 1}, 3, false); }
static void test_back_and_forth(void **state) { check_split(*state, (const int[]){0, 1, 0, -1, 1}, 5, false); }
static void test_parallel(void **state) { check_split(*state, (const int[]){0, 0, 1, 1, -1}, 3, true); }

// Graphs built anew for each batch while the ones before may still run.
static void test_pipeline(void **state) {
    struct fixture *f = *state;
    struct placed p = place(f, (const int[]){0, 0, 1, 1, 1}, 12);
    ggml_backend_t backends[] = {f->sim[0], f->sim[1], f->cpu};
    ggml_backend_sched_t s = ggml_backend_sched_new(backends, NULL, 3, 1024, true, false);
    assert_int_equal(ggml_backend_sched_get_n_copies(s), SCHED_MAX_COPIES);
    enum { ROUNDS = 9 };
    float *got[ROUNDS];
    struct ggml_context *graphs[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        net_build(&p.net);
        graphs[i] = p.net.graph_ctx;
        ggml_backend_sched_reset(s);
        assert_true(ggml_backend_sched_alloc_graph(s, p.net.graph));
        net_set_inputs(&p.net, 100 + (uint64_t) i);
        assert_int_equal(ggml_backend_sched_graph_compute_async(s, p.net.graph), GGML_STATUS_SUCCESS);
        got[i] = malloc(ggml_nbytes(p.net.out));
        ggml_backend_tensor_get_async(ggml_backend_sched_get_tensor_backend(s, p.net.out), p.net.out, got[i], 0,
                                      ggml_nbytes(p.net.out));
    }
    ggml_backend_sched_synchronize(s);
    for (int i = 0; i < ROUNDS; i++) {
        float *expected = run_plain(&f->plain, f->cpu, 100 + (uint64_t) i);
        assert_memory_equal(got[i], expected, sizeof(float) * 128 * 12);
        free(expected);
        free(got[i]);
        ggml_free(graphs[i]);
    }
    ggml_backend_sched_free(s);
    drop(&p);
}

struct watch {
    int asked, seen, stop_at;
    bool every;
};

static bool watch(struct ggml_tensor *t, bool ask, void *data) {
    struct watch *w = data;
    if (ask) {
        w->asked++;
        return w->every || strncmp(t->name, "l_out", 5) == 0;
    }
    w->seen++;
    assert_non_null(t->data);
    return w->seen != w->stop_at;
}

static void test_callback(void **state) {
    struct fixture *f = *state;
    struct placed p = place(f, (const int[]){-1, 0, 0, 1, 1}, 12);
    ggml_backend_t backends[] = {f->sim[0], f->sim[1], f->cpu};
    ggml_backend_sched_t s = ggml_backend_sched_new(backends, NULL, 3, 1024, false, false);
    net_build(&p.net);
    ggml_backend_sched_set_eval_callback(s, watch, &(struct watch){0});  // so that every node has memory
    assert_true(ggml_backend_sched_alloc_graph(s, p.net.graph));
    struct watch all = {.every = true}, some = {0}, stopped = {.stop_at = 2};
    net_set_inputs(&p.net, 7);
    ggml_backend_sched_set_eval_callback(s, watch, &all);
    assert_int_equal(ggml_backend_sched_graph_compute(s, p.net.graph), GGML_STATUS_SUCCESS);
    assert_int_equal(all.seen, ggml_graph_n_nodes(p.net.graph));
    float *x = net_values(p.net.out);
    assert_memory_equal(x, f->expected, ggml_nbytes(p.net.out));
    free(x);
    net_set_inputs(&p.net, 7);
    ggml_backend_sched_set_eval_callback(s, watch, &some);
    assert_int_equal(ggml_backend_sched_graph_compute(s, p.net.graph), GGML_STATUS_SUCCESS);
    assert_int_equal(some.seen, N_LAYER);
    assert_int_equal(some.asked, ggml_graph_n_nodes(p.net.graph));
    net_set_inputs(&p.net, 7);
    ggml_backend_sched_set_eval_callback(s, watch, &stopped);
    assert_int_equal(ggml_backend_sched_graph_compute(s, p.net.graph), GGML_STATUS_SUCCESS);
    assert_int_equal(stopped.seen, 2);
    assert_true(stopped.asked < ggml_graph_n_nodes(p.net.graph));
    ggml_backend_sched_free(s);
    ggml_free(p.net.graph_ctx);
    drop(&p);
}

// Weights stay on the host, large products move to the device that offers to do them.
static void test_offload(void **state) {
    struct fixture *f = *state;
    struct placed p = place(f, (const int[]){-1, -1, -1, -1, -1}, 40);
    ggml_backend_t backends[] = {f->sim[0], f->cpu};
    ggml_backend_sched_t s = ggml_backend_sched_new(backends, NULL, 2, 1024, false, true);
    net_build(&p.net);
    assert_true(ggml_backend_sched_alloc_graph(s, p.net.graph));
    assert_true(ggml_backend_sched_get_n_splits(s) > N_LAYER);
    net_set_inputs(&p.net, 9);
    assert_int_equal(ggml_backend_sched_graph_compute(s, p.net.graph), GGML_STATUS_SUCCESS);
    float *got = net_values(p.net.out);
    f->plain.n_token = 40;
    float *expected = run_plain(&f->plain, f->cpu, 9);
    f->plain.n_token = 12;
    assert_memory_equal(got, expected, ggml_nbytes(p.net.out));
    free(got);
    free(expected);
    ggml_backend_sched_free(s);
    ggml_free(p.net.graph_ctx);
    drop(&p);
}

// A preset moves a node; the graph is not changed by it, so a reset undoes it.
static void test_preset(void **state) {
    struct fixture *f = *state;
    struct placed p = place(f, (const int[]){-1, -1, -1, -1, -1}, 12);
    ggml_backend_t backends[] = {f->sim[0], f->cpu};
    ggml_backend_sched_t s = ggml_backend_sched_new(backends, NULL, 2, 1024, false, false);
    net_build(&p.net);
    struct ggml_tensor *node = ggml_graph_get_tensor(p.net.graph, "l_out-1");
    ggml_backend_sched_set_tensor_backend(s, node, f->sim[0]);
    assert_true(ggml_backend_sched_alloc_graph(s, p.net.graph));
    assert_ptr_equal(ggml_backend_sched_get_tensor_backend(s, node), f->sim[0]);
    assert_int_equal(ggml_backend_sched_get_n_splits(s), 3);
    net_set_inputs(&p.net, 7);
    assert_int_equal(ggml_backend_sched_graph_compute(s, p.net.graph), GGML_STATUS_SUCCESS);
    float *x = net_values(p.net.out);
    assert_memory_equal(x, f->expected, ggml_nbytes(p.net.out));
    free(x);
    ggml_free(p.net.graph_ctx);
    net_build(&p.net);
    ggml_backend_sched_reset(s);
    assert_true(ggml_backend_sched_alloc_graph(s, p.net.graph));
    assert_int_equal(ggml_backend_sched_get_n_splits(s), 1);
    ggml_backend_sched_free(s);
    ggml_free(p.net.graph_ctx);
    drop(&p);
}

int main(void) {
    setenv("LAMINA_SIM", "2", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_on_cpu), cmocka_unit_test(test_last_layers), cmocka_unit_test(test_output_only),
        cmocka_unit_test(test_all_on_one), cmocka_unit_test(test_two_devices), cmocka_unit_test(test_back_and_forth),
        cmocka_unit_test(test_parallel),   cmocka_unit_test(test_pipeline),    cmocka_unit_test(test_callback),
        cmocka_unit_test(test_offload),    cmocka_unit_test(test_preset),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
