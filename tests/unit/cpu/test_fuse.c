// Nodes computed as one have the bits they have one by one.
#include "test.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/fuse/fuse.h"
#include "alloc/gallocr.h"
#include "device/device.h"
#include "support/guarded.h"

#include <math.h>
#include <stdlib.h>

static struct ggml_context *c;
static uint64_t serial;

static int begin(void **state) {
    (void) state;
    quiet();
    ggml_clear_error();
    c = ggml_init((struct ggml_init_params){.mem_size = (size_t) 256 << 20});
    serial = 1;
    return 0;
}

static int end(void **state) {
    (void) state;
    ggml_free(c);
    return 0;
}

static float number(void) {
    serial = serial * 6364136223846793005u + 1442695040888963407u;
    return (float) ((double) (serial >> 40) / 8388608.0 - 1.0);
}

static struct ggml_tensor *numbers(enum ggml_type type, int64_t n0, int64_t n1) {
    struct ggml_tensor *t = ggml_new_tensor_2d(c, type, n0, n1);
    float *x = malloc((size_t) (n0 * n1) * sizeof *x);
    for (int64_t i = 0; i < n0 * n1; i++) x[i] = number();
    ggml_quantize_chunk(type, x, t->data, 0, n1, n0, NULL);
    free(x);
    return t;
}

// All nodes computed with n_threads, one by one or not.
static void compute(struct ggml_cgraph *g, int n_threads, bool singly) {
    struct ggml_cplan plan = ggml_graph_plan(g, n_threads, NULL);
    plan.work_data = malloc(plan.work_size + 1);
    memset(plan.work_data, 0xff, plan.work_size);
    assert_int_equal(cpu_graph_compute(g, &plan, NULL, singly), GGML_STATUS_SUCCESS);
    free(plan.work_data);
}

static const int threads[] = {1, 2, 3, 5};

static void check_same_bits(struct ggml_cgraph *g, struct ggml_tensor *const *results, int n) {
    uint8_t *expected[8];
    compute(g, 1, true);
    for (int i = 0; i < n; i++) {
        expected[i] = malloc(ggml_nbytes(results[i]));
        memcpy(expected[i], results[i]->data, ggml_nbytes(results[i]));
    }
    for (size_t k = 0; k < sizeof threads / sizeof *threads; k++) {
        for (int i = 0; i < n; i++) memset(results[i]->data, 0xff, ggml_nbytes(results[i]));
        compute(g, threads[k], false);
        for (int i = 0; i < n; i++) assert_memory_equal(results[i]->data, expected[i], ggml_nbytes(results[i]));
    }
    for (int i = 0; i < n; i++) free(expected[i]);
}

// ---- products of one activation -------------------------------------------------------------------------------------

static int span(const struct ggml_cgraph *g, int i, const char *name) {
    int n;
    const struct fuse *f = fuse_find(g, i, &n);
    if (!f) return 0;
    assert_string_equal(f->name, name);
    return n;
}

static void check_shared(const enum ggml_type types[3], int64_t k, int64_t m, int64_t n_col) {
    struct ggml_cgraph *g = ggml_new_graph(c);
    struct ggml_tensor *x = numbers(GGML_TYPE_F32, k, n_col), *y[3];
    for (int i = 0; i < 3; i++) {
        y[i] = ggml_mul_mat(c, numbers(types[i], k, m + 16 * i), x);
        ggml_build_forward_expand(g, i == 1 ? ggml_reshape_3d(c, y[i], 8, (m + 16) / 8, n_col) : y[i]);
    }
    assert_int_equal(span(g, 0, "shared"), 4);
    check_same_bits(g, y, 3);
}

static void test_products(void **state) {
    (void) state;
    static const enum ggml_type sets[][3] = {
        {GGML_TYPE_Q4_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_0}, {GGML_TYPE_Q4_K, GGML_TYPE_Q6_K, GGML_TYPE_Q4_K},
        {GGML_TYPE_F16, GGML_TYPE_F32, GGML_TYPE_BF16},   {GGML_TYPE_Q8_0, GGML_TYPE_F32, GGML_TYPE_Q4_1},
        {GGML_TYPE_F32, GGML_TYPE_F32, GGML_TYPE_F32},
    };
    static const int64_t columns[] = {1, 2, 7, 33, 80};
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++)
        for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) check_shared(sets[s], 512, 72, columns[i]);
    check_shared(sets[1], 2048, 40, 9);  // too many elements for every thread to encode them for itself
}

// A result may lie over what an earlier product read: then they run one after the other.
static void test_products_over_weights(void **state) {
    (void) state;
    struct ggml_cgraph *g = ggml_new_graph(c);
    struct ggml_tensor *x = numbers(GGML_TYPE_F32, 256, 3), *w = numbers(GGML_TYPE_F32, 256, 64);
    struct ggml_tensor *a = ggml_mul_mat(c, w, x), *b = ggml_mul_mat(c, numbers(GGML_TYPE_F32, 256, 64), x);
    ggml_build_forward_expand(g, a);
    ggml_build_forward_expand(g, b);
    assert_int_equal(span(g, 0, "shared"), 2);
    float *weights = malloc(ggml_nbytes(w)), *expected = malloc(ggml_nbytes(a));
    memcpy(weights, w->data, ggml_nbytes(w));
    compute(g, 1, true);
    memcpy(expected, a->data, ggml_nbytes(a));
    b->data = w->data;
    for (size_t k = 0; k < sizeof threads / sizeof *threads; k++) {
        memcpy(w->data, weights, ggml_nbytes(w));
        memset(a->data, 0xff, ggml_nbytes(a));
        compute(g, threads[k], false);
        assert_memory_equal(a->data, expected, ggml_nbytes(a));
    }
    free(weights);
    free(expected);
}

// Other activations, results that a later product reads, batches: no match.
static void test_no_products(void **state) {
    (void) state;
    struct ggml_tensor *x = numbers(GGML_TYPE_F32, 64, 3), *z = numbers(GGML_TYPE_F32, 64, 3);
    struct ggml_tensor *w = numbers(GGML_TYPE_F32, 64, 64);
    struct ggml_cgraph *g = ggml_new_graph(c);
    ggml_build_forward_expand(g, ggml_mul_mat(c, w, x));
    ggml_build_forward_expand(g, ggml_mul_mat(c, w, z));
    assert_int_equal(span(g, 0, ""), 0);
    g = ggml_new_graph(c);
    ggml_build_forward_expand(g, ggml_mul_mat(c, w, x));
    ggml_build_forward_expand(g, ggml_sqr(c, x));
    ggml_build_forward_expand(g, ggml_mul_mat(c, w, x));
    assert_int_equal(span(g, 0, ""), 0);
    // the second product's weights are the first one's result: they match by their form, and run in turn
    g = ggml_new_graph(c);
    struct ggml_tensor *a = ggml_mul_mat(c, w, x);
    struct ggml_tensor *b = ggml_mul_mat(c, a, x);
    ggml_build_forward_expand(g, b);
    check_same_bits(g, (struct ggml_tensor *const[]){a, b}, 2);
}

// The list of steps that a backend keeps serves the same graph again, and other graphs and thread counts in between.
static void test_kept_steps(void **state) {
    (void) state;
    ggml_backend_t cpu = ggml_backend_cpu_init();
    struct ggml_tensor *x = numbers(GGML_TYPE_F32, 256, 5), *y[2], *z;
    struct ggml_cgraph *g = ggml_new_graph(c), *h = ggml_new_graph(c);
    for (int i = 0; i < 2; i++) {
        y[i] = ggml_mul_mat(c, numbers(GGML_TYPE_Q8_0, 256, 96), x);
        ggml_build_forward_expand(g, y[i]);
    }
    z = ggml_add(c, y[0], y[1]);
    ggml_build_forward_expand(h, ggml_sqr(c, z));
    compute(g, 1, true);
    uint8_t *expected = malloc(ggml_nbytes(y[1]));
    memcpy(expected, y[1]->data, ggml_nbytes(y[1]));
    for (int round = 0; round < 8; round++) {
        ggml_backend_cpu_set_n_threads(cpu, 1 + round % 4);
        memset(y[1]->data, 0xff, ggml_nbytes(y[1]));
        assert_int_equal(device_graph_compute(cpu, g, round == 5 ? GGML_COMPUTE_NO_FUSE : 0), GGML_STATUS_SUCCESS);
        assert_memory_equal(y[1]->data, expected, ggml_nbytes(y[1]));
        if (round % 3 == 2) assert_int_equal(ggml_backend_graph_compute(cpu, h), GGML_STATUS_SUCCESS);
    }
    free(expected);
    ggml_backend_free(cpu);
}

// ---- linear maps and their surroundings -----------------------------------------------------------------------------

// What is planned to be computed as one runs in a NaN-filled buffer of exactly the planned size, and has the bits of a run in
// which every node has memory of its own and is computed by itself.
struct plan {
    struct ggml_context *c, *weights;
    struct ggml_cgraph *g;
    ggml_backend_buffer_t buffer;
    struct ggml_tensor *inputs[8];
    int n_inputs;
    bool keep;  // inner results are outputs, too
    int64_t n_col;
    enum ggml_type type, other;
};

typedef struct ggml_tensor *(*build_fn)(struct plan *p, struct ggml_tensor *x);

static struct ggml_tensor *weight(struct plan *p, enum ggml_type type, int64_t n0, int64_t n1) {
    return ggml_new_tensor_2d(p->weights, type, n0, n1);
}

static struct ggml_tensor *input(struct plan *p, int64_t n0, int64_t n1) {
    struct ggml_tensor *t = ggml_new_tensor_2d(p->c, GGML_TYPE_F32, n0, n1);
    ggml_set_input(t);
    return p->inputs[p->n_inputs++] = t;
}

static struct ggml_tensor *inner(struct plan *p, struct ggml_tensor *t) {
    if (p->keep) ggml_set_output(t);
    return t;
}

enum { EXPERTS = 5 };

static void set_numbers(struct ggml_tensor *t, uint64_t seed) {
    serial = seed;
    const int64_t n = ggml_nelements(t);
    if (t->type == GGML_TYPE_I32) {  // numbers of experts; of a token's, no two are the same
        int32_t *ids = malloc((size_t) n * sizeof *ids);
        for (int64_t i = 0; i < n; i++)
            ids[i] = i % t->ne[0] ? (ids[i - 1] + 2) % EXPERTS : (int32_t) (fabsf(number()) * 1000) % (EXPERTS - 1);
        ggml_backend_tensor_set(t, ids, 0, ggml_nbytes(t));
        free(ids);
        return;
    }
    float *x = malloc((size_t) n * sizeof *x);
    uint8_t *bytes = malloc(ggml_nbytes(t));
    for (int64_t i = 0; i < n; i++) x[i] = number();
    ggml_quantize_chunk(t->type, x, bytes, 0, ggml_nrows(t), t->ne[0], NULL);
    ggml_backend_tensor_set(t, bytes, 0, ggml_nbytes(t));
    free(bytes);
    free(x);
}

static void plan_build(struct plan *p, build_fn build) {
    p->c = ggml_init((struct ggml_init_params){.mem_size = 1 << 20, .no_alloc = true});
    p->weights = ggml_init((struct ggml_init_params){.mem_size = 1 << 16, .no_alloc = true});
    p->g = ggml_new_graph(p->c);
    struct ggml_tensor *y = build(p, input(p, 96, p->n_col));
    ggml_set_output(y);
    ggml_build_forward_expand(p->g, y);
    p->buffer = ggml_backend_alloc_ctx_tensors_from_buft(p->weights, ggml_backend_cpu_buffer_type());
    uint64_t seed = 7;
    for (struct ggml_tensor *t = ggml_get_first_tensor(p->weights); t; t = ggml_get_next_tensor(p->weights, t))
        set_numbers(t, seed++);
}

static void plan_end(struct plan *p) {
    ggml_backend_buffer_free(p->buffer);
    ggml_free(p->c);
    ggml_free(p->weights);
}

static void plan_set(struct plan *p) {
    for (int i = 0; i < p->n_inputs; i++) set_numbers(p->inputs[i], (uint64_t) i + 100);
}

static void compare(struct ggml_cgraph *a, struct ggml_cgraph *b) {
    for (int i = 0; i < ggml_graph_n_nodes(a); i++) {
        struct ggml_tensor *x = ggml_graph_node(a, i), *y = ggml_graph_node(b, i);
        if (x->flags & GGML_TENSOR_FLAG_OUTPUT) assert_memory_equal(x->data, y->data, ggml_nbytes(x));
    }
}

// n_none: nodes that need no memory, when inner results are not kept.
static void check_fused(build_fn build, int n_none) {
    static const int64_t columns[] = {1, 3, 40, 700};
    static const enum ggml_type types[][2] = {
        {GGML_TYPE_Q8_0, GGML_TYPE_Q8_0}, {GGML_TYPE_Q4_0, GGML_TYPE_Q5_1}, {GGML_TYPE_F32, GGML_TYPE_F16}};
    ggml_backend_t cpu = ggml_backend_cpu_init();
    for (int round = 0; round < 24; round++) {
        struct plan plain = {.keep = round % 2, .n_col = columns[round / 2 % 4], .type = types[round / 8][0]};
        plain.other = types[round / 8][1];
        struct plan tight = plain;
        plan_build(&plain, build);
        plan_build(&tight, build);
        ggml_backend_buffer_t apart = ggml_backend_alloc_ctx_tensors_from_buft(plain.c, ggml_backend_cpu_buffer_type());
        plan_set(&plain);
        ggml_backend_cpu_set_n_threads(cpu, 1);
        assert_int_equal(device_graph_compute(cpu, plain.g, GGML_COMPUTE_NO_FUSE), GGML_STATUS_SUCCESS);
        struct guarded g;
        ggml_gallocr_t ga = ggml_gallocr_new(guarded_make(&g, SIZE_MAX, ggml_backend_get_device(cpu)));
        assert_true(ggml_gallocr_alloc_graph(ga, tight.g));
        if (!plain.keep) assert_int_equal(ga->layout.n_fused, n_none);
        for (size_t k = 0; k < sizeof threads / sizeof *threads; k++) {
            plan_set(&tight);
            ggml_backend_cpu_set_n_threads(cpu, threads[k]);
            assert_int_equal(ggml_backend_graph_compute(cpu, tight.g), GGML_STATUS_SUCCESS);
            compare(plain.g, tight.g);
        }
        ggml_gallocr_free(ga);
        assert_false(g.broken);
        ggml_backend_buffer_free(apart);
        plan_end(&plain);
        plan_end(&tight);
    }
    ggml_backend_free(cpu);
}

static struct ggml_tensor *normed(struct plan *p, struct ggml_tensor *x) {
    return ggml_mul(p->c, inner(p, ggml_rms_norm(p->c, x, 1e-5f)), weight(p, GGML_TYPE_F32, x->ne[0], 1));
}

// A norm and three products, one with a bias; then their sum, which is none of it.
static struct ggml_tensor *build_norm(struct plan *p, struct ggml_tensor *x) {
    struct ggml_tensor *h = inner(p, normed(p, x)), *y[3];
    for (int i = 0; i < 3; i++) {
        y[i] = ggml_mul_mat(p->c, weight(p, i == 1 ? p->other : p->type, 96, 80), h);
        if (i == 1) y[i] = ggml_add(p->c, inner(p, y[i]), weight(p, GGML_TYPE_F32, 80, 1));
        ggml_build_forward_expand(p->g, y[i]);
    }
    struct ggml_tensor *s = ggml_soft_max(p->c, ggml_reshape_3d(p->c, y[0], 40, 2, p->n_col));
    return ggml_add(p->c, ggml_add(p->c, ggml_reshape_2d(p->c, s, 80, p->n_col), y[1]), y[2]);
}

static void test_norm(void **state) {
    (void) state;
    check_fused(build_norm, 3);
}

// A layer: feed-forward with gate and up, and the residual.
static struct ggml_tensor *build_gated(struct plan *p, struct ggml_tensor *x) {
    struct ggml_tensor *r = ggml_scale(p->c, x, 1.5f), *h = normed(p, r);
    struct ggml_tensor *gate = inner(p, ggml_mul_mat(p->c, weight(p, p->type, 96, 160), h));
    struct ggml_tensor *up = ggml_mul_mat(p->c, weight(p, p->other, 96, 160), h);
    struct ggml_tensor *a = ggml_swiglu_split(p->c, gate, up);
    return ggml_add(p->c, ggml_mul_mat(p->c, weight(p, p->type, 160, 96), a), r);
}

static void test_gated(void **state) {
    (void) state;
    check_fused(build_gated, 5);
}

// Both halves in one product; the second one first.
static struct ggml_tensor *build_halves(struct plan *p, struct ggml_tensor *x) {
    struct ggml_tensor *gu = inner(p, ggml_mul_mat(p->c, weight(p, p->type, 96, 320), x));
    struct ggml_tensor *a = ggml_swiglu(p->c, gu);
    struct ggml_tensor *b = ggml_geglu_swapped(p->c, ggml_mul_mat(p->c, weight(p, p->other, 160, 192), a));
    return ggml_add(p->c, b, x);
}

static void test_halves(void **state) {
    (void) state;
    check_fused(build_halves, 3);
}

// A product per head, joined with further rows that are read where they lie.
static struct ggml_tensor *build_joined(struct plan *p, struct ggml_tensor *x) {
    struct ggml_tensor *w = ggml_new_tensor_3d(p->weights, p->type, 32, 40, 3);
    struct ggml_tensor *q = ggml_reshape_3d(p->c, ggml_scale(p->c, x, 0.5f), 32, 3, p->n_col);
    struct ggml_tensor *y = inner(p, ggml_mul_mat(p->c, w, ggml_permute(p->c, q, 0, 2, 1, 3)));
    struct ggml_tensor *rest = ggml_view_3d(p->c, q, 8, 3, p->n_col, q->nb[1], q->nb[2], 16 * sizeof(float));
    return ggml_concat(p->c, ggml_permute(p->c, y, 0, 2, 1, 3), rest, 0);
}

static void test_joined(void **state) {
    (void) state;
    check_fused(build_joined, 1);
}

// Layer norm with scale and shift; bias, activation, scale, residual on the right and on the left.
static struct ggml_tensor *build_classic(struct plan *p, struct ggml_tensor *x) {
    struct ggml_tensor *h = ggml_mul(p->c, inner(p, ggml_norm(p->c, x, 1e-5f)), weight(p, GGML_TYPE_F32, 96, 1));
    h = ggml_add(p->c, h, weight(p, GGML_TYPE_F32, 96, 1));
    h = ggml_add(p->c, ggml_mul_mat(p->c, weight(p, p->type, 96, 224), h), weight(p, GGML_TYPE_F32, 224, 1));
    h = ggml_gelu(p->c, inner(p, h));
    h = ggml_mul_mat(p->c, weight(p, p->other, 224, 96), h);
    h = ggml_scale(p->c, ggml_add(p->c, h, weight(p, GGML_TYPE_F32, 96, 1)), 0.5f);
    return ggml_add(p->c, x, h);
}

static void test_classic(void **state) {
    (void) state;
    check_fused(build_classic, 8);
}

// The residual is also what the norm reads: its memory must not be taken, for all of it is needed until the end.
static struct ggml_tensor *build_residual_is_normed(struct plan *p, struct ggml_tensor *x) {
    struct ggml_tensor *r = ggml_scale(p->c, x, 0.75f);
    return ggml_add(p->c, ggml_mul_mat(p->c, weight(p, p->type, 96, 96), normed(p, r)), r);
}

static void test_residual_is_normed(void **state) {
    (void) state;
    check_fused(build_residual_is_normed, 3);
}

// ---- mixtures of experts --------------------------------------------------------------------------------------------

enum { USED = 3 };
static int n_used = USED;

static struct ggml_tensor *experts(struct plan *p, enum ggml_type type, int64_t n0, int64_t n1) {
    return ggml_new_tensor_3d(p->weights, type, n0, n1, EXPERTS);
}

static struct ggml_tensor *chosen(struct plan *p) {
    struct ggml_tensor *ids = ggml_new_tensor_2d(p->c, GGML_TYPE_I32, n_used, p->n_col);
    ggml_set_input(ids);
    return p->inputs[p->n_inputs++] = ids;
}

static struct ggml_tensor *weighted_sum(struct plan *p, struct ggml_tensor *y) {
    struct ggml_tensor *w = ggml_reshape_3d(p->c, input(p, n_used, p->n_col), 1, n_used, p->n_col), *sum = NULL;
    ggml_build_forward_expand(p->g, w);
    y = inner(p, ggml_mul(p->c, y, w));
    for (int i = 0; i < n_used; i++) {
        struct ggml_tensor *v = ggml_view_2d(p->c, y, y->ne[0], p->n_col, y->nb[2], (size_t) i * y->nb[1]);
        sum = sum ? inner(p, ggml_add(p->c, sum, v)) : v;
    }
    return sum;
}

static struct ggml_tensor *build_experts(struct plan *p, struct ggml_tensor *x) {
    struct ggml_tensor *ids = chosen(p), *in = ggml_reshape_3d(p->c, x, 96, 1, p->n_col);
    struct ggml_tensor *gate = ggml_mul_mat_id(p->c, experts(p, p->type, 96, 160), in, ids);
    struct ggml_tensor *up = inner(p, ggml_mul_mat_id(p->c, experts(p, p->type, 96, 160), in, ids));
    struct ggml_tensor *y = ggml_swiglu_split(p->c, gate, up);
    y = ggml_mul_mat_id(p->c, experts(p, p->other, 160, 80), y, ids);
    return weighted_sum(p, y);
}

static void test_experts(void **state) {
    (void) state;
    check_fused(build_experts, 2 + 1 + 1 + USED - 2);
}

// Biases, and an activation that sees both.
static struct ggml_tensor *build_biased(struct plan *p, struct ggml_tensor *x) {
    struct ggml_tensor *ids = chosen(p), *in = ggml_reshape_3d(p->c, x, 96, 1, p->n_col), *h[2];
    for (int i = 0; i < 2; i++) {
        h[i] = ggml_mul_mat_id(p->c, experts(p, p->type, 96, 160), in, ids);
        h[i] = ggml_add_id(p->c, inner(p, h[i]), weight(p, GGML_TYPE_F32, 160, EXPERTS), ids);
    }
    struct ggml_tensor *y = ggml_swiglu_oai(p->c, h[0], h[1], 1.702f, 7.0f);
    y = inner(p, ggml_mul_mat_id(p->c, experts(p, p->other, 160, 80), y, ids));
    return weighted_sum(p, ggml_add_id(p->c, y, weight(p, GGML_TYPE_F32, 80, EXPERTS), ids));
}

static void test_biased(void **state) {
    (void) state;
    check_fused(build_biased, 4 + 2 + 1 + USED - 2);
}

// Gate and up in one product; and one product with a function of it.
static struct ggml_tensor *build_expert_halves(struct plan *p, struct ggml_tensor *x) {
    struct ggml_tensor *ids = chosen(p), *in = ggml_reshape_3d(p->c, x, 96, 1, p->n_col);
    struct ggml_tensor *y = ggml_geglu_swapped(p->c, inner(p, ggml_mul_mat_id(p->c, experts(p, p->type, 96, 192), in, ids)));
    y = ggml_sqr(p->c, inner(p, ggml_relu(p->c, ggml_mul_mat_id(p->c, experts(p, p->other, 96, 96), y, ids))));
    return weighted_sum(p, ggml_mul_mat_id(p->c, experts(p, p->type, 96, 80), y, ids));
}

static void test_expert_halves(void **state) {
    (void) state;
    check_fused(build_expert_halves, 1 + 2 + 2 + USED - 2);
}

// What is reserved is enough for fewer tokens; sixteen experts of a token, their views and sums are the longest step there is.
static void test_fewer_tokens(void **state) {
    (void) state;
    static const build_fn builds[] = {build_experts, build_biased, build_joined, build_gated};
    for (int k = 0; k < 8; k++) {
        n_used = k < 4 ? USED : 16;
        struct plan p = {.n_col = 70, .type = GGML_TYPE_Q8_0, .other = GGML_TYPE_Q8_0};
        plan_build(&p, builds[k % 4]);
        const size_t most = ggml_graph_work_most(p.g, 3);
        assert_true(most >= ggml_graph_plan(p.g, 3, NULL).work_size);
        plan_end(&p);
        for (int n_col = 1; n_col < 70; n_col++) {
            struct plan few = {.n_col = n_col, .type = GGML_TYPE_Q8_0, .other = GGML_TYPE_Q8_0};
            plan_build(&few, builds[k % 4]);
            assert_true(ggml_graph_plan(few.g, 3, NULL).work_size <= most);
            plan_end(&few);
        }
    }
    n_used = USED;
}

// An expert that does not exist fails the step, as it does the node.
static void test_no_such_expert(void **state) {
    (void) state;
    ggml_backend_t cpu = ggml_backend_cpu_init();
    struct plan p = {.n_col = 3, .type = GGML_TYPE_Q8_0, .other = GGML_TYPE_Q8_0};
    plan_build(&p, build_experts);
    ggml_gallocr_t ga = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    assert_true(ggml_gallocr_alloc_graph(ga, p.g));
    plan_set(&p);
    ggml_backend_tensor_set(p.inputs[1], &(int32_t){EXPERTS}, 8, 4);
    ggml_backend_cpu_set_n_threads(cpu, 3);
    assert_int_equal(ggml_backend_graph_compute(cpu, p.g), GGML_STATUS_FAILED);
    assert_error("expert 5 of token 0");
    ggml_gallocr_free(ga);
    plan_end(&p);
    ggml_backend_free(cpu);
}

// What is asked for by a callback must exist; what was planned without memory cannot be shown.
static bool see(struct ggml_tensor *t, bool ask, void *data) {
    if (ask) return true;
    assert_non_null(t->data);
    ++*(int *) data;
    return true;
}

static void test_callback(void **state) {
    (void) state;
    ggml_backend_t cpu = ggml_backend_cpu_init();
    ggml_backend_sched_t sched = ggml_backend_sched_new(&cpu, NULL, 1, 64, false, true);
    struct plan p = {.n_col = 3, .type = GGML_TYPE_Q8_0, .other = GGML_TYPE_Q8_0};
    plan_build(&p, build_gated);
    int seen = 0;
    struct ggml_tensor *y = ggml_graph_node(p.g, -1);
    float *expected = malloc(ggml_nbytes(y));
    for (int round = 0; round < 3; round++) {
        ggml_backend_sched_reset(sched);
        ggml_backend_sched_set_eval_callback(sched, round == 1 ? see : NULL, &seen);
        assert_true(ggml_backend_sched_alloc_graph(sched, p.g));
        plan_set(&p);
        assert_int_equal(ggml_backend_sched_graph_compute(sched, p.g), GGML_STATUS_SUCCESS);
        if (round == 0) ggml_backend_tensor_get(y, expected, 0, ggml_nbytes(y));
        assert_memory_equal(y->data, expected, ggml_nbytes(y));
    }
    assert_int_equal(seen, ggml_graph_n_nodes(p.g));
    // set too late: it sees what there is
    seen = 0;
    plan_set(&p);
    ggml_backend_sched_set_eval_callback(sched, see, &seen);
    assert_int_equal(ggml_backend_sched_graph_compute(sched, p.g), GGML_STATUS_SUCCESS);
    assert_int_equal(seen, ggml_graph_n_nodes(p.g) - 5);
    assert_memory_equal(y->data, expected, ggml_nbytes(y));
    free(expected);
    ggml_backend_sched_free(sched);
    ggml_backend_free(cpu);
    plan_end(&p);
}

// A graph without memory is refused, fused or not.
static void test_no_memory(void **state) {
    (void) state;
    struct plan p = {.n_col = 3, .type = GGML_TYPE_Q8_0, .other = GGML_TYPE_Q8_0};
    plan_build(&p, build_gated);
    struct ggml_cplan plan = ggml_graph_plan(p.g, 1, NULL);
    plan.work_data = malloc(plan.work_size);
    assert_int_equal(ggml_graph_compute(p.g, &plan), GGML_STATUS_FAILED);
    assert_error("allocate the graph first");
    free(plan.work_data);
    plan_end(&p);
}

int main(void) {
    setenv("GGML_OVERSUBSCRIBE", "1", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_products, begin, end),
        cmocka_unit_test_setup_teardown(test_products_over_weights, begin, end),
        cmocka_unit_test_setup_teardown(test_no_products, begin, end),
        cmocka_unit_test_setup_teardown(test_kept_steps, begin, end),
        cmocka_unit_test_setup_teardown(test_norm, begin, end),
        cmocka_unit_test_setup_teardown(test_gated, begin, end),
        cmocka_unit_test_setup_teardown(test_halves, begin, end),
        cmocka_unit_test_setup_teardown(test_joined, begin, end),
        cmocka_unit_test_setup_teardown(test_classic, begin, end),
        cmocka_unit_test_setup_teardown(test_residual_is_normed, begin, end),
        cmocka_unit_test_setup_teardown(test_experts, begin, end),
        cmocka_unit_test_setup_teardown(test_biased, begin, end),
        cmocka_unit_test_setup_teardown(test_expert_halves, begin, end),
        cmocka_unit_test_setup_teardown(test_fewer_tokens, begin, end),
        cmocka_unit_test_setup_teardown(test_no_such_expert, begin, end),
        cmocka_unit_test_setup_teardown(test_callback, begin, end),
        cmocka_unit_test_setup_teardown(test_no_memory, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
