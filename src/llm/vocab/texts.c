// Strings in one block and the index over them: a vocabulary of 262,144 tokens is ready in milliseconds because nothing is
// allocated per token and each is touched once.
#include "vocab/vocab_int.h"
#include <stdlib.h>

void texts_free(struct texts *t) {
    free(t->bytes);
    free(t->offs);
    *t = (struct texts){0};
}

static uint64_t load64(const char *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static uint64_t load32(const char *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

static uint64_t mix(uint64_t a, uint64_t b) {
    __extension__ typedef unsigned __int128 wide;
    wide m = (wide) a * b;
    return (uint64_t) m ^ (uint64_t) (m >> 64);
}

uint64_t index_hash(const char *p, size_t len) {
    uint64_t a, b, seed = 0x2d358dccaa6c78a5u;
    if (len >= 8) {
        for (size_t i = 0; len - i > 16; i += 16) seed = mix(load64(p + i) ^ 0x8bb84b93962eacc9u, load64(p + i + 8) ^ seed);
        a = len > 16 ? load64(p + len - 16) : load64(p);
        b = load64(p + len - 8);
    } else if (len >= 4) {
        a = load32(p);
        b = load32(p + len - 4);
    } else if (len > 0) {
        a = (uint64_t) (uint8_t) p[0] << 16 | (uint64_t) (uint8_t) p[len / 2] << 8 | (uint8_t) p[len - 1];
        b = 0;
    } else {
        a = b = 0;
    }
    return mix(a ^ 0xa0761d6478bd642fu ^ len, b ^ seed);
}

// Written before it is read. Pages fresh from the system that are read first come into memory twice, the second time with every
// processor being told; and compilers make calloc of malloc and memset, so they may not know that it is memset.
struct index_slot *index_slots(size_t n) {
    void *(*volatile set)(void *, int, size_t) = memset;
    struct index_slot *slots = malloc(n * sizeof *slots);
    return slots ? set(slots, 0, n * sizeof *slots) : NULL;
}

enum err index_init(struct index *x, uint32_t n) {
    uint64_t size = 16;
    while (size < (uint64_t) n + n / 2 + 1) size *= 2;
    x->slots = index_slots((size_t) size);
    if (!x->slots) return err_set(ERR_NOMEM, "vocab: no memory for an index of %u entries", (unsigned) n);
    x->mask = (uint32_t) (size - 1);
    return ERR_OK;
}

void index_free(struct index *x) {
    free(x->slots);
    x->slots = NULL;
}

void index_put(struct index *x, const struct texts *t, uint32_t i, uint64_t h) {
    size_t len;
    const char *p = texts_at(t, i, &len);
    uint32_t tag = (uint32_t) (h >> 32), at = (uint32_t) h & x->mask;
    for (; x->slots[at].value; at = (at + 1) & x->mask) {
        if (x->slots[at].tag != tag) continue;
        size_t n;
        const char *q = texts_at(t, x->slots[at].value - 1, &n);
        if (n == len && memcmp(p, q, n) == 0) break;
    }
    x->slots[at] = (struct index_slot){tag, i + 1};
}

uint32_t index_find(const struct index *x, const struct texts *t, const char *p, size_t len) {
    uint64_t h = index_hash(p, len);
    uint32_t tag = (uint32_t) (h >> 32), at = (uint32_t) h & x->mask;
    for (; x->slots[at].value; at = (at + 1) & x->mask) {
        if (x->slots[at].tag != tag) continue;
        uint32_t i = x->slots[at].value - 1;
        size_t n;
        const char *q = texts_at(t, i, &n);
        if (n == len && memcmp(p, q, n) == 0) return i;
    }
    return UINT32_MAX;
}
