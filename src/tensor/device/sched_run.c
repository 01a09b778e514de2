// Running the splits in order, with the copies each needs. Backends work asynchronously where they can: a copy waits for
// what the destination still does with that memory (an event if there are several sets of inputs, else all of its work),
// and inputs that the user wrote are copied at once, so that the user may overwrite them as soon as the call returns.
#include "device/sched.h"

static void wait_for(struct ggml_backend_sched *s, int b, bool from_host) {
    const ggml_backend_event_t event = s->events[b][s->set];
    if (!event)
        ggml_backend_synchronize(s->backends[b]);
    else if (from_host)
        ggml_backend_event_synchronize(event);
    else
        ggml_backend_event_wait(s->backends[b], event);
}

static void copy_input(struct ggml_backend_sched *s, const struct sched_copy *c) {
    struct ggml_tensor *to = c->to[s->set];
    const ggml_backend_t dst = s->backends[c->backend];
    if (c->user_input || c->source_backend < 0) {
        wait_for(s, c->backend, true);
        ggml_backend_tensor_copy(c->source, to);
        return;
    }
    const ggml_backend_t src = s->backends[c->source_backend];
    wait_for(s, c->backend, false);
    if (dst->iface->cpy_tensor_async && dst->iface->cpy_tensor_async(src, dst, c->source, to)) return;
    ggml_backend_synchronize(src);
    wait_for(s, c->backend, true);
    ggml_backend_tensor_copy(c->source, to);
}

// The node of the user's graph that stands at position i of the split; a shadow is shown as the node it stands for.
static struct ggml_tensor *shown(struct ggml_backend_sched *s, const struct sched_split *split, int i) {
    return s->graph->nodes[split->i_start + i];
}

// A callback that was set before the graph was allocated sees every node. One that came later sees those that have memory:
// some were planned to be computed as one.
static bool is_visible(const struct sched_split *split, int i) {
    const struct ggml_tensor *t = split->graph.nodes[i];
    return t->data || ggml_is_empty(t);
}

// One past the last node that is computed as one with node i.
static int end_of(const struct ggml_backend_sched *s, const struct sched_split *split, int i) {
    const struct node_ref *ref = s->galloc->layout.nodes + split->own_start;
    while (i + 1 < split->graph.n_nodes && ref[i + 1].step == ref[i].step) i++;
    return i + 1;
}

// Shows nodes [i0, i1) that have been computed; the first has been asked for already. False: enough.
static bool show(struct ggml_backend_sched *s, const struct sched_split *split, int i0, int i1) {
    for (int i = i0; i < i1; i++) {
        struct ggml_tensor *t = shown(s, split, i);
        if (!is_visible(split, i) || (i > i0 && !s->callback(t, true, s->callback_data))) continue;
        if (!s->callback(t, false, s->callback_data)) return false;
    }
    return true;
}

// Nodes one stretch at a time: up to the next one the callback wants to see.
static enum ggml_status run_watched(struct ggml_backend_sched *s, struct sched_split *split, bool *stop) {
    const ggml_backend_t backend = s->backends[split->backend];
    const int n = split->graph.n_nodes, flags = s->galloc->layout.n_fused > 0 ? 0 : GGML_COMPUTE_NO_FUSE;
    for (int i = 0, end; i < n; i = end) {
        int k = i;
        while (k < n && !(is_visible(split, k) && s->callback(shown(s, split, k), true, s->callback_data))) k++;
        end = k < n ? end_of(s, split, k) : n;
        struct ggml_cgraph part = graph_view(&split->graph, i, end);
        part.uid = 0;  // not a graph that comes again
        enum ggml_status status = device_graph_compute(backend, &part, flags);
        ggml_backend_synchronize(backend);
        if (status == GGML_STATUS_SUCCESS && backend->iface->status) status = backend->iface->status(backend);
        if (status != GGML_STATUS_SUCCESS) return status;
        if (!show(s, split, k, end)) {
            *stop = true;  // seen enough; not a failure
            return GGML_STATUS_SUCCESS;
        }
    }
    return GGML_STATUS_SUCCESS;
}

enum ggml_status sched_run(struct ggml_backend_sched *s) {
    bool stop = false;
    for (int k = 0; k < s->n_splits && !stop; k++) {
        struct sched_split *split = &s->splits[k];
        for (int c = 0; c < split->n_copies; c++) copy_input(s, &s->copies[split->first_copy + c]);
        const enum ggml_status status =
            s->callback ? run_watched(s, split, &stop) : device_graph_compute(s->backends[split->backend], &split->graph, 0);
        if (status != GGML_STATUS_SUCCESS) return status;
        if (split->n_copies > 0) ggml_backend_event_record(s->events[split->backend][s->set], s->backends[split->backend]);
    }
    return GGML_STATUS_SUCCESS;
}
