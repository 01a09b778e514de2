// Contexts: accounting to the byte, running full, memory of the caller's, enumeration.
#include "test.h"
#include "graph/graph.h"

static struct ggml_context *context(size_t size, void *buffer, bool no_alloc) {
    return ggml_init((struct ggml_init_params){.mem_size = size, .mem_buffer = buffer, .no_alloc = no_alloc});
}

static void test_accounting(void **state) {
    (void) state;
    struct ggml_context *c = context(1 << 20, NULL, true);
    assert_int_equal(ggml_used_mem(c), 0);
    assert_int_equal(ggml_get_mem_size(c), 1 << 20);
    assert_true(ggml_get_no_alloc(c));
    struct ggml_tensor *a = ggml_new_tensor_2d(c, GGML_TYPE_F32, 1000, 1000);
    assert_null(a->data);
    assert_int_equal(ggml_used_mem(c), ggml_tensor_overhead());
    ggml_view_1d(c, a, 5, 0);
    assert_int_equal(ggml_used_mem(c), 2 * ggml_tensor_overhead());
    assert_int_equal(ggml_get_max_tensor_size(c), 4000000);
    ggml_set_no_alloc(c, false);
    size_t before = ggml_used_mem(c);
    struct ggml_tensor *b = ggml_new_tensor_1d(c, GGML_TYPE_F32, 25);
    assert_int_equal(ggml_used_mem(c) - before, ggml_tensor_overhead() + 112);
    assert_int_equal((uintptr_t) b->data % GGML_MEM_ALIGN, 0);
    for (int grads = 0; grads < 2; grads++) {
        for (size_t size = 1; size < 5000; size = size * 3 + 1) {
            before = ggml_used_mem(c);
            struct ggml_cgraph *g = ggml_new_graph_custom(c, size, grads);
            if (!g) break;
            assert_int_equal(ggml_used_mem(c) - before, ggml_graph_overhead_custom(size, grads));
        }
    }
    assert_int_equal(ggml_graph_overhead(), ggml_graph_overhead_custom(GGML_DEFAULT_GRAPH_SIZE, false));
    ggml_reset(c);
    assert_int_equal(ggml_used_mem(c), 0);
    assert_null(ggml_get_first_tensor(c));
    ggml_free(c);
    ggml_free(NULL);
}

// Programs measure a context for one graph and make several in it: a graph takes 43 bytes per node and some 400, and yet has room for
// as many leafs as nodes.
static void test_graph_room(void **state) {
    (void) state;
    quiet();
    for (size_t size = 1; size < 3000; size = size * 2 + size % 3) {
        assert_true(ggml_graph_overhead_custom(size, false) <= 43 * size + 1024);
        assert_true(ggml_graph_overhead_custom(size, true) <= 75 * size + 1536);
        struct ggml_context *c =
            context((2 * size + 2) * ggml_tensor_overhead() + ggml_graph_overhead_custom(size, false), NULL, true);
        struct ggml_cgraph *g = ggml_new_graph_custom(c, size, false);
        struct ggml_tensor *t = ggml_sqr(c, ggml_new_tensor_1d(c, GGML_TYPE_F32, 1));
        for (size_t i = 1; i < size; i++) t = ggml_add(c, t, ggml_new_tensor_1d(c, GGML_TYPE_F32, 1));
        ggml_build_forward_expand(g, t);
        assert_int_equal(ggml_graph_n_nodes(g), size);
        assert_ptr_equal(ggml_graph_node(g, -1), t);
        ggml_clear_error();
        ggml_build_forward_expand(g, ggml_sqr(c, t));  // one more than there is room for
        assert_error("graph");
        ggml_free(c);
    }
}

static void test_full(void **state) {
    (void) state;
    quiet();
    struct ggml_context *c = context(3 * ggml_tensor_overhead(), NULL, false);
    struct ggml_tensor *a = ggml_new_tensor_1d(c, GGML_TYPE_F32, 4);
    assert_false(ggml_is_error(a));
    assert_true(ggml_is_error(ggml_new_tensor_1d(c, GGML_TYPE_F32, 4000)));
    assert_error("context is full");
    assert_true(
        ggml_is_error(ggml_new_tensor_1d(c, GGML_TYPE_F32, INT64_MAX / 8)));  // the sum of both sizes overflows nothing
    assert_error("context is full");
    assert_false(ggml_is_error(ggml_view_1d(c, a, 2, 0)));  // a failure takes nothing: there is still room for this
    assert_null(ggml_new_graph(c));
    assert_error("context is full");
    assert_null(ggml_new_buffer(c, 100000));
    assert_error("context is full");
    assert_null(ggml_new_buffer(c, SIZE_MAX));
    ggml_free(c);
}

static void test_impossible(void **state) {
    (void) state;
    quiet();
    assert_null(context((size_t) 1 << 50, NULL, false));
    assert_error("cannot allocate");
    assert_null(context(SIZE_MAX, NULL, false));
    assert_true(ggml_is_error(ggml_new_tensor_1d(NULL, GGML_TYPE_F32, 1)));
    assert_error("no context");
    assert_null(ggml_new_graph(NULL));
    struct ggml_context *c = context(0, NULL, false);  // legal, and of no use
    assert_non_null(c);
    assert_true(ggml_is_error(ggml_new_tensor_1d(c, GGML_TYPE_F32, 1)));
    ggml_free(c);
    assert_int_equal(ggml_used_mem(NULL), 0);
    assert_int_equal(ggml_get_mem_size(NULL), 0);
    assert_null(ggml_get_mem_buffer(NULL));
    assert_null(ggml_get_first_tensor(NULL));
}

static void test_memory_of_the_caller(void **state) {
    (void) state;
    quiet();
    static _Alignas(16) char block[4096 + 64];
    for (size_t shift = 0; shift < 20; shift += 3) {
        memset(block, 0x5a, sizeof block);
        struct ggml_context *c = context(4096, block + shift, false);
        assert_ptr_equal(ggml_get_mem_buffer(c), block + shift);
        struct ggml_tensor *t, *last = NULL;
        while (!ggml_is_error(t = ggml_new_tensor_1d(c, GGML_TYPE_F32, 10))) {
            assert_int_equal((uintptr_t) t % 16, 0);
            assert_int_equal((uintptr_t) t->data % 16, 0);
            memset(t->data, 0, 40);
            last = t;
        }
        assert_true((char *) last->data + 40 <= block + shift + 4096);
        for (size_t i = 0; i < shift; i++) assert_int_equal(block[i], 0x5a);
        for (size_t i = shift + 4096; i < sizeof block; i++) assert_int_equal(block[i], 0x5a);
        ggml_free(c);
    }
}

static void test_enumeration(void **state) {
    (void) state;
    struct ggml_context *c = context(1 << 20, NULL, true);
    assert_non_null(ggml_new_buffer(c, 100));
    struct ggml_tensor *a = ggml_set_name(ggml_new_tensor_1d(c, GGML_TYPE_F32, 1), "a");
    assert_non_null(ggml_new_graph_custom(c, 16, false));
    struct ggml_tensor *b = ggml_set_name(ggml_new_tensor_1d(c, GGML_TYPE_F32, 2), "b");
    assert_ptr_equal(ggml_get_first_tensor(c), a);
    assert_ptr_equal(ggml_get_next_tensor(c, a), b);
    assert_null(ggml_get_next_tensor(c, b));
    assert_null(ggml_get_next_tensor(c, tensor_error()));
    assert_ptr_equal(ggml_get_tensor(c, "b"), b);
    assert_null(ggml_get_tensor(c, "c"));
    assert_null(ggml_get_tensor(c, NULL));
    ggml_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accounting), cmocka_unit_test(test_graph_room),           cmocka_unit_test(test_full),
        cmocka_unit_test(test_impossible), cmocka_unit_test(test_memory_of_the_caller), cmocka_unit_test(test_enumeration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
