// PLaMo 2's tokenizer: the cover of the text with the least cost, where a token costs minus its score and a character that
// no token covers costs a fixed 1000 and becomes its bytes. Costs are integers (scores in steps of 1e-4), so sums have no
// rounding; of equal covers the one whose first differing token is longer. Found from the end of the text backwards.
// Reference: tokenization_plamo.py of plamo-2-1b.
#include "vocab/vocab_int.h"
#include <math.h>
#include <stdlib.h>

#define SCALE 1e4
#define UNKNOWN_COST 10000000
#define MAX_SCORE 1e5  // of either sign: so many tokens that their costs overflow would not fit a text

static bool is_findable(const char *text, size_t len, enum llama_token_attr attr) {
    return len > 0 && !(attr & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)) &&
           !(attr & LLAMA_TOKEN_ATTR_BYTE && vocab_byte_of(text, len) >= 0);
}

static size_t piece(const char *text, size_t len, enum llama_token_attr attr, char *out, struct llama_vocab *v,
                    bool *findable) {
    (void) v;
    int byte = attr & LLAMA_TOKEN_ATTR_BYTE ? vocab_byte_of(text, len) : -1;
    *findable = is_findable(text, len, attr);
    if (byte < 0) {
        memcpy(out, text, len);
        return len;
    }
    out[0] = (char) byte;
    return 1;
}

static enum err ready(struct llama_vocab *v, const struct gguf_context *meta) {
    (void) meta;
    v->trie = malloc(sizeof *v->trie);
    if (!v->trie) return err_set(ERR_NOMEM, "vocab: no memory for a vocabulary");
    TRY(trie_init(v->trie));
    for (llama_token t = 0; t < v->n; t++) {
        size_t len, n;
        const char *text = span_at(&v->text, (uint32_t) t, &len), *p = texts_at(&v->piece, (uint32_t) t, &n);
        if (is_findable(text, len, (enum llama_token_attr) v->attrs[t])) TRY(trie_add(v->trie, p, n, t));
    }
    return ERR_OK;
}

static void unload(struct llama_vocab *v) {
    if (v->trie) trie_free(v->trie);
    free(v->trie);
    v->trie = NULL;
}

struct step {
    int64_t cost;  // of the rest of the text from here
    uint32_t len;
    llama_token token;  // -1: bytes
};

static void find_path(const struct llama_vocab *v, const char *p, size_t n, struct step *steps) {
    const struct trie *trie = v->trie;
    steps[n] = (struct step){0, 0, -1};
    const char *at = p + n;
    while (at > p) {
        at = utf8_back(p, at);
        size_t i = (size_t) (at - p);
        int one;
        utf8_decode(at, p + n, &one);
        struct step best = {steps[i + (size_t) one].cost + UNKNOWN_COST, (uint32_t) one, -1};
        uint32_t node = 0;
        for (size_t k = i; k < n; k++) {
            node = trie_step(trie, node, (uint8_t) p[k]);
            if (!node) break;
            llama_token t = trie->values[node];
            if (t < 0 || steps[k + 1].len == UINT32_MAX) continue;  // ends inside a character
            double score = v->scores ? fmin(fmax(v->scores[t], -MAX_SCORE), MAX_SCORE) : 0.0;
            int64_t cost = steps[k + 1].cost - llrint(score * SCALE);
            if (cost <= best.cost) best = (struct step){cost, (uint32_t) (k + 1 - i), t};
        }
        steps[i] = best;
    }
}

static enum err encode(struct session *s, const char *p, const char *end, bool after_special) {
    (void) after_special;
    size_t n = (size_t) (end - p);
    struct step *steps = malloc((n + 1) * sizeof *steps);
    if (!steps) return err_set(ERR_NOMEM, "tokenize: no memory for a text of %zu bytes", n);
    for (size_t i = 0; i < n; i++) steps[i].len = UINT32_MAX;
    find_path(s->v, p, n, steps);
    enum err e = ERR_OK;
    for (size_t i = 0; i < n && e == ERR_OK; i += steps[i].len) {
        e = steps[i].token >= 0 ? session_push(s, steps[i].token) : session_push_bytes(s, p + i, steps[i].len);
    }
    free(steps);
    return e;
}

const struct vocab_kind vocab_kind_plamo2 = {
    .type = LLAMA_VOCAB_TYPE_PLAMO2,
    .model = "plamo2",
    .name = "PLaMo 2",
    .bos = 1,
    .eos = 2,
    .unk = 0,
    .sep = -1,
    .pad = 3,
    .mask = -1,
    .piece = piece,
    .ready = ready,
    .free = unload,
    .encode = encode,
};
