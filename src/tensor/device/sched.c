// The scheduler's calls: making one, splitting, reserving, allocating, computing, and what can be asked of it.
#include "device/sched.h"
#include "base/env.h"
#include "ggml/plan.h"

#include <stdlib.h>
#include <string.h>

enum err sched_grow(void **p, int *room, int need, size_t size) {
    if (need <= *room) return ERR_OK;
    const int next = need + need / 2 + 16;
    void *q = realloc(*p, (size_t) next * size);
    if (!q) return err_set(ERR_NOMEM, "scheduler: no memory for %d entries", next);
    *p = q;
    *room = next;
    return ERR_OK;
}

// ---- entries --------------------------------------------------------------------------------------------------------

static size_t place_of(const struct ggml_backend_sched *s, const struct ggml_tensor *t) {
    size_t h = ((uintptr_t) t >> 4) * 0x9E3779B97F4A7C15u >> 32;
    for (;; h++) {
        const struct ggml_tensor *k = s->keys[h & (s->map_size - 1)];
        if (!k || k == t) return h & (s->map_size - 1);
    }
}

int32_t sched_find(const struct ggml_backend_sched *s, const struct ggml_tensor *t) {
    if (!s->map_size) return -1;
    const size_t at = place_of(s, t);
    return s->keys[at] ? s->values[at] : -1;
}

static enum err map_resize(struct ggml_backend_sched *s, size_t size) {
    const struct ggml_tensor **keys = realloc(s->keys, size * sizeof(*keys));
    if (keys) s->keys = keys;
    int32_t *values = realloc(s->values, size * sizeof(*values));
    if (values) s->values = values;
    if (!keys || !values) return err_set(ERR_NOMEM, "scheduler: no memory to list %zu tensors", size / 2);
    s->map_size = size;
    memset(s->keys, 0, size * sizeof(*s->keys));
    for (int i = 0; i < s->n_entries; i++) {
        const size_t at = place_of(s, s->entries[i].tensor);
        s->keys[at] = s->entries[i].tensor;
        s->values[at] = i;
    }
    return ERR_OK;
}

static enum err enter(struct ggml_backend_sched *s, struct ggml_tensor *t, int32_t *entry) {
    size_t at = place_of(s, t);
    if (s->keys[at]) {
        *entry = s->values[at];
        return ERR_OK;
    }
    int32_t root = -1;
    if (t->view_src) TRY(enter(s, t->view_src, &root));
    if (2 * ((size_t) s->n_entries + 1) > s->map_size) TRY(map_resize(s, 2 * s->map_size));
    TRY(sched_grow((void **) &s->entries, &s->entry_room, s->n_entries + 1, sizeof(struct sched_entry)));
    *entry = s->n_entries++;
    s->entries[*entry] =
        (struct sched_entry){.tensor = t, .root = root < 0 ? *entry : root, .copies = -1, .backend = SCHED_NOWHERE};
    at = place_of(s, t);
    s->keys[at] = t;
    s->values[at] = *entry;
    return ERR_OK;
}

static void forget_entries(struct ggml_backend_sched *s) {
    if (s->n_entries) memset(s->keys, 0, s->map_size * sizeof(*s->keys));
    s->n_entries = 0;
}

enum err sched_enter(struct ggml_backend_sched *s, struct ggml_cgraph *graph) {
    forget_entries(s);
    s->graph = graph;
    int room = s->node_room;
    TRY(sched_grow((void **) &s->node_entry, &room, graph->n_nodes, sizeof(int32_t)));
    TRY(sched_grow((void **) &s->node_src, &s->node_room, graph->n_nodes, GGML_MAX_SRC * sizeof(int32_t)));
    int32_t e;
    for (int i = 0; i < graph->n_leafs; i++) TRY(enter(s, graph->leafs[i], &e));
    for (int i = 0; i < graph->n_nodes; i++) {
        for (int j = 0; j < GGML_MAX_SRC; j++) {
            struct ggml_tensor *src = graph->nodes[i]->src[j];
            e = -1;
            if (src) TRY(enter(s, src, &e));
            s->node_src[i * GGML_MAX_SRC + j] = e;
        }
        TRY(enter(s, graph->nodes[i], &e));
        s->node_entry[i] = e;
    }
    for (int i = 0; i < s->n_presets; i++) {
        e = sched_find(s, s->presets[i].tensor);
        if (e < 0) continue;
        s->entries[e].backend = (int16_t) s->presets[i].backend;
        s->entries[e].cause = "preset";
    }
    return ERR_OK;
}

// ---- making and freeing ---------------------------------------------------------------------------------------------

static enum err make_events(struct ggml_backend_sched *s) {
    for (int b = 0; s->n_sets > 1 && b < s->n_backends; b++) {
        for (int k = 0; k < s->n_sets; k++) s->events[b][k] = ggml_backend_event_new(s->backends[b]->device);
    }
    return ERR_OK;
}

static enum err set_up(struct ggml_backend_sched *s, ggml_backend_t *backends, ggml_backend_buffer_type_t *bufts, int n,
                       int graph_size) {
    for (int b = 0; b < n; b++) {
        if (!backends[b]) return err_set(ERR_INVALID, "ggml_backend_sched_new: backend %d is NULL", b);
        s->backends[b] = backends[b];
        s->bufts[b] = bufts && bufts[b] ? bufts[b] : ggml_backend_get_default_buffer_type(backends[b]);
        if (!ggml_backend_supports_buft(backends[b], s->bufts[b])) {
            return err_set(ERR_INVALID, "ggml_backend_sched_new: backend %s cannot use buffers of type %s",
                           ggml_backend_name(backends[b]), ggml_backend_buft_name(s->bufts[b]));
        }
    }
    s->galloc = ggml_gallocr_new_n(s->bufts, n);
    if (!s->galloc) return ERR_NOMEM;
    for (int b = 0; b < n; b++) s->galloc->devices[b] = backends[b]->device;
    size_t size = 256;
    while (size < 4 * (size_t) graph_size) size *= 2;
    TRY(map_resize(s, size));
    return make_events(s);
}

ggml_backend_sched_t ggml_backend_sched_new(ggml_backend_t *backends, ggml_backend_buffer_type_t *bufts, int n_backends,
                                            size_t graph_size, bool parallel, bool op_offload) {
    if (!backends || n_backends < 1 || n_backends > SCHED_MAX_BACKENDS || graph_size > INT32_MAX / 64) {
        DEVICE_FAIL(NULL, ERR_INVALID, "ggml_backend_sched_new: %d backends (1 to %d are possible), graph size %zu",
                    n_backends, SCHED_MAX_BACKENDS, graph_size);
    }
    struct ggml_backend_sched *s = calloc(1, sizeof(*s));
    if (!s) DEVICE_FAIL(NULL, ERR_NOMEM, "no memory for a scheduler");
    const char *debug = env_get("GGML_SCHED_DEBUG");
    s->n_backends = n_backends;
    s->op_offload = op_offload;
    s->debug = debug ? atoi(debug) : 0;
    s->n_sets = parallel ? SCHED_MAX_COPIES : 1;
    s->is_reset = true;
    if (set_up(s, backends, bufts, n_backends, (int) graph_size) == ERR_OK) return s;
    ggml_backend_sched_free(s);
    return NULL;
}

void ggml_backend_sched_free(ggml_backend_sched_t s) {
    if (!s) return;
    for (int b = 0; b < s->n_backends; b++) {
        for (int k = 0; k < SCHED_MAX_COPIES; k++) ggml_backend_event_free(s->events[b][k]);
    }
    ggml_gallocr_free(s->galloc);
    for (int i = 0; i < s->pool.n_blocks; i++) free(s->pool.blocks[i]);
    void *const lists[] = {s->keys,        s->values,    s->entries,   s->node_entry, s->node_src,
                           s->presets,     s->splits,    s->copies,    s->patches,    s->rotated,
                           s->pool.blocks, s->own.nodes, s->own.leafs, s->node_ids,   s->leaf_ids};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) free(lists[i]);
    free(s);
}

void ggml_backend_sched_reset(ggml_backend_sched_t s) {
    if (!s) return;
    s->n_presets = 0;
    if (!s->is_reset) forget_entries(s);
    s->is_reset = true;
    s->is_alloc = false;
}

// ---- splitting ------------------------------------------------------------------------------------------------------

// One backend that can read everything: the graph is one split, taken as it is.
static bool is_whole(const struct ggml_backend_sched *s, const struct ggml_cgraph *graph) {
    if (s->n_backends > 1 || s->n_sets > 1) return false;
    ggml_backend_buffer_type_t last = s->bufts[0];
    for (int i = 0; i < graph->n_leafs; i++) {
        const ggml_backend_buffer_t b = sched_buffer(graph->leafs[i]);
        if (!b || b->buft == last) continue;
        if (!ggml_backend_supports_buft(s->backends[0], b->buft)) return false;
        last = b->buft;
    }
    return true;
}

static enum err split_whole(struct ggml_backend_sched *s, struct ggml_cgraph *graph) {
    s->graph = graph;
    s->own_in_use = false;
    s->n_copies = s->n_patches = s->n_rotated = s->n_splits = 0;
    TRY(sched_grow((void **) &s->splits, &s->split_room, 1, sizeof(struct sched_split)));
    s->splits[0] = (struct sched_split){.i_end = graph->n_nodes, .own_end = graph->n_nodes};
    s->n_splits = 1;
    return ERR_OK;
}

static enum err split(struct ggml_backend_sched *s, struct ggml_cgraph *graph) {
    if (graph->failure && graph->failure[0]) return err_set(ERR_INVALID, "%s", graph->failure);
    s->is_reset = false;
    if (is_whole(s, graph)) {
        TRY(split_whole(s, graph));
    } else {
        s->own_in_use = true;
        TRY(sched_enter(s, graph));
        TRY(sched_assign(s));
        TRY(sched_split(s));
    }
    if (s->debug) sched_print(s);
    return ERR_OK;
}

static bool usable(const struct ggml_backend_sched *s, const struct ggml_cgraph *graph, const char *what) {
    if (s && graph) return true;
    DEVICE_FAIL(false, ERR_INVALID, "%s: no %s", what, s ? "graph" : "scheduler");
}

void ggml_backend_sched_split_graph(ggml_backend_sched_t s, struct ggml_cgraph *graph) {
    if (usable(s, graph, "ggml_backend_sched_split_graph")) (void) !split(s, graph);
}

// ---- memory ---------------------------------------------------------------------------------------------------------

// While gallocr looks, nodes read the copies (of set 0) instead of their sources, and no result may take the place of an
// input that the user may be writing for the next graph.
static void show_copies(struct ggml_backend_sched *s, bool show) {
    for (int i = 0; i < s->n_rotated; i++) {
        struct sched_rotated *r = &s->rotated[i];
        if (show) r->flags = r->input->flags;
        r->input->flags = show ? r->flags | GGML_TENSOR_FLAG_OUTPUT : r->flags;
    }
    for (int i = 0; i < s->n_patches; i++) {
        const struct sched_patch *p = &s->patches[i];
        p->node->src[p->i_src] = show ? s->copies[p->copy].to[0] : p->original;
    }
}

static struct ggml_cgraph *graph_of(struct ggml_backend_sched *s) { return s->own_in_use ? &s->own : s->graph; }

static const int *ids(const struct ggml_backend_sched *s, const int *list) { return s->own_in_use ? list : NULL; }

// The part of the graph that a split runs. uid makes it recognisable to a backend that prepares graphs.
static void make_split_graph(struct ggml_backend_sched *s, struct sched_split *split) {
    if (!s->own_in_use) {
        split->graph = *s->graph;
        return;
    }
    split->graph = graph_view(&s->own, split->own_start, split->own_end);
    graph_touch(&split->graph);
}

static void note_needs(struct ggml_backend_sched *s) {
    for (int k = 0; k < s->n_splits; k++) {
        struct sched_split *split = &s->splits[k];
        const ggml_backend_t backend = s->backends[split->backend];
        make_split_graph(s, split);
        if (backend->iface->graph_needs) backend->iface->graph_needs(backend, &split->graph, &s->needs[split->backend]);
    }
}

static bool reserve_needs(struct ggml_backend_sched *s) {
    note_needs(s);
    for (int b = 0; b < s->n_backends; b++) {
        const ggml_backend_t backend = s->backends[b];
        if (backend->iface->reserve && !backend->iface->reserve(backend, &s->needs[b])) return false;
    }
    return true;
}

static enum err make_shadows(struct ggml_backend_sched *s);

bool ggml_backend_sched_reserve(ggml_backend_sched_t s, struct ggml_cgraph *graph) {
    if (!usable(s, graph, "ggml_backend_sched_reserve")) return false;
    ggml_backend_sched_synchronize(s);
    if (split(s, graph) != ERR_OK) return false;
    show_copies(s, true);
    bool ok = ggml_gallocr_reserve_n(s->galloc, graph_of(s), ids(s, s->node_ids), ids(s, s->leaf_ids)) && reserve_needs(s);
    if (ok && s->debug) sched_print_plan(s, graph_of(s), ids(s, s->node_ids), ids(s, s->leaf_ids));
    show_copies(s, false);
    ok = ok && make_shadows(s) == ERR_OK;  // they take tensors from the pool, too
    ggml_backend_sched_reset(s);
    return ok;
}

void ggml_backend_sched_reserve_size(ggml_backend_sched_t s, struct ggml_cgraph *graph, size_t *sizes) {
    if (!usable(s, graph, "ggml_backend_sched_reserve_size") || !sizes) return;
    memset(sizes, 0, (size_t) s->n_backends * sizeof(*sizes));
    ggml_backend_sched_synchronize(s);
    if (split(s, graph) != ERR_OK) return;
    show_copies(s, true);
    ggml_gallocr_reserve_n_size(s->galloc, graph_of(s), ids(s, s->node_ids), ids(s, s->leaf_ids), sizes);
    note_needs(s);
    if (s->debug) sched_print_plan(s, graph_of(s), ids(s, s->node_ids), ids(s, s->leaf_ids));
    show_copies(s, false);
    (void) make_shadows(s);  // what they take counts as the scheduler's: see ggml_backend_sched_overhead
    ggml_backend_sched_reset(s);
}

struct ggml_plan_report *ggml_backend_sched_plan_report(ggml_backend_sched_t s, struct ggml_cgraph *graph) {
    if (!usable(s, graph, "ggml_backend_sched_plan_report")) return NULL;
    ggml_backend_sched_synchronize(s);
    if (split(s, graph) != ERR_OK) return NULL;
    show_copies(s, true);
    struct ggml_plan_report *r =
        ggml_plan_report_new(graph_of(s), s->bufts, s->n_backends, ids(s, s->node_ids), ids(s, s->leaf_ids));
    show_copies(s, false);
    ggml_backend_sched_reset(s);
    return r;
}

// Inputs that exist once per set move to the place of the set in use. Before their views are placed.
static void turn_inputs(struct ggml_backend_sched *s) {
    for (int i = 0; s->set > 0 && i < s->n_rotated; i++) {
        struct ggml_tensor *other = s->rotated[i].others[s->set], *input = s->rotated[i].input;
        void *const data = input->data;
        input->data = other->data;
        other->data = data;
        const ggml_backend_buffer_t buffer = input->buffer;
        input->buffer = other->buffer;
        other->buffer = buffer;
    }
}

static enum fit fit(struct ggml_backend_sched *s) {
    struct ggml_cgraph *g = graph_of(s);
    const enum fit f = gallocr_fit_leafs(s->galloc, g, ids(s, s->leaf_ids));
    if (f != FIT_YES) return f;
    turn_inputs(s);
    return gallocr_fit_nodes(s->galloc, g, ids(s, s->node_ids));
}

static enum err place(struct ggml_backend_sched *s) {
    enum fit f = fit(s);
    if (f == FIT_NO && gallocr_turn(s->galloc, graph_of(s))) f = fit(s);
    if (f == FIT_NO) {
        ggml_backend_sched_synchronize(s);  // the buffers may be in use
        if (!ggml_gallocr_reserve_n(s->galloc, graph_of(s), ids(s, s->node_ids), ids(s, s->leaf_ids))) return ERR_NOMEM;
        f = fit(s);
    }
    if (f != FIT_YES) return ERR_FAILED;
    if (s->own_in_use) return ERR_OK;
    graph_touch(s->graph);  // addresses may be others, and what has none
    s->graph->placed = s->galloc->epoch;
    return ERR_OK;
}

// The shadow of the node at a position, made if there is none yet; NULL: no memory.
static struct ggml_tensor *shadow_at(struct ggml_backend_sched *s, int position) {
    struct ggml_tensor *node = s->own.nodes[position];
    if (sched_find(s, node) < 0) return node;  // is one
    struct ggml_tensor *shadow = sched_new_tensor(s);
    if (!shadow) return NULL;
    *shadow = *node;
    return s->own.nodes[position] = shadow;
}

// Nodes that are computed as one are recognised by reading each other: those after a shadow read the shadow.
static enum err follow_shadow(struct ggml_backend_sched *s, int position, const struct ggml_tensor *node) {
    const struct node_ref *ref = s->galloc->layout.nodes;
    struct ggml_tensor *const shadow = s->own.nodes[position];
    for (int i = position + 1; i < s->own.n_nodes && ref[i].step == ref[position].step; i++) {
        struct ggml_tensor *t = s->own.nodes[i];
        bool reads = t->view_src == node;
        for (int k = 0; k < GGML_MAX_SRC; k++) reads = reads || t->src[k] == node;
        if (!reads) continue;
        struct ggml_tensor *copy = shadow_at(s, i);
        if (!copy) return ERR_NOMEM;
        for (int k = 0; k < GGML_MAX_SRC; k++) {
            if (copy->src[k] == node) copy->src[k] = shadow;
        }
        if (copy->view_src == node) copy->view_src = shadow;
        if (copy != t) TRY(follow_shadow(s, i, t));
    }
    return ERR_OK;
}

// Nodes that read copies are run as shadows, which share everything but their sources.
static enum err make_shadows(struct ggml_backend_sched *s) {
    for (int i = 0; i < s->n_patches; i++) {
        const struct sched_patch *p = &s->patches[i];
        struct ggml_tensor *shadow = shadow_at(s, p->position);
        if (!shadow) return ERR_NOMEM;
        shadow->src[p->i_src] = s->copies[p->copy].to[s->set];
        TRY(follow_shadow(s, p->position, p->node));
    }
    for (int k = 0; k < s->n_splits; k++) make_split_graph(s, &s->splits[k]);
    return ERR_OK;
}

bool ggml_backend_sched_alloc_graph(ggml_backend_sched_t s, struct ggml_cgraph *graph) {
    if (!usable(s, graph, "ggml_backend_sched_alloc_graph")) return false;
    s->set = s->next_set;
    s->next_set = (s->next_set + 1) % s->n_sets;
    if (split(s, graph) != ERR_OK) return false;
    show_copies(s, true);
    enum err e = place(s);
    show_copies(s, false);
    if (e == ERR_OK) e = make_shadows(s);
    s->is_alloc = e == ERR_OK;
    return s->is_alloc;
}

bool ggml_backend_sched_resume_graph(ggml_backend_sched_t s, struct ggml_cgraph *graph) {
    // What crosses between devices is the scheduler's, and it knows that of one graph only. Who watches nodes needs them planned singly.
    if (!s || !graph || s->n_backends > 1 || s->n_sets > 1 || s->callback || graph->placed != s->galloc->epoch) return false;
    if (split_whole(s, graph) != ERR_OK) return false;
    make_split_graph(s, &s->splits[0]);
    s->is_reset = false;
    return s->is_alloc = true;
}

// ---- computing ------------------------------------------------------------------------------------------------------

enum ggml_status ggml_backend_sched_graph_compute_async(ggml_backend_sched_t s, struct ggml_cgraph *graph) {
    if (!usable(s, graph, "ggml_backend_sched_graph_compute")) return GGML_STATUS_FAILED;
    if (graph->failure && graph->failure[0]) DEVICE_FAIL(GGML_STATUS_FAILED, ERR_INVALID, "%s", graph->failure);
    if (!s->is_alloc) {
        if (!s->is_reset) ggml_backend_sched_reset(s);
        if (!ggml_backend_sched_alloc_graph(s, graph)) return GGML_STATUS_ALLOC_FAILED;
    }
    return sched_run(s);
}

enum ggml_status ggml_backend_sched_graph_compute(ggml_backend_sched_t s, struct ggml_cgraph *graph) {
    enum ggml_status status = ggml_backend_sched_graph_compute_async(s, graph);
    if (!s) return status;
    ggml_backend_sched_synchronize(s);
    for (int b = 0; b < s->n_backends; b++) {
        if (!s->backends[b]->iface->status) continue;
        const enum ggml_status queued = s->backends[b]->iface->status(s->backends[b]);
        if (status == GGML_STATUS_SUCCESS) status = queued;
    }
    return status;
}

void ggml_backend_sched_synchronize(ggml_backend_sched_t s) {
    if (!s) return;
    for (int b = 0; b < s->n_backends; b++) ggml_backend_synchronize(s->backends[b]);
    if (!s->is_alloc) s->next_set = 0;  // nothing is under way: start over with the first set
}

void ggml_backend_sched_set_eval_callback(ggml_backend_sched_t s, ggml_backend_sched_eval_callback callback,
                                          void *user_data) {
    if (!s) return;
    s->callback = callback;
    s->callback_data = user_data;
    s->galloc->singly = callback != NULL;
}

// ---- questions ------------------------------------------------------------------------------------------------------

int ggml_backend_sched_get_n_backends(ggml_backend_sched_t s) { return s ? s->n_backends : 0; }

ggml_backend_t ggml_backend_sched_get_backend(ggml_backend_sched_t s, int i) {
    if (s && i >= 0 && i < s->n_backends) return s->backends[i];
    DEVICE_FAIL(NULL, ERR_INVALID, "ggml_backend_sched_get_backend: there is no backend %d", i);
}

int ggml_backend_sched_get_n_splits(ggml_backend_sched_t s) { return s ? s->n_splits : 0; }

int ggml_backend_sched_get_n_copies(ggml_backend_sched_t s) { return s ? s->n_sets : 0; }

static int index_of(const struct ggml_backend_sched *s, ggml_backend_t backend, const char *what) {
    for (int b = 0; s && b < s->n_backends; b++) {
        if (s->backends[b] == backend) return b;
    }
    DEVICE_FAIL(-1, ERR_INVALID, "%s: backend %s is not one of this scheduler's", what, ggml_backend_name(backend));
}

ggml_backend_buffer_type_t ggml_backend_sched_get_buffer_type(ggml_backend_sched_t s, ggml_backend_t backend) {
    const int b = index_of(s, backend, "ggml_backend_sched_get_buffer_type");
    return b < 0 ? NULL : s->bufts[b];
}

size_t ggml_backend_sched_get_buffer_size(ggml_backend_sched_t s, ggml_backend_t backend) {
    const int b = index_of(s, backend, "ggml_backend_sched_get_buffer_size");
    return b < 0 ? 0 : ggml_gallocr_get_buffer_size(s->galloc, b);
}

void ggml_backend_sched_set_tensor_backend(ggml_backend_sched_t s, struct ggml_tensor *node, ggml_backend_t backend) {
    const int b = index_of(s, backend, "ggml_backend_sched_set_tensor_backend");
    if (b < 0 || !node) return;
    s->is_reset = false;
    for (int i = 0; i < s->n_presets; i++) {
        if (s->presets[i].tensor != node) continue;
        s->presets[i].backend = b;
        return;
    }
    if (sched_grow((void **) &s->presets, &s->preset_room, s->n_presets + 1, sizeof(struct sched_preset)) != ERR_OK) return;
    s->presets[s->n_presets++] = (struct sched_preset){node, b};
}

ggml_backend_t ggml_backend_sched_get_tensor_backend(ggml_backend_sched_t s, struct ggml_tensor *node) {
    if (!s || !node || s->is_reset) return NULL;
    for (int i = 0; i < s->n_presets; i++) {
        if (s->presets[i].tensor == node) return s->backends[s->presets[i].backend];
    }
    if (!s->own_in_use) return s->n_splits > 0 ? s->backends[0] : NULL;
    const int32_t e = sched_find(s, node);
    return e < 0 || s->entries[e].backend < 0 ? NULL : s->backends[s->entries[e].backend];
}

size_t ggml_backend_sched_planned_size(ggml_backend_sched_t s, ggml_backend_t backend) {
    const int b = index_of(s, backend, "ggml_backend_sched_planned_size");
    return b < 0 ? 0 : gallocr_planned_size(s->galloc, b);
}

size_t ggml_backend_sched_work_size(ggml_backend_sched_t s, ggml_backend_t backend) {
    const int b = index_of(s, backend, "ggml_backend_sched_work_size");
    return b < 0 ? 0 : s->needs[b].work;
}

size_t ggml_backend_sched_table_size(ggml_backend_sched_t s, ggml_backend_t backend) {
    const int b = index_of(s, backend, "ggml_backend_sched_table_size");
    return b < 0 || !backend->iface->table_size ? 0 : backend->iface->table_size(backend, &s->needs[b]);
}

size_t ggml_backend_sched_overhead(ggml_backend_sched_t s) {
    if (!s) return 0;
    return sizeof(*s) + gallocr_overhead(s->galloc) + s->map_size * (sizeof(*s->keys) + sizeof(*s->values)) +
           (size_t) s->entry_room * sizeof(*s->entries) + (size_t) s->node_room * (GGML_MAX_SRC + 1) * sizeof(int32_t) +
           (size_t) s->preset_room * sizeof(*s->presets) + (size_t) s->split_room * sizeof(*s->splits) +
           (size_t) s->copy_room * sizeof(*s->copies) + (size_t) s->patch_room * sizeof(*s->patches) +
           (size_t) s->rotated_room * sizeof(*s->rotated) +
           (size_t) s->pool.n_blocks * (sizeof(void *) + SCHED_TENSORS_PER_BLOCK * sizeof(struct ggml_tensor)) +
           (size_t) s->own_nodes_room * (sizeof(void *) + sizeof(int)) +
           (size_t) s->own_leafs_room * (sizeof(void *) + sizeof(int));
}
