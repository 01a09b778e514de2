// Gradients: every operation's against differences of its own values, then the rules of the framework.
#include "test.h"
#include "ggml-cpu.h"
#include "graph/graph.h"

#include <math.h>

#define N_PARAMS 3

typedef struct ggml_tensor T;
typedef struct ggml_context C;

static C *c;
static uint32_t seed;

static int begin(void **state) {
    (void) state;
    quiet();
    ggml_clear_error();
    seed = 7;  // a test's numbers do not depend on those before it
    c = ggml_init((struct ggml_init_params){.mem_size = (size_t) 8 << 20});
    return 0;
}

static int end(void **state) {
    (void) state;
    ggml_free(c);
    return 0;
}

// Numbers in [lo, hi) that repeat in no simple pattern and are the same in every run.
static float draw(float lo, float hi) {
    seed = seed * 1664525u + 1013904223u;
    return lo + (hi - lo) * (float) (seed >> 8) / 16777216.0f;
}

static T *tensor(int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3, float lo, float hi) {
    T *t = ggml_new_tensor_4d(c, GGML_TYPE_F32, ne0, ne1, ne2, ne3);
    for (int64_t i = 0; i < ggml_nelements(t); i++) ((float *) t->data)[i] = draw(lo, hi);
    return t;
}

static T *ints(int n, const int32_t *v) {
    T *t = ggml_new_tensor_1d(c, GGML_TYPE_I32, n);
    memcpy(t->data, v, (size_t) n * 4);
    return t;
}

static void compute(struct ggml_cgraph *g) {
    const enum ggml_status status = ggml_graph_compute_with_ctx(c, g, 2);
    if (status != GGML_STATUS_SUCCESS) print_error("%s\n", ggml_last_error());
    assert_int_equal(status, GGML_STATUS_SUCCESS);
}

struct net {
    T *p[N_PARAMS];
    int n_params;
    T *loss;
    struct ggml_cgraph *forward, *both;
};

// The loss is the result weighted by numbers of its own, so that no part of a gradient can hide in a sum.
static void finish(struct net *n, T *out) {
    assert_false(ggml_is_error(out));
    n->loss = ggml_sum(c, ggml_mul(c, out, tensor(out->ne[0], out->ne[1], out->ne[2], out->ne[3], 0.5f, 1.5f)));
    ggml_set_loss(n->loss);
    for (int i = 0; i < n->n_params; i++) ggml_set_param(n->p[i]);
    n->forward = ggml_new_graph_custom(c, 256, false);
    ggml_build_forward_expand(n->forward, n->loss);
    n->both = ggml_new_graph_custom(c, 512, true);
    ggml_build_forward_expand(n->both, n->loss);
    ggml_build_backward_expand(c, n->both, NULL);
    if (n->both->failure[0]) print_error("%s\n", n->both->failure);
    assert_string_equal(n->both->failure, "");
    ggml_graph_reset(n->both);
    compute(n->both);
}

static double loss_at(struct net *n, float *x, float value) {
    const float before = *x;
    *x = value;
    compute(n->forward);
    *x = before;
    return (double) *(float *) n->loss->data;
}

static void check(struct net *n, T *out) {
    finish(n, out);
    for (int i = 0; i < n->n_params; i++) {
        T *grad = ggml_graph_get_grad(n->both, n->p[i]);
        assert_non_null(grad);
        assert_true(ggml_are_same_shape(grad, n->p[i]) && ggml_is_contiguous(grad) && grad->type == GGML_TYPE_F32);
        float *x = n->p[i]->data, *g = malloc(ggml_nbytes(grad));
        memcpy(g, grad->data, ggml_nbytes(grad));
        for (int64_t k = 0; k < ggml_nelements(grad); k++) {
            const float h = 2e-3f;
            const double slope = (loss_at(n, &x[k], x[k] + h) - loss_at(n, &x[k], x[k] - h)) / (2.0 * (double) h);
            const double tolerance = 5e-3 + 1e-2 * fabs(slope);
            if (!(fabs(slope - (double) g[k]) <= tolerance)) {
                print_error("parameter %d element %d: gradient %g, difference quotient %g\n", i, (int) k, (double) g[k],
                            slope);
                fail();
            }
        }
        free(g);
    }
}

// ---- element-wise functions ----------------------------------------------------------------------------------------------

static void test_unary(void **state) {
    (void) state;
    static const enum ggml_unary_op smooth[] = {
        GGML_UNARY_OP_NEG,  GGML_UNARY_OP_TANH, GGML_UNARY_OP_SIGMOID, GGML_UNARY_OP_GELU,      GGML_UNARY_OP_GELU_QUICK,
        GGML_UNARY_OP_SILU, GGML_UNARY_OP_EXP,  GGML_UNARY_OP_EXPM1,   GGML_UNARY_OP_SOFTPLUS,  GGML_UNARY_OP_GELU_ERF,
        GGML_UNARY_OP_ABS,  GGML_UNARY_OP_ELU,  GGML_UNARY_OP_RELU,    GGML_UNARY_OP_HARDSWISH, GGML_UNARY_OP_HARDSIGMOID,
    };
    for (size_t i = 0; i < sizeof smooth / sizeof smooth[0]; i++) {
        ggml_reset(c);
        seed = (uint32_t) i;
        struct net n = {.n_params = 1, .p = {tensor(7, 3, 1, 1, -2.5f, 2.5f)}};
        for (int64_t k = 0; k < 21; k++) {  // not across a corner
            float *x = (float *) n.p[0]->data + k;
            if (fabsf(*x) < 0.01f) *x = 0.02f;
        }
        check(&n, ggml_unary(c, n.p[0], smooth[i]));
    }
    ggml_reset(c);
    struct net n = {.n_params = 1, .p = {tensor(9, 1, 1, 1, 0.1f, 2.0f)}};
    check(&n, ggml_xielu(c, ggml_scale_bias(c, n.p[0], 1.5f, -1.7f), 0.8f, 0.3f, 0.5f, -1e-6f));
}

static void test_gelu_erf_at_zero(void **state) {
    (void) state;
    struct net n = {.n_params = 1, .p = {tensor(3, 1, 1, 1, 0, 1)}};
    memcpy(n.p[0]->data, (float[]){0.0f, -0.0f, 1e-30f}, 12);
    T *out = ggml_gelu_erf(c, n.p[0]);
    T *loss = ggml_sum(c, out);
    ggml_set_loss(loss);
    ggml_set_param(n.p[0]);
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 256, true);
    ggml_build_forward_expand(g, loss);
    ggml_build_backward_expand(c, g, NULL);
    ggml_graph_reset(g);
    compute(g);
    for (int i = 0; i < 3; i++) assert_float_equal(((float *) ggml_graph_get_grad(g, n.p[0])->data)[i], 0.5f, 1e-6);
}

#define ONE(test, lo, hi, expression)                                                                                       \
    static void test(void **state) {                                                                                        \
        (void) state;                                                                                                       \
        struct net n = {.n_params = 1, .p = {tensor(6, 4, 2, 1, lo, hi)}};                                                  \
        T *x = n.p[0];                                                                                                      \
        check(&n, expression);                                                                                              \
    }
#define TWO(test, lo, hi, a, b, expression)                                                                                 \
    static void test(void **state) {                                                                                        \
        (void) state;                                                                                                       \
        struct net n = {.n_params = 2, .p = {tensor a, tensor b}};                                                          \
        T *x = n.p[0], *y = n.p[1];                                                                                         \
        check(&n, expression);                                                                                              \
    }

ONE(test_sqr, -2, 2, ggml_sqr(c, x))
ONE(test_sqrt, 0.5f, 2, ggml_sqrt(c, x))
ONE(test_log, 0.5f, 2, ggml_log(c, x))
ONE(test_sin, -3, 3, ggml_sin(c, x))
ONE(test_cos, -3, 3, ggml_cos(c, x))
ONE(test_scale, -1, 1, ggml_scale_bias(c, x, 1.75f, 0.5f))
ONE(test_clamp, -1, 1, ggml_clamp(c, ggml_scale(c, x, 1.3f), -0.51f, 0.77f))
ONE(test_leaky, 0.1f, 1, ggml_leaky_relu(c, ggml_scale_bias(c, x, 1.0f, -0.5f), 0.3f, false))
ONE(test_sum, -1, 1, ggml_sqr(c, ggml_sum(c, x)))
ONE(test_sum_rows, -1, 1, ggml_sqr(c, ggml_sum_rows(c, x)))
ONE(test_mean, -1, 1, ggml_sqr(c, ggml_mean(c, x)))
ONE(test_cumsum, -1, 1, ggml_sqr(c, ggml_cumsum(c, x)))
ONE(test_repeat, -1, 1, ggml_sqr(c, ggml_repeat_4d(c, x, 12, 4, 6, 2)))
ONE(test_repeat_back, -1, 1, ggml_sqr(c, ggml_repeat_back(c, x, ggml_new_tensor_2d(c, GGML_TYPE_F32, 3, 2))))
ONE(test_norm, -1, 1, ggml_norm(c, x, 1e-3f))
ONE(test_rms, -1, 1, ggml_rms_norm(c, x, 1e-3f))
ONE(test_l2, -1, 1, ggml_l2_norm(c, x, 1e-3f))
ONE(test_l2_floor, -1, 1, ggml_l2_norm(c, x, 50.0f))
ONE(test_group, -1, 1, ggml_group_norm(c, ggml_reshape_3d(c, x, 3, 4, 4), 2, 1e-3f))
ONE(test_soft_max, -1, 1, ggml_soft_max_ext(c, x, NULL, 1.7f, 0.0f))
ONE(test_mask, -1, 1, ggml_soft_max(c, ggml_diag_mask_inf(c, x, 1)))
ONE(test_mask_zero, -1, 1, ggml_sqr(c, ggml_diag_mask_zero(c, x, 2)))
ONE(test_tri, -1, 1, ggml_sqr(c, ggml_tri(c, ggml_reshape_3d(c, x, 4, 4, 3), GGML_TRI_TYPE_LOWER_DIAG)))
ONE(test_diag, -1, 1, ggml_sqr(c, ggml_diag(c, ggml_reshape_3d(c, x, 12, 1, 4))))
ONE(test_cont, -1, 1, ggml_sqr(c, ggml_cont_2d(c, ggml_permute(c, x, 2, 0, 1, 3), 16, 3)))
ONE(test_dup, -1, 1, ggml_sqr(c, ggml_dup(c, x)))
ONE(test_cpy, -1, 1, ggml_sqr(c, ggml_cpy(c, x, ggml_new_tensor_2d(c, GGML_TYPE_F32, 8, 6))))
ONE(test_view_of_cpy, -1, 1, ggml_sqr(c, ggml_view_1d(c, ggml_cpy(c, x, ggml_new_tensor_2d(c, GGML_TYPE_F32, 8, 6)), 9, 12)))
ONE(test_reshape, -1, 1, ggml_sqr(c, ggml_reshape_2d(c, x, 16, 3)))
ONE(test_transpose, -1, 1, ggml_sqr(c, ggml_transpose(c, x)))
ONE(test_permute, -1, 1, ggml_sqr(c, ggml_permute(c, x, 3, 0, 2, 1)))
ONE(test_view, -1, 1, ggml_sqr(c, ggml_view_3d(c, x, 3, 2, 2, x->nb[1], x->nb[2], x->nb[1] + 8)))
ONE(test_views_of_views, -1, 1,
    ggml_add(c, ggml_sqr(c, ggml_view_1d(c, ggml_view_2d(c, x, 4, 3, x->nb[1], 4), 3, x->nb[1])), ggml_view_1d(c, x, 3, 24)))
ONE(test_swiglu_fused, -2, 2, ggml_swiglu(c, x))
ONE(test_geglu_swapped, -2, 2, ggml_geglu_swapped(c, x))
ONE(test_get_rows, -1, 1, ggml_sqr(c, ggml_get_rows(c, ggml_reshape_2d(c, x, 6, 8), ints(5, (int32_t[]){3, 0, 3, 7, 1}))))
ONE(test_rope, -1, 1,
    ggml_rope(c, ggml_reshape_3d(c, x, 6, 2, 4), ints(4, (int32_t[]){5, 6, 7, 8}), 4, GGML_ROPE_TYPE_NORMAL))
ONE(test_rope_neox, -1, 1, ggml_rope(c, ggml_reshape_3d(c, x, 6, 4, 2), ints(2, (int32_t[]){1, 9}), 6, GGML_ROPE_TYPE_NEOX))
ONE(test_cross_entropy, -1, 1, ggml_cross_entropy_loss(c, x, ggml_soft_max(c, tensor(6, 4, 2, 1, -1, 1))))
ONE(test_used_twice, -1, 1, ggml_mul(c, ggml_silu(c, x), ggml_add(c, x, ggml_sqr(c, x))))

ONE(test_im2col, -1, 1, ggml_sqr(c, ggml_im2col(c, tensor(3, 2, 2, 1, 0, 1), x, 2, 1, 1, 0, 1, 2, true, GGML_TYPE_F32)))
ONE(test_im2col_back, -1, 1,
    ggml_sqr(c, ggml_im2col_back(c, ggml_reshape_4d(c, x, 4, 3, 4, 1), tensor(2, 2, 1, 1, 0, 1), (int64_t[]){4, 5, 1, 1}, 1,
                                 1, 0, 0, 1, 1, true)))
ONE(test_pool_max, -1, 1, ggml_sqr(c, ggml_pool_2d(c, x, GGML_OP_POOL_MAX, 3, 2, 2, 1, 1, 0.5f)))
ONE(test_pool_avg, -1, 1, ggml_sqr(c, ggml_pool_2d(c, x, GGML_OP_POOL_AVG, 3, 2, 2, 1, 1.5f, 0)))
ONE(test_conv_2d, -1, 1, ggml_conv_2d(c, ggml_reshape_4d(c, x, 3, 2, 2, 4), tensor(6, 5, 2, 2, -1, 1), 1, 1, 1, 0, 1, 1))
ONE(test_pad, -1, 1, ggml_sqr(c, ggml_pad_ext(c, x, 1, 2, 0, 1, 1, 0, 0, 1)))
ONE(test_roll, -1, 1, ggml_sqr(c, ggml_roll(c, x, 2, -1, 1, 0)))
ONE(test_win, -1, 1, ggml_sqr(c, ggml_win_part(c, x, 3)))
ONE(test_win_back, -1, 1, ggml_sqr(c, ggml_win_unpart(c, ggml_reshape_4d(c, x, 3, 2, 2, 4), 3, 4, 2)))
TWO(test_add_id, -1, 1, (6, 2, 3, 1, -1, 1), (6, 4, 1, 1, -1, 1),
    ggml_sqr(c, ggml_add_id(c, x, y, ggml_reshape_2d(c, ints(6, (int32_t[]){3, 0, 1, 3, 3, 1}), 2, 3))))

TWO(test_add, -1, 1, (6, 4, 2, 1, -1, 1), (3, 1, 2, 1, -1, 1), ggml_sqr(c, ggml_add(c, x, y)))
TWO(test_sub, -1, 1, (6, 4, 2, 1, -1, 1), (6, 1, 1, 1, -1, 1), ggml_sqr(c, ggml_sub(c, x, y)))
TWO(test_mul, -1, 1, (6, 4, 2, 1, -1, 1), (1, 4, 1, 1, -1, 1), ggml_sqr(c, ggml_mul(c, x, y)))
TWO(test_div, -1, 1, (6, 4, 2, 1, -1, 1), (6, 2, 1, 1, 1, 2), ggml_sqr(c, ggml_div(c, x, y)))
TWO(test_mul_mat, -1, 1, (5, 3, 1, 1, -1, 1), (5, 4, 1, 1, -1, 1), ggml_sqr(c, ggml_mul_mat(c, x, y)))
TWO(test_mul_mat_groups, -1, 1, (5, 3, 2, 1, -1, 1), (5, 2, 4, 2, -1, 1), ggml_sqr(c, ggml_mul_mat(c, x, y)))
TWO(test_mul_mat_batches, -1, 1, (3, 2, 2, 2, -1, 1), (3, 2, 4, 4, -1, 1), ggml_sqr(c, ggml_mul_mat(c, x, y)))
TWO(test_out_prod, -1, 1, (4, 5, 2, 1, -1, 1), (3, 5, 2, 1, -1, 1), ggml_sqr(c, ggml_out_prod(c, x, y)))
TWO(test_concat0, -1, 1, (4, 3, 2, 1, -1, 1), (2, 3, 2, 1, -1, 1), ggml_sqr(c, ggml_concat(c, x, y, 0)))
TWO(test_concat2, -1, 1, (4, 3, 2, 1, -1, 1), (4, 3, 1, 1, -1, 1), ggml_sqr(c, ggml_concat(c, x, y, 2)))
TWO(test_acc, -1, 1, (6, 4, 2, 1, -1, 1), (3, 2, 1, 1, -1, 1), ggml_sqr(c, ggml_acc(c, x, y, 24, 96, 192, 28)))
TWO(test_set, -1, 1, (6, 4, 2, 1, -1, 1), (3, 2, 1, 1, -1, 1), ggml_sqr(c, ggml_set(c, x, y, 24, 96, 192, 28)))
TWO(test_swiglu, -1, 1, (6, 4, 1, 1, -2, 2), (6, 4, 1, 1, -1, 1), ggml_swiglu_split(c, x, y))
TWO(test_geglu_erf, -1, 1, (6, 4, 1, 1, -2, 2), (6, 4, 1, 1, -1, 1), ggml_geglu_erf_split(c, x, y))
TWO(test_swiglu_oai, -1, 1, (6, 4, 1, 1, -2, 2), (6, 4, 1, 1, -1, 1), ggml_swiglu_oai(c, x, y, 1.702f, 1.3f))
TWO(test_swiglu_clamp, -1, 1, (6, 4, 1, 1, -2, 2), (6, 4, 1, 1, -1, 1), ggml_swiglu_clamp(c, x, y, 0.9f))

// ---- the framework -------------------------------------------------------------------------------------------------------

static struct ggml_cgraph *graph_of(T *loss) {
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 128, true);
    ggml_build_forward_expand(g, loss);
    return g;
}

static void refuse(T *loss, const char *sentence) {
    struct ggml_cgraph *g = graph_of(loss);
    ggml_clear_error();
    ggml_build_backward_expand(c, g, NULL);
    assert_error(sentence);
    assert_true(strstr(g->failure, sentence) != NULL);
}

static T *loss_of(T *t) {
    T *loss = ggml_sum(c, t);
    ggml_set_loss(loss);
    return loss;
}

static T *param(int64_t ne0, int64_t ne1) {
    T *p = tensor(ne0, ne1, 1, 1, -1, 1);
    ggml_set_param(p);
    return p;
}

static void test_refused(void **state) {
    (void) state;
    T *p = param(4, 4);
    refuse(loss_of(tensor(4, 4, 1, 1, 0, 1)), "no parameters");
    refuse(ggml_sum(c, p), "no loss");
    refuse(loss_of(ggml_scale_inplace(c, ggml_sqr(c, p), 2.0f)), "in place");
    refuse(loss_of(ggml_view_2d(c, ggml_sqr(c, p), 4, 3, 8, 0)), "more than once");
    refuse(loss_of(ggml_soft_max_ext(c, tensor(4, 4, 1, 1, 0, 1), p, 1.0f, 0.0f)), "mask");
    refuse(loss_of(ggml_cross_entropy_loss(c, tensor(4, 4, 1, 1, 0, 1), p)), "labels");
    T *filled = ggml_fill(c, p, 1.0f);
    refuse(loss_of(filled), "FILL has none");
    struct ggml_cgraph *plain = ggml_new_graph(c);
    ggml_build_forward_expand(plain, loss_of(p));
    ggml_build_backward_expand(c, plain, NULL);
    assert_error("without room for gradients");
    ggml_build_backward_expand(c, NULL, NULL);
    assert_error("no graph");
    ggml_graph_reset(plain);
    assert_error("without gradients");
}

static void test_only_what_matters(void **state) {
    (void) state;
    T *p = param(4, 1), *x = tensor(4, 1, 1, 1, -1, 1), *stopped = ggml_sgn(c, p);
    T *y = ggml_add(c, ggml_mul(c, p, x), ggml_mul(c, ggml_sqr(c, x), stopped));
    struct ggml_cgraph *g = graph_of(loss_of(y));
    ggml_build_backward_expand(c, g, NULL);
    assert_non_null(ggml_graph_get_grad(g, p));
    assert_null(ggml_graph_get_grad(g, x));
    assert_null(ggml_graph_get_grad(g, stopped));
    assert_string_equal(g->failure, "");
    ggml_graph_reset(g);
    compute(g);
    assert_memory_equal(ggml_graph_get_grad(g, p)->data, x->data, 16);
}

// Gradients add up in the caller's accumulators over several computations, until they are reset.
static void test_accumulators(void **state) {
    (void) state;
    T *p = param(3, 2);
    T *loss = loss_of(ggml_mul(c, p, p));
    struct ggml_cgraph *g = graph_of(loss);
    T *accs[8] = {NULL};
    T *acc = ggml_new_tensor_2d(c, GGML_TYPE_F32, 3, 2);
    for (int i = 0; i < g->n_nodes; i++) accs[i] = g->nodes[i] == p ? acc : NULL;
    ggml_build_backward_expand(c, g, accs);
    assert_ptr_equal(ggml_graph_get_grad_acc(g, p), acc);
    assert_non_null(ggml_graph_get_grad_acc(g, loss));
    ggml_graph_reset(g);
    for (int step = 1; step <= 3; step++) {
        compute(g);
        for (int i = 0; i < 6; i++) {
            assert_float_equal(((float *) acc->data)[i], (float) (2 * step) * ((float *) p->data)[i], 1e-5);
        }
    }
    ggml_graph_reset(g);
    for (int i = 0; i < 6; i++) assert_float_equal(((float *) acc->data)[i], 0.0f, 0);
}

static void test_half_parameters(void **state) {
    (void) state;
    T *p = ggml_new_tensor_2d(c, GGML_TYPE_F16, 4, 3);
    ggml_set_f32(p, 0.5f);
    ggml_set_param(p);
    T *x = tensor(4, 2, 1, 1, -1, 1);
    struct ggml_cgraph *g = graph_of(loss_of(ggml_mul_mat(c, p, x)));
    ggml_build_backward_expand(c, g, NULL);
    assert_string_equal(g->failure, "");
    ggml_graph_reset(g);
    compute(g);
    T *grad = ggml_graph_get_grad(g, p);
    assert_int_equal(grad->type, GGML_TYPE_F32);
    for (int i = 0; i < 12; i++) {
        const float *v = x->data;
        assert_float_equal(((float *) grad->data)[i], v[i % 4] + v[4 + i % 4], 1e-6);
    }
}

int main(void) {
#define WITH(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        WITH(test_im2col),
        WITH(test_im2col_back),
        WITH(test_pool_max),
        WITH(test_pool_avg),
        WITH(test_conv_2d),
        WITH(test_pad),
        WITH(test_roll),
        WITH(test_win),
        WITH(test_win_back),
        WITH(test_add_id),
        WITH(test_unary),
        WITH(test_gelu_erf_at_zero),
        WITH(test_sqr),
        WITH(test_sqrt),
        WITH(test_log),
        WITH(test_sin),
        WITH(test_cos),
        WITH(test_scale),
        WITH(test_clamp),
        WITH(test_leaky),
        WITH(test_sum),
        WITH(test_sum_rows),
        WITH(test_mean),
        WITH(test_cumsum),
        WITH(test_repeat),
        WITH(test_repeat_back),
        WITH(test_norm),
        WITH(test_rms),
        WITH(test_l2),
        WITH(test_l2_floor),
        WITH(test_group),
        WITH(test_soft_max),
        WITH(test_mask),
        WITH(test_mask_zero),
        WITH(test_tri),
        WITH(test_diag),
        WITH(test_cont),
        WITH(test_dup),
        WITH(test_cpy),
        WITH(test_view_of_cpy),
        WITH(test_reshape),
        WITH(test_transpose),
        WITH(test_permute),
        WITH(test_view),
        WITH(test_views_of_views),
        WITH(test_swiglu_fused),
        WITH(test_geglu_swapped),
        WITH(test_get_rows),
        WITH(test_rope),
        WITH(test_rope_neox),
        WITH(test_cross_entropy),
        WITH(test_used_twice),
        WITH(test_add),
        WITH(test_sub),
        WITH(test_mul),
        WITH(test_div),
        WITH(test_mul_mat),
        WITH(test_mul_mat_groups),
        WITH(test_mul_mat_batches),
        WITH(test_out_prod),
        WITH(test_concat0),
        WITH(test_concat2),
        WITH(test_acc),
        WITH(test_set),
        WITH(test_swiglu),
        WITH(test_geglu_erf),
        WITH(test_swiglu_oai),
        WITH(test_swiglu_clamp),
        WITH(test_refused),
        WITH(test_only_what_matters),
        WITH(test_accumulators),
        WITH(test_half_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
