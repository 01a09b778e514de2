// Running graphs: plans, threads, pools, two computations at once, abort, failures, graphs that cannot run.
#include "test.h"
#include "ggml-cpu.h"
#include "backend/cpu/cpu.h"
#include "kern/isa.h"
#include "ops/op.h"

#include <pthread.h>
#include <sys/wait.h>

static struct ggml_context *c;

static int begin(void **state) {
    (void) state;
    quiet();
    ggml_clear_error();
    c = ggml_init((struct ggml_init_params){.mem_size = (size_t) 64 << 20});
    return 0;
}

static int end(void **state) {
    (void) state;
    ggml_free(c);
    return 0;
}

static struct ggml_tensor *numbers(int64_t ne0, int64_t ne1, float scale) {
    struct ggml_tensor *t = ggml_new_tensor_2d(c, GGML_TYPE_F32, ne0, ne1);
    float *x = t->data;
    for (int64_t i = 0; i < ne0 * ne1; i++) x[i] = scale * (float) ((i * 7919) % 1009 - 500) / 500.0f;
    return t;
}

// Products, broadcasts, softmax: nodes for one thread and for many in turn.
static struct ggml_cgraph *network(struct ggml_tensor **result, int layers) {
    struct ggml_tensor *x = numbers(64, 33, 1.0f);
    for (int i = 0; i < layers; i++) {
        struct ggml_tensor *w = numbers(64, 64, 0.2f);
        x = ggml_add(c, ggml_mul_mat(c, w, ggml_rms_norm(c, x, 1e-5f)), numbers(64, 1, 0.1f));
        x = ggml_soft_max(c, ggml_scale(c, ggml_silu(c, x), 3.0f));
    }
    struct ggml_cgraph *g = ggml_new_graph(c);
    ggml_build_forward_expand(g, x);
    *result = x;
    return g;
}

static enum ggml_status compute(struct ggml_cgraph *g, int n_threads, struct ggml_threadpool *pool) {
    struct ggml_cplan plan = ggml_graph_plan(g, n_threads, pool);
    uint8_t *work = malloc(plan.work_size + 1);
    plan.work_data = work;
    const enum ggml_status status = ggml_graph_compute(g, &plan);
    free(work);
    return status;
}

static void test_same_bits_for_any_number_of_threads(void **state) {
    (void) state;
    static const int counts[] = {1, 2, 3, 5, 8, 64};
    struct ggml_tensor *y;
    struct ggml_cgraph *g = network(&y, 5);
    float *expected = NULL;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        memset(y->data, 0xff, ggml_nbytes(y));
        assert_int_equal(compute(g, counts[i], NULL), GGML_STATUS_SUCCESS);
        if (!expected) {
            expected = malloc(ggml_nbytes(y));
            memcpy(expected, y->data, ggml_nbytes(y));
            for (int64_t k = 0; k < ggml_nelements(y); k++) assert_true(expected[k] >= 0 && expected[k] <= 1);
        }
        assert_memory_equal(y->data, expected, ggml_nbytes(y));
    }
    free(expected);
}

static void test_plan(void **state) {
    (void) state;
    struct ggml_tensor *y;
    struct ggml_cgraph *g = network(&y, 1);
    assert_int_equal(ggml_graph_plan(g, 1, NULL).n_threads, 1);
    assert_in_range(ggml_graph_plan(g, 4, NULL).n_threads, 1, 4);
    assert_in_range(ggml_graph_plan(g, 0, NULL).n_threads, 1, ggml_cpu_default_threads());
    assert_in_range(ggml_graph_plan(g, 1000000, NULL).n_threads, 1, GGML_MAX_N_THREADS);
    assert_true(ggml_graph_plan(g, 2, NULL).work_size > 0);
    assert_int_equal(ggml_graph_plan(NULL, 2, NULL).n_threads, 1);
    struct ggml_cgraph *views = ggml_new_graph(c);  // nothing to run
    ggml_build_forward_expand(views, ggml_transpose(c, numbers(3, 4, 1.0f)));
    assert_int_equal(ggml_graph_plan(views, 8, NULL).n_threads, 1);
    assert_int_equal(ggml_graph_plan(views, 8, NULL).work_size, 0);
    assert_int_equal(compute(views, 8, NULL), GGML_STATUS_SUCCESS);
}

static void test_pools(void **state) {
    (void) state;
    struct ggml_tensor *y;
    struct ggml_cgraph *g = network(&y, 2);
    assert_int_equal(compute(g, 1, NULL), GGML_STATUS_SUCCESS);
    float *expected = malloc(ggml_nbytes(y));
    memcpy(expected, y->data, ggml_nbytes(y));
    struct ggml_threadpool_params p = ggml_threadpool_params_default(3);
    for (int k = 0; k < 3; k++) {
        p.paused = k == 1;
        p.poll = k == 2 ? 0 : 50;
        struct ggml_threadpool *pool = ggml_threadpool_new(&p);
        assert_int_equal(ggml_threadpool_get_n_threads(pool), 3);
        assert_true(ggml_graph_plan(g, 64, pool).n_threads <= 3);
        for (int i = 0; i < 4; i++) {
            if (i == 2) ggml_threadpool_pause(pool);
            if (i == 3) ggml_threadpool_resume(pool);
            memset(y->data, 0xff, ggml_nbytes(y));
            assert_int_equal(compute(g, 3, pool), GGML_STATUS_SUCCESS);
            assert_memory_equal(y->data, expected, ggml_nbytes(y));
        }
        ggml_threadpool_free(pool);
    }
    free(expected);
    p.n_threads = 0;
    assert_null(ggml_threadpool_new(&p));
    assert_error("0 threads");
    p.n_threads = 513;
    assert_null(ggml_threadpool_new(&p));
    assert_null(ggml_threadpool_new(NULL));
    ggml_threadpool_free(NULL);
    ggml_threadpool_pause(NULL);
    ggml_threadpool_resume(NULL);
    assert_int_equal(ggml_threadpool_get_n_threads(NULL), 0);
}

static void test_params_match(void **state) {
    (void) state;
    struct ggml_threadpool_params p = ggml_threadpool_params_default(3), q;
    ggml_threadpool_params_init(&q, 3);
    assert_true(ggml_threadpool_params_match(&p, &q));
    assert_memory_equal(&p, &q, sizeof p);
    q.poll = 7;
    assert_false(ggml_threadpool_params_match(&p, &q));
    q = p;
    q.cpumask[5] = true;
    assert_false(ggml_threadpool_params_match(&p, &q));
    q = p;
    q.prio = GGML_SCHED_PRIO_HIGH;
    assert_false(ggml_threadpool_params_match(&p, &q));
    ggml_threadpool_params_init(NULL, 1);
}

struct job {
    struct ggml_cgraph *g;
    int failures;
};

static void *compute_often(void *arg) {
    struct job *j = arg;
    for (int i = 0; i < 50; i++) j->failures += compute(j->g, 3, NULL) != GGML_STATUS_SUCCESS;
    return NULL;
}

// Two threads that compute at once share the library's default team: one has it, the other makes its own.
static void test_two_at_once(void **state) {
    (void) state;
    struct ggml_tensor *y[2];
    struct job job[2] = {{network(&y[0], 2), 0}, {network(&y[1], 2), 0}};
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, compute_often, &job[1]), 0);
    compute_often(&job[0]);
    pthread_join(other, NULL);
    assert_int_equal(job[0].failures + job[1].failures, 0);
    assert_memory_equal(y[0]->data, y[1]->data, ggml_nbytes(y[0]));
}

static void test_after_fork(void **state) {
    (void) state;
#ifdef __SANITIZE_THREAD__
    skip();  // the thread sanitizer ends a child that starts threads
#endif
    struct ggml_tensor *y;
    struct ggml_cgraph *g = network(&y, 1);
    assert_int_equal(compute(g, 3, NULL), GGML_STATUS_SUCCESS);
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) _exit(compute(g, 3, NULL) == GGML_STATUS_SUCCESS ? 7 : 1);
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(WEXITSTATUS(status), 7);
}

static int calls;
static bool stop_at_third(void *data) { return ++calls >= *(int *) data; }

static void test_abort(void **state) {
    (void) state;
    struct ggml_tensor *y;
    struct ggml_cgraph *g = network(&y, 3);
    for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
        struct ggml_cplan plan = ggml_graph_plan(g, n_threads, NULL);
        plan.work_data = malloc(plan.work_size + 1);
        int limit = 3;
        calls = 0;
        plan.abort_callback = stop_at_third;
        plan.abort_callback_data = &limit;
        assert_int_equal(ggml_graph_compute(g, &plan), GGML_STATUS_ABORTED);
        assert_int_equal(calls, 3);  // and nothing ran after that
        limit = 1000;
        assert_int_equal(ggml_graph_compute(g, &plan), GGML_STATUS_SUCCESS);
        free(plan.work_data);
    }
}

static void test_refused(void **state) {
    (void) state;
    struct ggml_tensor *y;
    struct ggml_cgraph *g = network(&y, 1);
    struct ggml_cplan plan = ggml_graph_plan(g, 2, NULL);
    assert_int_equal(ggml_graph_compute(g, &plan), GGML_STATUS_FAILED);
    assert_error("work_data is NULL");
    assert_int_equal(ggml_graph_compute(NULL, &plan), GGML_STATUS_FAILED);
    assert_int_equal(ggml_graph_compute(g, NULL), GGML_STATUS_FAILED);
    assert_error("no plan");
    plan = (struct ggml_cplan){0};
    assert_int_equal(ggml_graph_compute(g, &plan), GGML_STATUS_FAILED);
    assert_error("0 threads");
    y->src[0]->data = NULL;
    assert_int_equal(compute(g, 2, NULL), GGML_STATUS_FAILED);
    assert_error("allocate the graph first");

    struct ggml_cgraph *bad = ggml_new_graph(c);
    ggml_build_forward_expand(bad, ggml_add(c, numbers(3, 1, 1), ggml_mul_mat(c, numbers(4, 4, 1), numbers(5, 4, 1))));
    ggml_clear_error();
    assert_int_equal(compute(bad, 2, NULL), GGML_STATUS_FAILED);
    assert_true(ggml_last_error()[0] != '\0');  // the builder's sentence, kept by the graph
}

static void test_with_ctx(void **state) {
    (void) state;
    struct ggml_tensor *y;
    struct ggml_cgraph *g = network(&y, 1);
    assert_int_equal(ggml_graph_compute_with_ctx(c, g, 2), GGML_STATUS_SUCCESS);
    struct ggml_context *full = ggml_init((struct ggml_init_params){.mem_size = 64});
    assert_int_equal(ggml_graph_compute_with_ctx(full, g, 2), GGML_STATUS_SUCCESS);
    ggml_free(full);
}

// A node that fails: row 9 of a table of 4. The threads that have not met the failure stop with the others.
static void test_bad_rows(void **state) {
    (void) state;
    struct ggml_tensor *table = numbers(64, 4, 1), *rows = ggml_new_tensor_1d(c, GGML_TYPE_I32, 3);
    memcpy(rows->data, (int32_t[]){1, 9, 2}, 12);
    struct ggml_tensor *y = ggml_get_rows(c, table, rows);
    assert_false(ggml_is_error(y));
    struct ggml_tensor *after = ggml_scale(c, y, 2.0f);
    struct ggml_cgraph *g = ggml_new_graph(c);
    ggml_build_forward_expand(g, after);
    for (int n = 1; n <= 4; n++) {
        assert_int_equal(compute(g, n, NULL), GGML_STATUS_FAILED);
        assert_error("9");
    }
    ((int32_t *) rows->data)[1] = 3;
    assert_int_equal(compute(g, 3, NULL), GGML_STATUS_SUCCESS);
}

// use_ref computes with the scalar kernels, whatever level is active elsewhere.
static void test_reference(void **state) {
    (void) state;
    struct ggml_tensor *y;
    struct ggml_cgraph *g = network(&y, 2);
    struct ggml_cplan plan = ggml_graph_plan(g, 3, NULL);
    plan.work_data = malloc(plan.work_size + 1);
    plan.use_ref = true;
    assert_int_equal(ggml_graph_compute(g, &plan), GGML_STATUS_SUCCESS);
    float *reference = malloc(ggml_nbytes(y));
    memcpy(reference, y->data, ggml_nbytes(y));
    plan.use_ref = false;
    const enum isa before = isa_active();
    assert_true(isa_pin(ISA_scalar));
    assert_int_equal(ggml_graph_compute(g, &plan), GGML_STATUS_SUCCESS);
    assert_memory_equal(y->data, reference, ggml_nbytes(y));
    assert_true(isa_pin(before));
    isa_here(ISA_scalar);
    assert_int_equal(isa_active(), ISA_scalar);
    isa_here(-1);
    assert_int_equal(isa_active(), before);
    free(reference);
    free(plan.work_data);
}

static void test_numa(void **state) {
    (void) state;
    assert_false(ggml_is_numa());
    ggml_numa_init((enum ggml_numa_strategy) 99);
    assert_error("no strategy 99");
    ggml_numa_init(GGML_NUMA_STRATEGY_DISTRIBUTE);
    if (access("/sys/devices/system/node/node1", F_OK) != 0) assert_false(ggml_is_numa());
    ggml_numa_init(GGML_NUMA_STRATEGY_DISABLED);
    assert_false(ggml_is_numa());
}

// Without a pool no more threads are used than there are processors, unless tests ask for the crowd.
static _Atomic unsigned seen;
static void note(struct ggml_tensor *dst, const struct ggml_tensor *a, int ith, int nth, void *userdata) {
    (void) dst, (void) a, (void) ith, (void) userdata;
    seen |= 1u << nth;
}

static void test_crowd(void **state) {
    (void) state;
    const int n_cpus = team_n_cpus(), n = n_cpus + 3 < 30 ? n_cpus + 3 : 30;
    struct ggml_cgraph *g = ggml_new_graph(c);
    ggml_build_forward_expand(g, ggml_map_custom1(c, numbers(64, 64, 1.0f), note, GGML_N_TASKS_MAX, NULL));
    unsetenv("GGML_OVERSUBSCRIBE");
    seen = 0;
    assert_int_equal(compute(g, n, NULL), GGML_STATUS_SUCCESS);
    assert_int_equal(seen, 1u << (n < n_cpus ? n : n_cpus));
    setenv("GGML_OVERSUBSCRIBE", "1", 1);
    seen = 0;
    assert_int_equal(compute(g, n, NULL), GGML_STATUS_SUCCESS);
    assert_int_equal(seen, 1u << n);
    struct ggml_threadpool_params p = ggml_threadpool_params_default(n);
    struct ggml_threadpool *pool = ggml_threadpool_new(&p);
    unsetenv("GGML_OVERSUBSCRIBE");
    seen = 0;
    assert_int_equal(compute(g, n, pool), GGML_STATUS_SUCCESS);
    assert_int_equal(seen, 1u << n);
    ggml_threadpool_free(pool);
    setenv("GGML_OVERSUBSCRIBE", "1", 1);
}

int main(void) {
    setenv("GGML_OVERSUBSCRIBE", "1", 1);
#define WITH_CONTEXT(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        WITH_CONTEXT(test_same_bits_for_any_number_of_threads),
        WITH_CONTEXT(test_plan),
        WITH_CONTEXT(test_pools),
        WITH_CONTEXT(test_params_match),
        WITH_CONTEXT(test_two_at_once),
        WITH_CONTEXT(test_after_fork),
        WITH_CONTEXT(test_abort),
        WITH_CONTEXT(test_refused),
        WITH_CONTEXT(test_with_ctx),
        WITH_CONTEXT(test_bad_rows),
        WITH_CONTEXT(test_crowd),
        WITH_CONTEXT(test_reference),
        WITH_CONTEXT(test_numa),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
