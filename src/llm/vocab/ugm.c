// SentencePiece's unigram model (T5): of all ways to cover the text with tokens, the one with the greatest sum of scores.
// Ties: the path whose last differing token is longer, as the reference finds it by going through starts from left to right
// and replacing only what is strictly worse. Characters that no token covers are unknown, or their bytes if the vocabulary
// has all byte tokens. The text is normalized first, by the replacement table that comes with the model.
// Method: Kudo 2018; the reference's EncodeOptimized and Normalizer. The table is a double-array trie (darts-clone).
#include "vocab/vocab_int.h"
#include <math.h>
#include <stdlib.h>

#define UNKNOWN_PENALTY 10.0f

struct ugm {
    uint32_t *units;  // the double array
    size_t n_unit;
    char *replacements;  // terminated strings end to end
    size_t n_replacement;
    struct trie pieces, users;  // users: texts that normalization leaves alone
    bool any_user;
    float unknown, best;  // score of an unknown character; the greatest score
};

// ---- loading

static enum err load_map(struct llama_vocab *v, const struct gguf_context *meta) {
    static const char key[] = "tokenizer.ggml.precompiled_charsmap";
    int64_t id = gguf_find_key(meta, key);
    if (id < 0) return ERR_OK;
    enum gguf_type type = gguf_get_kv_type(meta, id);
    if (type == GGUF_TYPE_ARRAY) type = gguf_get_arr_type(meta, id);
    if (gguf_get_kv_type(meta, id) != GGUF_TYPE_ARRAY || (type != GGUF_TYPE_INT8 && type != GGUF_TYPE_UINT8)) {
        return err_set(ERR_FORMAT, "vocab: key '%s' is of %s; it must be an array of u8", key, gguf_type_name(type));
    }
    size_t n = gguf_get_arr_n(meta, id);
    const uint8_t *p = gguf_get_arr_data(meta, id);
    if (n == 0) return ERR_OK;
    uint32_t bytes = 0;
    if (n >= 4) memcpy(&bytes, p, 4);
    if (n < 8 || bytes % 4 || bytes > n - 4) {
        return err_set(ERR_FORMAT, "vocab: key '%s' of %zu bytes claims a table of %u", key, n, (unsigned) bytes);
    }
    struct ugm *u = v->ugm;
    u->n_unit = bytes / 4;
    u->n_replacement = n - 4 - bytes;
    u->units = malloc((size_t) bytes + 4);
    u->replacements = malloc(u->n_replacement + 1);
    if (!u->units || !u->replacements)
        return err_set(ERR_NOMEM, "vocab: no memory for a normalization table of %zu bytes", n);
    memcpy(u->units, p + 4, bytes);
    memcpy(u->replacements, p + 4 + bytes, u->n_replacement);
    u->replacements[u->n_replacement] = 0;  // the last may lack its terminator
    return ERR_OK;
}

static enum err load(struct llama_vocab *v, const struct gguf_context *meta) {
    v->ugm = calloc(1, sizeof *v->ugm);
    if (!v->ugm) return err_set(ERR_NOMEM, "vocab: no memory for a vocabulary");
    TRY(trie_init(&v->ugm->pieces));
    TRY(trie_init(&v->ugm->users));
    return load_map(v, meta);
}

static enum err ready(struct llama_vocab *v, const struct gguf_context *meta) {
    (void) meta;
    struct ugm *u = v->ugm;
    float least = INFINITY, most = -INFINITY;
    for (llama_token t = 0; t < v->n; t++) {
        size_t len;
        const char *p = texts_at(&v->piece, (uint32_t) t, &len);
        int attr = v->attrs[t];
        if (len == 0 || attr & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN | LLAMA_TOKEN_ATTR_UNUSED)) continue;
        if (attr & LLAMA_TOKEN_ATTR_BYTE && v->byte_token[(uint8_t) *p] == t) continue;
        if (attr & LLAMA_TOKEN_ATTR_USER_DEFINED) {
            TRY(trie_add(&u->users, p, len, t));
            u->any_user = true;
        } else {
            float score = v->scores ? v->scores[t] : 0.0f;
            least = score < least ? score : least;
            most = score > most ? score : most;
        }
        TRY(trie_add(&u->pieces, p, len, t));
    }
    u->unknown = (least < INFINITY ? least : 0.0f) - UNKNOWN_PENALTY;
    u->best = most > -INFINITY ? most : 0.0f;
    return ERR_OK;
}

static void unload(struct llama_vocab *v) {
    struct ugm *u = v->ugm;
    if (!u) return;
    free(u->units);
    free(u->replacements);
    trie_free(&u->pieces);
    trie_free(&u->users);
    free(u);
    v->ugm = NULL;
}

static size_t piece(const char *text, size_t len, enum llama_token_attr attr, char *out, struct llama_vocab *v,
                    bool *findable) {
    return vocab_kind_spm.piece(text, len, attr, out, v, findable);
}

// ---- normalization

static size_t unit_offset(uint32_t u) { return (size_t) (u >> 10) << ((u & (1u << 9)) >> 6); }

// The longest entry of the table at p: its length in *len, what replaces it returned; NULL if there is none.
static const char *replacement(const struct ugm *u, const char *p, const char *end, size_t *len) {
    const char *best = NULL;
    if (u->n_unit == 0) return NULL;
    size_t node = unit_offset(u->units[0]);
    for (const char *q = p; q < end; q++) {
        uint8_t c = (uint8_t) *q;
        node ^= c;
        if (c == 0 || node >= u->n_unit) break;
        uint32_t unit = u->units[node];
        if ((unit & (1u << 31 | 0xff)) != c) break;
        node ^= unit_offset(unit);
        if (unit >> 8 & 1 && node < u->n_unit) {
            size_t at = u->units[node] & 0x7fffffff;
            if (at >= u->n_replacement) continue;
            best = u->replacements + at;
            *len = (size_t) (q + 1 - p);
        }
    }
    return best;
}

static size_t user_text(const struct ugm *u, const char *p, const char *end) {
    uint32_t node = 0;
    size_t best = 0;
    for (const char *q = p; u->any_user && q < end; q++) {
        node = trie_step(&u->users, node, (uint8_t) *q);
        if (!node) break;
        if (u->users.values[node] >= 0) best = (size_t) (q + 1 - p);
    }
    return best;
}

// What the text at p becomes: *out, *n bytes; returns how much of the text it stands for.
static size_t step(const struct ugm *u, const char *p, const char *end, const char **out, size_t *n) {
    size_t len = user_text(u, p, end);
    *out = p;
    *n = len;
    if (len) return len;
    const char *r = replacement(u, p, end, &len);
    if (r) {
        *out = r;
        *n = strlen(r);
        return len;
    }
    int k;
    if (utf8_decode(p, end, &k) == UTF8_BAD && k == 1) {
        *out = "\xef\xbf\xbd";
        *n = 3;
        return 1;
    }
    *n = (size_t) k;
    return (size_t) k;
}

struct text {
    char *p;
    size_t n, cap;
};

static enum err put(struct text *t, const char *p, size_t n) {
    if (t->n + n + 1 > t->cap) {
        size_t cap = t->cap * 2 + n + 64;
        char *q = realloc(t->p, cap);
        if (!q) return err_set(ERR_NOMEM, "tokenize: no memory for a text of %zu bytes", cap);
        t->p = q;
        t->cap = cap;
    }
    t->n += vocab_unescape(p, n, t->p + t->n);
    return ERR_OK;
}

static enum err normalize(const struct llama_vocab *v, const char *p, const char *end, bool prefix, struct text *t) {
    const struct ugm *u = v->ugm;
    const char *out;
    size_t n;
    bool squeeze = v->remove_extra_spaces;
    while (squeeze && p < end) {  // none at the start
        size_t k = step(u, p, end, &out, &n);
        if (n != 1 || *out != ' ') break;
        p += k;
    }
    if (p == end) return ERR_OK;
    if (prefix) TRY(put(t, " ", 1));
    bool after_space = squeeze;
    while (p < end) {
        p += step(u, p, end, &out, &n);
        while (after_space && n > 0 && *out == ' ') {
            out++;
            n--;
        }
        if (n > 0) {
            TRY(put(t, out, n));
            after_space = squeeze && out[n - 1] == ' ';
        }
    }
    while (squeeze && t->n > 0 && t->p[t->n - 1] == ' ') t->n--;  // nor at the end
    return ERR_OK;
}

// ---- the best path

struct node {
    float score;
    uint32_t start;  // of the token that ends here; UINT32_MAX: not reached
    llama_token token;
};

static void offer(struct node *nodes, size_t from, size_t to, float score, llama_token token) {
    if (nodes[to].start != UINT32_MAX && !(score > nodes[to].score)) return;
    nodes[to] = (struct node){score, (uint32_t) from, token};
}

static void find_path(const struct llama_vocab *v, const char *p, size_t n, struct node *nodes) {
    const struct ugm *u = v->ugm;
    for (size_t i = 0; i <= n; i++) nodes[i].start = UINT32_MAX;
    nodes[0] = (struct node){0.0f, 0, -1};
    for (size_t at = 0; at < n;) {
        size_t one = (size_t) utf8_len((uint8_t) p[at]);
        if (one > n - at) one = n - at;
        bool single = false;
        uint32_t node = 0;
        for (size_t k = at; k < n; k++) {
            node = trie_step(&u->pieces, node, (uint8_t) p[k]);
            if (!node) break;
            llama_token t = u->pieces.values[node];
            if (t < 0) continue;
            size_t len = k + 1 - at;
            float score = v->scores ? v->scores[t] : 0.0f;
            if (v->attrs[t] & LLAMA_TOKEN_ATTR_USER_DEFINED) score = (float) ((float) len * u->best - 0.1);
            offer(nodes, at, k + 1, nodes[at].score + score, t);
            single = single || len == one;
        }
        if (!single) offer(nodes, at, at + one, nodes[at].score + u->unknown, -1);
        at += one;
    }
}

static enum err emit(struct session *s, const char *p, size_t n, struct node *nodes) {
    // turn the links around, then walk forward
    size_t to = n;
    uint32_t next = (uint32_t) n;
    while (to > 0) {
        size_t from = nodes[to].start;
        nodes[to].start = next;
        next = (uint32_t) to;
        to = from;
    }
    nodes[0].start = next;
    const struct llama_vocab *v = s->v;
    bool was_unknown = false;
    for (size_t at = 0; at < n;) {
        size_t end = nodes[at].start;
        llama_token t = nodes[end].token;
        if (t >= 0) {
            TRY(session_push(s, t));
        } else if (v->has_bytes) {
            TRY(session_push_bytes(s, p + at, end - at));
        } else if (!was_unknown) {
            TRY(session_push_bytes(s, p + at, end - at));
        }
        was_unknown = t < 0 && !v->has_bytes;
        at = end;
    }
    return ERR_OK;
}

static enum err encode(struct session *s, const char *p, const char *end, bool after_special) {
    struct text t = {0};
    enum err e = normalize(s->v, p, end, s->v->add_space_prefix && after_special, &t);
    struct node *nodes = e == ERR_OK ? malloc((t.n + 1) * sizeof *nodes) : NULL;
    if (e == ERR_OK && !nodes) e = err_set(ERR_NOMEM, "tokenize: no memory for a text of %zu bytes", t.n);
    if (e == ERR_OK && t.n > 0) {
        find_path(s->v, t.p, t.n, nodes);
        e = emit(s, t.p, t.n, nodes);
    }
    free(nodes);
    free(t.p);
    return e;
}

const struct vocab_kind vocab_kind_ugm = {
    .type = LLAMA_VOCAB_TYPE_UGM,
    .model = "t5",
    .name = "UGM",
    .bos = -1,
    .eos = 1,
    .unk = 2,
    .sep = -1,
    .pad = 0,
    .mask = -1,
    .add_eos = true,
    .piece = piece,
    .load = load,
    .ready = ready,
    .free = unload,
    .encode = encode,
};
