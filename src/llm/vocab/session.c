// One call of llama_tokenize: special tokens cut the text into stretches, the vocabulary's kind encodes each, and tokens go
// to one array. What a call needs is allocated a few times per call, never per word.
#include "vocab/vocab_int.h"
#include "llama/ext.h"
#include <limits.h>
#include <stdlib.h>

#define CACHE_FROM 512  // bytes of text from which a word cache pays
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

// The text in parts, of which some may hold control tokens and others (what users wrote) may not.
struct parts {
    const char *text;
    const size_t *lens;
    const bool *parse;
    size_t n;
};

// The special token at p in a part that ends at part_end. One that may be spelled in plain text may reach over the border.
static size_t special_in(const struct llama_vocab *v, const char *p, const char *part_end, const char *stop, bool parse,
                         llama_token *t) {
    if (!v->specials.first[(uint8_t) *p]) return 0;
    size_t n = parse ? special_at(v, p, part_end, true, t) : 0;
    return n ? n : special_at(v, p, stop, false, t);
}

// Special tokens by one walk over the text, and what stands between them, whatever part it is of.
static enum err encode_all(struct session *s, const struct parts *parts, size_t len) {
    const struct llama_vocab *v = s->v;
    const char *p = parts->text, *from = p, *stop = p + len, *part_end = p;
    bool after_special = true, parse = false;
    size_t i_part = 0;
    while (p < stop) {
        while (p >= part_end) {
            parse = parts->parse[i_part];
            part_end += parts->lens[i_part++];
        }
        llama_token t;
        size_t n = special_in(v, p, part_end, stop, parse, &t);
        if (n == 0) {
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
static enum err run(struct session *s, const struct parts *parts, size_t len, bool add_special) {
    const struct llama_vocab *v = s->v;
    const char *text = parts->text;
    llama_token bos = v->special[SPECIAL_BOS], eos = v->special[SPECIAL_EOS], sep = v->special[SPECIAL_SEP];
    bool bos_added = add_special && v->add_bos && bos >= 0;
    if (bos_added) {
        llama_token first;
        size_t n = len && parts->n ? special_in(v, text, text + parts->lens[0], text + len, parts->parse[0], &first) : 0;
        if (n == 0 || first != bos) TRY(session_push(s, bos));
    }
    TRY(encode_all(s, parts, len));
    if (!add_special) return ERR_OK;
    if (v->add_sep && sep >= 0) TRY(session_push(s, sep));
    if (v->add_eos && eos >= 0 && (s->n == 0 || s->out[s->n - 1] != eos || (s->n == 1 && bos_added && bos == eos))) {
        TRY(session_push(s, eos));
    }
    return ERR_OK;
}

static int32_t tokenize(const struct llama_vocab *vocab, const struct parts *parts, size_t len, llama_token *tokens,
                        int32_t n_tokens_max, bool add_special) {
    if (!vocab->kind->encode) {
        err_set(ERR_UNSUPPORTED, "tokenize: the model has no vocabulary");
        return INT32_MIN;
    }
    struct session s;
    enum err e = begin(&s, vocab, len);
    if (e == ERR_OK) e = run(&s, parts, len, add_special);
    int32_t n = INT32_MIN;
    if (e == ERR_OK) {
        n = vocab_count(s.n, n_tokens_max < 0 || !tokens ? 0 : (size_t) n_tokens_max);
        if (n > 0) memcpy(tokens, s.out, s.n * sizeof *tokens);
    }
    end(&s);
    return n;
}

int32_t llama_tokenize(const struct llama_vocab *vocab, const char *text, int32_t text_len, llama_token *tokens,
                       int32_t n_tokens_max, bool add_special, bool parse_special) {
    if (!vocab || text_len < 0 || (!text && text_len > 0)) {
        err_set(ERR_INVALID, "tokenize: %s",
                !vocab         ? "the vocabulary is NULL"
                : text_len < 0 ? "the length is negative"
                               : "the text is NULL");
        return INT32_MIN;
    }
    size_t len = (size_t) text_len;
    struct parts parts = {text ? text : "", &len, &parse_special, 1};
    return tokenize(vocab, &parts, len, tokens, n_tokens_max, add_special);
}

int32_t llama_tokenize_parts(const struct llama_vocab *vocab, const char *text, const size_t *lens,
                             const bool *parse_special, size_t n_parts, llama_token *tokens, int32_t n_tokens_max,
                             bool add_special) {
    size_t len = 0;
    for (size_t i = 0; lens && i < n_parts; i++) len += lens[i];
    if (!vocab || (n_parts && (!lens || !parse_special)) || (!text && len)) {
        err_set(ERR_INVALID, "tokenize: %s NULL", !vocab ? "the vocabulary is" : "the text or its parts are");
        return INT32_MIN;
    }
    struct parts parts = {text ? text : "", lens, parse_special, n_parts};
    return tokenize(vocab, &parts, len, tokens, n_tokens_max, add_special);
}

int32_t vocab_count(size_t n, size_t max) {
    if (n > INT32_MAX) {
        err_set(ERR_UNSUPPORTED, "tokenize: %zu tokens or bytes are more than the result can count", n);
        return INT32_MIN;
    }
    return n > max ? -(int32_t) n : (int32_t) n;
}
