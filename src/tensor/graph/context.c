// Contexts: a block of memory handed out front to back, never in part given back. Everything that describes a
// computation (tensors, graphs) lies in one, so that building a graph is a matter of bumping an offset.
#include "graph/graph_int.h"
#include "ggml/plan.h"

#include <stdlib.h>
#include <string.h>

struct ggml_context *ggml_init(struct ggml_init_params params) {
    struct ggml_context *ctx = malloc(sizeof *ctx);
    if (!ctx) {
        (void) err_set(ERR_NOMEM, "ggml_init: no memory for the context itself");
        return NULL;
    }
    if (params.mem_size == 0) params.mem_size = GGML_MEM_ALIGN;
    const bool owned = params.mem_buffer == NULL;
    // Memory of the caller's keeps its size; a block of our own is rounded up so that its end is aligned too.
    const size_t size = owned && params.mem_size <= PTRDIFF_MAX - 64 ? GGML_PAD(params.mem_size, 64) : params.mem_size;
    void *block = params.mem_buffer;
    if (owned && (size > PTRDIFF_MAX || posix_memalign(&block, 64, size) != 0)) {
        (void) err_set(ERR_NOMEM, "ggml_init: cannot allocate %zu bytes; make the context smaller or free memory",
                       params.mem_size);
        free(ctx);
        return NULL;
    }
    *ctx = (struct ggml_context){
        .mem_size = owned ? GGML_PAD(params.mem_size, GGML_MEM_ALIGN) : params.mem_size,
        .mem_buffer = block,
        .mem_buffer_owned = owned,
        .no_alloc = params.no_alloc,
    };
    return ctx;
}

size_t ggml_context_overhead(const struct ggml_context *ctx) {
    if (!ctx) return 0;
    return sizeof *ctx + (ctx->mem_buffer_owned ? GGML_PAD(ctx->mem_size, 64) : 0);
}

void ggml_reset(struct ggml_context *ctx) {
    if (!ctx) return;
    ctx->n_objects = 0;
    ctx->first = ctx->last = NULL;
    ctx->rebuild = (struct rebuild){.on = false};
}

void ggml_free(struct ggml_context *ctx) {
    if (!ctx) return;
    if (ctx->mem_buffer_owned) free(ctx->mem_buffer);
    free(ctx);
}

size_t ggml_used_mem(const struct ggml_context *ctx) { return ctx && ctx->last ? ctx->last->offs + ctx->last->size : 0; }

bool ggml_get_no_alloc(struct ggml_context *ctx) { return ctx && ctx->no_alloc; }

void ggml_set_no_alloc(struct ggml_context *ctx, bool no_alloc) {
    if (ctx) ctx->no_alloc = no_alloc;
}

void *ggml_get_mem_buffer(const struct ggml_context *ctx) { return ctx ? ctx->mem_buffer : NULL; }

size_t ggml_get_mem_size(const struct ggml_context *ctx) { return ctx ? ctx->mem_size : 0; }

struct ggml_object *context_object_new(struct ggml_context *ctx, enum ggml_object_type type, size_t size) {
    if (!ctx) {
        (void) err_set(ERR_INVALID, "no context given (NULL)");
        return NULL;
    }
    // The caller's memory may start anywhere; headers and contents are aligned by address.
    size_t used = ggml_used_mem(ctx);
    used += (size_t) (-(uintptr_t) (ctx->mem_buffer + used)) % GGML_MEM_ALIGN;
    const size_t left = used < ctx->mem_size ? ctx->mem_size - used : 0;
    if (size > SIZE_MAX - 2 * GGML_MEM_ALIGN || left < sizeof(struct ggml_object) ||
        left - sizeof(struct ggml_object) < GGML_PAD(size, GGML_MEM_ALIGN)) {
        (void) err_set(ERR_NOMEM,
                       "context is full: object of %zu bytes does not fit, %zu of %zu bytes are in use; "
                       "make it with a larger mem_size",
                       size, used, ctx->mem_size);
        return NULL;
    }
    struct ggml_object *o = (struct ggml_object *) (ctx->mem_buffer + used);
    if (ctx->rebuild.on) rebuild_next(ctx, o, type, GGML_PAD(size, GGML_MEM_ALIGN));
    *o = (struct ggml_object){.offs = used + sizeof *o, .size = GGML_PAD(size, GGML_MEM_ALIGN), .type = type};
    object_append(ctx, o);
    return o;
}

void *ggml_new_buffer(struct ggml_context *ctx, size_t nbytes) {
    struct ggml_object *o = context_object_new(ctx, GGML_OBJECT_TYPE_WORK_BUFFER, nbytes);
    return o ? object_content(ctx, o) : NULL;
}

// ---- the tensors of a context, in the order of their making --------------------------------------------------------

static struct ggml_tensor *tensor_from(const struct ggml_context *ctx, const struct ggml_object *o) {
    while (o && o->type != GGML_OBJECT_TYPE_TENSOR) o = o->next;
    return o ? object_content(ctx, o) : NULL;
}

struct ggml_tensor *ggml_get_first_tensor(const struct ggml_context *ctx) {
    return ctx ? tensor_from(ctx, ctx->first) : NULL;
}

struct ggml_tensor *ggml_get_next_tensor(const struct ggml_context *ctx, struct ggml_tensor *tensor) {
    if (!ctx || !tensor || ggml_is_error(tensor)) return NULL;
    const struct ggml_object *o = (const struct ggml_object *) ((char *) tensor - sizeof *o);
    return tensor_from(ctx, o->next);
}

struct ggml_tensor *ggml_get_tensor(struct ggml_context *ctx, const char *name) {
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t && name; t = ggml_get_next_tensor(ctx, t)) {
        if (strcmp(t->name, name) == 0) return t;
    }
    return NULL;
}

size_t ggml_get_max_tensor_size(const struct ggml_context *ctx) {
    size_t most = 0;
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        const size_t bytes = ggml_nbytes(t);
        if (bytes > most) most = bytes;
    }
    return most;
}
