// Bytes in and out of tensors, wherever they lie, and copies between them. Ranges are checked: what does not fit is refused
// with a sentence and nothing is written. Tensors without a buffer whose data is set lie in a context's own memory, on the
// host.
#include "device/device.h"

#include <string.h>

static ggml_backend_buffer_t buffer_of(const struct ggml_tensor *t) { return t->view_src ? t->view_src->buffer : t->buffer; }

// True when [offset, offset + size) can be accessed; otherwise the sentence is recorded.
static bool accessible(const struct ggml_tensor *t, const void *data, size_t offset, size_t size, const char *what) {
    if (!t || !data) return (void) err_set(ERR_INVALID, "%s: no %s", what, t ? "data" : "tensor"), false;
    if (!t->data) return (void) err_set(ERR_INVALID, "%s: tensor '%s' has no memory yet", what, t->name), false;
    const size_t n = ggml_nbytes(t);
    if (offset > n || size > n - offset) {
        return (void) err_set(ERR_INVALID, "%s: bytes %zu to %zu are outside tensor '%s' of %zu bytes", what, offset,
                              offset + size, t->name, n),
               false;
    }
    return true;
}

// The same for n runs of size bytes, stride apart. n > 0.
static bool accessible_2d(const struct ggml_tensor *t, const void *data, size_t offset, size_t size, size_t n, size_t stride,
                          const char *what) {
    if (stride != 0 && n - 1 > (SIZE_MAX / 2) / stride) {
        return (void) err_set(ERR_INVALID, "%s: %zu runs with a stride of %zu bytes overflow", what, n, stride), false;
    }
    const size_t span = (n - 1) * stride;
    if (size > SIZE_MAX / 2) return (void) err_set(ERR_INVALID, "%s: %zu bytes are too many", what, size), false;
    return accessible(t, data, offset, span + size, what);
}

void ggml_backend_tensor_set(struct ggml_tensor *t, const void *data, size_t offset, size_t size) {
    if (size == 0 || !accessible(t, data, offset, size, "ggml_backend_tensor_set")) return;
    const ggml_backend_buffer_t b = buffer_of(t);
    if (b)
        b->iface->set_tensor(b, t, data, offset, size);
    else
        memcpy((char *) t->data + offset, data, size);
}

void ggml_backend_tensor_get(const struct ggml_tensor *t, void *data, size_t offset, size_t size) {
    if (size == 0 || !accessible(t, data, offset, size, "ggml_backend_tensor_get")) return;
    const ggml_backend_buffer_t b = buffer_of(t);
    if (b)
        b->iface->get_tensor(b, t, data, offset, size);
    else
        memcpy(data, (const char *) t->data + offset, size);
}

void ggml_backend_tensor_set_2d(struct ggml_tensor *t, const void *data, size_t offset, size_t size, size_t n_copies,
                                size_t stride_tensor, size_t stride_data) {
    if (size == 0 || n_copies == 0) return;
    if (!accessible_2d(t, data, offset, size, n_copies, stride_tensor, "ggml_backend_tensor_set_2d")) return;
    const ggml_backend_buffer_t b = buffer_of(t);
    if (b && n_copies > 1 && b->iface->set_tensor_2d) {
        b->iface->set_tensor_2d(b, t, data, offset, size, n_copies, stride_tensor, stride_data);
        return;
    }
    for (size_t i = 0; i < n_copies; i++) {
        ggml_backend_tensor_set(t, (const char *) data + i * stride_data, offset + i * stride_tensor, size);
    }
}

void ggml_backend_tensor_get_2d(const struct ggml_tensor *t, void *data, size_t offset, size_t size, size_t n_copies,
                                size_t stride_tensor, size_t stride_data) {
    if (size == 0 || n_copies == 0) return;
    if (!accessible_2d(t, data, offset, size, n_copies, stride_tensor, "ggml_backend_tensor_get_2d")) return;
    const ggml_backend_buffer_t b = buffer_of(t);
    if (b && n_copies > 1 && b->iface->get_tensor_2d) {
        b->iface->get_tensor_2d(b, t, data, offset, size, n_copies, stride_tensor, stride_data);
        return;
    }
    for (size_t i = 0; i < n_copies; i++) {
        ggml_backend_tensor_get(t, (char *) data + i * stride_data, offset + i * stride_tensor, size);
    }
}

void ggml_backend_tensor_memset(struct ggml_tensor *t, uint8_t value, size_t offset, size_t size) {
    if (size == 0 || !accessible(t, t, offset, size, "ggml_backend_tensor_memset")) return;
    const ggml_backend_buffer_t b = buffer_of(t);
    if (b)
        b->iface->memset_tensor(b, t, value, offset, size);
    else
        memset((char *) t->data + offset, value, size);
}

// ---- in the order of a stream -------------------------------------------------------------------------------------

void ggml_backend_tensor_set_async(ggml_backend_t backend, struct ggml_tensor *t, const void *data, size_t offset,
                                   size_t size) {
    if (size == 0 || !accessible(t, data, offset, size, "ggml_backend_tensor_set_async")) return;
    if (backend && backend->iface->set_tensor_async) {
        backend->iface->set_tensor_async(backend, t, data, offset, size);
        return;
    }
    ggml_backend_synchronize(backend);
    ggml_backend_tensor_set(t, data, offset, size);
}

void ggml_backend_tensor_get_async(ggml_backend_t backend, const struct ggml_tensor *t, void *data, size_t offset,
                                   size_t size) {
    if (size == 0 || !accessible(t, data, offset, size, "ggml_backend_tensor_get_async")) return;
    if (backend && backend->iface->get_tensor_async) {
        backend->iface->get_tensor_async(backend, t, data, offset, size);
        return;
    }
    ggml_backend_synchronize(backend);
    ggml_backend_tensor_get(t, data, offset, size);
}

void ggml_backend_tensor_set_2d_async(ggml_backend_t backend, struct ggml_tensor *t, const void *data, size_t offset,
                                      size_t size, size_t n_copies, size_t stride_tensor, size_t stride_data) {
    if (size == 0 || n_copies == 0) return;
    if (!accessible_2d(t, data, offset, size, n_copies, stride_tensor, "ggml_backend_tensor_set_2d_async")) return;
    for (size_t i = 0; i < n_copies; i++) {
        ggml_backend_tensor_set_async(backend, t, (const char *) data + i * stride_data, offset + i * stride_tensor, size);
    }
}

void ggml_backend_tensor_get_2d_async(ggml_backend_t backend, const struct ggml_tensor *t, void *data, size_t offset,
                                      size_t size, size_t n_copies, size_t stride_tensor, size_t stride_data) {
    if (size == 0 || n_copies == 0) return;
    if (!accessible_2d(t, data, offset, size, n_copies, stride_tensor, "ggml_backend_tensor_get_2d_async")) return;
    for (size_t i = 0; i < n_copies; i++) {
        ggml_backend_tensor_get_async(backend, t, (char *) data + i * stride_data, offset + i * stride_tensor, size);
    }
}

// ---- copies -------------------------------------------------------------------------------------------------------

static bool on_host(const struct ggml_tensor *t) {
    const ggml_backend_buffer_t b = buffer_of(t);
    return !b || ggml_backend_buffer_is_host(b);
}

static bool copyable(const struct ggml_tensor *src, const struct ggml_tensor *dst) {
    if (!src || !dst) return (void) err_set(ERR_INVALID, "tensor copy: no tensor"), false;
    if (!src->data || !dst->data) {
        return (void) err_set(ERR_INVALID, "tensor copy: '%s' has no memory yet", src->data ? dst->name : src->name), false;
    }
    if (src->type != dst->type || !ggml_are_same_shape(src, dst) || !ggml_are_same_stride(src, dst)) {
        return (void) err_set(ERR_INVALID, "tensor copy: '%s' and '%s' differ in type, shape or strides", src->name,
                              dst->name),
               false;
    }
    return src != dst && src->data != dst->data;
}

// Neither side is host memory and the device cannot do it: through a small buffer on the stack, so that nothing is
// allocated.
static void copy_staged(const struct ggml_tensor *src, struct ggml_tensor *dst, size_t size) {
    char stage[32 * 1024];
    for (size_t at = 0; at < size; at += sizeof(stage)) {
        const size_t n = size - at < sizeof(stage) ? size - at : sizeof(stage);
        ggml_backend_tensor_get(src, stage, at, n);
        ggml_backend_tensor_set(dst, stage, at, n);
    }
}

void ggml_backend_tensor_copy(const struct ggml_tensor *src, struct ggml_tensor *dst) {
    if (!copyable(src, dst)) return;
    const size_t size = ggml_nbytes(src);
    const ggml_backend_buffer_t to = buffer_of(dst);
    if (on_host(src))
        ggml_backend_tensor_set(dst, src->data, 0, size);
    else if (on_host(dst))
        ggml_backend_tensor_get(src, dst->data, 0, size);
    else if (!to->iface->cpy_tensor || !to->iface->cpy_tensor(to, src, dst))
        copy_staged(src, dst, size);
}

void ggml_backend_tensor_copy_async(ggml_backend_t backend_src, ggml_backend_t backend_dst, const struct ggml_tensor *src,
                                    struct ggml_tensor *dst) {
    if (!copyable(src, dst)) return;
    if (backend_dst && backend_dst->iface->cpy_tensor_async &&
        backend_dst->iface->cpy_tensor_async(backend_src, backend_dst, src, dst)) {
        return;
    }
    ggml_backend_synchronize(backend_src);
    ggml_backend_synchronize(backend_dst);
    ggml_backend_tensor_copy(src, dst);
}
