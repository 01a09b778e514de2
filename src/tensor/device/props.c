// Questions to a device, its buffer types and what it can compute.
#include "device/device.h"

#include <string.h>

const char *ggml_backend_dev_name(ggml_backend_dev_t device) { return device ? device->iface->get_name(device) : ""; }

const char *ggml_backend_dev_description(ggml_backend_dev_t device) {
    return device ? device->iface->get_description(device) : "";
}

void ggml_backend_dev_memory(ggml_backend_dev_t device, size_t *free, size_t *total) {
    size_t f = 0, t = 0;
    if (device) device->iface->get_memory(device, &f, &t);
    if (free) *free = f;
    if (total) *total = t;
}

enum ggml_backend_dev_type ggml_backend_dev_type(ggml_backend_dev_t device) {
    return device ? device->iface->get_type(device) : GGML_BACKEND_DEVICE_TYPE_CPU;
}

void ggml_backend_dev_get_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *props) {
    if (!props) return;
    memset(props, 0, sizeof(*props));
    if (device) device->iface->get_props(device, props);
}

ggml_backend_reg_t ggml_backend_dev_backend_reg(ggml_backend_dev_t device) { return device ? device->reg : NULL; }

ggml_backend_t ggml_backend_dev_init(ggml_backend_dev_t device, const char *params) {
    if (!device) DEVICE_FAIL(NULL, ERR_INVALID, "ggml_backend_dev_init: no device");
    return device->iface->init_backend(device, params);
}

ggml_backend_buffer_type_t ggml_backend_dev_buffer_type(ggml_backend_dev_t device) {
    return device ? device->iface->get_buffer_type(device) : NULL;
}

ggml_backend_buffer_type_t ggml_backend_dev_host_buffer_type(ggml_backend_dev_t device) {
    return device && device->iface->get_host_buffer_type ? device->iface->get_host_buffer_type(device) : NULL;
}

ggml_backend_buffer_t ggml_backend_dev_buffer_from_host_ptr(ggml_backend_dev_t device, void *ptr, size_t size,
                                                            size_t max_tensor_size) {
    if (!device || !ptr)
        DEVICE_FAIL(NULL, ERR_INVALID, "ggml_backend_dev_buffer_from_host_ptr: no %s", device ? "memory" : "device");
    if (!device->iface->buffer_from_host_ptr) {
        DEVICE_FAIL(NULL, ERR_UNSUPPORTED, "device %s cannot use host memory in place", ggml_backend_dev_name(device));
    }
    return device->iface->buffer_from_host_ptr(device, ptr, size, max_tensor_size);
}

bool ggml_backend_dev_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    return device && op && !ggml_is_error(op) && device->iface->supports_op(device, op);
}

bool ggml_backend_dev_supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t buft) {
    return device && buft && device->iface->supports_buft(device, buft);
}

bool ggml_backend_dev_offload_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    return device && op && device->iface->offload_op && device->iface->offload_op(device, op);
}

const char *ggml_backend_meta_split_axis_name(enum ggml_backend_meta_split_axis split_axis) {
    switch (split_axis) {
        case GGML_BACKEND_SPLIT_AXIS_0: return "0";
        case GGML_BACKEND_SPLIT_AXIS_1: return "1";
        case GGML_BACKEND_SPLIT_AXIS_2: return "2";
        case GGML_BACKEND_SPLIT_AXIS_3: return "3";
        case GGML_BACKEND_SPLIT_AXIS_MIRRORED: return "MIRRORED";
        case GGML_BACKEND_SPLIT_AXIS_PARTIAL: return "PARTIAL";
        case GGML_BACKEND_SPLIT_AXIS_NONE: return "NONE";
        default: return "UNKNOWN";
    }
}

ggml_backend_dev_t ggml_backend_meta_device(ggml_backend_dev_t *devs, size_t n_devs,
                                            ggml_backend_meta_get_split_state_t get_split_state, void *get_split_state_ud) {
    (void) devs;
    (void) get_split_state;
    (void) get_split_state_ud;
    DEVICE_FAIL(NULL, ERR_UNSUPPORTED, "ggml_backend_meta_device: none of the %zu devices computes parts of a tensor",
                n_devs);
}
