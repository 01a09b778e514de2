// Memory of the device: one memory file mapped twice. A tensor's address lies in the mapping without access, so that a
// touch from outside ends in SIGSEGV; the device itself, and the blocking calls that stand for transfers over a bus, use
// the other one.
#include "backend/sim/sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct region {
    struct sim_device *device;
    char *outside, *inside;  // the same pages
    size_t bytes;            // 0: the caller's memory
};

static struct sim_device *device_of(ggml_backend_buffer_type_t buft) { return buft->context; }

// ---- access ---------------------------------------------------------------------------------------------------------

static const struct ggml_buffer_iface sim_iface;

bool sim_owns(ggml_backend_buffer_t buffer) { return buffer && buffer->iface == &sim_iface; }

void *sim_address(const struct ggml_tensor *t) {
    const ggml_backend_buffer_t b = t->view_src ? t->view_src->buffer : t->buffer;
    if (!sim_owns(b)) return t->data;
    const struct region *r = b->context;
    return r->inside + ((char *) t->data - r->outside);
}

static void free_buffer(ggml_backend_buffer_t buffer) {
    struct region *r = buffer->context;
    if (r->bytes) {
        munmap(r->outside, r->bytes);
        munmap(r->inside, r->bytes);
        atomic_fetch_sub(&r->device->used, r->bytes);
    }
    free(r);
}

static void *base(ggml_backend_buffer_t buffer) { return ((struct region *) buffer->context)->outside; }

static void memset_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *t, uint8_t value, size_t offset, size_t size) {
    (void) buffer;
    memset((char *) sim_address(t) + offset, value, size);
}

static void set_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *t, const void *data, size_t offset, size_t size) {
    (void) buffer;
    memcpy((char *) sim_address(t) + offset, data, size);
}

static void get_tensor(ggml_backend_buffer_t buffer, const struct ggml_tensor *t, void *data, size_t offset, size_t size) {
    (void) buffer;
    memcpy(data, (const char *) sim_address(t) + offset, size);
}

static bool cpy_tensor(ggml_backend_buffer_t buffer, const struct ggml_tensor *src, struct ggml_tensor *dst) {
    (void) buffer;
    if (!sim_owns(src->view_src ? src->view_src->buffer : src->buffer)) return false;
    memmove(sim_address(dst), sim_address(src), ggml_nbytes(src));
    return true;
}

static void clear(ggml_backend_buffer_t buffer, uint8_t value) {
    memset(((struct region *) buffer->context)->inside, value, buffer->size);
}

static const struct ggml_buffer_iface sim_iface = {.free_buffer = free_buffer,
                                                   .get_base = base,
                                                   .memset_tensor = memset_tensor,
                                                   .set_tensor = set_tensor,
                                                   .get_tensor = get_tensor,
                                                   .cpy_tensor = cpy_tensor,
                                                   .clear = clear};

// ---- allocation -----------------------------------------------------------------------------------------------------

static enum err map_twice(struct region *r, size_t bytes) {
    const int fd = memfd_create("lamina-sim", MFD_CLOEXEC);
    if (fd < 0) return err_set(ERR_NOMEM, "%s: no memory file for a buffer", r->device->name);
    enum err e = ERR_OK;
    void *outside = MAP_FAILED, *inside = MAP_FAILED;
    if (ftruncate(fd, (off_t) bytes) == 0) {
        outside = mmap(NULL, bytes, PROT_NONE, MAP_SHARED, fd, 0);
        inside = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    close(fd);
    if (outside == MAP_FAILED || inside == MAP_FAILED) {
        if (outside != MAP_FAILED) munmap(outside, bytes);
        if (inside != MAP_FAILED) munmap(inside, bytes);
        e = err_set(ERR_NOMEM, "%s: cannot map %zu bytes", r->device->name, bytes);
    } else {
        r->outside = outside;
        r->inside = inside;
        r->bytes = bytes;
    }
    return e;
}

// The device's books: false when the memory is not there.
static bool take(struct sim_device *d, size_t bytes) {
    size_t used = atomic_load(&d->used);
    do {
        if (bytes > d->memory - used) {
            (void) err_set(
                ERR_NOMEM,
                "%s has no room for a buffer of %.1f MiB: %.1f of its %.1f MiB are free (offload fewer layers, or use a "
                "smaller context or micro-batch)",
                d->name, (double) bytes / 1048576.0, (double) (d->memory - used) / 1048576.0,
                (double) d->memory / 1048576.0);
            return false;
        }
    } while (!atomic_compare_exchange_weak(&d->used, &used, used + bytes));
    return true;
}

static ggml_backend_buffer_t alloc_buffer(ggml_backend_buffer_type_t buft, size_t size) {
    struct sim_device *d = device_of(buft);
    if (size > d->max_buffer || size > SIZE_MAX / 2) {
        DEVICE_FAIL(NULL, ERR_NOMEM, "%s: a buffer of %zu bytes exceeds the largest possible of %zu", d->name, size,
                    d->max_buffer);
    }
    if (!take(d, size)) return NULL;
    struct region *r = calloc(1, sizeof(*r));
    if (r) r->device = d;
    if (r && map_twice(r, size) == ERR_OK) {
        const ggml_backend_buffer_t b = ggml_device_buffer_new(buft, &sim_iface, r, size);
        if (b) return b;
        munmap(r->outside, size);
        munmap(r->inside, size);
    }
    free(r);
    atomic_fetch_sub(&d->used, size);
    if (!r) (void) err_set(ERR_NOMEM, "%s: no memory for the description of a buffer", d->name);
    return NULL;
}

ggml_backend_buffer_t sim_buffer_from_ptr(struct sim_device *d, void *ptr, size_t size) {
    if ((uintptr_t) ptr % DEVICE_HOST_ALIGN != 0) {
        DEVICE_FAIL(NULL, ERR_INVALID, "%s: host memory at %p must start at a multiple of %d bytes", d->name, ptr,
                    DEVICE_HOST_ALIGN);
    }
    struct region *r = calloc(1, sizeof(*r));
    if (!r) DEVICE_FAIL(NULL, ERR_NOMEM, "%s: no memory for the description of a buffer", d->name);
    *r = (struct region){d, ptr, ptr, 0};
    const ggml_backend_buffer_t b = ggml_device_buffer_new(&d->mapped_buft, &sim_iface, r, size);
    if (!b) free(r);
    return b;
}

// ---- the buffer types -----------------------------------------------------------------------------------------------

static const char *name(ggml_backend_buffer_type_t buft) { return device_of(buft)->name; }

static const char *mapped_name(ggml_backend_buffer_type_t buft) { return device_of(buft)->mapped_name; }

static size_t alignment(ggml_backend_buffer_type_t buft) {
    (void) buft;
    return SIM_ALIGN;
}

static size_t mapped_alignment(ggml_backend_buffer_type_t buft) {
    (void) buft;
    return DEVICE_HOST_ALIGN;
}

static size_t max_size(ggml_backend_buffer_type_t buft) { return device_of(buft)->max_buffer; }

// Like devices whose kernels read quantized rows in larger steps: such tensors end in padding.
static size_t alloc_size(ggml_backend_buffer_type_t buft, const struct ggml_tensor *t) {
    (void) buft;
    return ggml_nbytes(t) + (ggml_is_quantized(t->type) ? SIM_ALIGN : 0);
}

static ggml_backend_buffer_t no_alloc(ggml_backend_buffer_type_t buft, size_t size) {
    (void) size;
    DEVICE_FAIL(NULL, ERR_UNSUPPORTED, "%s buffers lie over host memory; they cannot be allocated", mapped_name(buft));
}

static size_t overhead(ggml_backend_buffer_type_t buft) {
    (void) buft;
    return sizeof(struct region);
}

const struct ggml_buffer_type_iface sim_buft_iface = {.get_name = name,
                                                      .alloc_buffer = alloc_buffer,
                                                      .get_alignment = alignment,
                                                      .get_max_size = max_size,
                                                      .get_alloc_size = alloc_size,
                                                      .get_overhead = overhead};

const struct ggml_buffer_type_iface sim_mapped_iface = {
    .get_name = mapped_name, .alloc_buffer = no_alloc, .get_alignment = mapped_alignment, .get_overhead = overhead};
