// The scheduler's passes one at a time: for each, a graph in which only that pass changes an assignment, and the classic
// small example. Devices: SIM0 (preferred), then the processor. `host` weights lie with the processor, `dev` weights on
// SIM0.
#include "device/sched.h"
#include "ggml-cpu.h"
#include "test.h"

struct world {
    ggml_backend_t cpu, sim;
    ggml_backend_sched_t s;
    struct ggml_context *w, *c;
    struct ggml_cgraph *g;
    struct ggml_tensor *host, *dev, *host_b, *dev_b;
    ggml_backend_buffer_t host_buf, dev_buf;
};

static ggml_backend_buffer_t put(ggml_backend_t b, struct ggml_tensor *t0, struct ggml_tensor *t1) {
    ggml_backend_buffer_t buf = ggml_backend_alloc_buffer(b, 1 << 16);
    ggml_backend_buffer_set_usage(buf, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    ggml_backend_buffer_clear(buf, 0);
    struct ggml_tallocr ta = ggml_tallocr_new(buf);
    assert_int_equal(ggml_tallocr_alloc(&ta, t0), GGML_STATUS_SUCCESS);
    assert_int_equal(ggml_tallocr_alloc(&ta, t1), GGML_STATUS_SUCCESS);
    return buf;
}

static int set_up(void **state) {
    struct world *x = calloc(1, sizeof(*x));
    x->cpu = ggml_backend_cpu_init();
    x->sim = ggml_backend_init_by_name("SIM0", NULL);
    assert_non_null(x->sim);
    ggml_backend_t backends[] = {x->sim, x->cpu};
    x->s = ggml_backend_sched_new(backends, NULL, 2, 256, false, false);
    x->w = ggml_init((struct ggml_init_params){1 << 16, NULL, true});
    x->c = ggml_init((struct ggml_init_params){1 << 20, NULL, true});
    x->g = ggml_new_graph_custom(x->c, 128, false);
    x->host = ggml_set_name(ggml_new_tensor_2d(x->w, GGML_TYPE_F32, 16, 16), "host");
    x->host_b = ggml_set_name(ggml_new_tensor_2d(x->w, GGML_TYPE_F32, 16, 16), "host_b");
    x->dev = ggml_set_name(ggml_new_tensor_2d(x->w, GGML_TYPE_F32, 16, 16), "dev");
    x->dev_b = ggml_set_name(ggml_new_tensor_2d(x->w, GGML_TYPE_F32, 16, 16), "dev_b");
    x->host_buf = put(x->cpu, x->host, x->host_b);
    x->dev_buf = put(x->sim, x->dev, x->dev_b);
    *state = x;
    return 0;
}

static int tear_down(void **state) {
    struct world *x = *state;
    ggml_backend_sched_free(x->s);
    ggml_backend_buffer_free(x->host_buf);
    ggml_backend_buffer_free(x->dev_buf);
    ggml_free(x->w);
    ggml_free(x->c);
    ggml_backend_free(x->cpu);
    ggml_backend_free(x->sim);
    free(x);
    return 0;
}

static struct ggml_tensor *input(struct world *x) {
    struct ggml_tensor *t = ggml_new_tensor_2d(x->c, GGML_TYPE_F32, 16, 4);
    ggml_set_input(t);
    return t;
}

static struct ggml_tensor *mul(struct world *x, struct ggml_tensor *w, struct ggml_tensor *t) {
    return ggml_mul_mat(x->c, w, t);
}

static void split(struct world *x, struct ggml_tensor *out) {
    ggml_build_forward_expand(x->g, out);
    ggml_backend_sched_split_graph(x->s, x->g);
}

static void expect(struct world *x, struct ggml_tensor *t, ggml_backend_t b, const char *cause) {
    const int32_t e = sched_find(x->s, t);
    assert_true(e >= 0);
    assert_ptr_equal(ggml_backend_sched_get_tensor_backend(x->s, t), b);
    assert_string_equal(x->s->entries[e].cause, cause);
}

// Pass 1: weights pull the node that reads them; inputs belong to the last backend.
static void test_weights(void **state) {
    struct world *x = *state;
    struct ggml_tensor *in = input(x), *a = mul(x, x->dev, in), *b = mul(x, x->host, in);
    struct ggml_tensor *out = ggml_add(x->c, a, b);
    split(x, out);
    expect(x, in, x->cpu, "1.inp");
    expect(x, a, x->sim, "1.wgt");
    expect(x, b, x->cpu, "1.wgt");
}

// Pass 2, down: nothing but the node before says where it runs.
static void test_down(void **state) {
    struct world *x = *state;
    struct ggml_tensor *a = mul(x, x->dev, input(x)), *b = ggml_relu(x->c, a), *d = ggml_sqr(x->c, b);
    split(x, d);
    expect(x, b, x->sim, "2.down");
    expect(x, d, x->sim, "2.down");
    assert_int_equal(ggml_backend_sched_get_n_splits(x->s), 1);
}

// Pass 2, up: the node after says it.
static void test_up(void **state) {
    struct world *x = *state;
    struct ggml_tensor *in = input(x), *a = ggml_relu(x->c, in), *b = mul(x, x->dev, a);
    split(x, b);
    expect(x, a, x->sim, "2.up");
    expect(x, in, x->cpu, "1.inp");
    assert_int_equal(x->s->n_copies, 1);
}

// Pass 2, the rest: the last backend spreads where no preferred one does.
static void test_rest(void **state) {
    struct world *x = *state;
    struct ggml_tensor *a = mul(x, x->host, input(x)), *b = ggml_relu(x->c, a);
    split(x, b);
    expect(x, b, x->cpu, "2.rest");
}

// A node the device lacks stays where it is possible, and spreading goes on behind it.
static void test_lacking(void **state) {
    struct world *x = *state;
    struct ggml_tensor *a = mul(x, x->dev, input(x)), *b = ggml_argsort(x->c, a, GGML_SORT_ORDER_ASC),
                       *d = ggml_sqr(x->c, a);
    struct ggml_tensor *e = ggml_get_rows(x->c, d, ggml_view_1d(x->c, b, 1, 0));
    split(x, e);
    expect(x, d, x->sim, "2.down");
    expect(x, b, x->cpu, "3.best");
    assert_ptr_equal(ggml_backend_sched_get_tensor_backend(x->s, e), x->sim);
    assert_int_equal(ggml_backend_sched_get_n_splits(x->s), 3);
}

// Pass 3, unassigned nodes: where most sources can be read. Nothing is assigned before or after it.
static void test_best(void **state) {
    struct world *x = *state;
    struct ggml_tensor *in = input(x), *a = ggml_relu(x->c, in);
    split(x, a);
    expect(x, a, x->cpu, "3.best");
}

// Pass 3, upgrade: two processors share one kind of memory; a node of the second moves to the first once its sources can be
// read there.
static void test_upgrade(void **state) {
    struct world *x = *state;
    ggml_backend_t other = ggml_backend_cpu_init(), backends[] = {other, x->cpu};
    ggml_backend_sched_t s = ggml_backend_sched_new(backends, NULL, 2, 256, false, false);
    struct ggml_tensor *in = input(x), *a = ggml_relu(x->c, in);
    ggml_backend_sched_set_tensor_backend(s, in, x->cpu);
    ggml_build_forward_expand(x->g, a);
    ggml_backend_sched_split_graph(s, x->g);
    assert_ptr_equal(ggml_backend_sched_get_tensor_backend(s, a), other);
    // by spreading alone it would have stayed: b follows a preset of the second backend, then moves up
    struct ggml_cgraph *g = ggml_new_graph_custom(x->c, 32, false);
    struct ggml_tensor *p = ggml_relu(x->c, in), *b = ggml_sqr(x->c, p);
    ggml_backend_sched_reset(s);
    ggml_backend_sched_set_tensor_backend(s, p, x->cpu);
    ggml_build_forward_expand(g, b);
    ggml_backend_sched_split_graph(s, g);
    assert_ptr_equal(ggml_backend_sched_get_tensor_backend(s, p), x->cpu);
    assert_ptr_equal(ggml_backend_sched_get_tensor_backend(s, b), other);
    assert_string_equal(s->entries[sched_find(s, b)].cause, "3.upg");
    ggml_backend_sched_free(s);
    ggml_backend_free(other);
}

// Pass 4: a constant that nothing else places goes to its reader; a view to its source.
static void test_sources(void **state) {
    struct world *x = *state;
    struct ggml_tensor *bias = ggml_new_tensor_1d(x->c, GGML_TYPE_F32, 16);  // neither input nor weight
    struct ggml_tensor *a = mul(x, x->dev, input(x)), *v = ggml_transpose(x->c, a), *b = ggml_cont(x->c, v),
                       *d = ggml_add(x->c, a, bias);
    struct ggml_tensor *out = ggml_add(x->c, ggml_cont(x->c, ggml_transpose(x->c, b)), d);
    split(x, out);
    expect(x, bias, x->sim, "4.cur");
    expect(x, v, x->sim, "4.vsrc");
    assert_int_equal(x->s->n_copies, 1);  // the input alone
}

// Pass 5: one copy serves all readers of a split's backend, and the graph itself is not changed.
static void test_split(void **state) {
    struct world *x = *state;
    struct ggml_tensor *in = input(x), *a = mul(x, x->dev, in), *b = mul(x, x->dev_b, in), *d = ggml_add(x->c, a, b);
    struct ggml_tensor *e = mul(x, x->host, d), *out = ggml_add(x->c, mul(x, x->dev, e), d);
    split(x, out);
    assert_int_equal(ggml_backend_sched_get_n_splits(x->s), 3);
    assert_int_equal(x->s->splits[0].n_copies, 1);
    assert_int_equal(x->s->splits[1].n_copies, 1);
    assert_int_equal(x->s->splits[2].n_copies, 1);
    assert_ptr_equal(a->src[1], in);
    assert_ptr_equal(b->src[1], in);
    assert_ptr_equal(e->src[1], d);
    assert_true(ggml_backend_sched_alloc_graph(x->s, x->g));
    assert_ptr_equal(a->src[1], in);
    assert_int_equal(ggml_backend_sched_graph_compute(x->s, x->g), GGML_STATUS_SUCCESS);
}

// A copy is made again when its source was written in between.
static void test_stale_copy(void **state) {
    struct world *x = *state;
    struct ggml_tensor *in = input(x), *cache = ggml_dup_tensor(x->c, in);
    ggml_backend_buffer_t buf = ggml_backend_alloc_buffer(x->cpu, 4096);
    struct ggml_tallocr ta = ggml_tallocr_new(buf);
    assert_int_equal(ggml_tallocr_alloc(&ta, cache), GGML_STATUS_SUCCESS);
    ggml_backend_buffer_clear(buf, 0);
    struct ggml_tensor *a = mul(x, x->dev, cache), *w = ggml_cpy(x->c, in, cache), *b = mul(x, x->dev, cache);
    ggml_build_forward_expand(x->g, a);
    ggml_build_forward_expand(x->g, w);
    struct ggml_tensor *out = ggml_sub(x->c, b, a);
    ggml_set_output(out);
    ggml_build_forward_expand(x->g, out);
    float one[64], got[64], unit[256] = {0};
    for (int i = 0; i < 64; i++) one[i] = (float) (i + 1);
    for (int i = 0; i < 16; i++) unit[17 * i] = 1.0f;
    ggml_backend_tensor_set(x->dev, unit, 0, sizeof(unit));
    assert_true(ggml_backend_sched_alloc_graph(x->s, x->g));
    assert_int_equal(x->s->n_copies, 2);
    ggml_backend_tensor_set(in, one, 0, sizeof(one));
    assert_int_equal(ggml_backend_sched_graph_compute(x->s, x->g), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get(out, got, 0, sizeof(got));
    assert_memory_equal(got, one, sizeof(one));
    ggml_backend_buffer_free(buf);
}

// The classic example: twelve nodes of a small network, the first weights on the host, the later ones on the device.
static void test_twelve_nodes(void **state) {
    struct world *x = *state;
    struct ggml_context *c = x->c;
    struct ggml_tensor *in = input(x), *n[12];
    n[0] = ggml_rms_norm(c, in, 1e-5f);
    n[1] = mul(x, x->host, n[0]);
    n[2] = ggml_relu(c, n[1]);
    n[3] = mul(x, x->host_b, n[2]);
    n[4] = ggml_add(c, n[3], in);
    n[5] = ggml_rms_norm(c, n[4], 1e-5f);
    n[6] = mul(x, x->dev, n[5]);
    n[7] = ggml_relu(c, n[6]);
    n[8] = mul(x, x->dev_b, n[7]);
    n[9] = ggml_add(c, n[8], n[4]);
    n[10] = ggml_rms_norm(c, n[9], 1e-5f);
    n[11] = ggml_soft_max(c, n[10]);
    split(x, n[11]);
    assert_int_equal(ggml_graph_n_nodes(x->g), 12);
    static const char *const cause[12] = {"2.rest", "1.wgt",  "2.rest", "1.wgt",  "2.up",   "2.up",
                                          "1.wgt",  "2.down", "1.wgt",  "2.down", "2.down", "2.down"};
    for (int i = 0; i < 12; i++) expect(x, n[i], i < 4 ? x->cpu : x->sim, cause[i]);
    assert_int_equal(ggml_backend_sched_get_n_splits(x->s), 2);
    assert_int_equal(x->s->splits[1].i_start, 4);
    assert_int_equal(x->s->splits[1].n_copies, 2);  // node 3 and the input
}

// A result in a buffer whose device lacks the operation: refused with a sentence.
static void test_impossible(void **state) {
    struct world *x = *state;
    struct ggml_tensor *t = ggml_argsort(x->c, input(x), GGML_SORT_ORDER_ASC);
    ggml_backend_buffer_t buf = ggml_backend_alloc_buffer(x->sim, 4096);
    struct ggml_tallocr ta = ggml_tallocr_new(buf);
    assert_int_equal(ggml_tallocr_alloc(&ta, t), GGML_STATUS_SUCCESS);
    ggml_build_forward_expand(x->g, t);
    assert_false(ggml_backend_sched_alloc_graph(x->s, x->g));
    assert_error("no backend that can use that buffer");
    assert_int_equal(ggml_backend_sched_graph_compute(x->s, x->g), GGML_STATUS_ALLOC_FAILED);
    ggml_clear_error();
    ggml_backend_buffer_free(buf);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
int main(void) {
    setenv("LAMINA_SIM", "1", 1);
    quiet();
    const struct CMUnitTest tests[] = {
        CASE(test_weights), CASE(test_down),       CASE(test_up),           CASE(test_rest),
        CASE(test_lacking), CASE(test_best),       CASE(test_upgrade),      CASE(test_sources),
        CASE(test_split),   CASE(test_stale_copy), CASE(test_twelve_nodes), CASE(test_impossible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
