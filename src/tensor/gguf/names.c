// Index over names: duplicates must be found in linear time however many tensors a file claims. The hash is seeded with an
// address, so a file can't be made to collide.
#include "gguf/gguf_int.h"
#include <stdlib.h>

static uint64_t hash(uint64_t seed, const char *p, size_t len) {
    uint64_t h = seed ^ (len * 0x9e3779b97f4a7c15u);
    while (len >= 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        h = (h ^ v) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
        p += 8;
        len -= 8;
    }
    uint64_t v = 0;
    memcpy(&v, p, len);
    h = (h ^ v) * 0xc4ceb9fe1a85ec53u;
    return h ^ (h >> 29);
}

static const struct name *name_at(const void *entries, size_t stride, size_t i) {
    return (const struct name *) ((const char *) entries + i * stride);
}

void names_init(struct name_set *s) { *s = (struct name_set){.seed = (uint64_t) (uintptr_t) s * 0x9e3779b97f4a7c15u}; }

void names_free(struct name_set *s) {
    free(s->slots);
    s->slots = NULL;
    s->n_slot = s->n = 0;
}

// Slot of a name, or the empty slot where it would go.
static size_t find_slot(const struct name_set *s, const void *entries, size_t stride, const char *p, size_t len) {
    size_t i = (size_t) hash(s->seed, p, len) & (s->n_slot - 1);
    for (; s->slots[i]; i = (i + 1) & (s->n_slot - 1)) {
        const struct name *n = name_at(entries, stride, s->slots[i] - 1);
        if (n->len == len && memcmp(n->p, p, len) == 0) break;
    }
    return i;
}

int64_t names_find(const struct name_set *s, const void *entries, size_t stride, const char *p, size_t len) {
    if (s->n == 0) return -1;
    return (int64_t) s->slots[find_slot(s, entries, stride, p, len)] - 1;
}

static enum err grow(struct name_set *s, const void *entries, size_t stride) {
    size_t n_old = s->n_slot, n_slot = n_old ? n_old * 2 : 64;
    uint32_t *old = s->slots, *slots = calloc(n_slot, sizeof *slots);
    if (!slots) return err_set(ERR_NOMEM, "gguf: no memory for an index of %zu names", s->n);
    s->slots = slots;
    s->n_slot = n_slot;
    for (size_t i = 0; i < n_old; i++) {
        if (!old[i]) continue;
        const struct name *n = name_at(entries, stride, old[i] - 1);
        slots[find_slot(s, entries, stride, n->p, n->len)] = old[i];
    }
    free(old);
    return ERR_OK;
}

enum err names_add(struct name_set *s, const void *entries, size_t stride, size_t i) {
    if ((s->n + 1) * 2 > s->n_slot) TRY(grow(s, entries, stride));
    const struct name *n = name_at(entries, stride, i);
    size_t slot = find_slot(s, entries, stride, n->p, n->len);
    if (s->slots[slot]) return ERR_INVALID;
    s->slots[slot] = (uint32_t) i + 1;
    s->n++;
    return ERR_OK;
}

enum err names_rebuild(struct name_set *s, const void *entries, size_t stride, size_t n) {
    if (s->slots) memset(s->slots, 0, s->n_slot * sizeof *s->slots);
    s->n = 0;
    for (size_t i = 0; i < n; i++) TRY(names_add(s, entries, stride, i));
    return ERR_OK;
}
