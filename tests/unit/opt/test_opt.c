// Training: datasets, one batch, gradient accumulation, static and dynamic graphs, a small network that learns.
#include "test.h"
#include "ggml-cpu.h"
#include "ggml-opt.h"

#include <math.h>

static ggml_backend_t backend;
static ggml_backend_sched_t sched;

static int begin(void **state) {
    (void) state;
    quiet();
    ggml_clear_error();
    backend = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(backend, 2);
    sched = ggml_backend_sched_new(&backend, NULL, 1, GGML_DEFAULT_GRAPH_SIZE, false, true);
    return 0;
}

static int end(void **state) {
    (void) state;
    ggml_backend_sched_free(sched);
    ggml_backend_free(backend);
    return 0;
}

// ---- datasets ------------------------------------------------------------------------------------------------------------

static ggml_opt_dataset_t counting(int64_t n, int64_t shard) {
    ggml_opt_dataset_t d = ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_F32, 3, 1, n, shard);
    assert_non_null(d);
    for (int64_t i = 0; i < n; i++) {
        for (int k = 0; k < 3; k++) ((float *) ggml_opt_dataset_data(d)->data)[3 * i + k] = (float) (10 * i + k);
        ((float *) ggml_opt_dataset_labels(d)->data)[i] = (float) i;
    }
    return d;
}

static void test_dataset(void **state) {
    (void) state;
    ggml_opt_dataset_t d = counting(12, 2);
    assert_int_equal(ggml_opt_dataset_ndata(d), 12);
    float data[18], labels[6];
    ggml_opt_dataset_get_batch_host(d, data, sizeof data, labels, 1);
    for (int i = 0; i < 6; i++) {
        assert_float_equal(labels[i], (float) (6 + i), 0);
        assert_float_equal(data[3 * i + 2], (float) (10 * (6 + i) + 2), 0);
    }
    ggml_opt_dataset_get_batch_host(d, data, 24, NULL, 5);
    assert_float_equal(data[0], 100.0f, 0);
    ggml_opt_dataset_get_batch_host(d, data, sizeof data, labels, 2);
    assert_error("batch 2 of 2");
    ggml_opt_dataset_get_batch_host(d, data, 12, labels, 0);
    assert_error("no whole number of shards");
    ggml_opt_dataset_free(d);
    ggml_opt_dataset_free(NULL);
    assert_null(ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_F32, 3, 1, 12, 5));
    assert_error("shards of 5");
    assert_null(ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_F32, 0, 1, 12, 1));
    ggml_opt_dataset_t plain = ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_F32, 3, 0, 4, 1);
    assert_null(ggml_opt_dataset_labels(plain));
    ggml_opt_dataset_get_batch_host(plain, data, 12, labels, 0);
    assert_error("it has none");
    ggml_opt_dataset_free(plain);
}

static void test_shuffle(void **state) {
    (void) state;
    ggml_opt_context_t c = ggml_opt_init(ggml_opt_default_params(sched, GGML_OPT_LOSS_TYPE_SUM));
    ggml_opt_dataset_t d = counting(40, 2);
    float data[120], labels[40];
    ggml_opt_dataset_shuffle(c, d, 20);
    ggml_opt_dataset_get_batch_host(d, data, sizeof data, labels, 0);
    bool seen[40] = {false}, moved = false;
    for (int i = 0; i < 40; i++) {
        const int v = (int) labels[i];
        assert_false(seen[v]);
        seen[v] = true;
        moved |= v != i;
        if (i >= 20) assert_int_equal(v, i);
        if (i % 2) assert_int_equal(v, (int) labels[i - 1] + 1);  // shards stay together
        assert_float_equal(data[3 * i], (float) (10 * v), 0);     // data and labels, too
    }
    assert_true(moved);
    ggml_opt_dataset_shuffle(c, d, -1);
    ggml_opt_dataset_shuffle(c, d, 3);
    assert_error("no whole number of shards");
    ggml_opt_dataset_shuffle(c, d, 42);
    assert_error("of 40");
    ggml_opt_dataset_free(d);
    ggml_opt_free(c);
    ggml_opt_free(NULL);
}

// ---- a linear model: y = w x ---------------------------------------------------------------------------------------------

struct model {
    struct ggml_context *ctx, *ctx_compute;
    ggml_backend_buffer_t buffer;
    struct ggml_tensor *w, *x, *y;
};

static struct model linear(int64_t batch) {
    struct model m = {0};
    m.ctx = ggml_init((struct ggml_init_params){.mem_size = 16 * ggml_tensor_overhead(), .no_alloc = true});
    m.ctx_compute = ggml_init((struct ggml_init_params){
        .mem_size = 400 * ggml_tensor_overhead() + 4 * ggml_graph_overhead_custom(GGML_DEFAULT_GRAPH_SIZE, true),
        .no_alloc = true});
    m.w = ggml_set_name(ggml_new_tensor_2d(m.ctx, GGML_TYPE_F32, 3, 1), "w");
    m.x = ggml_set_name(ggml_new_tensor_2d(m.ctx, GGML_TYPE_F32, 3, batch), "x");
    ggml_set_param(m.w);
    m.buffer = ggml_backend_alloc_ctx_tensors(m.ctx, backend);
    ggml_backend_tensor_set(m.w, (float[]){0.5f, -0.25f, 1.0f}, 0, 12);
    m.y = ggml_mul_mat(m.ctx_compute, m.w, m.x);
    return m;
}

static void linear_free(struct model m) {
    ggml_free(m.ctx_compute);
    ggml_free(m.ctx);
    ggml_backend_buffer_free(m.buffer);
}

static ggml_opt_dataset_t line_data(int64_t n) {  // labels are 2 a - b + 3 c
    ggml_opt_dataset_t d = ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_F32, 3, 1, n, 1);
    for (int64_t i = 0; i < n; i++) {
        float *x = (float *) ggml_opt_dataset_data(d)->data + 3 * i;
        for (int k = 0; k < 3; k++) x[k] = sinf((float) ((3 * i + k) * (3 * i + k)) * 0.37f);  // no two alike
        ((float *) ggml_opt_dataset_labels(d)->data)[i] = 2 * x[0] - x[1] + 3 * x[2];
    }
    return d;
}

static struct ggml_opt_optimizer_params fast(void *userdata) {
    struct ggml_opt_optimizer_params p = ggml_opt_get_default_optimizer_params(userdata);
    p.adamw.alpha = 0.05f;
    p.sgd.alpha = 0.2f;
    return p;
}

static void epochs(struct model *m, int32_t period, enum ggml_opt_optimizer_type optimizer, int n, float *w, double *loss) {
    struct ggml_opt_params p = ggml_opt_default_params(sched, GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR);
    p.ctx_compute = m->ctx_compute;
    p.inputs = m->x;
    p.outputs = m->y;
    p.opt_period = period;
    p.optimizer = optimizer;
    p.get_opt_pars = fast;
    ggml_opt_context_t c = ggml_opt_init(p);
    assert_non_null(c);
    assert_true(ggml_opt_static_graphs(c));
    assert_int_equal(ggml_opt_context_optimizer_type(c), optimizer);
    ggml_opt_dataset_t d = line_data(24);
    ggml_opt_result_t train = ggml_opt_result_init(), held = ggml_opt_result_init();
    for (int i = 0; i < n; i++) {
        ggml_opt_result_reset(train);
        ggml_opt_result_reset(held);
        ggml_opt_epoch(c, d, train, held, 16, NULL, NULL);
    }
    int64_t ndata;
    double unc, accuracy;
    ggml_opt_result_ndata(train, &ndata);
    assert_int_equal(ndata, 16);
    ggml_opt_result_ndata(held, &ndata);
    assert_int_equal(ndata, 8);
    ggml_opt_result_loss(held, loss, &unc);
    ggml_opt_result_accuracy(held, &accuracy, &unc);
    assert_true(isnan(accuracy) && isnan(unc));  // a regression has no hits
    ggml_backend_tensor_get(m->w, w, 0, 12);
    ggml_opt_result_free(train);
    ggml_opt_result_free(held);
    ggml_opt_dataset_free(d);
    ggml_opt_free(c);
}

static void test_learns(void **state) {
    (void) state;
    for (int o = 0; o < GGML_OPT_OPTIMIZER_TYPE_COUNT; o++) {
        struct model m = linear(4);
        float w[3];
        double loss;
        epochs(&m, 1, (enum ggml_opt_optimizer_type) o, 80, w, &loss);
        assert_true(loss < 1e-3);
        assert_float_equal(w[0], 2.0f, 0.05);
        assert_float_equal(w[1], -1.0f, 0.05);
        assert_float_equal(w[2], 3.0f, 0.05);
        linear_free(m);
    }
}

// Two batches of 2 make the same step as one of 4, and report the same loss.
static void test_accumulation(void **state) {
    (void) state;
    for (int o = 0; o < GGML_OPT_OPTIMIZER_TYPE_COUNT; o++) {
        struct model one = linear(4), two = linear(2);
        float w1[3], w2[3];
        double loss1, loss2;
        epochs(&one, 1, (enum ggml_opt_optimizer_type) o, 3, w1, &loss1);
        epochs(&two, 2, (enum ggml_opt_optimizer_type) o, 3, w2, &loss2);
        for (int i = 0; i < 3; i++) assert_float_equal(w1[i], w2[i], 1e-5);
        assert_float_equal(loss1, loss2, 1e-5);
        linear_free(one);
        linear_free(two);
    }
}

// The same with graphs that are built anew for each batch.
static void test_dynamic(void **state) {
    (void) state;
    struct model fixed = linear(4);
    float w[3], expected[3];
    double loss;
    epochs(&fixed, 1, GGML_OPT_OPTIMIZER_TYPE_ADAMW, 2, expected, &loss);
    linear_free(fixed);

    struct model m = linear(4);
    struct ggml_opt_params p = ggml_opt_default_params(sched, GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR);
    p.get_opt_pars = fast;
    ggml_opt_context_t c = ggml_opt_init(p);
    assert_false(ggml_opt_static_graphs(c));
    ggml_opt_dataset_t d = line_data(24);
    ggml_opt_alloc(c, true);
    assert_error("ggml_opt_prepare_alloc");
    ggml_opt_eval(c, NULL);
    assert_error("nothing is allocated");
    for (int step = 0; step < 8; step++) {
        ggml_reset(m.ctx_compute);
        m.y = ggml_mul_mat(m.ctx_compute, m.w, m.x);
        struct ggml_cgraph *g = ggml_new_graph_custom(m.ctx_compute, GGML_DEFAULT_GRAPH_SIZE, true);
        ggml_build_forward_expand(g, m.y);
        ggml_opt_prepare_alloc(c, m.ctx_compute, g, m.x, m.y);
        ggml_opt_alloc(c, true);
        ggml_opt_dataset_get_batch(d, m.x, ggml_opt_labels(c), step % 4);
        ggml_opt_eval(c, NULL);
    }
    ggml_backend_tensor_get(m.w, w, 0, 12);
    for (int i = 0; i < 3; i++) assert_float_equal(w[i], expected[i], 1e-6);
    ggml_opt_reset(c, true);
    ggml_opt_dataset_free(d);
    ggml_opt_free(c);
    linear_free(m);
}

// Gradients without steps add up until they are reset.
static void test_gradients_only(void **state) {
    (void) state;
    struct model m = linear(1);
    struct ggml_opt_params p = ggml_opt_default_params(sched, GGML_OPT_LOSS_TYPE_SUM);
    p.ctx_compute = m.ctx_compute;
    p.inputs = m.x;
    p.outputs = m.y;
    p.build_type = GGML_OPT_BUILD_TYPE_GRAD;
    ggml_opt_context_t c = ggml_opt_init(p);
    assert_non_null(c);
    const float x[3] = {1, 2, -4};
    float g[3], loss;
    for (int k = 1; k <= 3; k++) {
        ggml_opt_alloc(c, true);
        ggml_backend_tensor_set(m.x, x, 0, sizeof x);
        ggml_opt_eval(c, NULL);
        ggml_backend_tensor_get(ggml_opt_grad_acc(c, m.w), g, 0, sizeof g);
        for (int i = 0; i < 3; i++) assert_float_equal(g[i], (float) k * x[i], 1e-6);
        ggml_backend_tensor_get(ggml_opt_loss(c), &loss, 0, sizeof loss);
        assert_float_equal(loss, 0.5f - 0.5f - 4.0f, 1e-6);
    }
    ggml_opt_reset(c, false);
    ggml_backend_tensor_get(ggml_opt_grad_acc(c, m.w), g, 0, sizeof g);
    for (int i = 0; i < 3; i++) assert_float_equal(g[i], 0.0f, 0);
    ggml_opt_free(c);
    linear_free(m);
}

// ---- classes -------------------------------------------------------------------------------------------------------------

static int n_callbacks;
static void callback(bool train, ggml_opt_context_t c, ggml_opt_dataset_t d, ggml_opt_result_t r, int64_t i, int64_t n,
                     int64_t t) {
    n_callbacks++;
    assert_true(i >= 1 && i <= n);
    ggml_opt_epoch_callback_progress_bar(train, c, d, r, i, n, t);
}

// Which of two blobs: a network with a hidden layer and a cross entropy.
static void test_classes(void **state) {
    (void) state;
    struct ggml_context *ctx =
        ggml_init((struct ggml_init_params){.mem_size = 16 * ggml_tensor_overhead(), .no_alloc = true});
    struct ggml_context *compute = ggml_init((struct ggml_init_params){.mem_size = 4 << 20, .no_alloc = true});
    struct ggml_tensor *x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 2, 10),
                       *w1 = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 2, 8);
    struct ggml_tensor *b1 = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 8), *w2 = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 8, 2);
    ggml_set_param(w1);
    ggml_set_param(b1);
    ggml_set_param(w2);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, backend);
    ggml_backend_buffer_clear(buffer, 0);
    for (int i = 0; i < 16; i++) {
        ((float *) w1->data)[i] = cosf((float) i * 2.3f);
        ((float *) w2->data)[i] = 0.5f * sinf((float) i * 1.9f);
    }
    struct ggml_tensor *y =
        ggml_mul_mat(compute, w2, ggml_gelu(compute, ggml_add(compute, ggml_mul_mat(compute, w1, x), b1)));
    ggml_opt_dataset_t d = ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_F32, 2, 2, 60, 1);
    for (int i = 0; i < 60; i++) {
        const float angle = (float) i * 0.7f, radius = i % 2 ? 2.0f : 0.5f;  // inside or outside of a circle
        ((float *) ggml_opt_dataset_data(d)->data)[2 * i] = radius * cosf(angle);
        ((float *) ggml_opt_dataset_data(d)->data)[2 * i + 1] = radius * sinf(angle);
        ((float *) ggml_opt_dataset_labels(d)->data)[2 * i + i % 2] = 1.0f;
        ((float *) ggml_opt_dataset_labels(d)->data)[2 * i + 1 - i % 2] = 0.0f;
    }
    struct ggml_opt_params p = ggml_opt_default_params(sched, GGML_OPT_LOSS_TYPE_CROSS_ENTROPY);
    p.ctx_compute = compute;
    p.inputs = x;
    p.outputs = y;
    p.get_opt_pars = fast;
    ggml_opt_context_t c = ggml_opt_init(p);
    assert_non_null(c);
    ggml_opt_result_t train = ggml_opt_result_init(), held = ggml_opt_result_init();
    double first = 0, loss, unc, accuracy;
    n_callbacks = 0;
    for (int epoch = 0; epoch < 60; epoch++) {
        ggml_opt_dataset_shuffle(c, d, 40);
        ggml_opt_result_reset(train);
        ggml_opt_result_reset(held);
        ggml_opt_epoch(c, d, train, held, 40, epoch == 0 ? callback : NULL, epoch == 0 ? callback : NULL);
        ggml_opt_result_loss(held, &loss, &unc);
        if (epoch == 0) first = loss;
    }
    assert_int_equal(n_callbacks, 6);
    assert_true(loss < 0.2 * first && unc >= 0);
    ggml_opt_result_accuracy(held, &accuracy, &unc);
    assert_true(accuracy > 0.95 && unc >= 0);
    int32_t pred[20];
    ggml_opt_result_pred(held, pred);
    int hits = 0;
    for (int i = 0; i < 20; i++) hits += pred[i] == i % 2;
    assert_float_equal((double) hits / 20, accuracy, 1e-9);
    ggml_opt_result_free(train);
    ggml_opt_result_free(held);
    ggml_opt_free(c);
    ggml_opt_dataset_free(d);
    ggml_free(compute);
    ggml_free(ctx);
    ggml_backend_buffer_free(buffer);
}

static void test_fit(void **state) {
    (void) state;
    struct model m = linear(2);
    ggml_opt_dataset_t d = line_data(24);
    float w[3];
    ggml_opt_fit(sched, m.ctx_compute, m.x, m.y, d, GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR, GGML_OPT_OPTIMIZER_TYPE_ADAMW,
                 fast, 100, 4, 0.25f, true);
    assert_string_equal(ggml_last_error(), "");
    ggml_backend_tensor_get(m.w, w, 0, 12);
    assert_float_equal(w[0], 2.0f, 0.1);
    assert_float_equal(w[2], 3.0f, 0.1);
    ggml_opt_fit(sched, m.ctx_compute, m.x, m.y, d, GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR, GGML_OPT_OPTIMIZER_TYPE_ADAMW,
                 fast, 1, 5, 0.25f, true);
    assert_error("batches of 5");
    ggml_opt_dataset_free(d);
    linear_free(m);
}

static void test_refused(void **state) {
    (void) state;
    struct ggml_opt_params p = ggml_opt_default_params(NULL, GGML_OPT_LOSS_TYPE_SUM);
    assert_null(ggml_opt_init(p));
    assert_error("no scheduler");
    p = ggml_opt_default_params(sched, GGML_OPT_LOSS_TYPE_SUM);
    p.opt_period = 0;
    assert_null(ggml_opt_init(p));
    assert_error("opt_period");
    struct model m = linear(2);
    p = ggml_opt_default_params(sched, (enum ggml_opt_loss_type) 9);
    p.ctx_compute = m.ctx_compute;
    assert_null(ggml_opt_init(p));
    assert_error("inputs and outputs");
    p.inputs = m.x;
    p.outputs = m.y;
    assert_null(ggml_opt_init(p));
    assert_error("no kind of loss 9");
    m.w->flags = 0;  // nothing to train
    p.loss_type = GGML_OPT_LOSS_TYPE_SUM;
    assert_null(ggml_opt_init(p));
    assert_error("no parameters");
    linear_free(m);
    struct ggml_opt_optimizer_params constant = fast(NULL), q = ggml_opt_get_constant_optimizer_params(&constant);
    assert_memory_equal(&constant, &q, sizeof q);
    assert_string_equal(ggml_opt_optimizer_name(GGML_OPT_OPTIMIZER_TYPE_SGD), "sgd");
    assert_string_equal(ggml_opt_optimizer_name(GGML_OPT_OPTIMIZER_TYPE_COUNT), "undefined");
}

int main(void) {
#define WITH(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        WITH(test_dataset),        WITH(test_shuffle), WITH(test_learns), WITH(test_accumulation), WITH(test_dynamic),
        WITH(test_gradients_only), WITH(test_classes), WITH(test_fit),    WITH(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
