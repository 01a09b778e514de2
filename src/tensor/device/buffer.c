// Buffer types and buffers: sizes, alignment, allocation. Size arithmetic saturates at SIZE_MAX, which no allocation can
// meet.
#include "device/device.h"
#include "ggml/plan.h"

#include <stdlib.h>
#include <string.h>

// ---- buffer types -------------------------------------------------------------------------------------------------

const char *ggml_backend_buft_name(ggml_backend_buffer_type_t buft) { return buft ? buft->iface->get_name(buft) : ""; }

// A buffer of no bytes: something to hold for a plan or context that needs nothing.
static void *empty_base(ggml_backend_buffer_t buffer) {
    (void) buffer;
    return (void *) (uintptr_t) 4096;  // never touched, aligned to everything
}

static void empty_clear(ggml_backend_buffer_t buffer, uint8_t value) { (void) buffer, (void) value; }

static const struct ggml_buffer_iface empty_iface = {.get_base = empty_base, .clear = empty_clear};

ggml_backend_buffer_t ggml_backend_buft_alloc_buffer(ggml_backend_buffer_type_t buft, size_t size) {
    if (!buft) DEVICE_FAIL(NULL, ERR_INVALID, "ggml_backend_buft_alloc_buffer: no buffer type");
    if (size == 0) return ggml_device_buffer_new(buft, &empty_iface, NULL, 0);
    return buft->iface->alloc_buffer(buft, size);
}

ggml_backend_buffer_t ggml_backend_buft_alloc_buffer_n(ggml_backend_buffer_type_t buft, struct ggml_tensor **tensors,
                                                       int n_tensors) {
    return ggml_backend_buft_alloc_buffer(buft, ggml_backend_buft_get_alloc_size_n(buft, tensors, n_tensors));
}

size_t ggml_backend_buft_get_alignment(ggml_backend_buffer_type_t buft) {
    return buft ? buft->iface->get_alignment(buft) : 1;
}

size_t ggml_backend_buft_get_max_size(ggml_backend_buffer_type_t buft) {
    return buft && buft->iface->get_max_size ? buft->iface->get_max_size(buft) : SIZE_MAX;
}

size_t ggml_backend_buft_get_alloc_size(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor) {
    if (!tensor) return 0;
    return buft && buft->iface->get_alloc_size ? buft->iface->get_alloc_size(buft, tensor) : ggml_nbytes(tensor);
}

size_t ggml_backend_buft_get_alloc_size_n(ggml_backend_buffer_type_t buft, struct ggml_tensor **tensors, int n_tensors) {
    const size_t align = ggml_backend_buft_get_alignment(buft);
    size_t total = 0;
    for (int i = 0; tensors && i < n_tensors; i++) {
        if (!tensors[i] || tensors[i]->view_src) continue;
        const size_t size = ggml_backend_buft_get_alloc_size(buft, tensors[i]);
        if (size > SIZE_MAX - align || total > SIZE_MAX - GGML_PAD(size, align)) return SIZE_MAX;
        total += GGML_PAD(size, align);
    }
    return total;
}

size_t ggml_backend_buft_overhead(ggml_backend_buffer_type_t buft) {
    return sizeof(struct ggml_backend_buffer) + (buft && buft->iface->get_overhead ? buft->iface->get_overhead(buft) : 0);
}

bool ggml_backend_buft_is_host(ggml_backend_buffer_type_t buft) {
    return buft && buft->iface->is_host && buft->iface->is_host(buft);
}

ggml_backend_dev_t ggml_backend_buft_get_device(ggml_backend_buffer_type_t buft) { return buft ? buft->device : NULL; }

// ---- buffers ------------------------------------------------------------------------------------------------------

ggml_backend_buffer_t ggml_device_buffer_new(ggml_backend_buffer_type_t buft, const struct ggml_buffer_iface *iface,
                                             void *context, size_t size) {
    ggml_backend_buffer_t buffer = malloc(sizeof(*buffer));
    if (!buffer) DEVICE_FAIL(NULL, ERR_NOMEM, "no memory for the description of a buffer of %zu bytes", size);
    *buffer = (struct ggml_backend_buffer){
        .iface = iface, .buft = buft, .context = context, .size = size, .usage = GGML_BACKEND_BUFFER_USAGE_ANY};
    return buffer;
}

const char *ggml_backend_buffer_name(ggml_backend_buffer_t buffer) {
    return buffer ? ggml_backend_buft_name(buffer->buft) : "";
}

void ggml_backend_buffer_free(ggml_backend_buffer_t buffer) {
    if (!buffer) return;
    if (buffer->iface->free_buffer) buffer->iface->free_buffer(buffer);
    free(buffer);
}

void *ggml_backend_buffer_get_base(ggml_backend_buffer_t buffer) { return buffer ? buffer->iface->get_base(buffer) : NULL; }

size_t ggml_backend_buffer_get_size(ggml_backend_buffer_t buffer) { return buffer ? buffer->size : 0; }

enum ggml_status ggml_backend_buffer_init_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor) {
    if (!buffer || !tensor) return GGML_STATUS_FAILED;
    return buffer->iface->init_tensor ? buffer->iface->init_tensor(buffer, tensor) : GGML_STATUS_SUCCESS;
}

size_t ggml_backend_buffer_get_alignment(ggml_backend_buffer_t buffer) {
    return ggml_backend_buft_get_alignment(ggml_backend_buffer_get_type(buffer));
}

size_t ggml_backend_buffer_get_max_size(ggml_backend_buffer_t buffer) {
    return ggml_backend_buft_get_max_size(ggml_backend_buffer_get_type(buffer));
}

size_t ggml_backend_buffer_get_alloc_size(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor) {
    return ggml_backend_buft_get_alloc_size(ggml_backend_buffer_get_type(buffer), tensor);
}

void ggml_backend_buffer_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    if (buffer && buffer->size) buffer->iface->clear(buffer, value);
}

bool ggml_backend_buffer_is_host(ggml_backend_buffer_t buffer) {
    return ggml_backend_buft_is_host(ggml_backend_buffer_get_type(buffer));
}

enum ggml_backend_buffer_usage ggml_backend_buffer_get_usage(ggml_backend_buffer_t buffer) {
    return buffer ? buffer->usage : GGML_BACKEND_BUFFER_USAGE_ANY;
}

ggml_backend_buffer_type_t ggml_backend_buffer_get_type(ggml_backend_buffer_t buffer) {
    return buffer ? buffer->buft : NULL;
}

void ggml_backend_buffer_reset(ggml_backend_buffer_t buffer) {
    if (buffer && buffer->iface->reset) buffer->iface->reset(buffer);
}

// ---- placing tensors ----------------------------------------------------------------------------------------------

enum ggml_status ggml_backend_tensor_alloc(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, void *addr) {
    if (!buffer || !tensor)
        DEVICE_FAIL(GGML_STATUS_FAILED, ERR_INVALID, "ggml_backend_tensor_alloc: no %s", buffer ? "tensor" : "buffer");
    if (tensor->buffer || tensor->data || tensor->view_src) {
        DEVICE_FAIL(GGML_STATUS_FAILED, ERR_INVALID, "tensor '%s' is placed already%s", tensor->name,
                    tensor->view_src ? ": it is a view, use ggml_backend_view_init" : "");
    }
    const uintptr_t base = (uintptr_t) ggml_backend_buffer_get_base(buffer), at = (uintptr_t) addr;
    const size_t size = ggml_backend_buffer_get_alloc_size(buffer, tensor);
    if (at < base || at - base > buffer->size || size > buffer->size - (at - base)) {
        DEVICE_FAIL(GGML_STATUS_FAILED, ERR_INVALID, "tensor '%s' of %zu bytes does not lie in its %s buffer of %zu bytes",
                    tensor->name, size, ggml_backend_buffer_name(buffer), buffer->size);
    }
    tensor->buffer = buffer;
    tensor->data = addr;
    return ggml_backend_buffer_init_tensor(buffer, tensor);
}

enum ggml_status ggml_backend_view_init(struct ggml_tensor *tensor) {
    if (!tensor || !tensor->view_src) DEVICE_FAIL(GGML_STATUS_FAILED, ERR_INVALID, "ggml_backend_view_init: not a view");
    const struct ggml_tensor *src = tensor->view_src;
    if (!src->buffer || !src->data) {
        DEVICE_FAIL(GGML_STATUS_FAILED, ERR_INVALID, "view '%s': its source '%s' is not placed yet", tensor->name,
                    src->name);
    }
    if (tensor->buffer) DEVICE_FAIL(GGML_STATUS_FAILED, ERR_INVALID, "view '%s' is placed already", tensor->name);
    tensor->buffer = src->buffer;
    tensor->data = (char *) src->data + tensor->view_offs;
    return ggml_backend_buffer_init_tensor(tensor->buffer, tensor);
}
