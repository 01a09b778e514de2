// What the files of this folder share: the layout of contexts.
#pragma once

#include "graph/graph.h"
#include "ggml/ext.h"

// A context is a row of objects in one block of memory, each a header with its content behind it.
struct ggml_object {
    size_t offs;  // of the content, from the start of the block
    size_t size;  // of the content, a multiple of GGML_MEM_ALIGN
    struct ggml_object *next;
    enum ggml_object_type type;
    int32_t flags;  // of a tensor when it was made again: those it had before (rebuild.c)
};

// A context that is filled again: what is made is compared with what was made in the same place before.
struct rebuild {
    struct ggml_object *next;   // the one made here before; NULL: no more
    struct ggml_tensor *found;  // its tensor, while nothing differs and nothing is open; NULL: not looked up
    struct ggml_tensor *open;   // the last one made: it may still change, and is compared when the next is made
    struct ggml_tensor before;  // as open was
    struct ggml_cgraph *graph;  // the one in the context
    enum ggml_rebuilt so_far;
    bool on;
};

struct ggml_context {
    size_t mem_size;
    char *mem_buffer;
    bool mem_buffer_owned;
    bool no_alloc;
    int n_objects;
    struct ggml_object *first, *last;
    struct rebuild rebuild;
};

// In a context that is filled again, before o is written: o, of this type and padded size, takes the place of what was there.
void rebuild_next(struct ggml_context *ctx, struct ggml_object *o, enum ggml_object_type type, size_t size);
// A call to expand graph to tensor, in a context that is filled again.
void rebuild_expand(struct ggml_cgraph *graph, const struct ggml_tensor *tensor, bool compute);

// Room for `size` bytes behind a new object header; NULL (sentence recorded) when the context is full.
struct ggml_object *context_object_new(struct ggml_context *ctx, enum ggml_object_type type, size_t size);
// Puts o at the end of the context's list.
static inline void object_append(struct ggml_context *ctx, struct ggml_object *o) {
    if (ctx->last) {
        ctx->last->next = o;
    } else {
        ctx->first = o;
    }
    ctx->last = o;
    ctx->n_objects++;
}

static inline void *object_content(const struct ggml_context *ctx, const struct ggml_object *o) {
    return ctx->mem_buffer + o->offs;
}
