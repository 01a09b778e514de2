// The graph allocator: pools of buffers, reserving and allocating. Meaning of the calls as in ggml: reserve plans for the
// largest graph; alloc_graph gives addresses when the graph fits that plan, and re-reserves by itself only with a single
// buffer.
#include "alloc/gallocr.h"
#include "base/env.h"
#include "ggml/device.h"
#include "ggml/plan.h"

#include <stdlib.h>
#include <string.h>

static int pool_for(struct ggml_gallocr *g, ggml_backend_buffer_type_t buft) {
    for (int i = 0; i < g->n_pools; i++) {
        if (g->pools[i].buft == buft) return i;
    }
    g->pools[g->n_pools].buft = buft;
    return g->n_pools++;
}

ggml_gallocr_t ggml_gallocr_new_n(ggml_backend_buffer_type_t *bufts, int n_bufs) {
    if (!bufts || n_bufs < 1 || n_bufs > MAX_POOLS) {
        (void) err_set(ERR_INVALID, "ggml_gallocr_new_n: %d buffer types; between 1 and %d can be used", n_bufs, MAX_POOLS);
        return NULL;
    }
    for (int i = 0; i < n_bufs; i++) {
        if (bufts[i]) continue;
        (void) err_set(ERR_INVALID, "ggml_gallocr_new_n: buffer type %d is NULL", i);
        return NULL;
    }
    struct ggml_gallocr *g = calloc(1, sizeof(*g));
    if (g) g->pools = calloc((size_t) n_bufs, sizeof(*g->pools));
    if (!g || !g->pools) {
        free(g);
        (void) err_set(ERR_NOMEM, "no memory for a graph allocator");
        return NULL;
    }
    g->n_ids = n_bufs;
    g->epoch = graph_serial();
    g->never = env_get("GGML_NO_FUSE") != NULL;
    for (int i = 0; i < n_bufs; i++) {
        g->pool_of_id[i] = pool_for(g, bufts[i]);
        g->devices[i] = ggml_backend_buft_get_device(bufts[i]);
    }
    return g;
}

ggml_gallocr_t ggml_gallocr_new(ggml_backend_buffer_type_t buft) { return ggml_gallocr_new_n(&buft, 1); }

static void free_buffers(struct pool *p) {
    for (int i = 0; i < MAX_CHUNKS; i++) {
        ggml_backend_buffer_free(p->chunks[i].buffer);
        p->chunks[i].buffer = NULL;
    }
}

static void free_layout(struct layout *l) {
    free(l->nodes);
    free(l->leafs);
    free(l->src_slots);
    free(l->slots);
    free(l->items);
}

void ggml_gallocr_free(ggml_gallocr_t g) {
    if (!g) return;
    for (int i = 0; i < g->n_pools; i++) free_buffers(&g->pools[i]);
    free(g->pools);
    free_layout(&g->layout);
    free_layout(&g->other);
    free(g->map.keys);
    free(g->map.values);
    free(g->map.entry_slot);
    free(g->map.entry_read);
    free(g->pool_items);
    free(g->pool_index);
    plan_scratch_free(&g->scratch);
    free(g);
}

// ---- placing --------------------------------------------------------------------------------------------------------

// The plan in one piece if the pool's buffers may be that large, or else in chunks of the largest size.
static enum err solve(struct ggml_gallocr *g, struct pool *p, struct plan_item *items, int n, int effort,
                      size_t *chunk_bytes) {
    const size_t max = ggml_backend_buft_get_max_size(p->buft) & ~(ggml_backend_buft_get_alignment(p->buft) - 1);
    struct plan_result r;
    *chunk_bytes = SIZE_MAX;
    TRY(plan_solve(&g->scratch, items, n, g->layout.n_nodes + 2, SIZE_MAX, effort, &r));
    if (r.peak > max) {
        *chunk_bytes = max;
        TRY(plan_solve(&g->scratch, items, n, g->layout.n_nodes + 2, max, effort, &r));
    }
    g->tries += r.tries;
    p->bound = r.bound;
    p->peak = r.peak;
    return ERR_OK;
}

static enum err note_chunks(struct pool *p, const struct plan_item *it, struct slot *s, size_t chunk_bytes) {
    const size_t k = chunk_bytes == SIZE_MAX ? 0 : it->offset / chunk_bytes;
    const size_t offset = chunk_bytes == SIZE_MAX ? it->offset : it->offset % chunk_bytes;
    if (k >= MAX_CHUNKS) {
        return err_set(ERR_NOMEM, "graph allocator: the plan needs more than %d %s buffers of %zu bytes", MAX_CHUNKS,
                       ggml_backend_buft_name(p->buft), chunk_bytes);
    }
    s->chunk = (int16_t) k;
    if ((int) k >= p->n_chunks) p->n_chunks = (int) k + 1;
    if (offset + it->bytes > p->chunks[k].need) p->chunks[k].need = offset + it->bytes;
    return ERR_OK;
}

static enum err place_pool(struct ggml_gallocr *g, int pool, int effort, size_t *chunk_bytes) {
    struct layout *l = &g->layout;
    if (g->n_pools == 1) return solve(g, &g->pools[0], l->items, l->n_slots, effort, chunk_bytes);
    if (g->pool_room < l->n_slots) {
        struct plan_item *items = realloc(g->pool_items, (size_t) l->slot_room * sizeof(*items));
        if (items) g->pool_items = items;
        int32_t *index = realloc(g->pool_index, (size_t) l->slot_room * sizeof(*index));
        if (index) g->pool_index = index;
        if (!items || !index) return err_set(ERR_NOMEM, "graph allocator: no memory for %d tensors", l->slot_room);
        g->pool_room = l->slot_room;
    }
    int n = 0;
    for (int i = 0; i < l->n_slots; i++) {
        if (l->slots[i].pool != pool) continue;
        g->pool_index[i] = n;
        struct plan_item *it = &g->pool_items[n++];
        *it = l->items[i];
        for (int k = 0; k < 2; k++) it->take[k] = it->take[k] < 0 ? -1 : g->pool_index[it->take[k]];
    }
    TRY(solve(g, &g->pools[pool], g->pool_items, n, effort, chunk_bytes));
    for (int i = 0; i < l->n_slots; i++) {
        if (l->slots[i].pool != pool) continue;
        const struct plan_item *it = &g->pool_items[g->pool_index[i]];
        l->items[i].offset = it->offset;
        l->items[i].over = it->over < 0 ? -1 : (it->over == it->take[0] ? l->items[i].take[0] : l->items[i].take[1]);
    }
    return ERR_OK;
}

// Which source of the node gave it its memory; checked again when another graph is fitted.
static void note_takes(struct layout *l, const struct ggml_cgraph *graph) {
    for (int i = 0; i < l->n_nodes; i++) {
        struct node_ref *ref = &l->nodes[i];
        ref->takes = -1;
        if (ref->slot < 0 || l->items[ref->slot].first != ref->step || l->items[ref->slot].over < 0) continue;
        if (graph->nodes[i]->view_src) continue;
        for (int j = 0, k = 0; k < ref->n_src; j++) {
            if (!graph->nodes[i]->src[j]) continue;
            if (l->src_slots[ref->first_src + k++] == l->items[ref->slot].over) ref->takes = (int16_t) j;
        }
    }
}

enum err gallocr_place(struct ggml_gallocr *g, int effort) {
    struct layout *l = &g->layout;
    g->tries = 0;
    for (int p = 0; p < g->n_pools; p++) {
        size_t chunk_bytes;
        g->pools[p].n_chunks = 0;
        for (int k = 0; k < MAX_CHUNKS; k++) g->pools[p].chunks[k].need = 0;
        TRY(place_pool(g, p, effort, &chunk_bytes));
        for (int i = 0; i < l->n_slots; i++) {
            if (l->slots[i].pool != p) continue;
            TRY(note_chunks(&g->pools[p], &l->items[i], &l->slots[i], chunk_bytes));
            if (chunk_bytes != SIZE_MAX) l->items[i].offset %= chunk_bytes;
        }
    }
    l->planned = true;
    return ERR_OK;
}

// ---- buffers --------------------------------------------------------------------------------------------------------

static bool pool_is_backed(const struct pool *p) {
    for (int k = 0; k < p->n_chunks; k++) {
        if (ggml_backend_buffer_get_size(p->chunks[k].buffer) < p->chunks[k].need) return false;
    }
    return true;
}

bool gallocr_owns(const struct ggml_gallocr *g, ggml_backend_buffer_t buffer) {
    if (!buffer || buffer->usage != GGML_BACKEND_BUFFER_USAGE_COMPUTE) return false;
    for (int p = 0; p < g->n_pools; p++) {
        for (int k = 0; k < MAX_CHUNKS && g->pools[p].chunks[k].buffer; k++) {
            if (g->pools[p].chunks[k].buffer == buffer) return true;
        }
    }
    return false;
}

// More room behind the same handle. The old memory goes first, so that both need not fit at once.
static enum err enlarge(ggml_backend_buffer_t *handle, ggml_backend_buffer_type_t buft, size_t bytes) {
    ggml_backend_buffer_t old = *handle;
    if (old && old->iface->free_buffer) old->iface->free_buffer(old);
    ggml_backend_buffer_t fresh = ggml_backend_buft_alloc_buffer(buft, bytes);
    if (!fresh) {
        free(old);
        *handle = NULL;
        return ERR_NOMEM;
    }
    if (old) {
        *old = *fresh;
        free(fresh);
    }
    *handle = old ? old : fresh;
    ggml_backend_buffer_set_usage(*handle, GGML_BACKEND_BUFFER_USAGE_COMPUTE);
    return ERR_OK;
}

static enum err back_pool(struct ggml_gallocr *g, struct pool *p) {
    const int n = p->n_chunks ? p->n_chunks : 1;
    for (int k = 0; k < n; k++) {
        struct chunk *c = &p->chunks[k];
        if (c->buffer && ggml_backend_buffer_get_size(c->buffer) >= c->need) continue;
        g->other.backed = false;  // its addresses lie in the old memory
        g->epoch = graph_serial();
        TRY(enlarge(&c->buffer, p->buft, c->need));
    }
    return ERR_OK;
}

static enum err back(struct ggml_gallocr *g) {
    for (int p = 0; p < g->n_pools; p++) TRY(back_pool(g, &g->pools[p]));
    for (int i = 0; i < g->layout.n_slots; i++) {
        struct slot *s = &g->layout.slots[i];
        s->buffer = g->pools[s->pool].chunks[s->chunk].buffer;
        s->address = (char *) ggml_backend_buffer_get_base(s->buffer) + g->layout.items[i].offset;
    }
    g->layout.backed = true;
    return ERR_OK;
}

static bool same_counts(const struct layout *l, const struct ggml_cgraph *graph) {
    return l->planned && l->n_nodes == graph->n_nodes && l->n_leafs == graph->n_leafs;
}

static void swap(struct ggml_gallocr *g) {
    const struct layout l = g->layout;
    g->layout = g->other;
    g->other = l;
}

bool gallocr_turn(struct ggml_gallocr *g, const struct ggml_cgraph *graph) {
    if (!g->other.backed || !same_counts(&g->other, graph)) return false;
    swap(g);
    return true;
}

static enum err plan(struct ggml_gallocr *g, const struct ggml_cgraph *graph, const int *node_ids, const int *leaf_ids) {
    if (g->layout.planned && !same_counts(&g->layout, graph)) swap(g);  // what is planned for another shape is kept
    TRY(gallocr_read(g, graph, node_ids, leaf_ids));
    TRY(gallocr_place(g, GALLOCR_EFFORT));
    note_takes(&g->layout, graph);
    return ERR_OK;
}

// The same with the buffer ids of the plan before.
static enum err plan_again(struct ggml_gallocr *g, const struct ggml_cgraph *graph) {
    const struct layout *l = &g->layout;
    int *ids = malloc(((size_t) l->n_nodes + (size_t) l->n_leafs + 1) * sizeof(int));
    if (!ids) return err_set(ERR_NOMEM, "graph allocator: no memory for %d buffer numbers", l->n_nodes);
    for (int i = 0; i < l->n_nodes; i++) ids[i] = l->nodes[i].buffer_id;
    for (int i = 0; i < l->n_leafs; i++) ids[l->n_nodes + i] = l->leafs[i].buffer_id;
    const enum err e = plan(g, graph, ids, ids + l->n_nodes);
    free(ids);
    return e;
}

static bool usable(const struct ggml_gallocr *g, const struct ggml_cgraph *graph, const char *what) {
    if (!g || !graph) {
        (void) err_set(ERR_INVALID, "%s: no %s", what, g ? "graph" : "allocator");
        return false;
    }
    if (graph->failure && graph->failure[0]) {
        (void) err_set(ERR_INVALID, "%s", graph->failure);
        return false;
    }
    return true;
}

static void note_most(struct ggml_gallocr *g) {
    for (int i = 0; i < g->n_pools; i++) {
        struct pool *p = &g->pools[i];
        const int n = p->n_chunks ? p->n_chunks : 1;  // as back_pool makes them
        if (n > p->most_chunks) p->most_chunks = n;
        for (int k = 0; k < n; k++) {
            if (p->chunks[k].need > p->chunks[k].most) p->chunks[k].most = p->chunks[k].need;
        }
    }
}

bool ggml_gallocr_reserve_n(ggml_gallocr_t g, struct ggml_cgraph *graph, const int *node_ids, const int *leaf_ids) {
    if (!usable(g, graph, "ggml_gallocr_reserve_n")) return false;
    if (plan(g, graph, node_ids, leaf_ids) != ERR_OK) return false;
    note_most(g);
    return back(g) == ERR_OK;
}

bool ggml_gallocr_reserve(ggml_gallocr_t g, struct ggml_cgraph *graph) {
    return ggml_gallocr_reserve_n(g, graph, NULL, NULL);
}

static size_t plan_bytes(const struct ggml_gallocr *g, int id) {
    const struct pool *p = &g->pools[g->pool_of_id[id]];
    size_t n = 0;
    for (int k = 0; k < p->n_chunks; k++) n += p->chunks[k].need;
    return n;
}

// An id that shares its pool with an earlier one adds nothing.
static bool counted_before(const struct ggml_gallocr *g, int id) {
    for (int i = 0; i < id; i++) {
        if (g->pool_of_id[i] == g->pool_of_id[id]) return true;
    }
    return false;
}

void ggml_gallocr_reserve_n_size(ggml_gallocr_t g, struct ggml_cgraph *graph, const int *node_ids, const int *leaf_ids,
                                 size_t *sizes) {
    if (!usable(g, graph, "ggml_gallocr_reserve_n_size") || !sizes) return;
    const bool ok = plan(g, graph, node_ids, leaf_ids) == ERR_OK;
    if (ok) note_most(g);
    for (int i = 0; i < g->n_ids; i++) sizes[i] = ok && !counted_before(g, i) ? plan_bytes(g, i) : 0;
}

size_t ggml_gallocr_get_buffer_size(ggml_gallocr_t g, int id) {
    if (!g || id < 0 || id >= g->n_ids) {
        (void) err_set(ERR_INVALID, "ggml_gallocr_get_buffer_size: there is no buffer %d", id);
        return 0;
    }
    if (counted_before(g, id)) return 0;
    const struct pool *p = &g->pools[g->pool_of_id[id]];
    size_t n = 0;
    for (int k = 0; k < MAX_CHUNKS; k++) n += ggml_backend_buffer_get_size(p->chunks[k].buffer);
    return n;
}

// ---- allocating -----------------------------------------------------------------------------------------------------

// Another wiring of as many nodes: it may still fit the buffers that are there, on the same ones as before.
static bool replan(struct ggml_gallocr *g, const struct ggml_cgraph *graph) {
    const struct layout *l = &g->layout;
    if (g->n_ids == 1) return plan(g, graph, NULL, NULL) == ERR_OK && back(g) == ERR_OK;
    if (l->planned && graph->n_nodes == l->n_nodes && graph->n_leafs == l->n_leafs && plan_again(g, graph) == ERR_OK) {
        bool fits = true;
        for (int p = 0; p < g->n_pools; p++) fits = fits && pool_is_backed(&g->pools[p]);
        if (fits && back(g) == ERR_OK) return true;
    }
    (void) err_set(ERR_INVALID,
                   "the graph of %d nodes does not fit what was reserved: reserve again with ggml_gallocr_reserve_n",
                   graph->n_nodes);
    return false;
}

bool ggml_gallocr_alloc_graph(ggml_gallocr_t g, struct ggml_cgraph *graph) {
    bool turned = false;
    if (!usable(g, graph, "ggml_gallocr_alloc_graph")) return false;
    graph_touch(graph);  // addresses may change, and what has none
    do {
        enum fit fit = gallocr_fit_leafs(g, graph, NULL);
        if (fit == FIT_YES) fit = gallocr_fit_nodes(g, graph, NULL);
        if (fit != FIT_NO) return fit == FIT_YES;
    } while (!turned && (turned = gallocr_turn(g, graph)));
    return replan(g, graph) && gallocr_fit_leafs(g, graph, NULL) == FIT_YES && gallocr_fit_nodes(g, graph, NULL) == FIT_YES;
}

static size_t layout_bytes(const struct layout *l) {
    return (size_t) l->node_room * sizeof(*l->nodes) + (size_t) l->leaf_room * sizeof(*l->leafs) +
           (size_t) l->ref_room * sizeof(*l->src_slots) + (size_t) l->slot_room * (sizeof(*l->slots) + sizeof(*l->items));
}

size_t gallocr_planned_size(const struct ggml_gallocr *g, int id) {
    const struct pool *p = &g->pools[g->pool_of_id[id]];
    size_t n = 0;
    for (int k = 0; k < p->most_chunks && !counted_before(g, id); k++) n += p->chunks[k].most;
    return n;
}

static size_t handles(const struct ggml_gallocr *g) {
    size_t n = 0;
    for (int i = 0; i < g->n_pools; i++) {
        const struct pool *p = &g->pools[i];
        for (int k = 0; k < p->most_chunks; k++) n += ggml_backend_buft_overhead(p->chunks[k].most ? p->buft : NULL);
    }
    return n;
}

size_t gallocr_overhead(const struct ggml_gallocr *g) {
    return sizeof(*g) + handles(g) + (size_t) g->n_ids * sizeof(*g->pools) + layout_bytes(&g->layout) +
           layout_bytes(&g->other) + g->map.size * (sizeof(*g->map.keys) + sizeof(*g->map.values)) +
           (size_t) g->map.entry_room * (sizeof(*g->map.entry_slot) + sizeof(*g->map.entry_read)) +
           (size_t) g->pool_room * (sizeof(*g->pool_items) + sizeof(*g->pool_index)) + g->scratch.bytes +
           g->scratch.edge_room * 2 * sizeof(uint32_t) + g->scratch.rise_bytes;
}
