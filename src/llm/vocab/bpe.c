// Byte-pair encoding as GPT-2 and its kin do it: text is cut into words by the patterns of pre.def, and within a word the
// neighbours whose merge was learned first are joined first. Bytes are not mapped to printable characters as in the
// original: the file's spelling is undone once when the vocabulary is loaded, and everything works on plain bytes.
//
// gemma4 and its kin are the same over characters instead of bytes, with spaces spelled U+2581 in the file and byte tokens
// for what is not covered. Method: Sennrich et al. 2016; the ids of the tokenizers of Hugging Face.
#include "vocab/vocab_int.h"
#include "vocab/pattern.h"
#include "base/log.h"
#include <stdlib.h>

enum { PRE_BOS = 1, PRE_SEP = 2, PRE_KEEP = 4, PRE_RAW = 8, PRE_ESC = 16 };

enum split {
#define SPLIT(name, n, ...) SPLIT_##name,
#include "vocab/pre.def"
    SPLIT_COUNT
};

static const struct {
    int n;
    const char *patterns[PATTERN_MAX_LEVELS];
} splits[SPLIT_COUNT] = {
#define SPLIT(name, n, ...) {n, {__VA_ARGS__}},
#include "vocab/pre.def"
};

static const struct pre {
    const char *name;
    enum split split;
    int flags;
} pres[] = {
#define PRE(name, split, flags) {name, SPLIT_##split, flags},
#include "vocab/pre.def"
};

struct bpe {
    struct texts merges;       // both sides end to end
    uint16_t *left;            // bytes of the left side of each
    struct index_slot *slots;  // by hash of the bytes and of where they part
    uint32_t mask;
    struct pattern *patterns[PATTERN_MAX_LEVELS];
    int n_pattern;
    bool keep;  // a word that is a token is not merged
    bool raw;   // characters, not bytes
};

// ---- merges

static uint64_t merge_hash(const char *p, size_t left, size_t right) {
    uint64_t h = index_hash(p, left + right) + left * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static uint32_t merge_slot(const struct bpe *b, const char *p, size_t left, size_t right, uint64_t h) {
    uint32_t tag = (uint32_t) (h >> 32), at = (uint32_t) h & b->mask;
    for (; b->slots[at].value; at = (at + 1) & b->mask) {
        if (b->slots[at].tag != tag) continue;
        uint32_t i = b->slots[at].value - 1;
        size_t len;
        const char *q = texts_at(&b->merges, i, &len);
        if (b->left[i] == left && len == left + right && memcmp(p, q, len) == 0) break;
    }
    return at;
}

static inline uint32_t pair_order(const struct llama_vocab *v, const char *p, size_t left, size_t right) {
    return v->bpe->slots[merge_slot(v->bpe, p, left, right, merge_hash(p, left, right))].value - 1;  // 0: UINT32_MAX, none
}

#include "vocab/merge.h"

// Undoes the byte-to-character map of GPT-2. False if a character is not one of its 256: printable ASCII, and U+00A1 to U+0143 in two
// bytes each.
static bool unmap(const char *text, size_t len, char *out, size_t *n) {
    static const uint8_t others[] = {// the bytes of U+0100, U+0101, ...: those that do not stand for themselves
                                     0,   1,   2,   3,   4,   5,   6,   7,   8,   9,   10,  11,  12,  13,  14,  15,  16,
                                     17,  18,  19,  20,  21,  22,  23,  24,  25,  26,  27,  28,  29,  30,  31,  32,  127,
                                     128, 129, 130, 131, 132, 133, 134, 135, 136, 137, 138, 139, 140, 141, 142, 143, 144,
                                     145, 146, 147, 148, 149, 150, 151, 152, 153, 154, 155, 156, 157, 158, 159, 160, 173};
    char *to = out;
    for (const uint8_t *p = (const uint8_t *) text, *end = p + len; p < end; p++) {
        uint32_t c = *p;
        if (c - 0x21 > 0x7e - 0x21) {
            if (c - 0xc2 > 0xc5 - 0xc2 || end - p < 2 || (p[1] & 0xc0) != 0x80) return false;
            c = (c & 0x1f) << 6 | (*++p & 0x3f);
            if (c < 0x100) {
                if (c <= 0xa0 || c == 0xad) return false;
            } else {
                if (c >= 0x100 + sizeof others) return false;
                c = others[c - 0x100];
            }
        }
        *to++ = (char) c;
    }
    *n = (size_t) (to - out);
    return true;
}

// One side of a merge as bytes; returns its length.
static size_t plain(const struct llama_vocab *v, const char *p, size_t len, char *out) {
    size_t n;
    if (v->bpe->raw) {
        if (v->escape_spaces) return vocab_unescape(p, len, out);
    } else if (unmap(p, len, out, &n)) {
        return n;
    }
    memcpy(out, p, len);
    return len;
}

static enum err check_strings(const struct gguf_context *meta, int64_t id, const char *key) {
    enum gguf_type type = gguf_get_kv_type(meta, id);
    if (type == GGUF_TYPE_ARRAY) type = gguf_get_arr_type(meta, id);
    if (gguf_get_kv_type(meta, id) == GGUF_TYPE_ARRAY && type == GGUF_TYPE_STRING) return ERR_OK;
    return err_set(ERR_FORMAT, "vocab: key '%s' is of %s; it must be an array of strings", key, gguf_type_name(type));
}

// A learned merge "left right": the space that parts them is the first behind the first byte.
static enum err add_merge(struct llama_vocab *v, const char *p, size_t len, uint32_t i, uint32_t *at, uint64_t *hash) {
    struct bpe *b = v->bpe;
    const char *space = len > 1 ? memchr(p + 1, ' ', len - 1) : NULL;
    b->merges.offs[i] = *at;
    b->left[i] = 0;
    if (!space) {
        b->merges.bytes[(*at)++] = 0;
        return ERR_OK;  // not a merge: it joins nothing
    }
    char *out = b->merges.bytes + *at;
    size_t left = plain(v, p, (size_t) (space - p), out);
    const char *r = space + 1;
    size_t right = plain(v, r, (size_t) (p + len - r), out + left);
    if (left > UINT16_MAX) return err_set(ERR_UNSUPPORTED, "vocab: merge %u has %zu bytes", (unsigned) i, left + right);
    b->left[i] = (uint16_t) left;
    if (b->raw) vocab_mark_glue(v, out, left + right);
    out[left + right] = 0;
    *at += (uint32_t) (left + right) + 1;
    *hash = merge_hash(out, left, right);
    __builtin_prefetch(&b->slots[(uint32_t) *hash & b->mask], 1);
    return ERR_OK;
}

static void put_merge(struct bpe *b, uint32_t i, uint64_t h) {
    size_t len;
    const char *p = texts_at(&b->merges, i, &len);
    if (b->left[i] == 0) return;
    uint32_t slot = merge_slot(b, p, b->left[i], len - b->left[i], h);
    if (!b->slots[slot].value)
        b->slots[slot] = (struct index_slot){(uint32_t) (h >> 32), i + 1};  // the first of equals counts
}

static enum err load_merges(struct llama_vocab *v, const struct gguf_context *meta) {
    static const char key[] = "tokenizer.ggml.merges";
    struct bpe *b = v->bpe;
    int64_t id = gguf_find_key(meta, key);
    if (id < 0)
        return err_set(ERR_FORMAT, "vocab: key '%s' is missing; a vocabulary of kind %s needs it", key, v->kind->model);
    TRY(check_strings(meta, id, key));
    const struct gguf_str_span span = gguf_get_arr_str_span(meta, id);
    const size_t n = span.n, bytes = span.bytes - 7 * n + 1;
    size_t len;
    if (n >= INT32_MAX || bytes >= UINT32_MAX) return err_set(ERR_UNSUPPORTED, "vocab: %zu merges of %zu bytes", n, bytes);
    uint64_t size = 16;
    while (size < n + n / 2 + 1) size *= 2;
    b->slots = index_slots((size_t) size);
    b->mask = (uint32_t) (size - 1);
    b->left = malloc((n + 1) * sizeof *b->left);
    b->merges.offs = malloc((n + 1) * sizeof *b->merges.offs);
    b->merges.bytes = malloc(bytes);
    if (!b->slots || !b->left || !b->merges.offs || !b->merges.bytes)
        return err_set(ERR_NOMEM, "vocab: no memory for %zu merges", n);
    b->merges.n = (uint32_t) n;
    uint32_t at = 0;
    b->merges.offs[0] = 0;
    uint64_t hashes[INDEX_AHEAD];
    for (size_t i = 0; i < n; i++) {
        const char *p = span_at(&span, (uint32_t) i, &len);
        if (i >= INDEX_AHEAD) put_merge(b, (uint32_t) (i - INDEX_AHEAD), hashes[i % INDEX_AHEAD]);
        TRY(add_merge(v, p, len, (uint32_t) i, &at, &hashes[i % INDEX_AHEAD]));
        b->merges.offs[i + 1] = at;
    }
    for (size_t i = n > INDEX_AHEAD ? n - INDEX_AHEAD : 0; i < n; i++) put_merge(b, (uint32_t) i, hashes[i % INDEX_AHEAD]);
    return ERR_OK;
}

// ---- loading

static const struct pre *find_pre(const char *name) {
    for (size_t i = 0; i < sizeof pres / sizeof *pres; i++) {
        if (strcmp(pres[i].name, name) == 0) return &pres[i];
    }
    return NULL;
}

static enum err load(struct llama_vocab *v, const struct gguf_context *meta) {
    const char *name = v->kind->pre;
    int64_t id = gguf_find_key(meta, "tokenizer.ggml.pre");
    if (id >= 0) {
        if (gguf_get_kv_type(meta, id) != GGUF_TYPE_STRING) {
            return err_set(ERR_FORMAT, "vocab: key 'tokenizer.ggml.pre' is %s; it must be a string",
                           gguf_type_name(gguf_get_kv_type(meta, id)));
        }
        name = gguf_get_val_str(meta, id);
    } else if (strcmp(v->kind->pre, "default") == 0) {
        log_warn("vocab: the file does not say how to cut text into words (tokenizer.ggml.pre); tokens may differ from the "
                 "model's own\n");
    }
    const struct pre *pre = find_pre(name);
    if (!pre) return err_set(ERR_UNSUPPORTED, "vocab: the pre-tokenizer '%s' (tokenizer.ggml.pre) is not known", name);
    v->bpe = calloc(1, sizeof *v->bpe);
    if (!v->bpe) return err_set(ERR_NOMEM, "vocab: no memory for a vocabulary");
    struct bpe *b = v->bpe;
    b->keep = pre->flags & PRE_KEEP;
    b->raw = pre->split == SPLIT_GEMMA4 || pre->split == SPLIT_SARVAM_MOE || pre->split == SPLIT_WHITESPACE;
    v->escape_spaces = pre->flags & PRE_ESC;
    if (pre->flags & PRE_BOS) v->add_bos = true;
    if (pre->flags & PRE_SEP) v->add_sep = true;
    if (pre->flags & PRE_RAW) v->clean_spaces = false;
    for (int i = 0; i < splits[pre->split].n; i++) {
        TRY(pattern_new(&b->patterns[i], splits[pre->split].patterns[i]));
        b->n_pattern = i + 1;
    }
    return load_merges(v, meta);
}

size_t bpe_memory(const struct gguf_context *meta, const char *pre_otherwise) {
    const int64_t id = gguf_find_key(meta, "tokenizer.ggml.pre");
    size_t n = sizeof(struct bpe);
    if (id >= 0 && gguf_get_kv_type(meta, id) != GGUF_TYPE_STRING) return n;
    const struct pre *pre = find_pre(id >= 0 ? gguf_get_val_str(meta, id) : pre_otherwise);
    for (int i = 0; pre && i < splits[pre->split].n; i++) {
        struct pattern *p = NULL;
        if (pattern_new(&p, splits[pre->split].patterns[i]) != ERR_OK) break;
        n += pattern_memory(p);
        pattern_free(p);
    }
    return n;
}

static void unload(struct llama_vocab *v) {
    struct bpe *b = v->bpe;
    if (!b) return;
    for (int i = 0; i < b->n_pattern; i++) pattern_free(b->patterns[i]);
    texts_free(&b->merges);
    free(b->left);
    free(b->slots);
    free(b);
    v->bpe = NULL;
}

static size_t piece(const char *text, size_t len, enum llama_token_attr attr, char *out, struct llama_vocab *v,
                    bool *findable) {
    const struct bpe *b = v->bpe;
    *findable = false;
    const int byte = b->raw && attr & LLAMA_TOKEN_ATTR_BYTE ? vocab_byte_of(text, len) : -1;
    if (byte >= 0) {
        out[0] = (char) byte;
        return 1;
    }
    if (attr & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN | LLAMA_TOKEN_ATTR_USER_DEFINED)) {
        memcpy(out, text, len);
        return len;
    }
    *findable = true;
    bool spaces, glue;
    size_t n;
    if (b->raw && v->escape_spaces) return vocab_unescape_token(text, len, out, &spaces, &glue);
    if (!b->raw && unmap(text, len, out, &n)) return n;
    memcpy(out, text, len);
    for (size_t i = 0; !b->raw && i < len; i++) {
        if ((uint8_t) text[i] <= 0x20 || (uint8_t) text[i] == 0x7f) *findable = false;  // not of the map: no text gives it
    }
    return len;
}

// ---- encoding

// A merge may give what is no token: its bytes (characters) come out one by one, so that nothing is lost. A byte that the vocabulary
// lacks gives nothing, as in the original: what files call the unknown token is often the end of the text.
static enum err encode_pieces(struct session *s, const char *p, size_t len) {
    for (size_t at = 0; at < len;) {
        int step = 1;
        if (s->v->bpe->raw) utf8_decode(p + at, p + len, &step);
        llama_token t = vocab_find(s->v, p + at, (size_t) step);
        if (t >= 0) {
            TRY(session_push(s, t));
        } else if (s->v->bpe->raw) {
            TRY(session_push_bytes(s, p + at, (size_t) step));
        }
        at += (size_t) step;
    }
    return ERR_OK;
}

static enum err encode_word(struct session *s, const char *p, size_t len) {
    const struct llama_vocab *v = s->v;
    llama_token t;
    if (len == 1 || v->bpe->keep) {
        t = vocab_find(v, p, len);
        if (t >= 0) return session_push(s, t);
    }
    bool hit;
    struct word_slot *w = session_word(s, p, len, &hit);
    if (hit) return session_repeat(s, w);
    size_t start = s->n;
    struct merge_symbol *sym;
    uint32_t n;
    TRY(merge_word(s, p, len, v->bpe->raw, &sym, &n));
    for (uint32_t i = 0; i < n; i++) {
        t = vocab_find(v, p + sym[i].at, sym[i].len);
        if (t >= 0) {
            TRY(session_push(s, t));
        } else {
            TRY(encode_pieces(s, p + sym[i].at, sym[i].len));
        }
    }
    session_remember(s, w, p, len, start);
    return ERR_OK;
}

// Kinds over characters cut only at line ends; we also cut in front of spaces where no merge reaches across, which gives the
// same tokens with words short enough to cache.
static enum err encode_piece(struct session *s, const char *p, const char *end) {
    const struct llama_vocab *v = s->v;
    if (!v->bpe->raw) return encode_word(s, p, (size_t) (end - p));
    while (p < end) {
        const char *q = p + 1;
        while (q < end && !(*q == ' ' && q[-1] != ' ' && vocab_cuts_behind(v, (uint8_t) q[-1]))) q++;
        TRY(encode_word(s, p, (size_t) (q - p)));
        p = q;
    }
    return ERR_OK;
}

static enum err encode(struct session *s, const char *p, const char *end, bool after_special) {
    (void) after_special;
    const struct llama_vocab *v = s->v;
    if (v->escape_spaces) {  // the escape character itself reads as a space
        char *copy = session_scratch(s, (size_t) (end - p));
        end = copy + vocab_unescape(p, (size_t) (end - p), copy);
        p = copy;
    }
    struct pattern_cut cut;
    const char *piece_at, *piece_end;
    pattern_cut_begin(&cut, v->bpe->patterns, v->bpe->n_pattern, p, end);
    while (pattern_cut_next(&cut, &piece_at, &piece_end)) TRY(encode_piece(s, piece_at, piece_end));
    return ERR_OK;
}

const struct vocab_kind vocab_kind_bpe = {
    .type = LLAMA_VOCAB_TYPE_BPE,
    .model = "gpt2",
    .name = "BPE",
    .pre = "default",
    .bos = 11,
    .eos = 11,
    .unk = -1,
    .sep = -1,
    .pad = -1,
    .mask = -1,
    .clean_spaces = true,
    .piece = piece,
    .load = load,
    .free = unload,
    .encode = encode,
};

const struct vocab_kind vocab_kind_gemma4 = {
    .type = LLAMA_VOCAB_TYPE_BPE,
    .model = "gemma4",
    .name = "BPE",
    .pre = "gemma4",
    .bos = 2,
    .eos = 1,
    .unk = 3,
    .sep = -1,
    .pad = 0,
    .mask = 4,
    .clean_spaces = true,
    .piece = piece,
    .load = load,
    .free = unload,
    .encode = encode,
};
