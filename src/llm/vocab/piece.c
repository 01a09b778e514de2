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
    if ((v->attrs[t] & (LLAMA_TOKEN_ATTR_UNUSED | LLAMA_TOKEN_ATTR_CONTROL)) == LLAMA_TOKEN_ATTR_UNUSED) return "";
    return texts_at(&v->piece, (uint32_t) t, len);
}

void vocab_unknown_id(const char *where, const struct llama_vocab *v, llama_token t) {
    if (v && v->n > 0 && t >= 0 && t < v->n)
        err_set(ERR_INVALID, "%s: the model has no vocabulary, only the number of its tokens: token %d has no text", where,
                (int) t);
    else
        err_set(ERR_INVALID, "%s: token %d is not one of the %d of the vocabulary", where, (int) t, v ? (int) v->n : 0);
}

int32_t llama_token_to_piece(const struct llama_vocab *vocab, llama_token token, char *buf, int32_t length, int32_t lstrip,
                             bool special) {
    if (!valid(vocab, token)) {
        vocab_unknown_id("token_to_piece", vocab, token);
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

// What follows a space and takes it away, as the tokenizers of Hugging Face do it (clean_up_tokenization): . ? ! , n't 'm 's
// 've 're, and ' between two spaces, which loses both. Rules there run one after the other; the only one whose result another
// rule could change is the lone ', so its turn is a pass of its own.
static bool space_goes(const char *p, size_t left) {
    switch (*p) {
        case '.':
        case '?':
        case '!':
        case ',': return true;
        case 'n': return left >= 3 && p[1] == '\'' && p[2] == 't';
        case '\'':
            return left >= 2 && (p[1] == 'm' || p[1] == 's' || (left >= 3 && (p[1] == 'v' || p[1] == 'r') && p[2] == 'e'));
        default: return false;
    }
}

// One pass: marks (spaces before . ? ! ,) or apostrophes or contractions. In place; returns the length.
static size_t clean_pass(char *text, size_t n, int pass) {
    char *sp = memchr(text, ' ', n);
    size_t k = sp ? (size_t) (sp - text) : n, i = k;
    while (i < n) {
        char c = text[i];
        if (c == ' ' && i + 1 < n) {
            char d = text[i + 1];
            bool mark = d == '.' || d == '?' || d == '!' || d == ',';
            if (pass == 1 && d == '\'' && i + 2 < n && text[i + 2] == ' ') {
                text[k++] = '\'';
                i += 3;
                continue;
            }
            if (pass == 0 ? mark : pass == 2 && !mark && space_goes(text + i + 1, n - i - 1)) {
                text[k++] = d;
                i += 2;
                continue;
            }
        }
        text[k++] = c;
        i++;
    }
    return k;
}

static size_t clean(char *text, size_t n) {
    for (int pass = 0; pass < 3 && n > 0; pass++) n = clean_pass(text, n, pass);
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

static void decode(const struct llama_vocab *v, const llama_token *tokens, int32_t n, bool remove_special, bool special,
                   struct out *o) {
    bool first = v->add_space_prefix;  // its space was not in the text
    if (remove_special && v->add_bos && n > 0 && tokens[0] == v->special[SPECIAL_BOS]) {
        tokens++;
        n--;
    }
    if (remove_special && v->add_eos && n > 0 && tokens[n - 1] == v->special[SPECIAL_EOS]) n--;
    for (int32_t i = 0; i < n; i++) {
        if (!valid(v, tokens[i])) {
            vocab_unknown_id("detokenize", v, tokens[i]);
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
