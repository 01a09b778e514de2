// Passes 1 to 4 of the scheduler: which backend each tensor belongs to. Backends are ordered by preference, the processor
// last.
//
// 1. What lies in memory already decides for itself: results that are placed, inputs (last backend), and nodes that read
//    weights (the weights' backend, or one that offers to do the operation with weights copied over).
// 2. Backends spread along the graph: from each node that a preferred backend has, down to the next assigned node and then
//    up, while the backend supports the operation; then the same for the last backend.
// 3. Nodes without a backend go where most of their sources can be read; nodes move to a more preferred backend that has
//    the same memory and reads all their sources.
// 4. Sources without a backend go to their view's source's, or to their reader's.
#include "device/sched.h"
#include "ops/op.h"

static bool supports(const struct ggml_backend_sched *s, int b, const struct ggml_tensor *t) {
    return ggml_backend_supports_op(s->backends[b], t);
}

bool sched_is_view(const struct ggml_tensor *t) {
    const struct op *op = op_get(t->op);
    return t->op == GGML_OP_NONE || (op && (op->flags & OP_VIEW));
}

int sched_backend_of_buffer(const struct ggml_backend_sched *s, ggml_backend_buffer_t buffer, const struct ggml_tensor *op) {
    for (int b = 0; b < s->n_backends; b++) {
        if (ggml_backend_supports_buft(s->backends[b], buffer->buft) && supports(s, b, op)) return b;
    }
    return SCHED_NOWHERE;
}

bool sched_readable(const struct ggml_backend_sched *s, const struct sched_entry *e, int b) {
    const ggml_backend_buffer_t buffer = sched_buffer(e->tensor);
    if (buffer) return ggml_backend_supports_buft(s->backends[b], buffer->buft);
    int at = e->backend;
    if (at == SCHED_NOWHERE) at = s->entries[e->root].backend;
    return at == b || (at >= 0 && ggml_backend_supports_buft(s->backends[b], s->bufts[at]));
}

static void give(struct sched_entry *e, int backend, const char *cause) {
    e->backend = (int16_t) backend;
    e->cause = cause;
}

// ---- pass 1 ---------------------------------------------------------------------------------------------------------

// A weight that lies on the host may still be worth copying to a backend that says so.
static int offloaded(const struct ggml_backend_sched *s, ggml_backend_buffer_t weights, const struct ggml_tensor *node,
                     int home) {
    if (!s->op_offload || home != s->n_backends - 1 || !ggml_backend_buffer_is_host(weights)) return home;
    for (int b = 0; b < home; b++) {
        if (supports(s, b, node) && ggml_backend_offload_op(s->backends[b], node)) return b;
    }
    return home;
}

static void follow_weights(struct ggml_backend_sched *s, struct sched_entry *e) {
    const struct ggml_tensor *t = e->tensor;
    if (t->op == GGML_OP_NONE || t->op == GGML_OP_ROPE) return;  // rope's factors are too small to decide where a layer runs
    for (int j = 0; j < GGML_MAX_SRC; j++) {
        const ggml_backend_buffer_t buffer = t->src[j] ? sched_buffer(t->src[j]) : NULL;
        if (!buffer || buffer->usage != GGML_BACKEND_BUFFER_USAGE_WEIGHTS) continue;
        const int home = sched_backend_of_buffer(s, buffer, t);
        const int b = offloaded(s, buffer, t, home);
        if (b != SCHED_NOWHERE) give(e, b, b == home ? "1.wgt" : "1.off");
        return;
    }
}

static enum err assign_placed(struct ggml_backend_sched *s, struct sched_entry *e) {
    const struct ggml_tensor *t = e->tensor;
    const ggml_backend_buffer_t buffer = sched_buffer(t);
    if (buffer) {
        const int b = sched_backend_of_buffer(s, buffer, t);
        if (b != SCHED_NOWHERE) {
            give(e, b, t->view_src ? "1.vsrc" : "1.dst");
        } else if (sched_is_view(t)) {
            give(e, SCHED_FOREIGN, "1.foreign");
        } else {
            return err_set(ERR_UNSUPPORTED,
                           "node '%s' (%s) writes to a %s buffer, but no backend that can use that buffer has the operation",
                           t->name, ggml_op_desc(t), ggml_backend_buffer_name(buffer));
        }
        return ERR_OK;
    }
    if (t->data && t->op == GGML_OP_NONE && !t->view_src) {  // in a context's own memory
        give(e, s->n_backends - 1, "1.host");
    } else if (t->flags & GGML_TENSOR_FLAG_INPUT) {
        give(e, s->n_backends - 1, "1.inp");
    } else {
        follow_weights(s, e);
    }
    return ERR_OK;
}

static enum err pass_weights(struct ggml_backend_sched *s) {
    for (int i = 0; i < s->n_entries; i++) {
        if (s->entries[i].backend == SCHED_NOWHERE) TRY(assign_placed(s, &s->entries[i]));
    }
    return ERR_OK;
}

// ---- pass 2 ---------------------------------------------------------------------------------------------------------

// One node on the way: `at` is the backend that spreads, or SCHED_NOWHERE.
static void spread_over(struct ggml_backend_sched *s, struct sched_entry *e, bool with_last, int *at, const char *cause) {
    if (sched_is_view(e->tensor)) return;
    if (e->backend != SCHED_NOWHERE) {
        const bool starts = e->backend >= 0 && (with_last || e->backend != s->n_backends - 1);
        *at = starts ? e->backend : SCHED_NOWHERE;
    } else if (*at != SCHED_NOWHERE && supports(s, *at, e->tensor)) {
        give(e, *at, cause);
    }
}

static void spread(struct ggml_backend_sched *s, bool with_last, bool up, const char *cause) {
    const int n = s->graph->n_nodes;
    int at = SCHED_NOWHERE;
    for (int i = 0; i < n; i++) spread_over(s, &s->entries[s->node_entry[up ? n - 1 - i : i]], with_last, &at, cause);
}

static void pass_spread(struct ggml_backend_sched *s) {
    spread(s, false, false, "2.down");
    spread(s, false, true, "2.up");
    spread(s, true, false, "2.rest");
    spread(s, true, true, "2.rest");
}

// ---- pass 3 ---------------------------------------------------------------------------------------------------------

// How many sources of node i backend b can read; *all: every one.
static int count_readable(const struct ggml_backend_sched *s, int i, int b, bool *all) {
    int n = 0;
    *all = true;
    for (int j = 0; j < GGML_MAX_SRC; j++) {
        const int32_t e = s->node_src[i * GGML_MAX_SRC + j];
        if (e < 0) continue;
        if (sched_readable(s, &s->entries[e], b))
            n++;
        else
            *all = false;
    }
    return n;
}

static void settle(struct ggml_backend_sched *s, int i, struct sched_entry *e) {
    int most = -1;
    for (int b = 0; b < s->n_backends; b++) {
        bool all;
        if (!supports(s, b, e->tensor)) continue;
        const int n = count_readable(s, i, b, &all);
        if (n <= most) continue;
        most = n;
        give(e, b, "3.best");
    }
}

static void upgrade(struct ggml_backend_sched *s, int i, struct sched_entry *e) {
    for (int b = 0; b < e->backend; b++) {
        bool all;
        if (s->bufts[b] != s->bufts[e->backend] || !supports(s, b, e->tensor)) continue;
        (void) count_readable(s, i, b, &all);
        if (!all) continue;
        give(e, b, "3.upg");
        return;
    }
}

static void pass_upgrade(struct ggml_backend_sched *s) {
    for (int i = 0; i < s->graph->n_nodes; i++) {
        struct sched_entry *e = &s->entries[s->node_entry[i]];
        if (sched_is_view(e->tensor)) continue;
        if (e->backend == SCHED_NOWHERE)
            settle(s, i, e);
        else if (e->backend > 0 && !(e->cause && e->cause[0] == 'p'))
            upgrade(s, i, e);
    }
}

// ---- pass 4 ---------------------------------------------------------------------------------------------------------

static enum err pass_sources(struct ggml_backend_sched *s) {
    for (int i = 0; i < s->graph->n_nodes; i++) {
        struct sched_entry *e = &s->entries[s->node_entry[i]];
        if (e->backend == SCHED_NOWHERE && e->tensor->view_src) {
            const int root = s->entries[e->root].backend;
            if (root != SCHED_NOWHERE) give(e, root, "4.vsrc");
        }
        if (e->backend == SCHED_NOWHERE && !sched_is_view(e->tensor)) {
            return err_set(ERR_UNSUPPORTED, "no backend of this scheduler can run node '%s' (%s)", e->tensor->name,
                           ggml_op_desc(e->tensor));
        }
        for (int j = 0; j < GGML_MAX_SRC; j++) {
            const int32_t k = s->node_src[i * GGML_MAX_SRC + j];
            if (k < 0 || s->entries[k].backend != SCHED_NOWHERE) continue;
            struct sched_entry *src = &s->entries[k];
            struct sched_entry *root = &s->entries[src->root];
            if (root->backend == SCHED_NOWHERE) give(root, e->backend, "4.cur");
            give(src, root->backend, root == src ? "4.cur" : "4.vsrc");
        }
        if (e->backend == SCHED_NOWHERE) give(e, s->entries[e->root].backend, "4.vsrc");
    }
    for (int i = 0; i < s->n_entries; i++) {  // what nothing reads
        if (s->entries[i].backend == SCHED_NOWHERE) give(&s->entries[i], s->n_backends - 1, "4.rest");
    }
    return ERR_OK;
}

enum err sched_assign(struct ggml_backend_sched *s) {
    TRY(pass_weights(s));
    pass_spread(s);
    pass_upgrade(s);
    return pass_sources(s);
}
