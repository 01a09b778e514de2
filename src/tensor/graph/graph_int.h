// What the files of this folder share: the layout of contexts.
#pragma once

#include "graph/graph.h"

// A context is a row of objects in one block of memory, each a header with its content behind it.
struct ggml_object {
    size_t offs;  // of the content, from the start of the block
    size_t size;  // of the content, a multiple of GGML_MEM_ALIGN
    struct ggml_object *next;
    enum ggml_object_type type;
    char padding[4];
};

struct ggml_context {
    size_t mem_size;
    char *mem_buffer;
    bool mem_buffer_owned;
    bool no_alloc;
    int n_objects;
    struct ggml_object *first, *last;
};

// Room for `size` bytes behind a new object header; NULL (sentence recorded) when the context is full.
struct ggml_object *context_object_new(struct ggml_context *ctx, enum ggml_object_type type, size_t size);
static inline void *object_content(const struct ggml_context *ctx, const struct ggml_object *o) {
    return ctx->mem_buffer + o->offs;
}
