// From a graph to intervals: which tensors need memory, from which step to which, and whose memory each may take over.
//
// Step 0 is before the graph runs, step i + 1 is node i, step n_nodes + 1 is after it. A view counts as its root.
// - Leafs, and nodes that nothing computes, are written before the graph runs: they live from step 0, all apart.
// - A result lives from its node to the last node that reads it. A node that only makes a view reads nothing.
// - What is flagged as output, and what nothing reads, lives to the end: a program may look at it (or, for an input that
//   nothing reads, write to it at any time).
// - Nodes that their device computes as one share one step, that of the last of them. A result that only they read needs no
//   memory.
#include "alloc/gallocr.h"
#include "ggml/device.h"
#include "ops/op.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

// ---- room -----------------------------------------------------------------------------------------------------------

static enum err grow(void **p, int *room, int need, size_t size) {
    if (need <= *room) return ERR_OK;
    const int next = need + need / 8 + 64;
    void *q = realloc(*p, (size_t) next * size);
    if (!q) return err_set(ERR_NOMEM, "graph allocator: no memory for %d entries", next);
    *p = q;
    *room = next;
    return ERR_OK;
}

static enum err slots_reserve(struct layout *l, int need) {
    int room = l->slot_room;
    TRY(grow((void **) &l->slots, &room, need, sizeof(struct slot)));
    return grow((void **) &l->items, &l->slot_room, need, sizeof(struct plan_item));
}

static enum err map_reserve(struct tensor_map *m, int n) {
    int room = m->entry_room;
    TRY(grow((void **) &m->entry_slot, &room, n, sizeof(int32_t)));
    TRY(grow((void **) &m->entry_read, &m->entry_room, n, sizeof(bool)));
    size_t size = m->size ? m->size : 256;
    while (size < 2 * (size_t) n) size *= 2;
    if (size != m->size) {
        const struct ggml_tensor **keys = realloc(m->keys, size * sizeof(*keys));
        if (keys) m->keys = keys;
        int32_t *values = realloc(m->values, size * sizeof(*values));
        if (values) m->values = values;
        if (!keys || !values) return err_set(ERR_NOMEM, "graph allocator: no memory to list %d tensors", n);
        m->size = size;
    }
    memset(m->keys, 0, m->size * sizeof(*m->keys));
    m->n_entries = 0;
    return ERR_OK;
}

static int count_sources(const struct ggml_cgraph *graph) {
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        for (int j = 0; j < GGML_MAX_SRC; j++) n += graph->nodes[i]->src[j] != NULL;
    }
    return n;
}

// For both plans, so that the second one allocates nothing when its turn comes.
static enum err layout_reserve(struct layout *l, int n_nodes, int n_leafs, int n_refs) {
    TRY(grow((void **) &l->nodes, &l->node_room, n_nodes, sizeof(struct node_ref)));
    TRY(grow((void **) &l->leafs, &l->leaf_room, n_leafs, sizeof(struct leaf_ref)));
    TRY(grow((void **) &l->src_slots, &l->ref_room, n_refs, sizeof(int32_t)));
    return slots_reserve(l, n_nodes + n_leafs);
}

static enum err make_room(struct ggml_gallocr *g, const struct ggml_cgraph *graph) {
    const int n_refs = count_sources(graph);
    TRY(layout_reserve(&g->layout, graph->n_nodes, graph->n_leafs, n_refs));
    TRY(layout_reserve(&g->other, graph->n_nodes, graph->n_leafs, n_refs));
    return map_reserve(&g->map, graph->n_nodes + graph->n_leafs + n_refs / 4 + 16);
}

// ---- entries and slots ----------------------------------------------------------------------------------------------

static size_t place_of(const struct tensor_map *m, const struct ggml_tensor *t) {
    size_t h = ((uintptr_t) t >> 4) * 0x9E3779B97F4A7C15u >> 32;
    for (;; h++) {
        const struct ggml_tensor *k = m->keys[h & (m->size - 1)];
        if (!k || k == t) return h & (m->size - 1);
    }
}

// Everything a step of the walk needs.
struct reader {
    struct ggml_gallocr *g;
    struct layout *l;
    struct tensor_map *m;
    int end;             // the step after the graph
    int span_end, step;  // of the nodes that are computed as one with the one at hand
    uint64_t none;       // those of them, from the one at hand on, that need no memory
};

static int32_t new_slot(struct reader *r, struct ggml_tensor *t, int id, int step) {
    const int pool = r->g->pool_of_id[id];
    const ggml_backend_buffer_type_t buft = r->g->pools[pool].buft;
    const size_t align = ggml_backend_buft_get_alignment(buft), size = gallocr_bytes(buft, t);
    const int32_t s = r->l->n_slots++;
    r->l->slots[s] = (struct slot){.root = t, .size = size, .pool = (int16_t) pool, .input = step == 0};
    r->l->items[s] = (struct plan_item){.bytes = size > SIZE_MAX - align ? SIZE_MAX : GGML_PAD(size, align),
                                        .first = step,
                                        .last = step,
                                        .take = {-1, -1},
                                        .over = -1,
                                        .fixed = false};
    return s;
}

static enum err new_entry(struct reader *r, const struct ggml_tensor *t, int32_t slot, int32_t *entry) {
    const size_t at = place_of(r->m, t);
    if (r->m->n_entries == r->m->entry_room || 2 * (size_t) r->m->n_entries >= r->m->size) {
        return err_set(ERR_INVALID,
                       "graph allocator: the graph reads more tensors that are not part of it than it has nodes");
    }
    *entry = r->m->n_entries++;
    r->m->keys[at] = t;
    r->m->values[at] = *entry;
    r->m->entry_slot[*entry] = slot;
    r->m->entry_read[*entry] = false;
    return ERR_OK;
}

// Entry of a tensor, made at first sight, with the slot of its root.
static enum err enter(struct reader *r, struct ggml_tensor *t, int id, int step, int32_t *entry) {
    const size_t at = place_of(r->m, t);
    if (r->m->keys[at]) {
        *entry = r->m->values[at];
        return ERR_OK;
    }
    int32_t slot = REF_EXTERNAL;
    if (t->view_src) {
        int32_t root;
        TRY(enter(r, t->view_src, id, step, &root));
        slot = r->m->entry_slot[root];
    } else if (!t->data || gallocr_owns(r->g, t->buffer)) {
        if (r->l->n_slots == r->l->slot_room) TRY(slots_reserve(r->l, r->l->n_slots + 1));
        slot = new_slot(r, t, id, step);
    }
    return new_entry(r, t, slot, entry);
}

static bool is_view_op(const struct ggml_tensor *t) {
    const struct op *op = op_get(t->op);
    return t->op == GGML_OP_NONE ? t->view_src != NULL : op && (op->flags & OP_VIEW);
}

// Written by the program, not by a node.
static bool is_given(const struct ggml_tensor *t) {
    return (t->flags & GGML_TENSOR_FLAG_INPUT) || (t->op == GGML_OP_NONE && !t->src[0]);
}

static void live_until(struct reader *r, int32_t slot, int step) {
    if (slot >= 0 && r->l->items[slot].last < step) r->l->items[slot].last = step;
}

// ---- the walk -------------------------------------------------------------------------------------------------------

static int id_of(const int *ids, int i) { return ids ? ids[i] : 0; }

static enum err check_id(const struct ggml_gallocr *g, int id, const struct ggml_tensor *t) {
    if (id >= 0 && id < g->n_ids) return ERR_OK;
    return err_set(ERR_INVALID, "graph allocator: tensor '%s' is assigned to buffer %d of %d", t->name, id, g->n_ids);
}

// What is there before the graph runs: leafs, nodes that nothing computes, and sources that are not part of the graph.
static enum err enter_given(struct reader *r, const struct ggml_cgraph *graph, const int *node_ids, const int *leaf_ids) {
    int32_t e;
    for (int i = 0; i < graph->n_leafs; i++) {
        const int id = id_of(leaf_ids, i);
        TRY(check_id(r->g, id, graph->leafs[i]));
        TRY(enter(r, graph->leafs[i], id, 0, &e));
        r->l->leafs[i] = (struct leaf_ref){r->m->entry_slot[e], id};
    }
    for (int i = 0; i < graph->n_nodes; i++) {
        struct ggml_tensor *t = graph->nodes[i];
        const int id = id_of(node_ids, i);
        TRY(check_id(r->g, id, t));
        if (is_given(t)) TRY(enter(r, t, id, 0, &e));
    }
    return ERR_OK;
}

// A result of an earlier graph that still lies in the allocator's memory is read where it is. Only outputs are sure to be
// intact.
static bool pin(struct reader *r, struct ggml_tensor *t, int32_t slot) {
    const struct ggml_tensor *root = gallocr_root(t);
    struct slot *s = &r->l->slots[slot];
    if (!root->data || r->l->n_slots != slot + 1 || s->root != root) return false;
    if (!(root->flags & GGML_TENSOR_FLAG_OUTPUT)) {
        log_warn("graph allocator: '%s' is left from an earlier graph of this allocator and may have been overwritten: mark "
                 "it with "
                 "ggml_set_output\n",
                 root->name);
    }
    struct plan_item *it = &r->l->items[slot];
    const struct pool *p = &r->g->pools[s->pool];
    if (root->buffer != p->chunks[0].buffer) return false;
    s->pinned = it->fixed = s->output = true;
    it->offset = (size_t) ((char *) root->data - (char *) ggml_backend_buffer_get_base(root->buffer));
    live_until(r, slot, r->end);
    return true;
}

static enum err read_sources(struct reader *r, const struct ggml_tensor *t, int id, int step, bool reads) {
    for (int j = 0; j < GGML_MAX_SRC; j++) {
        if (!t->src[j]) continue;
        int32_t e;
        const int before = r->l->n_slots;
        TRY(enter(r, t->src[j], id, step, &e));
        if (r->l->n_slots != before && !pin(r, t->src[j], before)) {  // not computed by any node so far
            return err_set(
                ERR_INVALID,
                "graph allocator: node '%s' reads '%s', which is neither a node before it nor a leaf of the graph", t->name,
                t->src[j]->name);
        }
        const int32_t slot = r->m->entry_slot[e];
        r->m->entry_read[e] = true;
        r->l->src_slots[r->l->n_refs++] = slot;
        if (reads) live_until(r, slot, step);
    }
    return ERR_OK;
}

static enum err read_node(struct reader *r, const struct ggml_cgraph *graph, int i, const int *node_ids) {
    struct ggml_tensor *t = graph->nodes[i];
    int span = 0;
    if (i == r->span_end) {
        span = gallocr_span(r->g, graph, node_ids, i, &r->none);
        r->span_end = i + span;
        r->step = r->span_end;  // i + 1 for a node by itself
    }
    const int id = id_of(node_ids, i), step = r->step, first_src = r->l->n_refs;
    const bool view = is_view_op(t), none = r->none & 1;
    r->none >>= 1;
    TRY(read_sources(r, t, id, step, !view));
    int32_t e;
    if (none) {
        TRY(new_entry(r, t, REF_NONE, &e));
        r->l->n_fused++;
    } else {
        TRY(enter(r, t, id, step, &e));
    }
    const int32_t slot = r->m->entry_slot[e];
    if (!view && t->view_src) live_until(r, slot, step);  // an operation in place writes its root
    r->l->nodes[i] = (struct node_ref){.slot = slot,
                                       .first_src = first_src,
                                       .step = step,
                                       .span = (int16_t) span,
                                       .n_src = (int16_t) (r->l->n_refs - first_src),
                                       .buffer_id = (int16_t) id,
                                       .op = (uint16_t) t->op,
                                       .takes = -1,
                                       .is_view = view};
    return ERR_OK;
}

static void keep_to_end(struct reader *r, const struct ggml_tensor *t, int32_t slot) {
    if (slot < 0) return;
    const size_t at = place_of(r->m, t);
    const bool output = t->flags & GGML_TENSOR_FLAG_OUTPUT;
    if (output) r->l->slots[slot].output = true;
    if (output || !r->m->entry_read[r->m->values[at]]) live_until(r, slot, r->end);
}

// ---- what may take over what ----------------------------------------------------------------------------------------

static bool same_layout(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    return a->type == b->type && memcmp(a->ne, b->ne, sizeof(a->ne)) == 0 && memcmp(a->nb, b->nb, sizeof(a->nb)) == 0;
}

// Attention gives [d, head, row] for a query of [d, row, head]: the same offsets when the query is a permuted view of that.
static bool query_layout(const struct ggml_tensor *out, const struct ggml_tensor *q) {
    return out->type == q->type && out->ne[0] == q->ne[0] && out->ne[1] == q->ne[2] && out->ne[2] == q->ne[1] &&
           out->ne[3] == q->ne[3] && out->nb[0] == q->nb[0] && out->nb[1] == q->nb[2] && out->nb[2] == q->nb[1] &&
           out->nb[3] == q->nb[3];
}

bool gallocr_may_take(const struct ggml_tensor *node, int i_src, ggml_backend_buffer_type_t buft, bool *wide) {
    const struct ggml_tensor *s = node->src[i_src];
    const struct op *op = op_get(node->op);
    if (!op || !s || !(op->flags & (OP_INPLACE | OP_INPLACE_WIDE))) return false;
    *wide = !(op->flags & OP_INPLACE);
    if (!*wide && i_src > 0 && !(op->flags & OP_ELEMENTWISE)) return false;
    if (*wide) {
        const ggml_backend_dev_t dev = ggml_backend_buft_get_device(buft);
        if (!dev || !dev->iface->may_overwrite || !dev->iface->may_overwrite(dev, node, i_src)) return false;
    }
    if (s->view_src && s->view_offs != 0) return false;
    return node->op == GGML_OP_FLASH_ATTN_EXT ? i_src == 0 && query_layout(node, s) : same_layout(node, s);
}

// Another source of the node that reads the same memory must read it element by element too.
static bool read_otherwise(const struct layout *l, const struct node_ref *ref, const struct ggml_tensor *node, int i_src,
                           int32_t slot) {
    for (int j = 0, k = 0; j < GGML_MAX_SRC; j++) {
        if (!node->src[j]) continue;
        const int32_t other = l->src_slots[ref->first_src + k++];
        if (j == i_src || other != slot) continue;
        const struct op *op = op_get(node->op);
        if (!(op->flags & OP_ELEMENTWISE) || !same_layout(node, node->src[j])) return true;
        if (node->src[j]->view_src && node->src[j]->view_offs != 0) return true;
    }
    return false;
}

// Another of the nodes that are computed as one with node i reads the slot, at whatever time.
static bool read_beside(const struct layout *l, int i, int32_t slot) {
    const int step = l->nodes[i].step;
    int j = i;
    while (j > 0 && l->nodes[j - 1].step == step) j--;
    for (; j < l->n_nodes && l->nodes[j].step == step; j++) {
        for (int k = 0; k < l->nodes[j].n_src && j != i; k++) {
            if (!l->nodes[j].is_view && l->src_slots[l->nodes[j].first_src + k] == slot) return true;
        }
    }
    return false;
}

static void find_takes(struct reader *r, const struct ggml_tensor *t, int i) {
    const struct node_ref *ref = &r->l->nodes[i];
    const int step = ref->step;
    struct plan_item *it = &r->l->items[ref->slot];
    const ggml_backend_buffer_type_t buft = r->g->pools[r->l->slots[ref->slot].pool].buft;
    for (int j = 0, k = 0, n = 0; j < GGML_MAX_SRC && n < 2; j++) {
        if (!t->src[j]) continue;
        const int32_t s = r->l->src_slots[ref->first_src + k++];
        if (s < 0 || s == it->take[0] || r->l->items[s].fixed) continue;
        const struct plan_item *from = &r->l->items[s];
        if (from->last != step || from->bytes < it->bytes || r->l->slots[s].pool != r->l->slots[ref->slot].pool) continue;
        bool wide;
        if (from->first < step && gallocr_may_take(t, j, buft, &wide) && !read_otherwise(r->l, ref, t, j, s) &&
            !read_beside(r->l, i, s))
            it->take[n++] = s;
    }
}

static bool takes_anything(const struct ggml_tensor *t) {
    const struct op *op = op_get(t->op);
    return op && (op->flags & (OP_INPLACE | OP_INPLACE_WIDE));
}

enum err gallocr_read(struct ggml_gallocr *g, const struct ggml_cgraph *graph, const int *node_ids, const int *leaf_ids) {
    struct reader r = {.g = g, .l = &g->layout, .m = &g->map, .end = graph->n_nodes + 1};
    struct layout *l = r.l;
    l->planned = l->backed = false;
    l->n_slots = l->n_refs = l->n_fused = 0;
    l->singly = g->singly;
    TRY(make_room(g, graph));
    l->n_nodes = graph->n_nodes;
    l->n_leafs = graph->n_leafs;
    TRY(enter_given(&r, graph, node_ids, leaf_ids));
    for (int i = 0; i < graph->n_nodes; i++) TRY(read_node(&r, graph, i, node_ids));
    for (int i = 0; i < graph->n_leafs; i++) keep_to_end(&r, graph->leafs[i], l->leafs[i].slot);
    for (int i = 0; i < graph->n_nodes; i++) keep_to_end(&r, graph->nodes[i], l->nodes[i].slot);
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct ggml_tensor *t = graph->nodes[i];
        const int32_t slot = l->nodes[i].slot;
        if (slot >= 0 && !t->view_src && l->items[slot].first == l->nodes[i].step && takes_anything(t)) find_takes(&r, t, i);
    }
    return ERR_OK;
}
