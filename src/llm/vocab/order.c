// Pieces in byte order, made when first asked for: whoever compares text with all tokens walks over it as over a trie.
#include "vocab/vocab_int.h"
#include <stdlib.h>

struct entry {
    uint64_t key;  // first 8 bytes, the first one highest
    const char *p;
    uint32_t len, id;
};

static uint64_t key_of(const char *p, size_t len) {
    uint64_t k = 0;
    for (size_t i = 0; i < 8; i++) k = k << 8 | (i < len ? (uint8_t) p[i] : 0);
    return k;
}

static int compare(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    size_t n = x->len < y->len ? x->len : y->len;
    int c = memcmp(x->p, y->p, n);
    if (c) return c;
    if (x->len != y->len) return x->len < y->len ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

// By key in four passes of 16 bits, then runs of equal keys by comparison.
static bool sort(struct entry *list, uint32_t n) {
    struct entry *other = malloc(((size_t) n + 1) * sizeof *other), *from = list, *to = other;
    uint32_t *count = malloc(65536 * sizeof *count);
    bool ok = other && count;
    for (int shift = 0; ok && shift < 64; shift += 16) {
        memset(count, 0, 65536 * sizeof *count);
        for (uint32_t i = 0; i < n; i++) count[from[i].key >> shift & 0xffff]++;
        uint32_t at = 0;
        for (uint32_t i = 0; i < 65536; i++) {
            uint32_t c = count[i];
            count[i] = at;
            at += c;
        }
        for (uint32_t i = 0; i < n; i++) to[count[from[i].key >> shift & 0xffff]++] = from[i];
        struct entry *t = from;
        from = to;
        to = t;
    }
    free(other);  // an even number of passes: the result is in list
    free(count);
    for (uint32_t i = 0, k; ok && i < n; i = k) {
        for (k = i + 1; k < n && list[k].key == list[i].key; k++) {
        }
        if (k > i + 1) qsort(&list[i], k - i, sizeof *list, compare);
    }
    return ok;
}

static struct vocab_order *make(const struct llama_vocab *v) {
    struct entry *list = malloc(((size_t) v->n + 1) * sizeof *list);
    struct vocab_order *o = malloc(sizeof *o + (size_t) v->n * (sizeof(llama_token) + 1));
    bool ok = list && o;
    uint32_t n = 0, n_end = 0;
    for (llama_token t = 0; ok && t < v->n; t++) {
        size_t len;
        const char *p = texts_at(&v->piece, (uint32_t) t, &len);
        if (v->eog[t >> 3] >> (t & 7) & 1) {
            ((llama_token *) (o + 1))[v->n - 1 - (int32_t) n_end++] = t;  // from the back
            continue;
        }
        if (len == 0 || v->attrs[t] & (LLAMA_TOKEN_ATTR_UNKNOWN | LLAMA_TOKEN_ATTR_UNUSED)) continue;
        list[n++] = (struct entry){key_of(p, len), p, (uint32_t) len, (uint32_t) t};
    }
    ok = ok && sort(list, n);
    if (ok) {
        llama_token *ids = (llama_token *) (o + 1);
        const llama_token *ends = ids + v->n - n_end;
        uint8_t *same = (uint8_t *) (ids + v->n);
        for (uint32_t i = 0; i < n; i++) {
            size_t k = 0, most = i ? (list[i].len < list[i - 1].len ? list[i].len : list[i - 1].len) : 0;
            while (k < most && k < 255 && list[i].p[k] == list[i - 1].p[k]) k++;
            ids[i] = (llama_token) list[i].id;
            same[i] = (uint8_t) k;
        }
        *o = (struct vocab_order){n, ids, same, n_end, ends};
    }
    free(list);
    if (ok) return o;
    free(o);
    err_set(ERR_NOMEM, "vocab: no memory to order %d tokens", (int) v->n);
    return NULL;
}

const struct vocab_order *vocab_sorted(const struct llama_vocab *vocab) {
    if (!vocab->piece.n) return NULL;
    _Atomic(struct vocab_order *) *slot = (_Atomic(struct vocab_order *) *) &vocab->order;
    struct vocab_order *o = atomic_load_explicit(slot, memory_order_acquire);
    if (o) return o;
    struct vocab_order *made = make(vocab);
    if (made && atomic_compare_exchange_strong(slot, &o, made)) return made;
    free(made);  // another thread was faster
    return o;
}
