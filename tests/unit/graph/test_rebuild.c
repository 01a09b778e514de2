// Contexts that are filled again: what is called the same is the same, what differs in sizes is what a new context would hold, and
// every other difference is seen.
#include "test.h"
#include "ggml/ext.h"
#include "graph/graph.h"

enum change {
    NONE,
    ANOTHER_OP,
    ANOTHER_SOURCE,
    ANOTHER_TYPE,
    ANOTHER_ROOT,
    ROOTS_SWAPPED,
    ROOT_LEFT_OUT,
    ROOT_TWICE,
    ORDERED_ONLY,
    ONE_MORE,
    ONE_LESS,
    ONE_MORE_UNUSED,
    OUTPUT_FLAG,
    INPUT_FLAG,
    SECOND_GRAPH,
    LARGER_GRAPH,
    A_BUFFER,
    AN_ERROR,
    N_CHANGES
};

struct program {
    struct ggml_context *c, *weights;
    struct ggml_cgraph *g;
    struct ggml_tensor *w[2];  // of another context
};

static struct ggml_context *headers(void) {
    return ggml_init((struct ggml_init_params){
        .mem_size = 200 * ggml_tensor_overhead() + 2 * ggml_graph_overhead_custom(200, false), .no_alloc = true});
}

// Views of all kinds, operations in place, one changed after it was made, two roots of which one had been reached already.
static void build(struct program *p, int64_t n, float scale, enum change how) {
    struct ggml_context *c = p->c;
    p->g = ggml_new_graph_custom(c, how == LARGER_GRAPH ? 100 : 90, false);
    struct ggml_tensor *x = ggml_new_tensor_2d(c, how == ANOTHER_TYPE ? GGML_TYPE_F16 : GGML_TYPE_F32, 32, n);
    if (how != INPUT_FLAG) ggml_set_input(x);
    struct ggml_tensor *a = ggml_mul_mat(c, p->w[how == ANOTHER_SOURCE], x);
    struct ggml_tensor *q = ggml_permute(c, ggml_reshape_3d(c, a, 16, 2, n), 0, 2, 1, 3);
    struct ggml_tensor *k = ggml_view_3d(c, a, 16, n, 1, a->nb[1], a->nb[1] * (size_t) n, 16 * sizeof(float));
    if (how == ONE_MORE_UNUSED) ggml_sqr(c, a);
    if (how == A_BUFFER) ggml_new_buffer(c, 100);
    struct ggml_tensor *kq = ggml_soft_max_ext(c, ggml_mul_mat(c, k, q), NULL, scale, 0.0f);
    struct ggml_tensor *first = how == ANOTHER_OP ? ggml_sqr(c, kq) : ggml_sqrt(c, kq), *second = ggml_scale(c, a, scale);
    ggml_set_name(second, "second");
    struct ggml_tensor *roots[2] = {first, second};
    if (how == ROOTS_SWAPPED) roots[0] = second, roots[1] = first;
    if (how == ANOTHER_ROOT) roots[0] = kq;
    ggml_build_forward_expand(p->g, roots[0]);
    if (how == ORDERED_ONLY)
        ggml_build_forward_order(p->g, roots[1]);
    else if (how != ROOT_LEFT_OUT)
        ggml_build_forward_expand(p->g, roots[1]);
    ggml_build_forward_expand(p->g, a);  // is there
    if (how == ROOT_TWICE) ggml_build_forward_expand(p->g, a);
    if (how == SECOND_GRAPH) ggml_new_graph_custom(c, 90, false);
    if (how == AN_ERROR) ggml_build_forward_expand(p->g, ggml_add(c, a, p->w[0]));
    struct ggml_tensor *y = ggml_add(c, ggml_transpose(c, ggml_cont(c, ggml_transpose(c, second))), a);
    if (how != ONE_LESS) y = ggml_scale_inplace(c, y, 2.0f);
    if (how == ONE_MORE) y = ggml_sqr(c, y);
    if (how != OUTPUT_FLAG) ggml_set_output(y);
    ggml_build_forward_expand(p->g, y);
}

static int place(const struct ggml_cgraph *g, const struct ggml_tensor *t) {
    for (int i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i] == t) return i;
    }
    for (int i = 0; i < g->n_leafs; i++) {
        if (g->leafs[i] == t) return 1000 + i;
    }
    return -1;
}

static void assert_alike(const struct ggml_cgraph *a, const struct ggml_tensor *t, const struct ggml_cgraph *b,
                         const struct ggml_tensor *o) {
    assert_int_equal(t->op, o->op);
    assert_int_equal(t->type, o->type);
    assert_int_equal(t->flags, o->flags);
    assert_memory_equal(t->ne, o->ne, sizeof t->ne);
    assert_memory_equal(t->nb, o->nb, sizeof t->nb);
    assert_memory_equal(t->op_params, o->op_params, sizeof t->op_params);
    assert_string_equal(t->name, o->name);
    assert_int_equal(t->view_offs, o->view_offs);
    assert_int_equal(place(a, t->view_src), place(b, o->view_src));
    for (int k = 0; k < GGML_MAX_SRC; k++) assert_int_equal(place(a, t->src[k]), place(b, o->src[k]));
}

static void assert_same_graphs(const struct ggml_cgraph *a, const struct ggml_cgraph *b) {
    assert_int_equal(a->n_nodes, b->n_nodes);
    assert_int_equal(a->n_leafs, b->n_leafs);
    for (int i = 0; i < a->n_nodes; i++) assert_alike(a, a->nodes[i], b, b->nodes[i]);
    for (int i = 0; i < a->n_leafs; i++) assert_alike(a, a->leafs[i], b, b->leafs[i]);
    for (int i = 0; i < a->n_nodes; i++) assert_int_equal(graph_use_count(a, a->nodes[i]), graph_use_count(b, b->nodes[i]));
}

static struct program begin(void) {
    struct program p = {.c = headers(), .weights = headers()};
    for (int i = 0; i < 2; i++) p.w[i] = ggml_set_name(ggml_new_tensor_2d(p.weights, GGML_TYPE_F32, 32, 32), "w");
    build(&p, 3, 0.5f, NONE);
    return p;
}

static void end(struct program *p) {
    ggml_free(p->c);
    ggml_free(p->weights);
}

static void test_same(void **state) {
    (void) state;
    struct program p = begin();
    struct ggml_cgraph *const g = p.g;
    const uint64_t uid = g->uid;
    const size_t used = ggml_used_mem(p.c);
    int64_t mark;
    for (int i = 0; i < g->n_nodes; i++) g->nodes[i]->data = &mark, g->nodes[i]->extra = g->nodes[i];
    for (int round = 0; round < 3; round++) {
        ggml_rebuild_begin(p.c);
        build(&p, 3, 0.5f, NONE);
        assert_int_equal(ggml_rebuild_end(p.c), GGML_REBUILT_SAME);
        assert_ptr_equal(p.g, g);
        assert_int_equal(g->uid, uid);
        assert_int_equal(ggml_used_mem(p.c), used);
        for (int i = 0; i < g->n_nodes; i++) assert_true(g->nodes[i]->data == &mark && g->nodes[i]->extra == g->nodes[i]);
    }
    struct program fresh = {.c = headers(), .w = {p.w[0], p.w[1]}};
    build(&fresh, 3, 0.5f, NONE);
    assert_same_graphs(p.g, fresh.g);
    ggml_free(fresh.c);
    end(&p);
}

static void test_sizes(void **state) {
    (void) state;
    struct program p = begin();
    for (int i = 0; i < 20; i++) {
        const int64_t n = i % 7 + 1;
        const float scale = (float) (i / 7);
        const uint64_t uid = p.g->uid;
        ggml_rebuild_begin(p.c);
        build(&p, n, scale, NONE);
        assert_int_equal(ggml_rebuild_end(p.c), GGML_REBUILT_SIZES);
        assert_int_not_equal(p.g->uid, uid);
        struct program fresh = {.c = headers(), .w = {p.w[0], p.w[1]}};
        build(&fresh, n, scale, NONE);
        assert_same_graphs(p.g, fresh.g);
        ggml_free(fresh.c);
    }
    end(&p);
}

static void test_other(void **state) {
    (void) state;
    quiet();
    for (enum change before = NONE; before < N_CHANGES; before++) {
        for (enum change after = NONE; after < N_CHANGES; after++) {
            struct program p = {.c = headers()}, w = begin();
            memcpy(p.w, w.w, sizeof p.w);
            build(&p, 3, 0.5f, before);
            if (p.g->failure[0]) {
                ggml_free(p.c);
                end(&w);
                continue;
            }
            ggml_rebuild_begin(p.c);
            build(&p, 3, 0.5f, after);
            const enum ggml_rebuilt how = ggml_rebuild_end(p.c);
            // a second graph, or a root that is not to be computed, is more than is remembered
            const bool same = before == after && before != SECOND_GRAPH && before != ORDERED_ONLY;
            assert_int_equal(how, same ? GGML_REBUILT_SAME : GGML_REBUILT_OTHER);
            ggml_reset(p.c);
            build(&p, 3, 0.5f, after);
            struct program fresh = {.c = headers(), .w = {w.w[0], w.w[1]}};
            build(&fresh, 3, 0.5f, after);
            assert_string_equal(p.g->failure, fresh.g->failure);
            if (!p.g->failure[0]) assert_same_graphs(p.g, fresh.g);
            ggml_free(fresh.c);
            ggml_free(p.c);
            end(&w);
        }
    }
}

static void test_misuse(void **state) {
    (void) state;
    ggml_rebuild_begin(NULL);
    assert_int_equal(ggml_rebuild_end(NULL), GGML_REBUILT_OTHER);
    struct ggml_context *c = headers();
    assert_int_equal(ggml_rebuild_end(c), GGML_REBUILT_OTHER);
    ggml_rebuild_begin(c);  // nothing there before
    assert_non_null(ggml_new_graph_custom(c, 10, false));
    assert_int_equal(ggml_rebuild_end(c), GGML_REBUILT_OTHER);
    ggml_rebuild_begin(c);
    ggml_reset(c);  // given up
    assert_int_equal(ggml_rebuild_end(c), GGML_REBUILT_OTHER);
    ggml_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same), cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_other), cmocka_unit_test(test_misuse)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
