// Lists and dot files.
#include "test.h"
#include "graph/graph.h"

static char text[8192];

static void sink(enum ggml_log_level level, const char *line, void *userdata) {
    (void) level, (void) userdata;
    strncat(text, line, sizeof text - strlen(text) - 1);
}

static struct ggml_context *c;

static struct ggml_cgraph *graph(void) {
    struct ggml_tensor *x = ggml_set_name(ggml_new_tensor_2d(c, GGML_TYPE_F32, 4, 3), "x \"|<{");
    struct ggml_tensor *w = ggml_set_name(ggml_new_tensor_1d(c, GGML_TYPE_F32, 4), "w");
    ggml_set_param(w);
    struct ggml_tensor *y = ggml_set_name(ggml_gelu(c, ggml_add(c, x, w)), "y");
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 16, true);
    ggml_build_forward_expand(g, y);
    return g;
}

static int begin(void **state) {
    (void) state;
    text[0] = '\0';
    ggml_log_set(sink, NULL);
    c = ggml_init((struct ggml_init_params){.mem_size = 1 << 18, .no_alloc = true});
    return 0;
}

static int end(void **state) {
    (void) state;
    ggml_free(c);
    return 0;
}

static void test_lists(void **state) {
    (void) state;
    ggml_graph_print(graph());
    assert_non_null(strstr(text, "n_nodes = 3"));
    assert_non_null(strstr(text, "GELU"));
    assert_non_null(strstr(text, "n_leafs = 1"));
    text[0] = '\0';
    ggml_print_objects(c);
    assert_non_null(strstr(text, "type = 1"));  // the graph
    text[0] = '\0';
    ggml_graph_print(NULL);
    ggml_print_objects(NULL);
    ggml_print_object(NULL);
    assert_string_equal(text, "");
}

static void test_dot(void **state) {
    (void) state;
    char dir[256], path[300], dot[4096];
    test_dir_make(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/g.dot", dir);
    struct ggml_cgraph *g = graph();
    ggml_graph_dump_dot(NULL, g, path);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    dot[fread(dot, 1, sizeof dot - 1, f)] = '\0';
    fclose(f);
    assert_true(strncmp(dot, "digraph G {", 11) == 0);
    assert_non_null(strstr(dot, "x \\\"\\|\\<\\{"));  // what dot takes for its own is escaped
    assert_non_null(strstr(dot, "[4, 3, 1, 1]"));
    assert_non_null(strstr(dot, "fillcolor=yellow"));
    int arrows = 0;
    for (const char *p = dot; (p = strstr(p, "->")) != NULL; p += 2) arrows++;
    assert_int_equal(arrows, 3);
    ggml_graph_dump_dot(g, g, "/no/such/folder/g.dot");
    assert_error("cannot write");
    ggml_graph_dump_dot(NULL, NULL, path);
    test_dir_remove(dir);
}

int main(void) {
#define WITH(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {WITH(test_lists), WITH(test_dot)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
