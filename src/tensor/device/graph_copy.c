// A graph copied to another backend with all its data, and the comparison of two backends node by node that this is for.
#include "device/device.h"
#include "device/sched.h"

#include <stdlib.h>
#include <string.h>

struct copier {
    const struct ggml_tensor **keys;  // open addressing: tensor of the graph
    struct ggml_tensor **copies;
    size_t size;
    struct ggml_tensor **list;  // all tensors, sources before readers
    int n, room;
    struct ggml_context *placed, *unplaced;
    bool allocated;  // the graph has memory; nodes without any are computed together with others, but not in the copy
};

static size_t place_of(const struct copier *c, const struct ggml_tensor *t) {
    size_t h = ((uintptr_t) t >> 4) * 0x9E3779B97F4A7C15u >> 32;
    while (c->keys[h & (c->size - 1)] && c->keys[h & (c->size - 1)] != t) h++;
    return h & (c->size - 1);
}

static bool list_tensor(struct copier *c, struct ggml_tensor *t) {
    if (!t) return true;
    const size_t at = place_of(c, t);
    if (c->keys[at]) return true;
    if (c->n == c->room) return false;
    c->keys[at] = t;
    c->list[c->n++] = t;
    return true;
}

static enum err list_all(struct copier *c, struct ggml_cgraph *g) {
    int most = 2 * (g->n_leafs + g->n_nodes) + 16;
    for (int i = 0; i < g->n_nodes; i++) {
        for (int j = 0; j < GGML_MAX_SRC; j++) most += g->nodes[i]->src[j] != NULL;
    }
    c->size = 64;
    while (c->size < 2 * (size_t) most) c->size *= 2;
    c->room = most;
    c->keys = calloc(c->size, sizeof(*c->keys));
    c->copies = calloc(c->size, sizeof(*c->copies));
    c->list = malloc((size_t) most * sizeof(*c->list));
    if (!c->keys || !c->copies || !c->list) return err_set(ERR_NOMEM, "graph copy: no memory to list %d tensors", most);
    bool ok = true;
    for (int i = 0; i < g->n_leafs; i++) ok = ok && list_tensor(c, g->leafs[i]->view_src) && list_tensor(c, g->leafs[i]);
    for (int i = 0; i < g->n_nodes; i++) {
        for (int j = 0; j < GGML_MAX_SRC; j++) {
            if (g->nodes[i]->src[j])
                ok = ok && list_tensor(c, g->nodes[i]->src[j]->view_src) && list_tensor(c, g->nodes[i]->src[j]);
        }
        ok = ok && list_tensor(c, g->nodes[i]->view_src) && list_tensor(c, g->nodes[i]);
    }
    return ok ? ERR_OK : err_set(ERR_FAILED, "graph copy: the graph changed while it was read");
}

static struct ggml_tensor *copy_of(const struct copier *c, const struct ggml_tensor *t) {
    return t ? c->copies[place_of(c, t)] : NULL;
}

static enum err copy_structs(struct copier *c) {
    for (int i = 0; i < c->n; i++) {
        const struct ggml_tensor *t = c->list[i];
        const bool placed = !t->view_src && (t->data || (c->allocated && t->op != GGML_OP_NONE));
        struct ggml_tensor *d = tensor_new(placed ? c->placed : c->unplaced, t->type, GGML_MAX_DIMS, t->ne, NULL, 0);
        if (!d || ggml_is_error(d)) return ERR_NOMEM;
        memcpy(d->nb, t->nb, sizeof(d->nb));
        d->op = t->op;
        d->flags = t->flags;
        memcpy(d->op_params, t->op_params, sizeof(d->op_params));
        memcpy(d->name, t->name, sizeof(d->name));
        c->copies[place_of(c, t)] = d;
    }
    for (int i = 0; i < c->n; i++) {
        const struct ggml_tensor *t = c->list[i];
        struct ggml_tensor *d = copy_of(c, t);
        d->view_src = copy_of(c, t->view_src);
        d->view_offs = t->view_offs;
        for (int j = 0; j < GGML_MAX_SRC; j++) d->src[j] = copy_of(c, t->src[j]);
    }
    return ERR_OK;
}

static enum err copy_data(const struct copier *c) {
    for (int i = 0; i < c->n; i++) {
        struct ggml_tensor *t = c->list[i], *d = copy_of(c, t);
        if (!t->view_src) {
            if (t->data) ggml_backend_tensor_copy(t, d);
        } else if (d->view_src->buffer && ggml_backend_view_init(d) != GGML_STATUS_SUCCESS) {
            return ERR_FAILED;
        }
    }
    return ERR_OK;
}

static struct ggml_cgraph *copy_graph(const struct copier *c, struct ggml_cgraph *g) {
    const int size = g->n_nodes > g->n_leafs ? g->n_nodes : g->n_leafs;
    struct ggml_cgraph *d = ggml_new_graph_custom(c->placed, (size_t) size + 1, false);
    if (!d) return NULL;
    for (int i = 0; i < g->n_leafs; i++) d->leafs[d->n_leafs++] = copy_of(c, g->leafs[i]);
    for (int i = 0; i < g->n_nodes; i++) d->nodes[d->n_nodes++] = copy_of(c, g->nodes[i]);
    memset(d->ends, 0, (size_t) d->n_nodes);
    graph_touch(d);
    return d;
}

static enum err make_copy(struct copier *c, ggml_backend_t backend, struct ggml_cgraph *g,
                          struct ggml_backend_graph_copy *out) {
    TRY(list_all(c, g));
    c->allocated = g->n_nodes > 0 && g->nodes[g->n_nodes - 1]->data;
    const size_t tensors = (size_t) c->n * ggml_tensor_overhead() + 1024;
    const size_t graph = ggml_graph_overhead_custom((size_t) (g->n_nodes > g->n_leafs ? g->n_nodes : g->n_leafs) + 1, false);
    out->ctx_allocated = c->placed = ggml_init((struct ggml_init_params){tensors + graph, NULL, true});
    out->ctx_unallocated = c->unplaced = ggml_init((struct ggml_init_params){tensors, NULL, true});
    if (!c->placed || !c->unplaced) return ERR_NOMEM;
    TRY(copy_structs(c));
    out->buffer = ggml_backend_alloc_ctx_tensors(c->placed, backend);
    if (!out->buffer)
        return err_set(ERR_NOMEM, "graph copy: no memory on %s, or the graph is not allocated", ggml_backend_name(backend));
    TRY(copy_data(c));
    out->graph = copy_graph(c, g);
    return out->graph ? ERR_OK : ERR_NOMEM;
}

struct ggml_backend_graph_copy ggml_backend_graph_copy(ggml_backend_t backend, struct ggml_cgraph *graph) {
    struct ggml_backend_graph_copy out = {0};
    struct copier c = {0};
    if (!backend || !graph || (graph->failure && graph->failure[0])) {
        DEVICE_FAIL(out, ERR_INVALID, "graph copy: %s", !backend ? "no backend" : !graph ? "no graph" : graph->failure);
    }
    if (make_copy(&c, backend, graph, &out) != ERR_OK) {
        ggml_backend_graph_copy_free(out);
        out = (struct ggml_backend_graph_copy){0};
    }
    free(c.keys);
    free(c.copies);
    free(c.list);
    return out;
}

void ggml_backend_graph_copy_free(struct ggml_backend_graph_copy copy) {
    ggml_backend_buffer_free(copy.buffer);
    ggml_free(copy.ctx_allocated);
    ggml_free(copy.ctx_unallocated);
}

// ---- comparing ------------------------------------------------------------------------------------------------------

static bool compute_both(ggml_backend_t b1, struct ggml_cgraph *g1, ggml_backend_t b2, struct ggml_cgraph *g2) {
    return ggml_backend_graph_compute(b1, g1) == GGML_STATUS_SUCCESS &&
           ggml_backend_graph_compute(b2, g2) == GGML_STATUS_SUCCESS;
}

static bool is_wanted(const struct ggml_tensor *t, const struct ggml_tensor *const *wanted, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (wanted[i] == t) return true;
    }
    return false;
}

// Whether every node has memory; some have none when they were planned to be computed together with others.
static bool has_all(const struct ggml_cgraph *g) {
    for (int i = 0; i < g->n_nodes; i++) {
        if (!g->nodes[i]->data && !ggml_is_empty(g->nodes[i])) return false;
    }
    return true;
}

struct comparison {
    ggml_backend_t backend[2];
    struct ggml_cgraph *graph[2];
    ggml_backend_eval_callback callback;
    void *user_data;
};

// Whole graphs, then a look at the wanted nodes of the one that was given.
static bool compare_some(const struct comparison *c, const struct ggml_cgraph *given,
                         const struct ggml_tensor *const *wanted, size_t n_wanted) {
    if (!compute_both(c->backend[0], c->graph[0], c->backend[1], c->graph[1])) return false;
    bool go_on = true;
    for (int i = 0; go_on && i < given->n_nodes; i++) {
        if (!is_wanted(given->nodes[i], wanted, n_wanted)) continue;
        go_on = c->callback(i, c->graph[0]->nodes[i], c->graph[1]->nodes[i], c->user_data);
    }
    return true;
}

// Node by node, each with what that backend computed before.
static bool compare_all(const struct comparison *c) {
    bool go_on = true;
    for (int i = 0; go_on && i < c->graph[0]->n_nodes; i++) {
        if (sched_is_view(c->graph[0]->nodes[i])) continue;
        struct ggml_cgraph g1 = graph_view(c->graph[0], i, i + 1), g2 = graph_view(c->graph[1], i, i + 1);
        g1.uid = g2.uid = 0;
        if (!compute_both(c->backend[0], &g1, c->backend[1], &g2)) return false;
        go_on = c->callback(i, c->graph[0]->nodes[i], c->graph[1]->nodes[i], c->user_data);
    }
    return true;
}

bool ggml_backend_compare_graph_backend(ggml_backend_t backend1, ggml_backend_t backend2, struct ggml_cgraph *graph,
                                        ggml_backend_eval_callback callback, void *user_data,
                                        const struct ggml_tensor *const *test_nodes, size_t num_test_nodes) {
    if (!backend1 || !callback)
        DEVICE_FAIL(false, ERR_INVALID, "compare backends: no %s", backend1 ? "callback" : "backend");
    if (num_test_nodes > 0 && !test_nodes) DEVICE_FAIL(false, ERR_INVALID, "compare backends: no list of nodes");
    struct ggml_backend_graph_copy copy = ggml_backend_graph_copy(backend2, graph), own = {0};
    if (!copy.graph) return false;
    if (!has_all(graph)) own = ggml_backend_graph_copy(backend1, graph);  // one in which there is everything to look at
    const struct comparison c = {{backend1, backend2}, {own.graph ? own.graph : graph, copy.graph}, callback, user_data};
    const bool ok = num_test_nodes > 0 ? compare_some(&c, graph, test_nodes, num_test_nodes) : compare_all(&c);
    ggml_backend_graph_copy_free(own);
    ggml_backend_graph_copy_free(copy);
    return ok;
}
