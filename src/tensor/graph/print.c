// Pictures of contexts and graphs in text: lists through the log sink, and the dot language of Graphviz to a file.
#include "graph/graph_int.h"
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#define print(...) ggml_log_write(GGML_LOG_LEVEL_NONE, __VA_ARGS__)

void ggml_print_object(const struct ggml_object *obj) {
    if (!obj) return;
    print(" - ggml_object: type = %d, offset = %zu, size = %zu, next = %p\n", (int) obj->type, obj->offs, obj->size,
          (const void *) obj->next);
}

void ggml_print_objects(const struct ggml_context *ctx) {
    if (!ctx) return;
    print("objects in context %p:\n", (const void *) ctx);
    for (const struct ggml_object *o = ctx->first; o; o = o->next) ggml_print_object(o);
    print("--- end ---\n");
}

static const char *mark(const struct ggml_cgraph *g, const struct ggml_tensor *t) {
    if (t->flags & GGML_TENSOR_FLAG_PARAM) return "x";
    return ggml_graph_get_grad(g, t) ? "g" : " ";
}

void ggml_graph_print(const struct ggml_cgraph *cgraph) {
    if (!cgraph) return;
    print("=== GRAPH ===\nn_nodes = %d\n", cgraph->n_nodes);
    for (int i = 0; i < cgraph->n_nodes; i++) {
        const struct ggml_tensor *t = cgraph->nodes[i];
        print(" - %3d: [ %5lld, %5lld, %5lld, %5lld] %16s %s %s\n", i, (long long) t->ne[0], (long long) t->ne[1],
              (long long) t->ne[2], (long long) t->ne[3], ggml_op_desc(t), mark(cgraph, t), t->name);
    }
    print("n_leafs = %d\n", cgraph->n_leafs);
    for (int i = 0; i < cgraph->n_leafs; i++) {
        const struct ggml_tensor *t = cgraph->leafs[i];
        print(" - %3d: [ %5lld, %5lld, %5lld, %5lld] %8s %16s\n", i, (long long) t->ne[0], (long long) t->ne[1],
              (long long) t->ne[2], (long long) t->ne[3], ggml_type_name(t->type), t->name);
    }
    print("========================================\n");
}

// ---- dot -----------------------------------------------------------------------------------------------------------------

static void label(FILE *f, const char *text) {
    for (; *text; text++) {
        if (*text == '"' || *text == '\\' || *text == '|' || *text == '<' || *text == '>' || *text == '{' || *text == '}') {
            fputc('\\', f);
        }
        fputc((unsigned char) *text < ' ' ? ' ' : *text, f);
    }
}

static void dot_tensor(FILE *f, const struct ggml_cgraph *g, const struct ggml_tensor *t, bool leaf) {
    const char *colour = leaf                                 ? "pink"
                         : t->flags & GGML_TENSOR_FLAG_PARAM  ? "yellow"
                         : t->flags & GGML_TENSOR_FLAG_OUTPUT ? "lightblue"
                         : ggml_graph_get_grad(g, t)          ? "lightgreen"
                                                              : "white";
    fprintf(f, "  \"%p\" [style=filled; fillcolor=%s; shape=record; label=\"", (const void *) t, colour);
    label(f, t->name);
    fprintf(f, " (%s)|", ggml_type_name(t->type));
    if (!leaf) {
        label(f, ggml_op_symbol(t->op));
        fputc('|', f);
    }
    fprintf(f, "[%lld, %lld, %lld, %lld]\"]\n", (long long) t->ne[0], (long long) t->ne[1], (long long) t->ne[2],
            (long long) t->ne[3]);
    for (int k = 0; k < GGML_MAX_SRC; k++) {
        if (t->src[k]) fprintf(f, "  \"%p\" -> \"%p\" [label=\"src %d\"]\n", (const void *) t->src[k], (const void *) t, k);
    }
}

void ggml_graph_dump_dot(const struct ggml_cgraph *gb, const struct ggml_cgraph *cgraph, const char *filename) {
    const struct ggml_cgraph *g = gb ? gb : cgraph;  // gb: the graph with gradients, if there is another one
    if (!g || !filename) return;
    FILE *f = fopen(filename, "w");
    if (!f) {
        (void) err_set(ERR_IO, "ggml_graph_dump_dot: cannot write %s", filename);
        return;
    }
    fprintf(f, "digraph G {\n  rankdir = TB;\n");
    for (int i = 0; i < g->n_leafs; i++) dot_tensor(f, g, g->leafs[i], true);
    for (int i = 0; i < g->n_nodes; i++) dot_tensor(f, g, g->nodes[i], false);
    fprintf(f, "}\n");
    const bool failed = ferror(f) != 0;
    if (fclose(f) != 0 || failed) (void) err_set(ERR_IO, "ggml_graph_dump_dot: writing %s failed", filename);
}
