// A hash map from strings of bytes to 64-bit numbers: open addressing, no removal. It keeps pointers to the keys, which
// must outlive it. Stateless; both libraries use it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct map_slot {
    const char *key;  // NULL: free
    uint32_t n;       // bytes of the key
    uint32_t hash;
    int64_t value;
};

struct map {
    struct map_slot *slots;
    size_t size;  // a power of two, 0 before the first insertion
    size_t n;
};

static inline uint32_t map_hash(const char *key, size_t n) {
    uint64_t h = 0xcbf29ce484222325ull ^ n;
    for (; n >= 8; n -= 8, key += 8) {
        uint64_t word;
        memcpy(&word, key, 8);
        h = (h ^ word) * 0x9e3779b97f4a7c15ull;
        h ^= h >> 29;
    }
    uint64_t rest = 0;
    if (n) memcpy(&rest, key, n);
    h = (h ^ rest) * 0x9e3779b97f4a7c15ull;
    return (uint32_t) (h >> 32);
}

static inline struct map_slot *map_slot(const struct map *m, const char *key, size_t n, uint32_t hash) {
    for (size_t i = hash & (m->size - 1);; i = (i + 1) & (m->size - 1)) {
        struct map_slot *s = &m->slots[i];
        if (!s->key || (s->hash == hash && s->n == n && memcmp(s->key, key, n) == 0)) return s;
    }
}

// The value's place, or NULL if the key is not there. Valid until the next insertion.
static inline int64_t *map_get(const struct map *m, const char *key, size_t n) {
    if (m->size == 0 || n > UINT32_MAX) return NULL;
    struct map_slot *s = map_slot(m, key, n, map_hash(key, n));
    return s->key ? &s->value : NULL;
}

// Room for n keys without growing; false when there is no memory.
static inline bool map_reserve(struct map *m, size_t n) {
    size_t size = 16;
    while (size - size / 4 < n) {
        if (size > SIZE_MAX / 4 / sizeof *m->slots) return false;
        size *= 2;
    }
    if (size <= m->size) return true;
    struct map grown = {.slots = calloc(size, sizeof *m->slots), .size = size, .n = m->n};
    if (!grown.slots) return false;
    for (size_t i = 0; i < m->size; i++) {
        const struct map_slot *s = &m->slots[i];
        if (s->key) *map_slot(&grown, s->key, s->n, s->hash) = *s;
    }
    free(m->slots);
    *m = grown;
    return true;
}

// Inserts key with value, unless it is there already. *found (may be NULL) tells. Returns the value's place; NULL when
// there is no memory.
static inline int64_t *map_add(struct map *m, const char *key, size_t n, int64_t value, bool *found) {
    if (n > UINT32_MAX || !map_reserve(m, m->n + 1)) return NULL;
    const uint32_t hash = map_hash(key, n);
    struct map_slot *s = map_slot(m, key, n, hash);
    if (found) *found = s->key != NULL;
    if (s->key) return &s->value;
    *s = (struct map_slot){.key = key, .n = (uint32_t) n, .hash = hash, .value = value};
    m->n++;
    return &s->value;
}

static inline void map_free(struct map *m) {
    free(m->slots);
    *m = (struct map){0};
}
