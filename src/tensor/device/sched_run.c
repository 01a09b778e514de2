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

// Nodes one stretch at a time: up to the next one the callback wants to see.
static enum ggml_status run_watched(struct ggml_backend_sched *s, struct sched_split *split, bool *stop) {
    const ggml_backend_t backend = s->backends[split->backend];
    const int n = split->graph.n_nodes;
    for (int i = 0; i < n;) {
        int k = i;
        bool wanted = s->callback(shown(s, split, k), true, s->callback_data);
        while (!wanted && k + 1 < n) wanted = s->callback(shown(s, split, ++k), true, s->callback_data);
        struct ggml_cgraph part = graph_view(&split->graph, i, k + 1);
        part.uid = 0;  // not a graph that comes again
        enum ggml_status status = device_graph_compute(backend, &part, GGML_COMPUTE_NO_FUSE);
        ggml_backend_synchronize(backend);
        if (status == GGML_STATUS_SUCCESS && backend->iface->status) status = backend->iface->status(backend);
        if (status != GGML_STATUS_SUCCESS) return status;
        if (wanted && !s->callback(shown(s, split, k), false, s->callback_data)) {
            *stop = true;  // seen enough; not a failure
            return GGML_STATUS_SUCCESS;
        }
        i = k + 1;
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
