// From the keys of a file to a vocabulary: texts and scores stay where they lie; attributes, pieces and the index over them are
// made in one pass each.
#include "vocab/vocab_int.h"
#include "base/log.h"
#include <stdlib.h>

static const struct vocab_kind *const kinds[] = {
#define VOCAB_KIND(name) &vocab_kind_##name,
#include "vocab/kinds.def"
};

int vocab_byte_of(const char *text, size_t len) {
    if (len != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') return -1;
    int v = 0;
    for (int i = 3; i < 5; i++) {
        char c = text[i];
        int d = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                       : -1;
        if (d < 0) return -1;
        v = v * 16 + d;
    }
    return v;
}

size_t vocab_unescape(const char *text, size_t len, char *out) {
    const char *end = text + len, *next;
    char *to = out;
    while (text < end && (next = memchr(text, '\xe2', (size_t) (end - text)))) {
        bool space = end - next >= 3 && next[1] == '\x96' && next[2] == '\x81';
        size_t n = (size_t) (next - text) + !space;
        memmove(to, text, n);
        to += n;
        text = next + (space ? 3 : 1);
        if (space) *to++ = ' ';
    }
    if (text < end) memmove(to, text, (size_t) (end - text));
    return (size_t) (to - out) + (size_t) (end - text);
}

static uint64_t load8(const char *p) {
    uint64_t w;
    memcpy(&w, p, 8);
    return w;
}

// The last n < 8 bytes of a text; the others are 0.
static uint64_t load_tail(const char *p, size_t n) {
    uint32_t a, b;
    if (n >= 4) {
        memcpy(&a, p, 4);
        memcpy(&b, p + n - 4, 4);
        return a | (uint64_t) b << 8 * (n - 4);
    }
    if (n == 0) return 0;
    return (uint8_t) p[0] | (uint64_t) (uint8_t) p[n / 2] << 8 * (n / 2) | (uint64_t) (uint8_t) p[n - 1] << 8 * (n - 1);
}

static bool holds(uint64_t w, uint8_t byte) {
    const uint64_t ones = 0x0101010101010101u, x = w ^ ones * byte;
    return (x - ones) & ~x & ones << 7;
}

// Eight bytes at a time: what is not ASCII after a leading U+2581, where a second one may be, goes the slow way.
size_t vocab_unescape_token(const char *text, size_t len, char *out, bool *spaces, bool *glue) {
    const char *end = text + len;
    char *to = out;
    *spaces = false;
    if (len >= 3 && memcmp(text, "\xe2\x96\x81", 3) == 0) {
        *to++ = ' ';
        text += 3;
    }
    while (text < end) {
        const size_t n = end - text < 8 ? (size_t) (end - text) : 8;
        const uint64_t w = n == 8 ? load8(text) : load_tail(text, n);
        if (holds(w, 0xe2)) {
            *spaces |= memchr(text, ' ', (size_t) (end - text)) != NULL;
            *glue = true;
            return (size_t) (to - out) + vocab_unescape(text, (size_t) (end - text), to);
        }
        *spaces |= holds(w, ' ');
        memcpy(to, &w, 8);
        text += n;
        to += n;
    }
    *glue = *spaces;
    return (size_t) (to - out);
}

void vocab_mark_glue(struct llama_vocab *v, const char *p, size_t len) {
    for (const char *sp = len > 1 ? memchr(p + 1, ' ', len - 1) : NULL; sp;
         sp = memchr(sp + 1, ' ', (size_t) (p + len - sp - 1))) {
        uint8_t c = (uint8_t) sp[-1];
        if (c == ' ') continue;
        if (c < 128) {
            v->glue[c >> 5] |= 1u << (c & 31);
        } else {
            v->glue_other = true;
        }
    }
}

// An array of the wanted element type with n entries (SIZE_MAX: any number). *id -1 if the key is absent.
static enum err find_array(const struct gguf_context *meta, const char *key, enum gguf_type want, size_t n, int64_t *id) {
    *id = gguf_find_key(meta, key);
    if (*id < 0) return ERR_OK;
    enum gguf_type type = gguf_get_kv_type(meta, *id);
    if (type != GGUF_TYPE_ARRAY) {
        return err_set(ERR_FORMAT, "vocab: key '%s' has type %s; it must be an array of %s", key, gguf_type_name(type),
                       gguf_type_name(want));
    }
    type = gguf_get_arr_type(meta, *id);
    if (type != want) {
        return err_set(ERR_FORMAT, "vocab: key '%s' is an array of %s; it must be one of %s", key, gguf_type_name(type),
                       gguf_type_name(want));
    }
    if (n != SIZE_MAX && gguf_get_arr_n(meta, *id) != n) {
        return err_set(ERR_FORMAT, "vocab: key '%s' has %zu entries for %zu tokens", key, gguf_get_arr_n(meta, *id), n);
    }
    return ERR_OK;
}

static enum err load_texts(struct llama_vocab *v, const struct gguf_context *meta) {
    static const char key[] = "tokenizer.ggml.tokens";
    int64_t id;
    TRY(find_array(meta, key, GGUF_TYPE_STRING, SIZE_MAX, &id));
    if (id < 0) return err_set(ERR_FORMAT, "vocab: key '%s' is missing", key);
    v->meta = meta;
    v->text_id = id;
    v->text = gguf_get_arr_str_span(meta, id);
    const size_t n = v->text.n, bytes = v->text.bytes - 7 * n;  // with a terminator instead of each length
    if (n == 0 || n >= INT32_MAX / 4 || bytes >= UINT32_MAX / 4) {
        return err_set(ERR_UNSUPPORTED, "vocab: key '%s' has %zu tokens of %zu bytes", key, n, bytes);
    }
    v->n = (int32_t) n;
    v->attrs = malloc(n * sizeof *v->attrs);
    return v->attrs ? ERR_OK : err_set(ERR_NOMEM, "vocab: no memory for %zu tokens", n);
}

static enum err load_attrs(struct llama_vocab *v, const struct gguf_context *meta) {
    static const uint16_t of_type[] = {
        [LLAMA_TOKEN_TYPE_UNDEFINED] = LLAMA_TOKEN_ATTR_UNDEFINED,
        [LLAMA_TOKEN_TYPE_NORMAL] = LLAMA_TOKEN_ATTR_NORMAL,
        [LLAMA_TOKEN_TYPE_UNKNOWN] = LLAMA_TOKEN_ATTR_UNKNOWN,
        [LLAMA_TOKEN_TYPE_CONTROL] = LLAMA_TOKEN_ATTR_CONTROL,
        [LLAMA_TOKEN_TYPE_USER_DEFINED] = LLAMA_TOKEN_ATTR_USER_DEFINED,
        [LLAMA_TOKEN_TYPE_UNUSED] = LLAMA_TOKEN_ATTR_UNUSED,
        [LLAMA_TOKEN_TYPE_BYTE] = LLAMA_TOKEN_ATTR_BYTE,
    };
    int64_t id;
    static const char key[] = "tokenizer.ggml.token_type";
    id = gguf_find_key(meta, key);
    // some writers have them unsigned
    const bool is_u32 =
        id >= 0 && gguf_get_kv_type(meta, id) == GGUF_TYPE_ARRAY && gguf_get_arr_type(meta, id) == GGUF_TYPE_UINT32;
    TRY(find_array(meta, key, is_u32 ? GGUF_TYPE_UINT32 : GGUF_TYPE_INT32, (size_t) v->n, &id));
    const int32_t *types = id >= 0 ? gguf_get_arr_data(meta, id) : NULL;
    v->no_types = !types;
    for (int32_t i = 0; i < v->n; i++) {
        int32_t type = types ? types[i] : LLAMA_TOKEN_TYPE_NORMAL;
        v->attrs[i] = type >= 0 && type <= LLAMA_TOKEN_TYPE_BYTE ? of_type[type] : LLAMA_TOKEN_ATTR_UNDEFINED;
    }
    TRY(find_array(meta, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, (size_t) v->n, &id));
    if (id < 0) return ERR_OK;
    v->scores = gguf_get_arr_data(meta, id);
    int32_t wrong = 0, i = 0;
    for (; i < v->n; i++) wrong |= v->scores[i] != v->scores[i];
    if (!wrong) return ERR_OK;
    for (i = 0; v->scores[i] == v->scores[i];) i++;
    return err_set(ERR_FORMAT, "vocab: the score of token %d is not a number", (int) i);
}

static void load_bytes(struct llama_vocab *v) {
    int n = 0;
    for (int i = 0; i < 256; i++) v->byte_token[i] = -1;
    for (int pass = 0; pass < 2 && n == 0; pass++) {  // by type; files without types by their texts
        for (int32_t i = 0; i < v->n; i++) {
            if (pass == 0 && !(v->attrs[i] & LLAMA_TOKEN_ATTR_BYTE)) continue;
            size_t len;
            const char *p = span_at(&v->text, (uint32_t) i, &len);
            int b = vocab_byte_of(p, len);
            if (b < 0) {
                if (pass == 0)
                    log_warn("vocab: token %d is a byte token by type, but its text is not <0xHH>; taken as text\n",
                             (int) i);
                continue;
            }
            n += v->byte_token[b] < 0;
            v->byte_token[b] = i;
        }
    }
    v->has_bytes = n == 256;
    // without types it is the set of all of them that shows what they are
    for (int i = 0; i < 256 && v->no_types && v->has_bytes; i++) v->attrs[v->byte_token[i]] = LLAMA_TOKEN_ATTR_BYTE;
}

static enum err load_pieces(struct llama_vocab *v) {
    uint32_t n = (uint32_t) v->n;
    v->piece.n = n;
    v->piece.offs = malloc((n + 1) * sizeof *v->piece.offs);
    v->piece.bytes = malloc(v->text.bytes - 7 * (size_t) n + PIECE_SLACK);
    if (!v->piece.offs || !v->piece.bytes) return err_set(ERR_NOMEM, "vocab: no memory for %u tokens", (unsigned) n);
    TRY(index_init(&v->by_piece, n));
    uint32_t at = 0, ahead[INDEX_AHEAD], n_ahead = 0;  // tokens whose place in the index is on its way
    uint64_t hashes[INDEX_AHEAD];
    for (uint32_t i = 0; i < n; i++) {
        size_t len;
        bool findable;
        const char *p = span_at(&v->text, i, &len);
        v->piece.offs[i] = at;
        size_t k = v->kind->piece(p, len, (enum llama_token_attr) v->attrs[i], v->piece.bytes + at, v, &findable);
        at += (uint32_t) k;
        v->piece.bytes[at++] = 0;
        v->piece.offs[i + 1] = at;
        if (!findable || k == 0) continue;
        if (k > v->max_piece) v->max_piece = (uint32_t) k;
        if (n_ahead >= INDEX_AHEAD)
            index_put(&v->by_piece, &v->piece, ahead[n_ahead % INDEX_AHEAD], hashes[n_ahead % INDEX_AHEAD]);
        uint64_t h = index_hash(v->piece.bytes + v->piece.offs[i], k);
        index_fetch(&v->by_piece, h);
        ahead[n_ahead % INDEX_AHEAD] = i;
        hashes[n_ahead++ % INDEX_AHEAD] = h;
    }
    for (uint32_t k = n_ahead > INDEX_AHEAD ? n_ahead - INDEX_AHEAD : 0; k < n_ahead; k++) {
        index_put(&v->by_piece, &v->piece, ahead[k % INDEX_AHEAD], hashes[k % INDEX_AHEAD]);
    }
    return ERR_OK;
}

// Strip rules that files can't express and that go by the model's name.
static bool contains(const struct gguf_context *meta, const char *key, const char *part) {
    int64_t id = gguf_find_key(meta, key);
    if (id < 0 || gguf_get_kv_type(meta, id) != GGUF_TYPE_STRING) return false;
    const char *value = gguf_get_val_str(meta, id);
    for (; *value; value++) {
        size_t i = 0;
        while (part[i] && (value[i] | 32) == (part[i] | 32)) i++;
        if (!part[i]) return true;
    }
    return false;
}

static void set_strip(struct llama_vocab *v, const char *text, int attr, bool on) {
    for (int32_t i = 0; i < v->n; i++) {
        size_t len;
        const char *p = span_at(&v->text, (uint32_t) i, &len);
        if (len != strlen(text) || memcmp(p, text, len) != 0) continue;
        v->attrs[i] = (uint16_t) (on ? v->attrs[i] | attr : v->attrs[i] & ~attr);
    }
}

static void load_strips(struct llama_vocab *v, const struct gguf_context *meta) {
    static const char pre[] = "tokenizer.ggml.pre", arch[] = "general.architecture";
    if (contains(meta, pre, "jina-v2-") || contains(meta, pre, "jina-v1-en") || contains(meta, pre, "roberta-bpe") ||
        contains(meta, arch, "nomic-bert-moe") || contains(meta, arch, "jina-bert-v3")) {
        set_strip(v, "<mask>", LLAMA_TOKEN_ATTR_LSTRIP, true);
    }
    if (contains(meta, pre, "modern-bert")) set_strip(v, "[MASK]", LLAMA_TOKEN_ATTR_LSTRIP, true);
    if (!contains(meta, "general.name", "phi-3") && !contains(meta, "general.name", "phi3")) return;
    const int special = LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN | LLAMA_TOKEN_ATTR_USER_DEFINED;
    for (int32_t i = 0; i < v->n; i++) {
        if (v->attrs[i] & special) v->attrs[i] |= LLAMA_TOKEN_ATTR_RSTRIP;
    }
    set_strip(v, "<unk>", LLAMA_TOKEN_ATTR_RSTRIP, false);
    set_strip(v, "<s>", LLAMA_TOKEN_ATTR_RSTRIP, false);
    set_strip(v, "<|endoftext|>", LLAMA_TOKEN_ATTR_RSTRIP, false);
}

// SentencePiece models spell it as a byte, even where they have a piece for it; where text has no line ends, padding stands for one.
static void load_newline(struct llama_vocab *v) {
    llama_token t[8];
    llama_token nl = v->kind->type == LLAMA_VOCAB_TYPE_SPM ? v->byte_token['\n'] : -1;
    if (nl < 0) nl = vocab_find(v, "\n", 1);
    if (nl < 0) nl = v->byte_token['\n'];
    if (nl < 0 && v->kind->encode) {
        int32_t n = llama_tokenize(v, "\n", 1, t, 8, false, false);
        nl = n > 0 ? t[n - 1] : v->special[SPECIAL_PAD];
    }
    v->special[SPECIAL_NL] = nl;
}

static enum err find_kind(struct llama_vocab *v, const struct gguf_context *meta) {
    static const char key[] = "tokenizer.ggml.model";
    int64_t id = gguf_find_key(meta, key);
    const char *model = "no_vocab";
    if (id >= 0) {
        if (gguf_get_kv_type(meta, id) != GGUF_TYPE_STRING) {
            return err_set(ERR_FORMAT, "vocab: key '%s' has type %s; it must be a string", key,
                           gguf_type_name(gguf_get_kv_type(meta, id)));
        }
        model = gguf_get_val_str(meta, id);
    }
    if (strcmp(model, "none") == 0) model = "no_vocab";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i]->model, model) == 0) v->kind = kinds[i];
    }
    return v->kind ? ERR_OK
                   : err_set(ERR_UNSUPPORTED, "vocab: tokenizers of kind '%s' (key '%s') are not known", model, key);
}

static enum err load(struct llama_vocab *v, const struct gguf_context *meta) {
    TRY(find_kind(v, meta));
    const struct vocab_kind *k = v->kind;
    for (int i = 0; i < SPECIAL_COUNT; i++) v->special[i] = -1;
    for (int i = 0; i < 256; i++) v->byte_token[i] = -1;
    v->add_bos = k->add_bos;
    v->add_eos = k->add_eos;
    v->add_sep = k->add_sep;
    v->add_space_prefix = k->add_space_prefix;
    v->clean_spaces = k->clean_spaces;
    v->lowercase = true;
    if (k->type == LLAMA_VOCAB_TYPE_NONE) return k->load(v, meta);
    TRY(load_texts(v, meta));
    TRY(load_attrs(v, meta));
    load_bytes(v);
    if (k->load) TRY(k->load(v, meta));
    TRY(special_load(v, meta));
    load_strips(v, meta);
    TRY(load_pieces(v));
    if (k->ready) TRY(k->ready(v, meta));
    load_newline(v);
    return ERR_OK;
}

enum err vocab_load(struct llama_vocab **out, const struct gguf_context *meta) {
    struct llama_vocab *v = calloc(1, sizeof *v);
    if (!v) return err_set(ERR_NOMEM, "vocab: no memory for a vocabulary");
    enum err e = load(v, meta);
    if (e != ERR_OK) {
        vocab_free(v);
        return e;
    }
    *out = v;
    return ERR_OK;
}

void vocab_free(struct llama_vocab *v) {
    if (!v) return;
    if (v->kind && v->kind->free) v->kind->free(v);
    texts_free(&v->piece);
    index_free(&v->by_piece);
    trie_free(&v->specials);
    free(atomic_load(&v->order));
    free(v->attrs);
    free(v->eog);
    free(v->suppress);
    free(v);
}
