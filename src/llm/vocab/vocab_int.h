// Private parts of src/llm/vocab: what a vocabulary holds, and what a tokenizer kind is.
//
// A kind is one file that ends in a `const struct vocab_kind` and one line in kinds.def. It works on the bytes that tokens
// stand for ("pieces"), not on the escaped spelling of the file: texts need no escaping on the way in, and pieces need no
// decoding on the way out.
#pragma once

#include "vocab/vocab.h"
#include "vocab/utf8.h"
#include "ggml/ext.h"
#include "gguf.h"
#include <stdatomic.h>
#include <string.h>

struct session;

struct vocab_kind {
    enum llama_vocab_type type;
    const char *model;  // value of tokenizer.ggml.model
    const char *name;   // for messages and listings
    const char *pre;    // pre-tokenizer if the file names none; NULL: the kind has none
    // Defaults for what the file leaves open; -1: no such token.
    llama_token bos, eos, unk, sep, pad, mask;
    bool add_bos, add_eos, add_sep, add_space_prefix, clean_spaces;
    // Bytes that a token of the given attributes stands for, into out (room for len + PIECE_SLACK); returns their number.
    // *findable: whether it can come out of plain text, and so belongs into the index over pieces.
    size_t (*piece)(const char *text, size_t len, enum llama_token_attr attr, char *out, struct llama_vocab *v,
                    bool *findable);
    enum err (*load)(struct llama_vocab *v, const struct gguf_context *meta);   // before pieces; NULL: nothing to do
    enum err (*ready)(struct llama_vocab *v, const struct gguf_context *meta);  // when pieces are known; NULL: nothing to do
    void (*free)(struct llama_vocab *v);
    // Tokens of plain text [p, end), appended to the session. after_special: nothing or a special token stands before it.
    enum err (*encode)(struct session *s, const char *p, const char *end, bool after_special);
};

// The texts of a file, as they lie in it.
static inline const char *span_at(const struct gguf_str_span *s, uint32_t i, size_t *len) {
    const char *p = s->base + s->offs[i];
    uint64_t n;
    memcpy(&n, p - 8, sizeof n);
    *len = (size_t) n;
    return p;
}

// ---- texts.c: many short strings in one block
struct texts {
    char *bytes;     // each string followed by a zero byte
    uint32_t *offs;  // [n + 1]
    uint32_t n;
};

static inline const char *texts_at(const struct texts *t, uint32_t i, size_t *len) {
    *len = t->offs[i + 1] - t->offs[i] - 1;
    return t->bytes + t->offs[i];
}
void texts_free(struct texts *t);

// Index from byte strings to numbers: open addressing, filled in one pass, no allocation per entry.
struct index_slot {
    uint32_t tag, value;  // value + 1, 0 empty
};
struct index {
    struct index_slot *slots;
    uint32_t mask;
};
// n empty slots, written once in order: pages of calloc that are read before they are written fault twice. Owner: the caller.
struct index_slot *index_slots(size_t n);
enum err index_init(struct index *x, uint32_t n) MUST_USE;  // room for n entries
void index_free(struct index *x);
uint64_t index_hash(const char *p, size_t len);
// Sets the value of string i of t, whose hash is h; a later one replaces an earlier one of the same bytes.
void index_put(struct index *x, const struct texts *t, uint32_t i, uint64_t h);
// Fetches where a hash leads, for index_put a few dozen steps later: filling a table of megabytes waits for memory otherwise.
static inline void index_fetch(const struct index *x, uint64_t h) {
    __builtin_prefetch(&x->slots[(uint32_t) h & x->mask], 1);
}
#define INDEX_AHEAD 32
// Number of the string, UINT32_MAX if it is not there.
uint32_t index_find(const struct index *x, const struct texts *t, const char *p, size_t len);

// ---- trie.c: prefixes of many strings
struct trie {
    struct trie_edge {
        uint32_t key;  // node << 8 | byte, plus one; 0 empty
        uint32_t node;
    } * edges;
    uint32_t mask;
    uint32_t n_edge, n_node, cap_node;
    int32_t *values;  // [n_node] -1: no string ends here
    bool first[256];
};
enum err trie_init(struct trie *t) MUST_USE;
void trie_free(struct trie *t);
size_t trie_bytes(const struct trie *t);                                               // of the heap
enum err trie_add(struct trie *t, const char *p, size_t len, int32_t value) MUST_USE;  // len > 0
// One step from a node (0: the root); 0: there is none.
static inline uint32_t trie_step(const struct trie *t, uint32_t node, uint8_t byte) {
    uint32_t key = (node << 8 | byte) + 1;
    uint32_t i = (key * 0x9e3779b1u) >> 7 & t->mask;
    for (; t->edges[i].key; i = (i + 1) & t->mask) {
        if (t->edges[i].key == key) return t->edges[i].node;
    }
    return 0;
}

struct bpe;
struct ugm;

// bpe.c: bytes of the tables' heads and of the patterns that a file's pre-tokenizer, or the given one, cuts text with; makes them to
// know.
size_t bpe_memory(const struct gguf_context *meta, const char *pre_otherwise);

#define PIECE_SLACK 16  // readable bytes behind the last piece

enum vocab_special {
    SPECIAL_BOS,
    SPECIAL_EOS,
    SPECIAL_EOT,
    SPECIAL_EOM,
    SPECIAL_UNK,
    SPECIAL_SEP,
    SPECIAL_PAD,
    SPECIAL_MASK,
    SPECIAL_NL,
    SPECIAL_FIM_PRE,
    SPECIAL_FIM_SUF,
    SPECIAL_FIM_MID,
    SPECIAL_FIM_PAD,
    SPECIAL_FIM_REP,
    SPECIAL_FIM_SEP,
    SPECIAL_COUNT
};

struct llama_vocab {
    const struct vocab_kind *kind;
    int32_t n;
    const struct gguf_context *meta;  // whose keys the following point into
    int64_t text_id;                  // the key of the texts
    struct gguf_str_span text;        // as in the file
    const float *scores;              // NULL: all 0
    struct texts piece;               // what the texts stand for
    struct index by_piece;
    uint16_t *attrs;
    uint8_t *eog;  // bit set
    llama_token special[SPECIAL_COUNT];
    llama_token byte_token[256];  // <0x00> ... <0xFF>, -1
    bool has_bytes;               // all 256 of them
    bool no_types;                // the file says nothing of the tokens' types
    bool add_bos, add_eos, add_sep, add_space_prefix, clean_spaces, remove_extra_spaces, escape_spaces, lowercase;
    llama_token *suppress;
    int32_t n_suppress;
    struct trie specials;  // texts of control, unknown and user-defined tokens
    // parts of single kinds
    struct bpe *bpe;
    struct ugm *ugm;
    struct trie *trie;  // rwkv, plamo2: pieces
    uint32_t glue[4];   // ASCII characters that some piece or merge has before a space: text is not cut behind them
    bool glue_other;    // the same for any other character
    _Atomic(struct vocab_order *) order;  // made when first asked for
    uint32_t max_piece;                   // bytes of the longest findable piece
};

// Token of exactly these bytes among the findable ones, -1 if none.
static inline llama_token vocab_find(const struct llama_vocab *v, const char *p, size_t len) {
    return (llama_token) index_find(&v->by_piece, &v->piece, p, len);
}

// Marks the characters of a piece (or of the two sides of a merge) that stand before a space.
void vocab_mark_glue(struct llama_vocab *v, const char *p, size_t len);
// Whether a text may be cut between a byte (the last of its character) and a space behind it without changing its tokens.
static inline bool vocab_cuts_behind(const struct llama_vocab *v, uint8_t c) {
    return c < 128 ? !(v->glue[c >> 5] >> (c & 31) & 1) : !v->glue_other;
}

// Number of the byte that <0xHH> means, -1 for anything else.
int vocab_byte_of(const char *text, size_t len);
// U+2581 to space; returns the length.
size_t vocab_unescape(const char *text, size_t len, char *out);
// The same for a token's text, mostly a few letters. May write up to 8 bytes too many. *spaces: whether text holds spaces; *glue:
// whether the result may hold one behind another character (false: it does not).
size_t vocab_unescape_token(const char *text, size_t len, char *out, bool *spaces, bool *glue);

// ---- session.c: one call of llama_tokenize
struct word_slot {
    const char *p;        // an earlier occurrence
    uint32_t len, at, n;  // its tokens in out
};

struct session {
    const struct llama_vocab *v;
    llama_token *out;
    size_t n, cap;
    struct word_slot *words;  // direct-mapped; NULL for short texts
    uint32_t word_mask;
    char *scratch;  // room for texts that must be changed before they are cut; stays in place for the whole call
    size_t scratch_n, scratch_cap;
    void *merge;  // merge.h's arrays
    size_t merge_cap;
};
enum err session_grow(struct session *s, size_t more) MUST_USE;
static inline enum err session_push(struct session *s, llama_token t) {
    if (s->n == s->cap) TRY(session_grow(s, 1));
    s->out[s->n++] = t;
    return ERR_OK;
}
// The tokens of a byte run that no piece covers: byte tokens, or one unknown token, or nothing if there is none.
enum err session_push_bytes(struct session *s, const char *p, size_t len) MUST_USE;
// A place in the scratch text with room for n bytes.
char *session_scratch(struct session *s, size_t n);
// The slot of a word, and whether it holds that word.
static inline struct word_slot *session_word(struct session *s, const char *p, size_t len, bool *hit) {
    *hit = false;
    if (!s->words) return NULL;
    struct word_slot *w = &s->words[index_hash(p, len) >> 20 & s->word_mask];
    *hit = w->p && w->len == len && memcmp(w->p, p, len) == 0;
    return w;
}
static inline enum err session_repeat(struct session *s, const struct word_slot *w) {
    if (s->cap - s->n < w->n) TRY(session_grow(s, w->n));
    for (uint32_t i = 0; i < w->n; i++) s->out[s->n + i] = s->out[w->at + i];
    s->n += w->n;
    return ERR_OK;
}
static inline void session_remember(struct session *s, struct word_slot *w, const char *p, size_t len, size_t at) {
    if (w) *w = (struct word_slot){p, (uint32_t) len, (uint32_t) at, (uint32_t) (s->n - at)};
}

// n as a result of the interface: -n if it is more than max, INT32_MIN if an int32_t can't count it.
int32_t vocab_count(size_t n, size_t max);

// ---- special.c
enum err special_load(struct llama_vocab *v, const struct gguf_context *meta) MUST_USE;
// Length and token of the longest special text at p, 0 if there is none.
size_t special_at(const struct llama_vocab *v, const char *p, const char *end, bool parse_special, llama_token *token);

#define VOCAB_KIND(name) extern const struct vocab_kind vocab_kind_##name;
#include "vocab/kinds.def"

// Notes that where (a function's name) was asked for a token that has no text.
void vocab_unknown_id(const char *where, const struct llama_vocab *v, llama_token t);
