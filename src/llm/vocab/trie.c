// A trie over bytes whose edges live in one hash table: built from unsorted strings in one pass, and 8 bytes per edge.
#include "vocab/vocab_int.h"
#include <stdlib.h>

enum err trie_init(struct trie *t) {
    *t = (struct trie){.mask = 255, .cap_node = 128, .n_node = 1};
    t->edges = calloc(t->mask + 1, sizeof *t->edges);
    t->values = malloc(t->cap_node * sizeof *t->values);
    if (!t->edges || !t->values) return err_set(ERR_NOMEM, "vocab: no memory for a trie");
    t->values[0] = -1;
    return ERR_OK;
}

size_t trie_bytes(const struct trie *t) {
    return ((size_t) t->mask + 1) * sizeof *t->edges + (size_t) t->cap_node * sizeof *t->values;
}

void trie_free(struct trie *t) {
    free(t->edges);
    free(t->values);
    *t = (struct trie){0};
}

static void put(struct trie *t, struct trie_edge e) {
    uint32_t i = (e.key * 0x9e3779b1u) >> 7 & t->mask;
    while (t->edges[i].key) i = (i + 1) & t->mask;
    t->edges[i] = e;
}

static enum err grow_edges(struct trie *t) {
    struct trie_edge *old = t->edges, *edges = calloc(((size_t) t->mask + 1) * 2, sizeof *edges);
    if (!edges) return err_set(ERR_NOMEM, "vocab: no memory for a trie of %u nodes", (unsigned) t->n_node);
    uint32_t n_old = t->mask + 1;
    t->edges = edges;
    t->mask = t->mask * 2 + 1;
    for (uint32_t i = 0; i < n_old; i++) {
        if (old[i].key) put(t, old[i]);
    }
    free(old);
    return ERR_OK;
}

static enum err new_node(struct trie *t, uint32_t from, uint8_t byte, uint32_t *node) {
    if (t->n_node == 0xffffff) return err_set(ERR_UNSUPPORTED, "vocab: a trie of more than %u nodes", 0xffffffu);
    if (t->n_node == t->cap_node) {
        int32_t *values = realloc(t->values, (size_t) t->cap_node * 2 * sizeof *values);
        if (!values) return err_set(ERR_NOMEM, "vocab: no memory for a trie of %u nodes", (unsigned) t->n_node);
        t->values = values;
        t->cap_node *= 2;
    }
    if ((uint64_t) (t->n_edge + 1) * 4 > (uint64_t) (t->mask + 1) * 3) TRY(grow_edges(t));
    *node = t->n_node++;
    t->values[*node] = -1;
    t->n_edge++;
    put(t, (struct trie_edge){(from << 8 | byte) + 1, *node});
    return ERR_OK;
}

enum err trie_add(struct trie *t, const char *p, size_t len, int32_t value) {
    uint32_t node = 0;
    t->first[(uint8_t) p[0]] = true;
    for (size_t i = 0; i < len; i++) {
        uint32_t next = trie_step(t, node, (uint8_t) p[i]);
        if (!next) TRY(new_node(t, node, (uint8_t) p[i], &next));
        node = next;
    }
    t->values[node] = value;
    return ERR_OK;
}
