// Graphs that are not ours: random ones over the public interface, of operations and sizes of many kinds, and training graphs. A run
// in a NaN-filled buffer of exactly the planned size, with guards, gives the bits of a run that shares nothing. The bound LB1, where
// every node is computed by itself, is counted here anew, from the graph alone: the planner's own is never above it, training graphs
// meet it, and so do random ones, which are harder to pack than any that computes something.
#include "alloc/gallocr.h"
#include "support/guarded.h"
#include "support/net.h"
#include "test.h"

// ---- the bound ------------------------------------------------------------------------------------------------------

enum { MAX_ROOTS = 4096 };

struct life {
    const struct ggml_tensor *t;
    size_t bytes;
    int first, last;  // nodes; -1: before the graph, n_nodes: after it
    bool read;
};

struct lives {
    struct life of[MAX_ROOTS];
    int n, n_nodes;
};

static const struct ggml_tensor *root_of(const struct ggml_tensor *t) { return t->view_src ? t->view_src : t; }

static struct life *find(struct lives *l, const struct ggml_tensor *t) {
    for (int i = 0; i < l->n; i++) {
        if (l->of[i].t == root_of(t)) return &l->of[i];
    }
    return NULL;
}

static bool only_views(const struct ggml_tensor *t) {
    return t->op == GGML_OP_VIEW || t->op == GGML_OP_RESHAPE || t->op == GGML_OP_PERMUTE || t->op == GGML_OP_TRANSPOSE ||
           t->op == GGML_OP_NONE;
}

static void begin(struct lives *l, const struct ggml_tensor *t, int step) {
    const struct ggml_tensor *root = root_of(t);
    if (find(l, t) || root->data) return;  // weights have memory
    assert_true(l->n < MAX_ROOTS);
    l->of[l->n++] = (struct life){.t = root, .bytes = GGML_PAD(ggml_nbytes(root), 32), .first = step, .last = step};
}

static void until(struct lives *l, const struct ggml_tensor *t, int step) {
    struct life *x = find(l, t);
    if (x && x->last < step) x->last = step;
}

static void read_graph(struct lives *l, struct ggml_cgraph *g) {
    l->n = 0;
    l->n_nodes = g->n_nodes;
    for (int i = 0; i < g->n_leafs; i++) begin(l, g->leafs[i], -1);
    for (int i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i]->op == GGML_OP_NONE || (g->nodes[i]->flags & GGML_TENSOR_FLAG_INPUT)) begin(l, g->nodes[i], -1);
    }
    for (int i = 0; i < g->n_nodes; i++) {
        const struct ggml_tensor *t = g->nodes[i];
        begin(l, t, i);
        if (!only_views(t)) until(l, t, i);
        for (int k = 0; k < GGML_MAX_SRC; k++) {
            struct life *x = t->src[k] ? find(l, t->src[k]) : NULL;
            if (!x) continue;
            x->read = true;
            if (!only_views(t)) until(l, t->src[k], i);
        }
    }
    for (int i = 0; i < g->n_nodes + g->n_leafs; i++) {
        const struct ggml_tensor *t = i < g->n_nodes ? g->nodes[i] : g->leafs[i - g->n_nodes];
        struct life *x = find(l, t);
        bool read = false;  // a view that nothing reads may be looked at, and so its root
        for (int k = 0; k < g->n_nodes && !read; k++) {
            for (int j = 0; j < GGML_MAX_SRC; j++) read = read || g->nodes[k]->src[j] == t;
        }
        if (x && (!read || (t->flags & GGML_TENSOR_FLAG_OUTPUT))) x->last = l->n_nodes;
    }
}

static bool same_layout(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    return a->type == b->type && memcmp(a->ne, b->ne, sizeof a->ne) == 0 && memcmp(a->nb, b->nb, sizeof a->nb) == 0;
}

// Of the list in shared/plans: 1 over its first source, 2 over any.
static int in_place(enum ggml_op op) {
    switch (op) {
        case GGML_OP_ADD:
        case GGML_OP_SUB:
        case GGML_OP_MUL:
        case GGML_OP_DIV: return 2;
        case GGML_OP_FILL:
        case GGML_OP_SCALE:
        case GGML_OP_DIAG_MASK_ZERO:
        case GGML_OP_DIAG_MASK_INF:
        case GGML_OP_ADD_ID:
        case GGML_OP_ADD1:
        case GGML_OP_SQR:
        case GGML_OP_SQRT:
        case GGML_OP_LOG:
        case GGML_OP_UNARY:
        case GGML_OP_ROPE:
        case GGML_OP_ROPE_BACK:
        case GGML_OP_SILU_BACK:
        case GGML_OP_RMS_NORM:
        case GGML_OP_RMS_NORM_BACK:
        case GGML_OP_SOFT_MAX:
        case GGML_OP_SOFT_MAX_BACK: return 1;
        default: return 0;
    }
}

static bool may_take(struct lives *l, const struct ggml_tensor *t, int i) {
    for (int k = 0; k < in_place(t->op); k++) {
        const struct ggml_tensor *s = t->src[k];
        const struct life *x = s ? find(l, s) : NULL;
        if (!x || x->last != i || x->first >= i || !same_layout(t, s) || (s->view_src && s->view_offs)) continue;
        bool beside = false;  // the same memory read in another way
        for (int j = 0; j < GGML_MAX_SRC; j++) {
            if (j != k && t->src[j] && root_of(t->src[j]) == root_of(s))
                beside = beside || in_place(t->op) < 2 || !same_layout(t, t->src[j]);
        }
        if (!beside) return true;
    }
    return false;
}

static size_t lb1(struct ggml_cgraph *g) {
    static struct lives l;
    size_t most = 0;
    read_graph(&l, g);
    for (int i = -1; i <= g->n_nodes; i++) {
        size_t now = 0;
        for (int k = 0; k < l.n; k++) now += l.of[k].first <= i && l.of[k].last >= i ? l.of[k].bytes : 0;
        if (i >= 0 && i < g->n_nodes && !g->nodes[i]->view_src && find(&l, g->nodes[i]) &&
            find(&l, g->nodes[i])->first == i && may_take(&l, g->nodes[i], i))
            now -= find(&l, g->nodes[i])->bytes;
        if (now > most) most = now;
    }
    return most;
}

// ---- graphs ---------------------------------------------------------------------------------------------------------

struct foreign {
    struct ggml_context *weights, *c;
    ggml_backend_buffer_t in_weights;
    struct ggml_cgraph *g;
    struct ggml_tensor *w[4], *w16, *ids, *pos;
    struct ggml_tensor *inputs[8];
    int n_inputs;
    uint64_t state;
};

static uint32_t below(struct foreign *f, uint32_t n) {
    f->state = f->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t) ((f->state >> 33) % n);
}

static struct ggml_tensor *weight(struct foreign *f, enum ggml_type type, int64_t n0, int64_t n1) {
    return ggml_new_tensor_2d(f->weights, type, n0, n1);
}

static void fill_ids(const struct ggml_tensor *t, int32_t n) {
    int32_t x[64];
    for (int i = 0; i < ggml_nelements(t); i++) x[i] = i * 7 % n;
    ggml_backend_tensor_set((struct ggml_tensor *) (uintptr_t) t, x, 0, ggml_nbytes(t));
}

// Weights lie in memory of their own, as programs have them.
static void make_weights(struct foreign *f, ggml_backend_t cpu) {
    f->weights = net_context();
    for (int i = 0; i < 4; i++) f->w[i] = weight(f, GGML_TYPE_F32, i % 2 ? 48 : 32, i < 2 ? 32 : 48);
    f->w16 = weight(f, GGML_TYPE_F16, 32, 32);
    f->ids = ggml_new_tensor_1d(f->weights, GGML_TYPE_I32, 9);
    f->pos = ggml_new_tensor_1d(f->weights, GGML_TYPE_I32, 32);
    f->in_weights = ggml_backend_alloc_ctx_tensors(f->weights, cpu);
    for (int i = 0; i < 4; i++) net_fill(f->w[i], 10 + (uint64_t) i);
    ggml_backend_buffer_clear(f->in_weights, 0);
    for (int i = 0; i < 4; i++) net_fill(f->w[i], 10 + (uint64_t) i);
    ggml_fp16_t h[32 * 32];
    for (int i = 0; i < 32 * 32; i++) h[i] = ggml_fp32_to_fp16((float) (i % 17) / 16.0f - 0.5f);
    ggml_backend_tensor_set(f->w16, h, 0, sizeof h);
    fill_ids(f->ids, 5);
    fill_ids(f->pos, 32);
}

// One more result, of a shape [32 or 48, rows].
static struct ggml_tensor *one_more(struct foreign *f, struct ggml_tensor **all, int n) {
    struct ggml_context *c = f->c;
    struct ggml_tensor *a =
        all[below(f, 4) ? n - 1 - (int) below(f, n < 4 ? (uint32_t) n : 4) : (int) below(f, (uint32_t) n)];
    struct ggml_tensor *b = all[below(f, (uint32_t) n)];
    const bool same = ggml_are_same_shape(a, b), narrow = a->ne[0] == 32;
    const int64_t rows = a->ne[1];
    switch (below(f, 24)) {
        case 0:
        case 1:
        case 2: return same ? ggml_add(c, a, b) : ggml_silu(c, a);
        case 3: return same ? ggml_mul(c, b, a) : ggml_sub(c, a, a);
        case 4: return ggml_mul_mat(c, f->w[narrow ? 0 : 1], a);
        case 5: return ggml_mul_mat(c, f->w[narrow ? 2 : 3], a);
        case 6: return narrow ? ggml_mul_mat(c, f->w16, a) : ggml_gelu(c, a);
        case 7: return ggml_soft_max_ext(c, a, NULL, 0.5f, 0.0f);
        case 8: return ggml_rms_norm(c, a, 1e-5f);
        case 9: return rows >= 5 ? ggml_get_rows(c, a, f->ids) : ggml_norm(c, a, 1e-5f);
        case 10: return ggml_cont(c, ggml_permute(c, ggml_reshape_3d(c, a, 16, a->ne[0] / 16, rows), 0, 1, 2, 3));
        case 11:
            return ggml_reshape_2d(
                c, ggml_cont(c, ggml_permute(c, ggml_reshape_3d(c, a, a->ne[0] / 2, 2, rows), 1, 0, 2, 3)), a->ne[0], rows);
        case 12: return a->ne[0] == b->ne[0] && rows + b->ne[1] <= 40 ? ggml_concat(c, a, b, 1) : ggml_abs(c, a);
        case 13: return rows > 1 ? ggml_view_2d(c, a, a->ne[0], rows / 2, a->nb[1], a->nb[1]) : ggml_log(c, ggml_sqr(c, a));
        case 14: return ggml_add(c, a, ggml_view_2d(c, f->w[0], 1, 1, f->w[0]->nb[1], 0));
        case 15: return ggml_repeat_4d(c, ggml_sum_rows(c, a), a->ne[0], rows, 1, 1);
        case 16: return ggml_add(c, a, ggml_repeat_4d(c, ggml_mean(c, a), a->ne[0], rows, 1, 1));
        case 17: {
            struct ggml_tensor *r = ggml_reshape_3d(c, a, 16, a->ne[0] / 16, rows);
            if (!ggml_is_contiguous(a) || rows > 32) return ggml_relu(c, a);
            return ggml_reshape_2d(c, ggml_rope(c, r, ggml_view_1d(c, f->pos, rows, 0), 16, 0), a->ne[0], rows);
        }
        case 18: return ggml_scale_inplace(c, ggml_dup(c, a), 0.5f);
        case 19: return same ? ggml_geglu_split(c, a, b) : ggml_step(c, a);
        case 20: return ggml_cast(c, ggml_cast(c, a, GGML_TYPE_F16), GGML_TYPE_F32);
        case 21: return ggml_cpy(c, a, ggml_new_tensor_2d(c, GGML_TYPE_F32, a->ne[0], rows));
        case 22: return ggml_clamp(c, a, -2, 2);
        default: return ggml_diag_mask_zero(c, a, 3);
    }
}

static void build_random(struct foreign *f, uint64_t seed) {
    struct ggml_tensor *all[512];
    int n = 0;
    f->state = seed * 2654435761u + 977;
    f->c = net_context();
    f->g = ggml_new_graph_custom(f->c, 2048, false);
    f->n_inputs = 1 + (int) below(f, 5);
    for (int i = 0; i < f->n_inputs; i++) {
        f->inputs[i] = ggml_new_tensor_2d(f->c, GGML_TYPE_F32, below(f, 2) ? 32 : 48, 1 + below(f, 24));
        ggml_set_input(f->inputs[i]);
        all[n++] = f->inputs[i];
    }
    const int n_nodes = 6 + (int) below(f, 120);
    for (int i = 0; i < n_nodes; i++) {
        struct ggml_tensor *t = one_more(f, all, n);
        if (ggml_is_error(t)) continue;  // a reshape of a view with gaps, say
        if (ggml_n_dims(t) > 2) t = ggml_reshape_2d(f->c, t, t->ne[0] * t->ne[1], t->ne[2]);
        if (ggml_is_error(t) || (t->ne[0] != 32 && t->ne[0] != 48)) continue;
        ggml_build_forward_expand(f->g, t);
        if (below(f, 30) == 0) ggml_set_output(t);
        all[n++] = t;
    }
    ggml_set_output(all[n - 1]);
    ggml_build_forward_expand(f->g, all[n - 1]);
}

// A network with a loss and its gradients: layers of random kinds, residuals, a softmax over classes.
static void build_training(struct foreign *f, uint64_t seed) {
    struct ggml_context *c = f->c = net_context();
    f->state = seed * 40503u + 5;
    f->g = ggml_new_graph_custom(c, 2048, true);
    const int64_t rows = 1 + below(f, 20);
    for (int i = 0; i < 4; i++) ggml_set_param(f->w[i]);
    f->n_inputs = 2;
    f->inputs[0] = ggml_new_tensor_2d(c, GGML_TYPE_F32, 32, rows);
    f->inputs[1] = ggml_new_tensor_2d(c, GGML_TYPE_F32, 48, rows);
    for (int i = 0; i < 2; i++) ggml_set_input(f->inputs[i]);
    struct ggml_tensor *x = f->inputs[0];
    const int n_layer = 1 + (int) below(f, 6);
    for (int i = 0; i < n_layer; i++) {
        struct ggml_tensor *y = below(f, 2) ? ggml_rms_norm(c, x, 1e-5f) : ggml_scale(c, x, 0.5f);
        y = ggml_mul_mat(c, f->w[2], y);
        switch (below(f, 4)) {
            case 0: y = ggml_silu(c, y); break;
            case 1: y = ggml_relu(c, y); break;
            case 2: y = ggml_soft_max(c, y); break;
            default: y = ggml_mul(c, y, ggml_scale(c, y, 0.25f)); break;
        }
        y = ggml_mul_mat(c, f->w[1], y);
        x = below(f, 3) ? ggml_add(c, x, y) : y;
    }
    struct ggml_tensor *loss = ggml_cross_entropy_loss(c, ggml_mul_mat(c, f->w[2], x), ggml_soft_max(c, f->inputs[1]));
    ggml_set_loss(loss);
    ggml_set_output(loss);
    ggml_build_forward_expand(f->g, loss);
    ggml_build_backward_expand(c, f->g, NULL);
    for (int i = 1; i < 3; i++) {
        struct ggml_tensor *grad = ggml_graph_get_grad(f->g, f->w[i]);
        assert_non_null(grad);
        ggml_set_output(grad);
    }
}

// ---- the test -------------------------------------------------------------------------------------------------------

static void set_inputs(struct foreign *f) {
    for (int i = 0; i < f->n_inputs; i++) {
        if (f->inputs[i]->data) net_fill(f->inputs[i], 100 + (uint64_t) i);
    }
    if (f->g->grads) ggml_graph_reset(f->g);
}

static void compare(struct ggml_cgraph *a, struct ggml_cgraph *b) {
    int n = 0;
    assert_int_equal(a->n_nodes, b->n_nodes);
    for (int i = 0; i < a->n_nodes; i++) {
        const struct ggml_tensor *x = a->nodes[i], *y = b->nodes[i];
        if (!(x->flags & GGML_TENSOR_FLAG_OUTPUT) || !ggml_is_contiguous(x)) continue;
        assert_memory_equal(x->data, y->data, ggml_nbytes(x));
        n++;
    }
    assert_true(n > 0);
}

typedef void (*builder)(struct foreign *f, uint64_t seed);

// Whether the bound was met. dev NULL: a device that allows no more than the list of LB1.
static bool check(const struct foreign *weights, ggml_backend_t cpu, builder build, uint64_t seed, ggml_backend_dev_t dev) {
    struct foreign plain = *weights, tight = *weights;
    build(&plain, seed);
    build(&tight, seed);
    ggml_backend_buffer_t b = ggml_backend_alloc_ctx_tensors_from_buft(plain.c, ggml_backend_cpu_buffer_type());
    ggml_backend_buffer_clear(b, 0xff);
    set_inputs(&plain);
    assert_int_equal(ggml_backend_graph_compute(cpu, plain.g), GGML_STATUS_SUCCESS);

    struct guarded g;
    ggml_gallocr_t ga = ggml_gallocr_new(guarded_make(&g, SIZE_MAX, dev));
    const size_t bound = lb1(tight.g);
    assert_true(ggml_gallocr_reserve(ga, tight.g));
    assert_true(ga->pools[0].bound <= bound);
    const size_t planned = ggml_gallocr_get_buffer_size(ga, 0);
    if (planned > bound + bound / 32) fail_msg("seed %d: %zu bytes, the bound is %zu", (int) seed, planned, bound);
    assert_true(ggml_gallocr_alloc_graph(ga, tight.g));
    set_inputs(&tight);
    assert_int_equal(ggml_backend_graph_compute(cpu, tight.g), GGML_STATUS_SUCCESS);
    compare(plain.g, tight.g);
    ggml_gallocr_free(ga);
    assert_false(g.broken);
    ggml_backend_buffer_free(b);
    ggml_free(plain.c);
    ggml_free(tight.c);
    return planned <= bound;
}

// How many of n met the bound.
static int check_many(builder build, uint64_t n) {
    struct foreign f = {0};
    ggml_backend_t cpu = ggml_backend_cpu_init();
    quiet();
    make_weights(&f, cpu);
    ggml_backend_cpu_set_n_threads(cpu, 2);
    int met = 0;
    for (uint64_t seed = 0; seed < n; seed++)
        met += check(&f, cpu, build, seed, seed % 2 ? ggml_backend_get_device(cpu) : NULL);
    ggml_backend_buffer_free(f.in_weights);
    ggml_free(f.weights);
    ggml_backend_free(cpu);
    return met;
}

static void test_random(void **state) {
    (void) state;
    assert_int_equal(check_many(build_random, 300), 300);
}

static void test_training(void **state) {
    (void) state;
    assert_int_equal(check_many(build_training, 100), 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_training)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
