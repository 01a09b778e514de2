// A buffer type for tests: host memory filled with NaN, guards at both ends that a test checks, a maximum size, a count.
#pragma once

#include "ggml/device.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD = 4096 };

struct guarded {
    struct ggml_backend_buffer_type type;
    size_t max_size, align;
    int n_alive, n_made;
    bool broken;  // a guard was found overwritten when its buffer was freed
    bool refuse;  // allocation fails
};

static const char *guarded_name(ggml_backend_buffer_type_t t) { return (void) t, "GUARDED"; }
static size_t guarded_align(ggml_backend_buffer_type_t t) { return ((struct guarded *) t->context)->align; }
static size_t guarded_max(ggml_backend_buffer_type_t t) { return ((struct guarded *) t->context)->max_size; }
static bool guarded_host(ggml_backend_buffer_type_t t) { return (void) t, true; }

static inline bool guarded_intact(ggml_backend_buffer_t b) {
    const unsigned char *p = b->context;
    for (size_t i = 0; i < GUARD; i++) {
        if (p[i] != 0xA5 || p[GUARD + b->size + i] != 0xA5) return false;
    }
    return true;
}

static void guarded_free(ggml_backend_buffer_t b) {
    struct guarded *g = b->buft->context;
    if (!guarded_intact(b)) g->broken = true;
    g->n_alive--;
    free(b->context);
}

static void *guarded_base(ggml_backend_buffer_t b) { return (char *) b->context + GUARD; }

static void guarded_memset(ggml_backend_buffer_t b, struct ggml_tensor *t, uint8_t v, size_t at, size_t n) {
    (void) b;
    memset((char *) t->data + at, v, n);
}

static void guarded_set(ggml_backend_buffer_t b, struct ggml_tensor *t, const void *x, size_t at, size_t n) {
    (void) b;
    memcpy((char *) t->data + at, x, n);
}

static void guarded_get(ggml_backend_buffer_t b, const struct ggml_tensor *t, void *x, size_t at, size_t n) {
    (void) b;
    memcpy(x, (const char *) t->data + at, n);
}

static void guarded_clear(ggml_backend_buffer_t b, uint8_t v) { memset(guarded_base(b), v, b->size); }

static const struct ggml_buffer_iface guarded_buffer = {.free_buffer = guarded_free,
                                                        .get_base = guarded_base,
                                                        .memset_tensor = guarded_memset,
                                                        .set_tensor = guarded_set,
                                                        .get_tensor = guarded_get,
                                                        .clear = guarded_clear};

static ggml_backend_buffer_t guarded_alloc(ggml_backend_buffer_type_t t, size_t size) {
    struct guarded *g = t->context;
    void *p = NULL;
    if (g->refuse || posix_memalign(&p, 4096, size + 2 * GUARD) != 0) return NULL;
    memset(p, 0xA5, size + 2 * GUARD);
    memset((char *) p + GUARD, 0xff, size);  // NaN in every float type
    ggml_backend_buffer_t b = ggml_device_buffer_new(t, &guarded_buffer, p, size);
    if (!b) {
        free(p);
        return NULL;
    }
    g->n_alive++;
    g->n_made++;
    return b;
}

static const struct ggml_buffer_type_iface guarded_iface = {.get_name = guarded_name,
                                                            .alloc_buffer = guarded_alloc,
                                                            .get_alignment = guarded_align,
                                                            .get_max_size = guarded_max,
                                                            .is_host = guarded_host};

// device: whose kernels will use it (what may be overwritten depends on them); NULL: only what every device allows.
static inline ggml_backend_buffer_type_t guarded_make(struct guarded *g, size_t max_size, ggml_backend_dev_t device) {
    *g = (struct guarded){.type = {&guarded_iface, device, g}, .max_size = max_size, .align = 32};
    return &g->type;
}
