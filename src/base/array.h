// Growable arrays of any type: struct { T *items; size_t n, cap; }. Stateless; both libraries use it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define ARRAY(T)                                                                                                            \
    struct {                                                                                                                \
        T *items;                                                                                                           \
        size_t n, cap;                                                                                                      \
    }

// Makes room for n items of `size` bytes in all; false when there is no memory (nothing changes).
static inline bool array_grow(void **items, size_t *cap, size_t n, size_t size) {
    if (n <= *cap) return true;
    size_t want = *cap > SIZE_MAX / 2 ? n : 2 * *cap;
    if (want < n) want = n;
    if (want < 8) want = 8;
    if (want > PTRDIFF_MAX / size) return false;
    void *grown = realloc(*items, want * size);
    if (!grown) return false;
    *items = grown;
    *cap = want;
    return true;
}

#define array_reserve(a, count) array_grow((void **) &(a)->items, &(a)->cap, (count), sizeof *(a)->items)
// False when there is no memory.
#define array_push(a, value) (array_reserve((a), (a)->n + 1) && ((a)->items[(a)->n++] = (value), true))
#define array_free(a) (free((a)->items), (a)->items = NULL, (a)->n = (a)->cap = 0)
