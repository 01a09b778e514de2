// An arena: many small allocations that are freed together. Blocks grow, so the number of malloc calls is logarithmic.
// Stateless; both libraries use it.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct arena_block {
    struct arena_block *next;
    size_t size, used;
    _Alignas(16) char bytes[];
};

struct arena {
    struct arena_block *top;  // the block in use; fuller ones follow
};

// size bytes aligned to 16; NULL when there is no memory. Valid until arena_free.
static inline void *arena_alloc(struct arena *a, size_t size) {
    const size_t need = (size + 15) & ~(size_t) 15;
    if (need < size) return NULL;
    struct arena_block *b = a->top;
    if (!b || b->size - b->used < need) {
        size_t room = b ? 2 * b->size : 4096;
        if (room > (size_t) 1 << 24) room = (size_t) 1 << 24;
        if (room < need) room = need;
        if (room > PTRDIFF_MAX - sizeof *b) return NULL;
        b = malloc(sizeof *b + room);
        if (!b) return NULL;
        *b = (struct arena_block){.next = a->top, .size = room};
        a->top = b;
    }
    void *p = b->bytes + b->used;
    b->used += need;
    return p;
}

// A copy of n bytes with a terminating zero behind them.
static inline char *arena_copy(struct arena *a, const void *data, size_t n) {
    char *p = n < SIZE_MAX ? arena_alloc(a, n + 1) : NULL;
    if (!p) return NULL;
    if (n) memcpy(p, data, n);
    p[n] = '\0';
    return p;
}

static inline void arena_free(struct arena *a) {
    while (a->top) {
        struct arena_block *next = a->top->next;
        free(a->top);
        a->top = next;
    }
}
