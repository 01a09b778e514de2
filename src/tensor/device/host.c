// Host memory as buffers: owned, or borrowed from the caller (a mapped file, an array).
#include "device/device.h"

#include <stdlib.h>
#include <string.h>

// Owned memory is zero when it is new. It comes from calloc, which knows that pages fresh from the system are zero: a cache of keys
// and values takes no memory, and no time to clear, before it is used. The block's address stands in front of the base.
enum { FRONT = DEVICE_HOST_BASE_ALIGN + sizeof(void **) };

static void *alloc_zeroed(size_t size) {
    void *block = calloc(1, size + FRONT);
    if (!block) return NULL;
    void **base = (void **) GGML_PAD((uintptr_t) block + sizeof(void *), DEVICE_HOST_BASE_ALIGN);
    base[-1] = block;
    return base;
}

static void free_zeroed(void *base) { free(((void **) base)[-1]); }

static void free_owned(ggml_backend_buffer_t buffer) { free_zeroed(buffer->context); }

static void *base(ggml_backend_buffer_t buffer) { return buffer->context; }

static void memset_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *t, uint8_t value, size_t offset, size_t size) {
    (void) buffer;
    memset((char *) t->data + offset, value, size);
}

static void set_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *t, const void *data, size_t offset, size_t size) {
    (void) buffer;
    memcpy((char *) t->data + offset, data, size);
}

static void get_tensor(ggml_backend_buffer_t buffer, const struct ggml_tensor *t, void *data, size_t offset, size_t size) {
    (void) buffer;
    memcpy(data, (const char *) t->data + offset, size);
}

static void clear(ggml_backend_buffer_t buffer, uint8_t value) { memset(buffer->context, value, buffer->size); }

static const struct ggml_buffer_iface owned_iface = {.free_buffer = free_owned,
                                                     .get_base = base,
                                                     .memset_tensor = memset_tensor,
                                                     .set_tensor = set_tensor,
                                                     .get_tensor = get_tensor,
                                                     .clear = clear};

static const struct ggml_buffer_iface borrowed_iface = {
    .get_base = base, .memset_tensor = memset_tensor, .set_tensor = set_tensor, .get_tensor = get_tensor, .clear = clear};

static const char *name(ggml_backend_buffer_type_t buft) { return buft->context; }

static ggml_backend_buffer_t alloc_buffer(ggml_backend_buffer_type_t buft, size_t size) {
    void *p = size <= SIZE_MAX / 2 ? alloc_zeroed(size) : NULL;
    if (!p) {
        DEVICE_FAIL(NULL, ERR_NOMEM,
                    "no host memory for a %s buffer of %zu bytes (%.1f MiB): use a smaller context, batch or model",
                    name(buft), size, (double) size / 1048576.0);
    }
    const ggml_backend_buffer_t buffer = ggml_device_buffer_new(buft, &owned_iface, p, size);
    if (!buffer) free_zeroed(p);
    return buffer;
}

static size_t alignment(ggml_backend_buffer_type_t buft) {
    (void) buft;
    return DEVICE_HOST_ALIGN;
}

static bool is_host(ggml_backend_buffer_type_t buft) {
    (void) buft;
    return true;
}

static size_t overhead(ggml_backend_buffer_type_t buft) {
    (void) buft;
    return FRONT;
}

const struct ggml_buffer_type_iface device_host_buft_iface = {.get_name = name,
                                                              .alloc_buffer = alloc_buffer,
                                                              .get_alignment = alignment,
                                                              .is_host = is_host,
                                                              .get_overhead = overhead};

ggml_backend_buffer_t device_host_buffer_from_ptr(ggml_backend_buffer_type_t buft, void *ptr, size_t size) {
    if (!ptr || (uintptr_t) ptr % DEVICE_HOST_ALIGN != 0) {
        DEVICE_FAIL(NULL, ERR_INVALID, "host memory at %p cannot be a buffer: it must start at a multiple of %d bytes", ptr,
                    DEVICE_HOST_ALIGN);
    }
    return ggml_device_buffer_new(buft, &borrowed_iface, ptr, size);
}
