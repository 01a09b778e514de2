// Memory for every tensor of a context at once: as few buffers as the type's maximum size allows, in the order of creation.
// Two passes over the same walk: one that counts, one that places; so a size asked for in advance is the size allocated.
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml/device.h"
#include "ggml/plan.h"
#include "base/err.h"

#include <stdlib.h>

static bool needs_memory(const struct ggml_tensor *t) { return !t->data && !t->view_src; }

// Bytes of the run of tensors that starts at *t and fits one buffer; moves *t past it. SIZE_MAX when a tensor alone exceeds
// it.
static size_t next_run(struct ggml_context *ctx, struct ggml_tensor **t, ggml_backend_buffer_type_t buft) {
    const size_t align = ggml_backend_buft_get_alignment(buft), max = ggml_backend_buft_get_max_size(buft);
    size_t bytes = 0;
    for (; *t; *t = ggml_get_next_tensor(ctx, *t)) {
        if (!needs_memory(*t)) continue;
        const size_t need = ggml_backend_buft_get_alloc_size(buft, *t);
        if (need > max || need > SIZE_MAX / 2) {
            (void) err_set(ERR_NOMEM, "tensor '%s' needs %zu bytes; a %s buffer holds at most %zu", (*t)->name, need,
                           ggml_backend_buft_name(buft), max);
            return SIZE_MAX;
        }
        const size_t padded = GGML_PAD(need, align);
        if (bytes > 0 && (padded > max || bytes > max - padded)) return bytes;
        bytes += padded;
    }
    return bytes;
}

static bool any_needs(struct ggml_context *ctx, struct ggml_tensor *first, const struct ggml_tensor *end) {
    for (struct ggml_tensor *t = first; t != end; t = ggml_get_next_tensor(ctx, t)) {
        if (needs_memory(t)) return true;
    }
    return false;
}

size_t ggml_backend_alloc_ctx_tensors_from_buft_size(struct ggml_context *ctx, ggml_backend_buffer_type_t buft) {
    if (!ctx || !buft) return 0;
    size_t total = 0;
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t;) {
        const size_t run = next_run(ctx, &t, buft);
        if (run == SIZE_MAX) return 0;
        total += run;
    }
    return total;
}

size_t ggml_backend_alloc_ctx_tensors_from_buft_overhead(struct ggml_context *ctx, ggml_backend_buffer_type_t buft) {
    if (!ctx || !buft) return 0;
    size_t bytes = 0, n = 0;
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t;) {
        struct ggml_tensor *first = t;
        const size_t run = next_run(ctx, &t, buft);
        if (run == SIZE_MAX) return 0;
        if (run == 0 && !any_needs(ctx, first, t)) continue;
        bytes += ggml_backend_buft_overhead(run ? buft : NULL);
        n++;
    }
    return bytes + ggml_device_multi_buffer_overhead(n);
}

struct runs {
    ggml_backend_buffer_t *buffers;
    size_t n, room;
};

static enum err push(struct runs *r, ggml_backend_buffer_t b) {
    if (r->n == r->room) {
        const size_t room = r->room ? 2 * r->room : 4;
        ggml_backend_buffer_t *p = realloc(r->buffers, room * sizeof(*p));
        if (!p) return err_set(ERR_NOMEM, "no memory to list %zu buffers", room);
        r->buffers = p;
        r->room = room;
    }
    r->buffers[r->n++] = b;
    return ERR_OK;
}

// Places the tensors of [first, end) that need it into a new buffer of `bytes`.
static enum err fill(struct ggml_context *ctx, struct ggml_tensor *first, struct ggml_tensor *end,
                     ggml_backend_buffer_type_t buft, size_t bytes, struct runs *r) {
    const ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(buft, bytes);
    if (!buffer) return ERR_NOMEM;
    const enum err e = push(r, buffer);
    if (e != ERR_OK) {
        ggml_backend_buffer_free(buffer);
        return e;
    }
    struct ggml_tallocr ta = ggml_tallocr_new(buffer);
    for (struct ggml_tensor *t = first; t != end; t = ggml_get_next_tensor(ctx, t)) {
        if (needs_memory(t) && ggml_tallocr_alloc(&ta, t) != GGML_STATUS_SUCCESS) return ERR_FAILED;
    }
    return ERR_OK;
}

static bool holds(const struct runs *r, const struct ggml_tensor *t) {
    for (size_t i = 0; i < r->n; i++) {
        if (t->buffer == r->buffers[i]) return true;
    }
    return false;
}

// Undo: no tensor may keep an address in a buffer that is freed.
static void forget(struct ggml_context *ctx, const struct runs *r) {
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        if (t->buffer && holds(r, t)) t->buffer = NULL, t->data = NULL;
    }
}

static enum err place(struct ggml_context *ctx, ggml_backend_buffer_type_t buft, struct runs *r) {
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t;) {
        struct ggml_tensor *first = t;
        const size_t bytes = next_run(ctx, &t, buft);
        if (bytes == SIZE_MAX) return ERR_NOMEM;
        if (bytes > 0 || any_needs(ctx, first, t)) TRY(fill(ctx, first, t, buft, bytes, r));
    }
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        if (!t->view_src || t->buffer || !t->view_src->buffer) continue;
        if (ggml_backend_view_init(t) != GGML_STATUS_SUCCESS) return ERR_FAILED;
    }
    return ERR_OK;
}

struct ggml_backend_buffer *ggml_backend_alloc_ctx_tensors_from_buft(struct ggml_context *ctx,
                                                                     ggml_backend_buffer_type_t buft) {
    if (!ctx || !buft) {
        (void) err_set(ERR_INVALID, "ggml_backend_alloc_ctx_tensors: no %s", ctx ? "buffer type" : "context");
        return NULL;
    }
    struct runs r = {0};
    ggml_backend_buffer_t buffer = NULL;
    if (place(ctx, buft, &r) != ERR_OK) {
        forget(ctx, &r);
        for (size_t i = 0; i < r.n; i++) ggml_backend_buffer_free(r.buffers[i]);
    } else if (r.n > 0) {  // nothing to allocate is no failure, and gives NULL too
        buffer = r.n > 1 ? ggml_device_multi_buffer_new(r.buffers, r.n) : r.buffers[0];
        if (!buffer) forget(ctx, &r);
    }
    free(r.buffers);
    return buffer;
}

struct ggml_backend_buffer *ggml_backend_alloc_ctx_tensors(struct ggml_context *ctx, ggml_backend_t backend) {
    return ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_get_default_buffer_type(backend));
}
