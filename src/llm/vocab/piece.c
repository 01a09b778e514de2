// From tokens back to text. Pieces are ready-made bytes, so this is copying.
#include "vocab/vocab_int.h"
#include <stdlib.h>

static bool valid(const struct llama_vocab *v, llama_token t) { return v && v->piece.n && t >= 0 && t < v->n; }

const char *vocab_piece(const struct llama_vocab *vocab, llama_token token, size_t *len) {
    *len = 0;
    return valid(vocab, token) ? texts_at(&vocab->piece, (uint32_t) token, len) : NULL;
}

// The visible bytes of a token: control tokens have none unless special.
static const char *visible(const struct llama_vocab *v, llama_token t, bool special, size_t *len) {
    *len = 0;
    if (!special && v->attrs[t] & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)) return "";
    if (v->attrs[t] & LLAMA_TOKEN_ATTR_UNUSED) return "";
    return texts_at(&v->piece, (uint32_t) t, len);
}

static void unknown_id(const char *where, const struct llama_vocab *v, llama_token t) {
    err_set(ERR_INVALID, "%s: token %d is not one of the %d of the vocabulary", where, (int) t, v ? (int) v->n : 0);
}

int32_t llama_token_to_piece(const struct llama_vocab *vocab, llama_token token, char *buf, int32_t length, int32_t lstrip,
                             bool special) {
    if (!valid(vocab, token)) {
        unknown_id("token_to_piece", vocab, token);
        return 0;
    }
    size_t len;
    const char *p = visible(vocab, token, special, &len);
    for (; lstrip > 0 && len > 0 && *p == ' '; lstrip--) {
        p++;
        len--;
    }
    int32_t n = vocab_count(len, length < 0 || !buf ? 0 : (size_t) length);
    if (n > 0) memcpy(buf, p, len);
    return n;
}

// ---- detokenize

// A shorter spelling of `from` at the start of rest; 0 if it is not there.
struct rule {
    const char *from, *to;
};

// One rule after the other, as the tokenizers of Hugging Face do it (clean_up_tokenization). In place; returns the length.
static size_t clean(char *text, size_t n) {
    static const struct rule rules[] = {{" .", "."},     {" ?", "?"},    {" !", "!"},   {" ,", ","},     {" ' ", "'"},
                                        {" n't", "n't"}, {" 'm", "'m"},  {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        size_t from = strlen(rules[r].from), to = strlen(rules[r].to), k = 0;
        for (size_t i = 0; i < n;) {
            if (text[i] == ' ' && n - i >= from && memcmp(text + i, rules[r].from, from) == 0) {
                memcpy(text + k, rules[r].to, to);
                k += to;
                i += from;
            } else {
                text[k++] = text[i++];
            }
        }
        n = k;
    }
    return n;
}

struct out {
    char *p;
    size_t n, max;  // n may pass max: counted, not written
};

static inline void put(struct out *o, const char *p, size_t len) {
    if (len <= PIECE_SLACK && o->n + PIECE_SLACK <= o->max) {
        memcpy(o->p + o->n, p, PIECE_SLACK);  // a fixed size is one load and one store; what is too much is overwritten
    } else if (o->n + len <= o->max) {
        memcpy(o->p + o->n, p, len);
    }
    o->n += len;
}

static void decode(const struct llama_vocab *v, const llama_token *tokens, int32_t n, bool remove_special, bool special, struct out *o) {
    bool first = v->add_space_prefix;  // its space was not in the text
    if (remove_special && v->add_bos && n > 0 && tokens[0] == v->special[SPECIAL_BOS]) {
        tokens++;
        n--;
    }
    if (remove_special && v->add_eos && n > 0 && tokens[n - 1] == v->special[SPECIAL_EOS]) n--;
    for (int32_t i = 0; i < n; i++) {
        if (!valid(v, tokens[i])) {
            unknown_id("detokenize", v, tokens[i]);
            continue;
        }
        size_t len;
        const char *p = visible(v, tokens[i], special, &len);
        if (first && len > 0 && *p == ' ') {
            p++;
            len--;
        }
        first = false;
        if (len) put(o, p, len);
    }
}

int32_t llama_detokenize(const struct llama_vocab *vocab, const llama_token *tokens, int32_t n_tokens, char *text,
                         int32_t text_len_max, bool remove_special, bool unparse_special) {
    if (!vocab || !vocab->piece.n || n_tokens < 0 || (!tokens && n_tokens > 0)) {
        if (n_tokens != 0) err_set(ERR_INVALID, "detokenize: no vocabulary or no tokens");
        return 0;
    }
    struct out o = {text, 0, text_len_max < 0 || !text ? 0 : (size_t) text_len_max};
    decode(vocab, tokens, n_tokens, remove_special, unparse_special, &o);
    if (vocab->clean_spaces) {
        if (o.n <= o.max) {
            o.n = clean(o.p, o.n);
        } else {  // its true length shows only after cleaning
            struct out whole = {malloc(o.n), 0, o.n};
            if (whole.p) {
                decode(vocab, tokens, n_tokens, remove_special, unparse_special, &whole);
                o.n = clean(whole.p, whole.n);
                if (o.n <= o.max) memcpy(o.p, whole.p, o.n);
                free(whole.p);
            }
        }
    }
    return vocab_count(o.n, o.max);
}
