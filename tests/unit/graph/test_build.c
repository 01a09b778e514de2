// Building graphs: order, uses, leafs and nodes, selection, overflow, depth, copies, uids.
#include "test.h"
#include "graph/graph.h"
#include "ops/verify.h"

static struct ggml_context *c;

static int begin(void **state) {
    (void) state;
    quiet();
    ggml_clear_error();
    c = ggml_init((struct ggml_init_params){.mem_size = (size_t) 64 << 20, .no_alloc = true});
    return 0;
}

static int end(void **state) {
    (void) state;
    ggml_free(c);
    return 0;
}

static struct ggml_tensor *leaf(const char *name) { return ggml_set_name(ggml_new_tensor_1d(c, GGML_TYPE_F32, 4), name); }

// A node with any sources: what is tested here looks at nothing else.
static struct ggml_tensor *node(const char *name, struct ggml_tensor *a, struct ggml_tensor *b) {
    struct ggml_tensor *t = ggml_set_name(ggml_new_tensor_1d(c, GGML_TYPE_F32, 4), name);
    t->op = GGML_OP_ADD;
    t->src[0] = a;
    t->src[1] = b;
    return t;
}

static void expect_nodes(struct ggml_cgraph *g, const char *names) {
    char all[256] = "";
    for (int i = 0; i < g->n_nodes; i++) {
        strcat(all, i ? " " : "");
        strcat(all, g->nodes[i]->name);
    }
    assert_string_equal(all, names);
}

static void test_order_and_uses(void **state) {
    (void) state;
    struct ggml_tensor *a = leaf("a"), *b = leaf("b");
    struct ggml_tensor *d = node("d", a, b), *e = node("e", b, a), *f = node("f", e, d), *h = node("h", f, f);
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 32, false);
    assert_int_equal(ggml_graph_size(g), 32);
    ggml_build_forward_expand(g, h);
    expect_nodes(g, "e d f h");
    assert_int_equal(g->n_leafs, 2);
    assert_int_equal(graph_use_count(g, a), 2);
    assert_int_equal(graph_use_count(g, f), 2);  // the same operand twice
    assert_int_equal(graph_use_count(g, h), 0);
    assert_int_equal(graph_use_count(g, leaf("stranger")), 0);
    ggml_build_forward_expand(g, h);
    ggml_build_forward_expand(g, d);
    expect_nodes(g, "e d f h");
    assert_ptr_equal(ggml_graph_node(g, -1), h);
    assert_ptr_equal(ggml_graph_node(g, 1), d);
    assert_null(ggml_graph_node(g, 4));
    assert_error("index 4 of a graph with 4 nodes");
    assert_null(ggml_graph_node(g, -5));
    assert_ptr_equal(ggml_graph_get_tensor(g, "a"), a);
    assert_ptr_equal(ggml_graph_get_tensor(g, "f"), f);
    assert_null(ggml_graph_get_tensor(g, "none"));
    struct ggml_cgraph *r = ggml_new_graph_custom(c, 32, false);
    r->order = GRAPH_RIGHT_TO_LEFT;
    ggml_build_forward_expand(r, h);
    expect_nodes(r, "d e f h");
}

static void test_names_are_given(void **state) {
    (void) state;
    struct ggml_tensor *a = leaf(""), *n = node("", a, leaf("x"));
    struct ggml_cgraph *g = ggml_new_graph(c);
    ggml_build_forward_expand(g, n);
    assert_string_equal(a->name, "leaf_0");
    assert_string_equal(n->name, "node_0");
}

static void test_parameters_are_nodes(void **state) {
    (void) state;
    struct ggml_tensor *w = leaf("w"), *x = leaf("x");
    ggml_set_param(w);
    struct ggml_cgraph *g = ggml_new_graph(c);
    ggml_build_forward_expand(g, node("y", w, x));
    expect_nodes(g, "w y");
    assert_int_equal(g->n_leafs, 1);
}

static bool computed(const struct ggml_tensor *t) { return t->flags & GGML_TENSOR_FLAG_COMPUTE; }

static void test_select(void **state) {
    (void) state;
    struct ggml_tensor *x = leaf("x"), *shared = node("s", x, x);
    struct ggml_tensor *branch[3] = {node("b0", shared, x), node("b1", x, x), node("b2", shared, shared)};
    struct ggml_cgraph *g = ggml_new_graph(c);
    assert_ptr_equal(ggml_build_forward_select(g, branch, 3, 2), branch[2]);
    expect_nodes(g, "s b0 b1 b2");
    assert_true(computed(branch[2]) && computed(shared));  // found uncomputed first, needed later
    assert_false(computed(branch[0]) || computed(branch[1]));
    ggml_build_forward_order(g, node("later", branch[1], x));
    assert_false(computed(branch[1]));
    ggml_build_forward_expand(g, node("y", branch[0], x));
    assert_true(computed(branch[0]));
    expect_nodes(g, "s b0 b1 b2 later y");
    assert_true(ggml_is_error(ggml_build_forward_select(g, branch, 3, 3)));
    assert_error("index 3 of 3");
}

static void test_full(void **state) {
    (void) state;
    struct ggml_tensor *t = leaf("x");
    for (int i = 0; i < 10; i++) t = node("", t, NULL);
    struct ggml_cgraph *exact = ggml_new_graph_custom(c, 10, false), *small = ggml_new_graph_custom(c, 9, false);
    ggml_build_forward_expand(exact, t);
    assert_int_equal(exact->n_nodes, 10);
    assert_string_equal(exact->failure, "");
    ggml_build_forward_expand(small, t);
    assert_error("made for 9 nodes");
    assert_true(strstr(small->failure, "graph is full") != NULL);
    ggml_graph_add_node(exact, t);
    assert_error("full with 10");
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 2, false);
    struct ggml_tensor *wide = node("wide", leaf("1"), leaf("2"));
    wide->src[2] = leaf("3");
    ggml_build_forward_expand(g, wide);
    assert_error("made for 2 nodes");
    assert_null(ggml_new_graph_custom(c, SIZE_MAX / 2, false));
    assert_error("at most");
}

static void test_depth(void **state) {
    (void) state;
    enum { DEEP = 20000 };  // recursion would need megabytes of stack
    struct ggml_tensor *t = leaf("x");
    for (int i = 0; i < DEEP; i++) t = node("n", t, t);
    struct ggml_cgraph *g = ggml_new_graph_custom(c, DEEP, false);
    ggml_build_forward_expand(g, t);
    assert_int_equal(g->n_nodes, DEEP);
    assert_ptr_equal(ggml_graph_node(g, -1), t);
    for (int i = 1; i < DEEP; i++) assert_ptr_equal(g->nodes[i]->src[0], g->nodes[i - 1]);
}

static void test_errors_stick(void **state) {
    (void) state;
    struct ggml_cgraph *g = ggml_new_graph(c);
    struct ggml_tensor *bad = ggml_reshape_1d(c, leaf("x"), 5);
    ggml_build_forward_expand(g, bad);
    assert_true(strstr(g->failure, "4 elements do not fill") != NULL);
    ggml_build_forward_expand(g, NULL);
    assert_true(strstr(g->failure, "4 elements do not fill") != NULL);  // the first stays
    assert_int_equal(graph_verify(g), ERR_INVALID);
    assert_error("4 elements do not fill");
    ggml_graph_clear(g);
    assert_string_equal(g->failure, "");
    ggml_build_forward_expand(NULL, bad);
    assert_error("no graph");
    ggml_graph_clear(NULL);
    assert_int_equal(ggml_graph_n_nodes(NULL), 0);
    assert_null(ggml_graph_nodes(NULL));
    assert_null(ggml_graph_get_tensor(NULL, "x"));
    assert_null(ggml_graph_dup(c, NULL, false));
    assert_int_equal(graph_verify(NULL), ERR_INVALID);
}

static void test_copies(void **state) {
    (void) state;
    struct ggml_tensor *x = leaf("x"), *y = node("y", x, x), *z = node("z", y, x);
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 40, true);
    ggml_build_forward_expand(g, z);
    g->grads[tensor_set_find(&g->visited, y)] = x;
    struct ggml_cgraph *dup = ggml_graph_dup(c, g, false);
    expect_nodes(dup, "y z");
    assert_int_equal(graph_use_count(dup, x), 3);
    assert_ptr_equal(ggml_graph_get_grad(dup, y), x);
    assert_null(ggml_graph_get_grad(dup, z));
    assert_null(ggml_graph_get_grad_acc(dup, y));
    ggml_graph_clear(g);
    assert_int_equal(g->n_nodes, 0);
    assert_null(ggml_graph_get_grad(g, y));
    expect_nodes(dup, "y z");
    struct ggml_cgraph *bigger = ggml_new_graph_custom(c, 500, true);
    ggml_graph_cpy(dup, bigger);
    expect_nodes(bigger, "y z");
    assert_int_equal(graph_use_count(bigger, x), 3);
    assert_ptr_equal(ggml_graph_get_grad(bigger, y), x);
    struct ggml_cgraph *small = ggml_new_graph_custom(c, 1, true), *plain = ggml_new_graph_custom(c, 40, false);
    ggml_graph_cpy(dup, small);
    assert_error("do not fit");
    assert_true(small->failure[0] != '\0');
    ggml_graph_cpy(dup, plain);
    assert_error("made without");
    assert_null(ggml_graph_get_grad(plain, y));
    struct ggml_cgraph view = graph_view(dup, 1, 2);
    assert_int_equal(view.n_nodes, 1);
    assert_ptr_equal(view.nodes[0], z);
    assert_int_equal(graph_use_count(&view, x), 3);
}

static void test_uid(void **state) {
    (void) state;
    struct ggml_cgraph *g = ggml_new_graph(c), *h = ggml_new_graph(c);
    assert_true(g->uid != h->uid);
    uint64_t last = g->uid;
    ggml_build_forward_expand(g, node("n", leaf("x"), NULL));
    assert_true(g->uid != last && g->uid != h->uid);
    last = g->uid;
    ggml_graph_add_node(g, node("m", leaf("y"), NULL));
    assert_true(g->uid != last);
    last = g->uid;
    ggml_graph_clear(g);
    assert_true(g->uid != last);
}

static void test_set(void **state) {
    (void) state;
    struct ggml_tensor *keys[64];
    uint32_t used[2] = {0};
    struct ggml_tensor *slots[64];
    struct tensor_set s = {.size = 64, .used = used, .keys = slots};
    for (int i = 0; i < 64; i++) {
        keys[i] = leaf("k");
        assert_false(tensor_set_contains(&s, keys[i]));
        assert_true(tensor_set_insert(&s, keys[i]) < 64);
        assert_int_equal(tensor_set_insert(&s, keys[i]), tensor_set_find(&s, keys[i]));
    }
    for (int i = 0; i < 64; i++) assert_true(tensor_set_contains(&s, keys[i]));
    assert_int_equal(tensor_set_insert(&s, leaf("one more")), TENSOR_SET_FULL);
    assert_false(tensor_set_contains(&s, leaf("another")));
    tensor_set_clear(&s);
    assert_false(tensor_set_contains(&s, keys[0]));
}

// A source may be set after its node was made; one that failed must not get into the graph.
static void test_failed_source(void **state) {
    (void) state;
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 32, false);
    struct ggml_tensor *a = leaf("a"), *failed = ggml_reshape_1d(c, a, 5);
    assert_true(ggml_is_error(failed));
    ggml_build_forward_expand(g, node("n", node("m", a, failed), a));
    assert_true(strstr(g->failure, "4 elements do not fill") != NULL);
    for (int i = 0; i < g->n_leafs; i++) assert_false(ggml_is_error(g->leafs[i]));
}

int main(void) {
#define WITH_CONTEXT(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        WITH_CONTEXT(test_order_and_uses),
        WITH_CONTEXT(test_names_are_given),
        WITH_CONTEXT(test_parameters_are_nodes),
        WITH_CONTEXT(test_select),
        WITH_CONTEXT(test_full),
        WITH_CONTEXT(test_depth),
        WITH_CONTEXT(test_errors_stick),
        WITH_CONTEXT(test_failed_source),
        WITH_CONTEXT(test_copies),
        WITH_CONTEXT(test_uid),
        WITH_CONTEXT(test_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
