// Plans to look at: the planner is run on a graph as gallocr would, and everything it knows is written down.
#include "ggml/plan.h"
#include "alloc/gallocr.h"
#include "ops/op.h"

#include <stdlib.h>
#include <string.h>

static int64_t now_us(void) {
    ggml_time_init();
    return ggml_time_us();
}

struct work {
    struct ggml_gallocr *g;
    const struct ggml_cgraph *graph;
    struct ggml_plan_report *r;
    int32_t *node_of;  // per slot: node that writes it, or -1
    int64_t *live, *saved1, *saved2;
};

static enum err room(struct work *w) {
    const size_t n = (size_t) w->g->layout.n_slots, steps = (size_t) w->graph->n_nodes + 4;
    w->node_of = malloc((n + 1) * sizeof(int32_t));
    w->live = malloc(steps * 3 * sizeof(int64_t));
    w->r->tensors = calloc(n + 1, sizeof(*w->r->tensors));
    w->r->buffers = calloc((size_t) w->g->n_pools, sizeof(*w->r->buffers));
    if (!w->node_of || !w->live || !w->r->tensors || !w->r->buffers)
        return err_set(ERR_NOMEM, "no memory for a plan report");
    w->saved1 = w->live + steps;
    w->saved2 = w->saved1 + steps;
    w->r->n_tensors = w->g->layout.n_slots;
    w->r->n_buffers = w->g->n_pools;
    w->r->n_nodes = w->graph->n_nodes;
    for (int i = 0; i < w->g->layout.n_slots; i++) w->node_of[i] = -1;
    for (int i = 0; i < w->graph->n_nodes; i++) {
        const struct node_ref *ref = &w->g->layout.nodes[i];
        if (ref->slot >= 0 && !w->graph->nodes[i]->view_src && w->g->layout.items[ref->slot].first == ref->step)
            w->node_of[ref->slot] = i;
    }
    return ERR_OK;
}

static void describe(struct work *w, int i) {
    const struct slot *s = &w->g->layout.slots[i];
    const struct plan_item *it = &w->g->layout.items[i];
    struct ggml_plan_tensor *t = &w->r->tensors[i];
    memcpy(t->name, s->root->name, sizeof(t->name));
    memcpy(t->ne, s->root->ne, sizeof(t->ne));
    t->op = w->node_of[i] < 0 ? "NONE" : ggml_op_desc(s->root);
    t->type = s->root->type;
    t->buffer = s->pool;
    t->bytes = it->bytes;
    t->offset = it->offset;
    t->chunk = s->chunk;
    t->first = it->first;
    t->last = it->last;
    t->over = it->over;
    t->input = s->input;
    t->output = s->output;
}

// Which sets of operations let slot i take over one of its dying sources.
static void takes_by_set(const struct work *w, int i, bool *base, bool *any) {
    const struct plan_item *it = &w->g->layout.items[i];
    *base = *any = false;
    if (w->node_of[i] < 0 || it->bytes == 0) return;
    *any = it->take[0] >= 0;
    const struct op *op = op_get(w->graph->nodes[w->node_of[i]]->op);
    *base = *any && op && (op->flags & OP_INPLACE);
}

static size_t bytes_at(int64_t x) { return x > 0 ? (size_t) x : 0; }

// The bounds are the largest sums over steps; a result that takes over its source counts once at the step where both are
// live.
static void measure(struct work *w, int pool) {
    const int steps = w->graph->n_nodes + 2;
    memset(w->live, 0, ((size_t) w->graph->n_nodes + 4) * 3 * sizeof(int64_t));
    for (int i = 0; i < w->r->n_tensors; i++) {
        const struct plan_item *it = &w->g->layout.items[i];
        if (w->g->layout.slots[i].pool != pool) continue;
        bool base, any;
        takes_by_set(w, i, &base, &any);
        w->live[it->first] += (int64_t) it->bytes;
        w->live[it->last + 1] -= (int64_t) it->bytes;
        if (base) w->saved1[it->first] += (int64_t) it->bytes;
        if (any) w->saved2[it->first] += (int64_t) it->bytes;
    }
    struct ggml_plan_buffer *b = &w->r->buffers[pool];
    int64_t now = 0;
    for (int t = 0; t < steps; t++) {
        now += w->live[t];
        if (bytes_at(now - w->saved1[t]) > b->lb1) b->lb1 = bytes_at(now - w->saved1[t]);
        if (bytes_at(now - w->saved2[t]) <= b->lb2) continue;
        b->lb2 = bytes_at(now - w->saved2[t]);
        b->peak_step = t;
    }
    b->bound = w->g->pools[pool].bound;
    b->peak = w->g->pools[pool].peak;
    b->n_chunks = w->g->pools[pool].n_chunks;
    b->name = ggml_backend_buft_name(w->g->pools[pool].buft);
    for (int i = 0; i < w->r->n_tensors; i++) {
        struct ggml_plan_tensor *t = &w->r->tensors[i];
        if (t->buffer == pool) t->at_peak = t->first <= b->peak_step && t->last >= b->peak_step;
    }
}

static enum err compare(struct work *w, int pool) {
    struct plan_item *items = malloc(((size_t) w->r->n_tensors + 1) * sizeof(*items));
    int32_t *index = malloc(((size_t) w->r->n_tensors + 1) * sizeof(*index));
    if (!items || !index) {
        free(items);
        free(index);
        return err_set(ERR_NOMEM, "no memory for a plan report");
    }
    int n = 0;
    for (int i = 0; i < w->r->n_tensors; i++) {
        if (w->g->layout.slots[i].pool != pool) continue;
        bool base, any;
        takes_by_set(w, i, &base, &any);
        index[i] = n;
        struct plan_item *it = &items[n++];
        *it = w->g->layout.items[i];
        for (int k = 0; k < 2; k++) it->take[k] = base && it->take[k] >= 0 ? index[it->take[k]] : -1;
    }
    struct plan_result best;
    const enum err e = plan_best_fit(items, n, &best);
    if (e == ERR_OK) w->r->buffers[pool].best_fit = best.peak;
    free(items);
    free(index);
    return e;
}

static void forget(struct work *w) {
    free(w->node_of);
    free(w->live);
    free(w->r->tensors);
    free(w->r->buffers);
    w->node_of = NULL;
    w->live = NULL;
    w->r->tensors = NULL;
    w->r->buffers = NULL;
}

// What is compared with, for every node computed by itself.
struct singly {
    size_t lb1, lb2, best_fit;
};

static enum err bound_singly(struct work *w, const int *node_ids, const int *leaf_ids, struct singly *of) {
    w->g->singly = true;
    TRY(gallocr_read(w->g, w->graph, node_ids, leaf_ids));
    w->g->singly = false;
    TRY(room(w));
    for (int p = 0; p < w->g->n_pools; p++) {
        measure(w, p);
        TRY(compare(w, p));
        const struct ggml_plan_buffer *b = &w->r->buffers[p];
        of[p] = (struct singly){b->lb1, b->lb2, b->best_fit};
    }
    forget(w);
    return ERR_OK;
}

static enum err fill(struct work *w, const int *node_ids, const int *leaf_ids) {
    struct singly singly[MAX_POOLS];
    TRY(bound_singly(w, node_ids, leaf_ids, singly));
    const int64_t start = now_us();
    TRY(gallocr_read(w->g, w->graph, node_ids, leaf_ids));
    TRY(gallocr_place(w->g, GALLOCR_EFFORT));
    w->r->plan_us = now_us() - start;
    w->r->tries = w->g->tries;
    TRY(room(w));
    for (int i = 0; i < w->r->n_tensors; i++) describe(w, i);
    for (int p = 0; p < w->g->n_pools; p++) {
        measure(w, p);
        w->r->buffers[p].lb1 = singly[p].lb1;
        w->r->buffers[p].lb2 = singly[p].lb2;
        w->r->buffers[p].best_fit = singly[p].best_fit;
    }
    return ERR_OK;
}

struct ggml_plan_report *ggml_plan_report_new(struct ggml_cgraph *graph, ggml_backend_buffer_type_t *bufts, int n_bufts,
                                              const int *node_ids, const int *leaf_ids) {
    if (!graph || (graph->failure && graph->failure[0])) {
        (void) err_set(ERR_INVALID, "plan report: %s", graph ? graph->failure : "no graph");
        return NULL;
    }
    struct work w = {.g = ggml_gallocr_new_n(bufts, n_bufts), .graph = graph, .r = calloc(1, sizeof(*w.r))};
    const bool ok = w.g && w.r && fill(&w, node_ids, leaf_ids) == ERR_OK;
    ggml_gallocr_free(w.g);
    free(w.node_of);
    free(w.live);
    if (ok) return w.r;
    ggml_plan_report_free(w.r);
    return NULL;
}

void ggml_plan_report_free(struct ggml_plan_report *report) {
    if (!report) return;
    free(report->tensors);
    free(report->buffers);
    free(report);
}
