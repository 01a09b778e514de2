// Graphs: one object of a context that holds all arrays, and the walk that puts nodes into evaluation order.
#include "graph/graph_int.h"
#include "base/global.h"

#include <limits.h>
#include <string.h>

enum { MAX_NODES = INT_MAX / 64 };

// ---- layout ------------------------------------------------------------------------------------------------------------

// Room for `size` nodes and as many leafs, and no more: programs make several graphs in contexts that they measured with room
// for one, and real graphs leave half of it free.
static size_t set_size(size_t size) { return GGML_PAD(2 * size + 1, 32); }

// Bytes of a graph with everything behind it. If `g` is not NULL (it points to memory of that size), sets its pointers.
static size_t lay_out(struct ggml_cgraph *g, size_t size, bool grads) {
    const size_t n = set_size(size);
    size_t at = GGML_PAD(sizeof(struct ggml_cgraph), sizeof(void *));
    char *base = (char *) g;
#define PLACE(field, count)                                                                                                 \
    do {                                                                                                                    \
        if (g) g->field = (void *) (base + at);                                                                             \
        at += (count) * sizeof *((struct ggml_cgraph *) 0)->field;                                                          \
    } while (0)
    PLACE(nodes, size);
    PLACE(leafs, size);
    PLACE(visited.keys, n);
    if (grads) PLACE(grads, n);
    if (grads) PLACE(grad_accs, n);
    PLACE(use_counts, n);
    PLACE(visited.used, n / 32);
    PLACE(cursor, size);
    PLACE(ends, size);
    PLACE(failure, GRAPH_FAILURE_SIZE);
#undef PLACE
    return at;
}

size_t ggml_graph_overhead_custom(size_t size, bool grads) {
    if (size > MAX_NODES) return SIZE_MAX / 2;  // no context is that large: ggml_init refuses it
    return sizeof(struct ggml_object) + GGML_PAD(lay_out(NULL, size, grads), (size_t) GGML_MEM_ALIGN);
}

size_t ggml_graph_overhead(void) { return ggml_graph_overhead_custom(GGML_DEFAULT_GRAPH_SIZE, false); }

struct ggml_cgraph *ggml_new_graph_custom(struct ggml_context *ctx, size_t size, bool grads) {
    if (size > MAX_NODES) {
        (void) err_set(ERR_INVALID, "new graph: %zu nodes asked for, at most %d are possible", size, MAX_NODES);
        return NULL;
    }
    struct ggml_object *o = context_object_new(ctx, GGML_OBJECT_TYPE_GRAPH, lay_out(NULL, size, grads));
    if (!o) return NULL;
    struct ggml_cgraph *g = object_content(ctx, o);
    if (ctx->rebuild.graph == g && g->size == (int) size && !g->grads == !grads) return g;
    *g = (struct ggml_cgraph){.size = (int) size};
    lay_out(g, size, grads);
    g->visited.size = set_size(size);
    ggml_graph_clear(g);
    return g;
}

struct ggml_cgraph *ggml_new_graph(struct ggml_context *ctx) {
    return ggml_new_graph_custom(ctx, GGML_DEFAULT_GRAPH_SIZE, false);
}

uint64_t graph_serial(void) { return atomic_fetch_add(&global.graph_serial, 1) + 1; }

void graph_touch(struct ggml_cgraph *g) {
    g->uid = graph_serial();
    g->placed = 0;
}

void graph_set_failed(struct ggml_cgraph *g) {
    if (g->failure[0]) return;
    strncpy(g->failure, ggml_last_error(), GRAPH_FAILURE_SIZE - 1);
    g->failure[GRAPH_FAILURE_SIZE - 1] = '\0';
    if (!g->failure[0]) strcpy(g->failure, "the graph contains the result of a call that failed");
}

void ggml_graph_clear(struct ggml_cgraph *cgraph) {
    if (!cgraph) return;
    cgraph->n_nodes = cgraph->n_leafs = 0;
    tensor_set_clear(&cgraph->visited);
    if (cgraph->grads) {
        memset(cgraph->grads, 0, cgraph->visited.size * sizeof *cgraph->grads);
        memset(cgraph->grad_accs, 0, cgraph->visited.size * sizeof *cgraph->grad_accs);
    }
    cgraph->failure[0] = '\0';
    graph_touch(cgraph);
}

// ---- the walk ------------------------------------------------------------------------------------------------------------
// Depth first, sources before the nodes that read them, without recursion: graphs can be deeper than any stack. The nodes
// in progress are kept at the far end of nodes[]: each will be a node itself, so both ends meet only when the graph is full.

static bool is_leaf(const struct ggml_tensor *t) { return t->op == GGML_OP_NONE && !(t->flags & GGML_TENSOR_FLAG_PARAM); }

static void append(struct ggml_cgraph *g, struct ggml_tensor *t) {
    if (is_leaf(t)) {
        if (t->name[0] == '\0') tensor_name_number(t, "leaf_", g->n_leafs);
        g->leafs[g->n_leafs++] = t;
    } else {
        if (t->name[0] == '\0') tensor_name_number(t, "node_", g->n_nodes);
        g->ends[g->n_nodes] = 0;
        g->nodes[g->n_nodes++] = t;
    }
}

struct walk {
    struct ggml_cgraph *g;
    int depth;     // nodes in progress
    bool compute;  // the tensors found are to be computed
    bool stale;    // one of them had been added without that
};

static void full(struct ggml_cgraph *g) {
    (void) err_set(ERR_NOMEM,
                   "graph is full: it was made for %d nodes and as many leafs; make it larger "
                   "(ggml_new_graph_custom)",
                   g->size);
    graph_set_failed(g);
}

// Enters t, which is new and has that free slot; false if the graph is full.
static bool enter_new(struct walk *w, struct ggml_tensor *t, size_t slot) {
    struct ggml_cgraph *g = w->g;
    const bool leaf = is_leaf(t);
    if (ggml_is_error(t)) return graph_set_failed(g), false;  // a source set after its node was made
    if (slot == TENSOR_SET_FULL || (leaf ? g->n_leafs : g->n_nodes + w->depth) >= g->size) return full(g), false;
    tensor_set_put(&g->visited, slot, t);
    g->use_counts[slot] = 0;
    if (g->grads) g->grads[slot] = g->grad_accs[slot] = NULL;
    if (leaf) {
        append(g, t);
        return true;
    }
    if (w->compute) t->flags |= GGML_TENSOR_FLAG_COMPUTE;
    g->nodes[g->size - 1 - w->depth] = t;
    g->cursor[w->depth++] = 0;
    return true;
}

// Enters t into the graph if it is new, and gives its slot; TENSOR_SET_FULL if there is no room.
static inline size_t enter(struct walk *w, struct ggml_tensor *t) {
    bool there;
    const size_t slot = tensor_set_probe(&w->g->visited, t, &there);
    if (!there) return enter_new(w, t, slot) ? slot : TENSOR_SET_FULL;
    if (w->compute && !(t->flags & GGML_TENSOR_FLAG_COMPUTE) && !is_leaf(t)) {
        t->flags |= GGML_TENSOR_FLAG_COMPUTE;
        w->stale = true;
    }
    return slot;
}

// Enters sources of t, the node on top of the stack, until one has sources of its own to be entered first: then true. On failure too.
static inline bool enter_sources(struct walk *w, struct ggml_tensor *t, bool *failed) {
    struct ggml_cgraph *g = w->g;
    const int depth = w->depth, back = g->order == GRAPH_LEFT_TO_RIGHT ? 0 : GGML_MAX_SRC - 1;
    for (int i = g->cursor[depth - 1]; i < GGML_MAX_SRC; i++) {
        struct ggml_tensor *source = t->src[back ? back - i : i];
        if (!source) continue;
        const size_t slot = enter(w, source);
        *failed = slot == TENSOR_SET_FULL;
        if (*failed) return true;
        g->use_counts[slot]++;
        if (w->depth == depth) continue;
        g->cursor[depth - 1] = (uint8_t) (i + 1);
        return true;
    }
    return false;
}

// Notes that a call ended here, for when the graph is built again.
static void note_end(struct ggml_cgraph *g, int n_before, bool compute) {
    if (g->n_nodes == 0) return;
    uint8_t *end = &g->ends[g->n_nodes - 1];
    if (!compute)
        *end = 0;
    else if (g->n_nodes > n_before)
        *end = 1;
    else if (*end > 0 && *end < UINT8_MAX)
        ++*end;
}

static void expand(struct ggml_cgraph *g, struct ggml_tensor *root, bool compute) {
    struct walk w = {.g = g, .compute = compute};
    bool failed = false;
    if (enter(&w, root) == TENSOR_SET_FULL) return;
    while (w.depth > 0) {
        struct ggml_tensor *t = g->nodes[g->size - w.depth];
        if (enter_sources(&w, t, &failed)) {
            if (failed) return;
            continue;
        }
        w.depth--;
        append(g, t);
    }
    if (!w.stale) return;
    for (int i = g->n_nodes - 1; i >= 0; i--) {  // what was added without being computed is now needed, with its sources
        if (!(g->nodes[i]->flags & GGML_TENSOR_FLAG_COMPUTE)) continue;
        for (int k = 0; k < GGML_MAX_SRC; k++) {
            struct ggml_tensor *s = g->nodes[i]->src[k];
            if (s && !is_leaf(s)) s->flags |= GGML_TENSOR_FLAG_COMPUTE;
        }
    }
}

static void add(struct ggml_cgraph *g, struct ggml_tensor *tensor, bool compute, const char *call) {
    if (!g) {
        (void) err_set(ERR_INVALID, "%s: no graph given (NULL)", call);
        return;
    }
    if (!tensor) (void) err_set(ERR_INVALID, "%s: no tensor given (NULL)", call);
    if (g->again) {
        rebuild_expand(g, tensor, compute);
        return;
    }
    if (!tensor || ggml_is_error(tensor)) {
        graph_set_failed(g);
    } else {
        const int n_before = g->n_nodes;
        expand(g, tensor, compute);
        note_end(g, n_before, compute);
    }
    graph_touch(g);
}

void ggml_build_forward_expand(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor) {
    add(cgraph, tensor, true, "ggml_build_forward_expand");
}

void ggml_build_forward_order(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor) {
    add(cgraph, tensor, false, "ggml_build_forward_order");
}

struct ggml_tensor *ggml_build_forward_select(struct ggml_cgraph *cgraph, struct ggml_tensor **tensors, int n_tensors,
                                              int idx) {
    if (!tensors || idx < 0 || idx >= n_tensors) {
        (void) err_set(ERR_INVALID, "ggml_build_forward_select: index %d of %d tensors", idx, n_tensors);
        if (cgraph) graph_set_failed(cgraph);
        return tensor_error();
    }
    for (int i = 0; i < n_tensors; i++) add(cgraph, tensors[i], i == idx, "ggml_build_forward_select");
    return tensors[idx];
}

void ggml_graph_add_node(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor) {
    if (!cgraph) return;
    if (!tensor || ggml_is_error(tensor)) {
        graph_set_failed(cgraph);
        return;
    }
    if (cgraph->n_nodes >= cgraph->size) {
        (void) err_set(ERR_NOMEM, "ggml_graph_add_node: the graph is full with %d nodes", cgraph->size);
        graph_set_failed(cgraph);
        return;
    }
    tensor->flags |= GGML_TENSOR_FLAG_COMPUTE;
    cgraph->ends[cgraph->n_nodes] = 0;
    cgraph->nodes[cgraph->n_nodes++] = tensor;
    graph_touch(cgraph);
}

// ---- copies --------------------------------------------------------------------------------------------------------------

struct ggml_cgraph graph_view(struct ggml_cgraph *g, int i0, int i1) {
    struct ggml_cgraph view = *g;
    view.nodes = g->nodes + i0;
    view.n_nodes = view.size = i1 - i0;
    view.leafs = NULL;
    view.n_leafs = 0;
    view.grads = view.grad_accs = NULL;
    return view;
}

static void fail(struct ggml_cgraph *g, enum err recorded) {
    (void) recorded;
    graph_set_failed(g);
}

void ggml_graph_cpy(struct ggml_cgraph *src, struct ggml_cgraph *dst) {
    if (!src || !dst) return;
    ggml_graph_clear(dst);
    if (dst->size < src->n_nodes || dst->size < src->n_leafs) {
        fail(dst, err_set(ERR_INVALID, "ggml_graph_cpy: %d nodes and %d leafs do not fit a graph of size %d", src->n_nodes,
                          src->n_leafs, dst->size));
        return;
    }
    if (src->grads && !dst->grads) {
        fail(dst, err_set(ERR_INVALID, "ggml_graph_cpy: the source has gradients, the destination was made without"));
        return;
    }
    memcpy(dst->nodes, src->nodes, (size_t) src->n_nodes * sizeof *dst->nodes);
    memset(dst->ends, 0, (size_t) src->n_nodes);
    if (src->n_leafs) memcpy(dst->leafs, src->leafs, (size_t) src->n_leafs * sizeof *dst->leafs);
    dst->n_nodes = src->n_nodes;
    dst->n_leafs = src->n_leafs;
    dst->order = src->order;
    memcpy(dst->failure, src->failure, GRAPH_FAILURE_SIZE);
    for (size_t i = 0; i < src->visited.size; i++) {
        if (!(src->visited.used[i / 32] >> (i % 32) & 1)) continue;
        const size_t slot = tensor_set_insert(&dst->visited, src->visited.keys[i]);
        dst->use_counts[slot] = src->use_counts[i];
        if (dst->grads) dst->grads[slot] = src->grads ? src->grads[i] : NULL;
        if (dst->grads) dst->grad_accs[slot] = src->grad_accs ? src->grad_accs[i] : NULL;
    }
}

struct ggml_cgraph *ggml_graph_dup(struct ggml_context *ctx, struct ggml_cgraph *cgraph, bool force_grads) {
    if (!cgraph) return NULL;
    struct ggml_cgraph *dup = ggml_new_graph_custom(ctx, (size_t) cgraph->size, cgraph->grads || force_grads);
    if (dup) ggml_graph_cpy(cgraph, dup);
    return dup;
}

// ---- access --------------------------------------------------------------------------------------------------------------

int ggml_graph_size(struct ggml_cgraph *cgraph) { return cgraph ? cgraph->size : 0; }

int ggml_graph_n_nodes(struct ggml_cgraph *cgraph) { return cgraph ? cgraph->n_nodes : 0; }

struct ggml_tensor **ggml_graph_nodes(struct ggml_cgraph *cgraph) {
    return cgraph ? cgraph->nodes : NULL;
}

struct ggml_tensor *ggml_graph_node(struct ggml_cgraph *cgraph, int i) {
    const int n = ggml_graph_n_nodes(cgraph);
    const int k = i < 0 ? n + i : i;
    if (k >= 0 && k < n) return cgraph->nodes[k];
    (void) err_set(ERR_INVALID, "ggml_graph_node: index %d of a graph with %d nodes", i, n);
    return NULL;
}

struct ggml_tensor *ggml_graph_get_tensor(const struct ggml_cgraph *cgraph, const char *name) {
    if (!cgraph || !name) return NULL;
    for (int i = 0; i < cgraph->n_leafs; i++) {
        if (strcmp(cgraph->leafs[i]->name, name) == 0) return cgraph->leafs[i];
    }
    for (int i = 0; i < cgraph->n_nodes; i++) {
        if (strcmp(cgraph->nodes[i]->name, name) == 0) return cgraph->nodes[i];
    }
    return NULL;
}

static struct ggml_tensor *of_slot(const struct ggml_cgraph *g, struct ggml_tensor **array, const struct ggml_tensor *t) {
    if (!array || !t || !tensor_set_contains(&g->visited, t)) return NULL;
    return array[tensor_set_find(&g->visited, t)];
}

struct ggml_tensor *ggml_graph_get_grad(const struct ggml_cgraph *cgraph, const struct ggml_tensor *node) {
    return cgraph ? of_slot(cgraph, cgraph->grads, node) : NULL;
}

struct ggml_tensor *ggml_graph_get_grad_acc(const struct ggml_cgraph *cgraph, const struct ggml_tensor *node) {
    return cgraph ? of_slot(cgraph, cgraph->grad_accs, node) : NULL;
}

int graph_use_count(const struct ggml_cgraph *g, const struct ggml_tensor *t) {
    bool there;
    const size_t slot = tensor_set_probe(&g->visited, t, &there);
    return there ? g->use_counts[slot] : 0;
}
