// Recognising a graph that fits the plan, and giving its tensors their addresses. Both are single walks without a hash: what was
// read when the plan was made says which slot every source must be.
//
// A graph fits when it has as many nodes and leafs as the one that was planned and nothing in it is larger than its slot; beyond
// that the same operations must read the same slots, so that lifetimes are those that were planned.
#include "alloc/gallocr.h"
#include "ggml/device.h"

static bool fits_slot(struct ggml_gallocr *g, struct ggml_tensor *t, int32_t index) {
    struct ggml_tensor *root = gallocr_root(t);
    if (index < 0) return root->data != NULL && !gallocr_owns(g, root->buffer);
    struct slot *s = &g->layout.slots[index];
    if ((t->flags & GGML_TENSOR_FLAG_OUTPUT) && !s->output) return false;
    if (s->root) return s->root == root;
    if (s->pinned || (root->data && !gallocr_owns(g, root->buffer))) return false;
    if ((root->flags & GGML_TENSOR_FLAG_INPUT) && !s->input) return false;
    if (ggml_backend_buft_get_alloc_size(g->pools[s->pool].buft, root) > s->size) return false;
    s->root = root;
    return true;
}

static bool node_fits(struct ggml_gallocr *g, struct ggml_tensor *t, const struct node_ref *ref) {
    if (t->op != (enum ggml_op) ref->op) return false;
    int n = 0;
    for (int j = 0; j < GGML_MAX_SRC; j++) {
        if (!t->src[j]) continue;
        if (n == ref->n_src || !fits_slot(g, t->src[j], g->layout.src_slots[ref->first_src + n])) return false;
        n++;
    }
    if (n != ref->n_src || !fits_slot(g, t, ref->slot)) return false;
    bool wide;
    return ref->takes < 0 || gallocr_may_take(t, ref->takes, g->pools[g->layout.slots[ref->slot].pool].buft, &wide);
}

static bool same_pools(const struct ggml_gallocr *g, const int *node_ids, const int *leaf_ids) {
    const struct layout *l = &g->layout;
    for (int i = 0; node_ids && i < l->n_nodes; i++) {
        if (node_ids[i] != l->nodes[i].buffer_id && l->nodes[i].slot >= 0) return false;
    }
    for (int i = 0; leaf_ids && i < l->n_leafs; i++) {
        if (leaf_ids[i] != l->leafs[i].buffer_id && l->leafs[i].slot >= 0) return false;
    }
    return true;
}

bool gallocr_fits(struct ggml_gallocr *g, const struct ggml_cgraph *graph, const int *node_ids, const int *leaf_ids) {
    struct layout *l = &g->layout;
    if (!l->backed || graph->n_nodes != l->n_nodes || graph->n_leafs != l->n_leafs) return false;
    if (!same_pools(g, node_ids, leaf_ids)) return false;
    for (int i = 0; i < l->n_slots; i++) l->slots[i].root = NULL;
    for (int i = 0; i < graph->n_leafs; i++) {
        if (!fits_slot(g, graph->leafs[i], l->leafs[i].slot)) return false;
    }
    for (int i = 0; i < graph->n_nodes; i++) {
        if (!node_fits(g, graph->nodes[i], &l->nodes[i])) return false;
    }
    return true;
}

static enum err init_tensor(struct ggml_tensor *t) {
    if (!t->buffer->iface->init_tensor || t->buffer->iface->init_tensor(t->buffer, t) == GGML_STATUS_SUCCESS) return ERR_OK;
    return err_set(ERR_FAILED, "graph allocator: the device refused tensor '%s'", t->name);
}

static enum err assign(struct layout *l, struct ggml_tensor *t, int32_t slot) {
    if (!t->view_src) {
        const struct slot *s = &l->slots[slot];
        if (slot < 0 || (t->data == s->address && t->buffer == s->buffer) || s->pinned) return ERR_OK;
        t->buffer = s->buffer;
        t->data = s->address;
        return init_tensor(t);
    }
    TRY(assign(l, t->view_src, slot));
    if (!t->view_src->data) return err_set(ERR_INVALID, "graph allocator: view '%s' has a source without memory", t->name);
    char *const at = (char *) t->view_src->data + t->view_offs;
    if (t->data == at && t->buffer == t->view_src->buffer) return ERR_OK;
    t->buffer = t->view_src->buffer;
    t->data = at;
    return t->buffer ? init_tensor(t) : ERR_OK;
}

enum err gallocr_assign_leafs(struct ggml_gallocr *g, const struct ggml_cgraph *graph) {
    struct layout *l = &g->layout;
    for (int p = 0; p < g->n_pools; p++) {
        for (int k = 0; k < g->pools[p].n_chunks; k++) ggml_backend_buffer_reset(g->pools[p].chunks[k].buffer);
    }
    for (int i = 0; i < graph->n_leafs; i++) TRY(assign(l, graph->leafs[i], l->leafs[i].slot));
    return ERR_OK;
}

enum err gallocr_assign_nodes(struct ggml_gallocr *g, const struct ggml_cgraph *graph) {
    struct layout *l = &g->layout;
    for (int i = 0; i < graph->n_nodes; i++) {
        struct ggml_tensor *t = graph->nodes[i];
        const struct node_ref *ref = &l->nodes[i];
        TRY(assign(l, t, ref->slot));
    }
    return ERR_OK;
}
