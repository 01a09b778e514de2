// Recognising a graph that fits the plan, and giving its tensors their addresses on the way: one walk without a hash, since
// what was read when the plan was made says which slot every tensor must be.
//
// A graph fits when it has as many nodes and leafs as the one that was planned and nothing in it is larger than its slot;
// beyond that the same operations must read the same slots, so that lifetimes are those that were planned. Where it turns
// out not to fit, the tensors placed so far lie in the allocator's own memory, which it moves when it plans anew.
#include "alloc/gallocr.h"

static bool init_tensor(struct ggml_tensor *t) {
    if (!t->buffer || !t->buffer->iface->init_tensor) return true;
    if (t->buffer->iface->init_tensor(t->buffer, t) == GGML_STATUS_SUCCESS) return true;
    (void) err_set(ERR_FAILED, "graph allocator: the device refused tensor '%s'", t->name);
    return false;
}

static inline bool owns(const struct ggml_gallocr *g, ggml_backend_buffer_t b) {
    return b && b->usage == GGML_BACKEND_BUFFER_USAGE_COMPUTE && gallocr_owns(g, b);
}

// First sight of a slot in this graph: may this tensor have it? Then it gets its address.
static enum fit enter_slot(struct ggml_gallocr *g, struct ggml_tensor *root, struct slot *s) {
    if (s->root || (root->data && !owns(g, root->buffer))) return FIT_NO;
    if ((root->flags & GGML_TENSOR_FLAG_INPUT) && !s->input) return FIT_NO;
    if (gallocr_bytes(g->pools[s->pool].buft, root) > s->size) return FIT_NO;
    s->root = root;
    if (root->data == s->address && root->buffer == s->buffer) return FIT_YES;
    if (s->pinned) return FIT_NO;
    root->data = s->address;
    root->buffer = s->buffer;
    return init_tensor(root) ? FIT_YES : FIT_ERROR;
}

// Computed as one with all that read it: what memory it had in an earlier plan is not its own any more.
static enum fit no_memory(struct ggml_gallocr *g, struct ggml_tensor *root) {
    if (root->data && !owns(g, root->buffer)) return FIT_NO;
    root->data = NULL;
    root->buffer = NULL;
    return FIT_YES;
}

static inline __attribute__((always_inline)) enum fit fit_slot(struct ggml_gallocr *g, struct ggml_tensor *t,
                                                               int32_t index) {
    struct ggml_tensor *root = gallocr_root(t);
    if (index == REF_NONE) return no_memory(g, root);
    if (index < 0) return root->data && !owns(g, root->buffer) ? FIT_YES : FIT_NO;
    struct slot *s = &g->layout.slots[index];
    if ((t->flags & GGML_TENSOR_FLAG_OUTPUT) && !s->output) return FIT_NO;
    return s->root == root ? FIT_YES : enter_slot(g, root, s);
}

static enum fit place_view(struct ggml_tensor *t) {
    char *const at = t->view_src->data ? (char *) t->view_src->data + t->view_offs : NULL;
    if (t->data == at && t->buffer == t->view_src->buffer) return FIT_YES;
    t->buffer = t->view_src->buffer;
    t->data = at;
    return init_tensor(t) ? FIT_YES : FIT_ERROR;
}

static inline enum fit fit_and_place(struct ggml_gallocr *g, struct ggml_tensor *t, int32_t index) {
    const enum fit f = fit_slot(g, t, index);
    return f == FIT_YES && t->view_src ? place_view(t) : f;
}

// The result is still laid out like the source whose memory it has.
static bool still_takes(const struct ggml_gallocr *g, const struct ggml_tensor *t, const struct node_ref *ref) {
    const struct ggml_tensor *from = t->src[ref->takes];
    int64_t other = t->type != from->type;
    for (int i = 0; i < GGML_MAX_DIMS; i++) other |= (t->ne[i] ^ from->ne[i]) | (int64_t) (t->nb[i] ^ from->nb[i]);
    if (!other && (!from->view_src || from->view_offs == 0)) return true;
    bool wide;
    return gallocr_may_take(t, ref->takes, g->pools[g->layout.slots[ref->slot].pool].buft, &wide);
}

// Sources, in the order of the plan; none more and none less. A node that only makes a view reads nothing: its root says it
// all.
static inline enum fit fit_sources(struct ggml_gallocr *g, struct ggml_tensor *t, const struct node_ref *ref) {
    const int32_t *slots = g->layout.src_slots + ref->first_src;
    int j = 0;
    for (int n = 0; n < ref->n_src; j++) {
        if (j == GGML_MAX_SRC) return FIT_NO;
        if (!t->src[j]) continue;
        const enum fit f = fit_slot(g, t->src[j], slots[n++]);
        if (f != FIT_YES) return f;
    }
    uintptr_t more = 0;
    for (; j < GGML_MAX_SRC; j++) more |= (uintptr_t) t->src[j];
    return more ? FIT_NO : FIT_YES;
}

static inline enum fit fit_node(struct ggml_gallocr *g, struct ggml_tensor *t, const struct node_ref *ref) {
    if (t->op != (enum ggml_op) ref->op) return FIT_NO;
    if (!ref->is_view) {
        const enum fit f = fit_sources(g, t, ref);
        if (f != FIT_YES) return f;
    }
    const enum fit f = fit_and_place(g, t, ref->slot);
    return f == FIT_YES && ref->takes >= 0 && !still_takes(g, t, ref) ? FIT_NO : f;
}

enum fit gallocr_fit_leafs(struct ggml_gallocr *g, const struct ggml_cgraph *graph, const int *leaf_ids) {
    struct layout *l = &g->layout;
    if (!l->backed || graph->n_nodes != l->n_nodes || graph->n_leafs != l->n_leafs || g->singly != l->singly) return FIT_NO;
    for (int i = 0; i < l->n_slots; i++) l->slots[i].root = NULL;
    for (int p = 0; p < g->n_pools; p++) {
        for (int k = 0; k < MAX_CHUNKS && g->pools[p].chunks[k].buffer; k++) {
            ggml_backend_buffer_reset(g->pools[p].chunks[k].buffer);
        }
    }
    for (int i = 0; i < graph->n_leafs; i++) {
        if (leaf_ids && leaf_ids[i] != l->leafs[i].buffer_id && l->leafs[i].slot >= 0) return FIT_NO;
        const enum fit f = fit_and_place(g, graph->leafs[i], l->leafs[i].slot);
        if (f != FIT_YES) return f;
    }
    return FIT_YES;
}

// The nodes are still computed as one, and the same ones of them need no memory.
static bool same_span(const struct ggml_gallocr *g, const struct ggml_cgraph *graph, const int *node_ids, int i) {
    uint64_t none, planned = 0;
    const int n = g->layout.nodes[i].span;
    if (gallocr_span(g, graph, node_ids, i, &none) != n) return false;
    for (int k = 0; k < n; k++) {
        const struct ggml_tensor *t = graph->nodes[i + k];
        if (g->layout.nodes[i + k].slot == REF_NONE && !t->view_src) planned |= (uint64_t) 1 << k;
    }
    return none == planned;
}

enum fit gallocr_fit_nodes(struct ggml_gallocr *g, const struct ggml_cgraph *graph, const int *node_ids) {
    const struct layout *l = &g->layout;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct node_ref *ref = &l->nodes[i];
        if (node_ids && node_ids[i] != ref->buffer_id && ref->slot >= 0) return FIT_NO;
        if (ref->span > 1 && !same_span(g, graph, node_ids, i)) return FIT_NO;
        const enum fit f = fit_node(g, graph->nodes[i], ref);
        if (f != FIT_YES) return f;
    }
    return FIT_YES;
}
