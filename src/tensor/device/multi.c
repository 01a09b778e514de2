// Several buffers behind one handle. Tensors keep the buffer they were placed in; the handle frees, clears and marks them
// all.
#include "device/device.h"

#include <stdlib.h>
#include <string.h>

struct multi {
    size_t n_buffers;
    ggml_backend_buffer_t buffers[];
};

static void free_all(ggml_backend_buffer_t buffer) {
    struct multi *m = buffer->context;
    for (size_t i = 0; i < m->n_buffers; i++) ggml_backend_buffer_free(m->buffers[i]);
    free(m);
}

static void *first_base(ggml_backend_buffer_t buffer) {
    struct multi *m = buffer->context;
    return ggml_backend_buffer_get_base(m->buffers[0]);
}

static void clear_all(ggml_backend_buffer_t buffer, uint8_t value) {
    struct multi *m = buffer->context;
    for (size_t i = 0; i < m->n_buffers; i++) ggml_backend_buffer_clear(m->buffers[i], value);
}

static void reset_all(ggml_backend_buffer_t buffer) {
    struct multi *m = buffer->context;
    for (size_t i = 0; i < m->n_buffers; i++) ggml_backend_buffer_reset(m->buffers[i]);
}

static const struct ggml_buffer_iface multi_iface = {
    .free_buffer = free_all, .get_base = first_base, .clear = clear_all, .reset = reset_all};

size_t ggml_device_multi_buffer_overhead(size_t n_buffers) {
    return n_buffers < 2
               ? 0
               : sizeof(struct ggml_backend_buffer) + sizeof(struct multi) + n_buffers * sizeof(ggml_backend_buffer_t);
}

ggml_backend_buffer_t ggml_device_multi_buffer_new(ggml_backend_buffer_t *buffers, size_t n_buffers) {
    if (!buffers || n_buffers == 0) DEVICE_FAIL(NULL, ERR_INVALID, "a buffer of several needs at least one");
    size_t size = 0;
    for (size_t i = 0; i < n_buffers; i++) size += buffers[i]->size;
    struct multi *m = malloc(sizeof(*m) + n_buffers * sizeof(m->buffers[0]));
    ggml_backend_buffer_t b = m ? ggml_device_buffer_new(buffers[0]->buft, &multi_iface, m, size) : NULL;
    if (!b) {
        free(m);
        for (size_t i = 0; i < n_buffers; i++) ggml_backend_buffer_free(buffers[i]);
        DEVICE_FAIL(NULL, ERR_NOMEM, "no memory to describe %zu buffers", n_buffers);
    }
    m->n_buffers = n_buffers;
    memcpy(m->buffers, buffers, n_buffers * sizeof(buffers[0]));
    return b;
}

void ggml_backend_buffer_set_usage(ggml_backend_buffer_t buffer, enum ggml_backend_buffer_usage usage) {
    if (!buffer) return;
    buffer->usage = usage;
    if (buffer->iface != &multi_iface) return;
    struct multi *m = buffer->context;
    for (size_t i = 0; i < m->n_buffers; i++) m->buffers[i]->usage = usage;
}
