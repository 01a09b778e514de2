// The simulated device keeps its promises: memory nobody else can touch, limits, alignment, asynchronous work in order,
// events.
#include "backend/sim/sim.h"
#include "support/net.h"
#include "support/random_graph.h"
#include "test.h"

#include <signal.h>
#include <sys/wait.h>

static ggml_backend_dev_t device(int i) { return ggml_backend_dev_by_name(i ? "SIM1" : "SIM0"); }

static void test_listed(void **state) {
    (void) state;
    assert_int_equal(ggml_backend_dev_count(), 3);
    assert_string_equal(ggml_backend_dev_name(ggml_backend_dev_get(0)), "SIM0");
    assert_int_equal(ggml_backend_dev_type(device(0)), GGML_BACKEND_DEVICE_TYPE_GPU);
    struct ggml_backend_dev_props p;
    ggml_backend_dev_get_props(device(1), &p);
    assert_string_equal(p.name, "SIM1");
    assert_true(p.caps.async && p.caps.events && p.caps.host_buffer && p.caps.buffer_from_host_ptr);
    assert_int_equal(p.memory_total, (size_t) 64 << 20);
    assert_int_equal(ggml_backend_reg_dev_count(ggml_backend_reg_by_name("sim")), 2);
    ggml_backend_t best = ggml_backend_init_best();
    assert_ptr_equal(ggml_backend_get_device(best), device(0));
    ggml_backend_free(best);
}

// A touch from outside ends the process by SIGSEGV, reading or writing.
static int signal_of_touch(volatile char *p, bool write) {
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        if (write)
            *p = 1;
        else
            (void) *p;
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void test_out_of_reach(void **state) {
    (void) state;
    ggml_backend_buffer_t b = ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(device(0)), 10000);
    assert_non_null(b);
    assert_false(ggml_backend_buffer_is_host(b));
    assert_int_equal(signal_of_touch(ggml_backend_buffer_get_base(b), false), SIGSEGV);
    assert_int_equal(signal_of_touch((char *) ggml_backend_buffer_get_base(b) + 9999, true), SIGSEGV);
    struct ggml_context *c = ggml_init((struct ggml_init_params){1 << 16, NULL, true});
    struct ggml_tensor *t = ggml_new_tensor_1d(c, GGML_TYPE_F32, 4);
    assert_int_equal(ggml_backend_tensor_alloc(b, t, (char *) ggml_backend_buffer_get_base(b) + 256), GGML_STATUS_SUCCESS);
    const float in[4] = {1, 2, 3, 4};
    float out[4] = {0};
    ggml_backend_tensor_set(t, in, 0, sizeof(in));
    ggml_backend_tensor_get(t, out, 0, sizeof(out));
    assert_memory_equal(in, out, sizeof(in));
    ggml_backend_tensor_memset(t, 0, 4, 8);
    ggml_backend_tensor_get(t, out, 0, sizeof(out));
    assert_true(out[0] == 1 && out[1] == 0 && out[2] == 0 && out[3] == 4);
    ggml_backend_buffer_free(b);
    ggml_free(c);
}

static void test_limits(void **state) {
    (void) state;
    ggml_backend_buffer_type_t type = ggml_backend_dev_buffer_type(device(0));
    assert_int_equal(ggml_backend_buft_get_alignment(type), 256);
    assert_int_equal(ggml_backend_buft_get_max_size(type), (size_t) 40 << 20);
    assert_null(ggml_backend_buft_alloc_buffer(type, (size_t) 41 << 20));
    assert_error("largest possible");
    ggml_backend_buffer_t a = ggml_backend_buft_alloc_buffer(type, (size_t) 40 << 20);
    assert_non_null(a);
    size_t free_bytes, total;
    ggml_backend_dev_memory(device(0), &free_bytes, &total);
    assert_int_equal(free_bytes, (size_t) 24 << 20);
    assert_null(ggml_backend_buft_alloc_buffer(type, (size_t) 30 << 20));
    assert_error("24.0 of its 64.0 MiB are free");
    ggml_backend_buffer_free(a);
    ggml_backend_dev_memory(device(0), &free_bytes, &total);
    assert_int_equal(free_bytes, total);
}

static void test_host_pointer(void **state) {
    (void) state;
    float *mem = aligned_alloc(64, 4096);
    for (int i = 0; i < 1024; i++) mem[i] = (float) i;
    ggml_backend_buffer_t b = ggml_backend_dev_buffer_from_host_ptr(device(0), mem, 4096, 4096);
    assert_non_null(b);
    struct ggml_context *c = ggml_init((struct ggml_init_params){1 << 16, NULL, true});
    struct ggml_tensor *t = ggml_new_tensor_1d(c, GGML_TYPE_F32, 8), *back = ggml_dup_tensor(c, t);
    assert_int_equal(ggml_backend_tensor_alloc(b, t, mem + 16), GGML_STATUS_SUCCESS);
    ggml_backend_buffer_t host = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), 64);
    assert_int_equal(ggml_backend_tensor_alloc(host, back, ggml_backend_buffer_get_base(host)), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_copy(t, back);
    assert_memory_equal(back->data, mem + 16, 32);
    assert_true(ggml_backend_dev_supports_buft(device(0), ggml_backend_buffer_get_type(b)));
    assert_false(ggml_backend_dev_supports_buft(device(1), ggml_backend_buffer_get_type(b)));
    assert_null(ggml_backend_dev_buffer_from_host_ptr(device(0), (char *) mem + 3, 64, 64));
    assert_error("multiple of 32");
    ggml_backend_buffer_free(b);
    ggml_backend_buffer_free(host);
    ggml_free(c);
    free(mem);
}

// Bits equal to the processor's for graphs of all kinds, on the device alone.
static void test_random_graphs(void **state) {
    (void) state;
    ggml_backend_t cpu = ggml_backend_cpu_init(), sim = ggml_backend_dev_init(device(0), NULL);
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct random_graph a, b;
        random_graph_build(&a, seed, 60);
        random_graph_build(&b, seed, 60);
        ggml_gallocr_t ga = ggml_gallocr_new(ggml_backend_get_default_buffer_type(cpu)),
                       gb = ggml_gallocr_new(ggml_backend_get_default_buffer_type(sim));
        assert_true(ggml_gallocr_alloc_graph(ga, a.g) && ggml_gallocr_alloc_graph(gb, b.g));
        random_graph_set(&a);
        random_graph_set(&b);
        assert_int_equal(ggml_backend_graph_compute(cpu, a.g), GGML_STATUS_SUCCESS);
        assert_int_equal(ggml_backend_graph_compute(sim, b.g), GGML_STATUS_SUCCESS);
        float *x = net_values(a.last), *y = net_values(b.last);
        assert_memory_equal(x, y, ggml_nbytes(a.last));
        free(x);
        free(y);
        ggml_gallocr_free(ga);
        ggml_gallocr_free(gb);
        ggml_free(a.c);
        ggml_free(b.c);
    }
    ggml_backend_free(cpu);
    ggml_backend_free(sim);
}

// Transfers, copies between streams and events keep their order.
static void test_order(void **state) {
    (void) state;
    ggml_backend_t s[2] = {ggml_backend_dev_init(device(0), NULL), ggml_backend_dev_init(device(1), NULL)};
    struct ggml_context *c[2];
    struct ggml_tensor *t[2][2];
    ggml_backend_buffer_t b[2];
    for (int i = 0; i < 2; i++) {
        c[i] = ggml_init((struct ggml_init_params){1 << 16, NULL, true});
        for (int k = 0; k < 2; k++) t[i][k] = ggml_new_tensor_1d(c[i], GGML_TYPE_F32, 1000);
        b[i] = ggml_backend_alloc_ctx_tensors(c[i], s[i]);
    }
    ggml_backend_event_t e = ggml_backend_event_new(device(0));
    assert_non_null(e);
    ggml_backend_event_synchronize(e);  // never recorded: no wait
    float in[2][1000], out[1000];
    for (int round = 0; round < 300; round++) {
        for (int i = 0; i < 1000; i++) in[round % 2][i] = (float) (round * 1000 + i);
        ggml_backend_tensor_set_async(s[0], t[0][0], in[round % 2], 0, sizeof(in[0]));
        ggml_backend_tensor_copy_async(s[0], s[0], t[0][0], t[0][1]);
        ggml_backend_tensor_copy_async(s[0], s[1], t[0][1], t[1][0]);
        ggml_backend_tensor_copy_async(s[1], s[0], t[1][0], t[0][0]);
        ggml_backend_event_record(e, s[0]);
        ggml_backend_event_wait(s[1], e);
        ggml_backend_tensor_copy_async(s[0], s[1], t[0][0], t[1][1]);
        ggml_backend_tensor_get_async(s[1], t[1][1], out, 0, sizeof(out));
        ggml_backend_synchronize(s[1]);
        assert_memory_equal(out, in[round % 2], sizeof(out));
    }
    ggml_backend_event_free(e);
    for (int i = 0; i < 2; i++) {
        ggml_backend_buffer_free(b[i]);
        ggml_backend_free(s[i]);
        ggml_free(c[i]);
    }
}

// A failure of queued work is reported by the call that waits for it.
static void test_failure(void **state) {
    (void) state;
    ggml_backend_t sim = ggml_backend_dev_init(device(0), NULL);
    struct ggml_context *c = ggml_init((struct ggml_init_params){1 << 16, NULL, true});
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 16, false);
    struct ggml_tensor *a = ggml_new_tensor_2d(c, GGML_TYPE_F32, 4, 4), *rows = ggml_new_tensor_1d(c, GGML_TYPE_I32, 1);
    ggml_build_forward_expand(g, ggml_get_rows(c, a, rows));
    ggml_backend_buffer_t b = ggml_backend_alloc_ctx_tensors(c, sim);
    ggml_backend_buffer_clear(b, 0);
    const int32_t outside = 99, inside = 1;
    ggml_backend_tensor_set(rows, &outside, 0, 4);
    assert_int_equal(ggml_backend_graph_compute(sim, g), GGML_STATUS_FAILED);
    ggml_backend_tensor_set(rows, &inside, 0, 4);
    assert_int_equal(ggml_backend_graph_compute(sim, g), GGML_STATUS_SUCCESS);
    ggml_backend_buffer_free(b);
    ggml_backend_free(sim);
    ggml_free(c);
    ggml_clear_error();
}

int main(void) {
    setenv("LAMINA_SIM", "2,hostptr", 1);
    setenv("LAMINA_SIM_MEM", "64", 1);
    setenv("LAMINA_SIM_MAX", "40", 1);
    quiet();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listed),       cmocka_unit_test(test_out_of_reach),  cmocka_unit_test(test_limits),
        cmocka_unit_test(test_host_pointer), cmocka_unit_test(test_random_graphs), cmocka_unit_test(test_order),
        cmocka_unit_test(test_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
