// One call of llama_tokenize: special tokens cut the text into stretches, the vocabulary's kind encodes each, and tokens go
// to one array. What a call needs is allocated a few times per call, never per word.
#include "vocab/vocab_int.h"
#include <limits.h>
#include <stdlib.h>

#define CACHE_FROM 512       // bytes of text from which a word cache pays
#define CACHE_MAX_SLOTS 16384

enum err session_grow(struct session *s, size_t more) {
    size_t cap = s->cap ? s->cap * 2 : 256;
    while (cap < s->n + more) cap *= 2;
    llama_token *out = realloc(s->out, cap * sizeof *out);
    if (!out) return err_set(ERR_NOMEM, "tokenize: no memory for %zu tokens", cap);
    s->out = out;
    s->cap = cap;
    return ERR_OK;
}

enum err session_push_bytes(struct session *s, const char *p, size_t len) {
    const struct llama_vocab *v = s->v;
    bool all = true;
    for (size_t i = 0; i < len; i++) all = all && (v->has_bytes || v->byte_token[(uint8_t) p[i]] >= 0);
    if (!all) {
        if (v->special[SPECIAL_UNK] < 0) return ERR_OK;
        return session_push(s, v->special[SPECIAL_UNK]);
    }
    for (size_t i = 0; i < len; i++) TRY(session_push(s, v->byte_token[(uint8_t) p[i]]));
    return ERR_OK;
}

char *session_scratch(struct session *s, size_t n) {
    char *p = s->scratch + s->scratch_n;
    s->scratch_n += n;
    return p;
}

static enum err begin(struct session *s, const struct llama_vocab *v, size_t text_len) {
    *s = (struct session){.v = v};
    s->scratch_cap = 2 * text_len + 64;  // each stretch may grow by the space in front of it; untouched pages cost nothing
    s->scratch = malloc(s->scratch_cap);
    if (!s->scratch) return err_set(ERR_NOMEM, "tokenize: no memory for a text of %zu bytes", text_len);
    if (text_len < CACHE_FROM) return ERR_OK;
    uint32_t n = 256;
    while (n < CACHE_MAX_SLOTS && n < text_len / 8) n *= 2;
    s->words = calloc(n, sizeof *s->words);
    s->word_mask = n - 1;
    return ERR_OK;  // without a cache it is only slower
}

static void end(struct session *s) {
    free(s->out);
    free(s->words);
    free(s->scratch);
    free(s->merge);
}

static bool is_space(char c) { return c == ' ' || (c >= 9 && c <= 13); }

static enum err encode(struct session *s, const char *p, const char *stop, bool after_special) {
    return p < stop ? s->v->kind->encode(s, p, stop, after_special) : ERR_OK;
}

// Special tokens by one walk over the text, and what stands between them.
static enum err encode_all(struct session *s, const char *text, size_t len, bool parse_special) {
    const struct llama_vocab *v = s->v;
    const char *p = text, *from = text, *stop = text + len;
    bool after_special = true;
    while (p < stop) {
        llama_token t;
        size_t n;
        if (!v->specials.first[(uint8_t) *p] || (n = special_at(v, p, stop, parse_special, &t)) == 0) {
            p++;
            continue;
        }
        const char *to = p;
        if (v->attrs[t] & LLAMA_TOKEN_ATTR_LSTRIP) {
            while (to > from && is_space(to[-1])) to--;
        }
        TRY(encode(s, from, to, after_special));
        TRY(session_push(s, t));
        after_special = true;
        p += n;
        if (v->attrs[t] & LLAMA_TOKEN_ATTR_RSTRIP) {
            while (p < stop && is_space(*p)) p++;
        }
        from = p;
    }
    return encode(s, from, stop, after_special);
}

// The only place that adds BOS, EOS and SEP. A BOS that the text itself brings is not doubled, nor is an EOS.
static enum err run(struct session *s, const char *text, size_t len, bool add_special, bool parse_special) {
    const struct llama_vocab *v = s->v;
    llama_token bos = v->special[SPECIAL_BOS], eos = v->special[SPECIAL_EOS], sep = v->special[SPECIAL_SEP];
    bool bos_added = add_special && v->add_bos && bos >= 0;
    if (bos_added) {
        llama_token first;
        size_t n = len && v->specials.first[(uint8_t) *text] ? special_at(v, text, text + len, parse_special, &first) : 0;
        if (n == 0 || first != bos) TRY(session_push(s, bos));
    }
    TRY(encode_all(s, text, len, parse_special));
    if (!add_special) return ERR_OK;
    if (v->add_sep && sep >= 0) TRY(session_push(s, sep));
    if (v->add_eos && eos >= 0 && (s->n == 0 || s->out[s->n - 1] != eos || (s->n == 1 && bos_added && bos == eos))) {
        TRY(session_push(s, eos));
    }
    return ERR_OK;
}

int32_t llama_tokenize(const struct llama_vocab *vocab, const char *text, int32_t text_len, llama_token *tokens,
                       int32_t n_tokens_max, bool add_special, bool parse_special) {
    if (!vocab || text_len < 0 || (!text && text_len > 0)) {
        err_set(ERR_INVALID, "tokenize: %s", !vocab ? "the vocabulary is NULL" : text_len < 0 ? "the length is negative" : "the text is NULL");
        return INT32_MIN;
    }
    if (vocab->kind->type == LLAMA_VOCAB_TYPE_NONE) {
        err_set(ERR_UNSUPPORTED, "tokenize: the model has no vocabulary");
        return INT32_MIN;
    }
    struct session s;
    enum err e = begin(&s, vocab, (size_t) text_len);
    if (e == ERR_OK) e = run(&s, text ? text : "", (size_t) text_len, add_special, parse_special);
    int32_t n = INT32_MIN;
    if (e == ERR_OK) {
        n = vocab_count(s.n, n_tokens_max < 0 || !tokens ? 0 : (size_t) n_tokens_max);
        if (n > 0) memcpy(tokens, s.out, s.n * sizeof *tokens);
    }
    end(&s);
    return n;
}

int32_t vocab_count(size_t n, size_t max) {
    if (n > INT32_MAX) {
        err_set(ERR_UNSUPPORTED, "tokenize: %zu tokens or bytes are more than the result can count", n);
        return INT32_MIN;
    }
    return n > max ? -(int32_t) n : (int32_t) n;
}
