// Backends (streams of work on a device) and events.
#include "device/device.h"
#include "graph/graph.h"
#include "ggml/plan.h"

#include <stdlib.h>

ggml_guid_t ggml_backend_guid(ggml_backend_t backend) { return backend ? backend->guid : NULL; }

const char *ggml_backend_name(ggml_backend_t backend) { return backend ? backend->iface->get_name(backend) : "NULL"; }

void ggml_backend_free(ggml_backend_t backend) {
    if (backend) backend->iface->free(backend);
}

ggml_backend_dev_t ggml_backend_get_device(ggml_backend_t backend) { return backend ? backend->device : NULL; }

ggml_backend_buffer_type_t ggml_backend_get_default_buffer_type(ggml_backend_t backend) {
    return ggml_backend_dev_buffer_type(ggml_backend_get_device(backend));
}

ggml_backend_buffer_t ggml_backend_alloc_buffer(ggml_backend_t backend, size_t size) {
    return ggml_backend_buft_alloc_buffer(ggml_backend_get_default_buffer_type(backend), size);
}

size_t ggml_backend_get_alignment(ggml_backend_t backend) {
    return ggml_backend_buft_get_alignment(ggml_backend_get_default_buffer_type(backend));
}

size_t ggml_backend_get_max_size(ggml_backend_t backend) {
    return ggml_backend_buft_get_max_size(ggml_backend_get_default_buffer_type(backend));
}

bool ggml_backend_supports_op(ggml_backend_t backend, const struct ggml_tensor *op) {
    return ggml_backend_dev_supports_op(ggml_backend_get_device(backend), op);
}

bool ggml_backend_supports_buft(ggml_backend_t backend, ggml_backend_buffer_type_t buft) {
    return ggml_backend_dev_supports_buft(ggml_backend_get_device(backend), buft);
}

bool ggml_backend_offload_op(ggml_backend_t backend, const struct ggml_tensor *op) {
    return ggml_backend_dev_offload_op(ggml_backend_get_device(backend), op);
}

void ggml_backend_synchronize(ggml_backend_t backend) {
    if (backend && backend->iface->synchronize) backend->iface->synchronize(backend);
}

// ---- computing ----------------------------------------------------------------------------------------------------

enum ggml_status device_graph_compute(ggml_backend_t backend, struct ggml_cgraph *graph, int flags) {
    if (!backend) DEVICE_FAIL(GGML_STATUS_FAILED, ERR_INVALID, "graph compute: no backend");
    if (!graph) DEVICE_FAIL(GGML_STATUS_FAILED, ERR_INVALID, "graph compute: no graph");
    return backend->iface->graph_compute(backend, graph, flags);
}

enum ggml_status ggml_backend_graph_compute_async(ggml_backend_t backend, struct ggml_cgraph *graph) {
    return device_graph_compute(backend, graph, 0);
}

enum ggml_status ggml_backend_graph_compute(ggml_backend_t backend, struct ggml_cgraph *graph) {
    const enum ggml_status queued = device_graph_compute(backend, graph, 0);
    ggml_backend_synchronize(backend);
    if (queued != GGML_STATUS_SUCCESS || !backend->iface->status) return queued;
    return backend->iface->status(backend);
}

size_t ggml_backend_work_size(ggml_backend_t backend) {
    return backend && backend->iface->work_size ? backend->iface->work_size(backend) : 0;
}

// Plans of streams that have none of their own: the graph, remembered.
struct graph_plan {
    struct ggml_cgraph graph;
};

ggml_backend_graph_plan_t ggml_backend_graph_plan_create(ggml_backend_t backend, struct ggml_cgraph *graph) {
    if (!backend || !graph) DEVICE_FAIL(NULL, ERR_INVALID, "graph plan: no %s", backend ? "graph" : "backend");
    if (backend->iface->graph_plan_create) return backend->iface->graph_plan_create(backend, graph);
    struct graph_plan *p = malloc(sizeof(*p));
    if (!p) DEVICE_FAIL(NULL, ERR_NOMEM, "no memory for a graph plan");
    p->graph = *graph;
    return p;
}

void ggml_backend_graph_plan_free(ggml_backend_t backend, ggml_backend_graph_plan_t plan) {
    if (!backend || !plan) return;
    if (backend->iface->graph_plan_create)
        backend->iface->graph_plan_free(backend, plan);
    else
        free(plan);
}

enum ggml_status ggml_backend_graph_plan_compute(ggml_backend_t backend, ggml_backend_graph_plan_t plan) {
    if (!backend || !plan)
        DEVICE_FAIL(GGML_STATUS_FAILED, ERR_INVALID, "graph plan compute: no %s", backend ? "plan" : "backend");
    if (backend->iface->graph_plan_create) return backend->iface->graph_plan_compute(backend, plan);
    struct graph_plan *p = plan;
    return device_graph_compute(backend, &p->graph, 0);
}

// ---- events -------------------------------------------------------------------------------------------------------

ggml_backend_event_t ggml_backend_event_new(ggml_backend_dev_t device) {
    return device && device->iface->event_new ? device->iface->event_new(device) : NULL;  // no events is no failure
}

void ggml_backend_event_free(ggml_backend_event_t event) {
    if (event) event->device->iface->event_free(event->device, event);
}

void ggml_backend_event_record(ggml_backend_event_t event, ggml_backend_t backend) {
    if (event && backend && backend->iface->event_record) backend->iface->event_record(backend, event);
}

void ggml_backend_event_synchronize(ggml_backend_event_t event) {
    if (event) event->device->iface->event_synchronize(event->device, event);
}

void ggml_backend_event_wait(ggml_backend_t backend, ggml_backend_event_t event) {
    if (!event || !backend) return;
    if (backend->iface->event_wait)
        backend->iface->event_wait(backend, event);
    else
        ggml_backend_event_synchronize(event);
}
