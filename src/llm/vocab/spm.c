// SentencePiece in its BPE form (llama, gemma): neighbours are joined while the result is a token, the one with the highest
// score first. Whole texts are one long word to it; we cut in front of each space that no token has anything before, which
// gives the same result with words short enough to cache. Spaces stand for U+2581 throughout.
// Method: Kudo and Richardson 2018, the reference's bpe_model.
#include "vocab/vocab_int.h"

// Higher scores first: a number that falls as the score rises.
static uint32_t order_of(float score) {
    uint32_t u;
    score += 0.0f;  // -0 and 0 are equal
    memcpy(&u, &score, sizeof u);
    u = ~(u & 0x80000000u ? ~u : u | 0x80000000u);
    return u == UINT32_MAX ? u - 1 : u;
}

static inline uint32_t pair_order(const struct llama_vocab *v, const char *p, size_t left, size_t right) {
    llama_token t = left + right <= v->max_piece ? vocab_find(v, p, left + right) : -1;
    return t < 0 ? UINT32_MAX : order_of(v->scores ? v->scores[t] : 0.0f);
}

#include "vocab/merge.h"

static size_t piece(const char *text, size_t len, enum llama_token_attr attr, char *out, struct llama_vocab *v,
                    bool *findable) {
    const int special = LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN | LLAMA_TOKEN_ATTR_USER_DEFINED;
    *findable = false;
    if (attr & special) {
        memcpy(out, text, len);
        if (!(attr & LLAMA_TOKEN_ATTR_USER_DEFINED)) return len;
        vocab_mark_glue(v, text, len);
        *findable = !(attr & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN));
        for (size_t i = 0; i < len; i++) {  // escaped text has no spaces and can't give U+2581 from them
            if (text[i] == ' ' || (len - i >= 3 && memcmp(text + i, "\xe2\x96\x81", 3) == 0)) *findable = false;
        }
        return len;
    }
    const int byte = attr & LLAMA_TOKEN_ATTR_BYTE ? vocab_byte_of(text, len) : -1;
    if (byte >= 0) {
        out[0] = (char) byte;
        return 1;
    }
    bool spaces, glue;
    const size_t n = vocab_unescape_token(text, len, out, &spaces, &glue);
    if (glue) vocab_mark_glue(v, out, n);
    *findable = !spaces;
    return n;
}

static enum err encode_word(struct session *s, const char *p, size_t len) {
    const struct llama_vocab *v = s->v;
    bool hit;
    struct word_slot *w = session_word(s, p, len, &hit);
    if (hit) return session_repeat(s, w);
    size_t start = s->n;
    struct merge_symbol *sym;
    uint32_t n;
    TRY(merge_word(s, p, len, true, &sym, &n));
    for (uint32_t i = 0; i < n; i++) {
        llama_token t = vocab_find(v, p + sym[i].at, sym[i].len);
        if (t >= 0) {
            TRY(session_push(s, t));
        } else if (p[sym[i].at] == ' ' && sym[i].len == 1) {
            TRY(session_push_bytes(s, "\xe2\x96\x81", 3));  // a vocabulary without U+2581 spells it in bytes
        } else {
            TRY(session_push_bytes(s, p + sym[i].at, sym[i].len));
        }
    }
    session_remember(s, w, p, len, start);
    return ERR_OK;
}

static enum err encode(struct session *s, const char *p, const char *end, bool after_special) {
    const struct llama_vocab *v = s->v;
    if (p == end) return ERR_OK;
    char *text = session_scratch(s, (size_t) (end - p) + 1);
    size_t n = 0;
    if (v->add_space_prefix && after_special) text[n++] = ' ';
    n += vocab_unescape(p, (size_t) (end - p), text + n);
    for (size_t at = 0, i = 1; at < n; at = i++) {
        while (i < n && !(text[i] == ' ' && text[i - 1] != ' ' && vocab_cuts_behind(v, (uint8_t) text[i - 1]))) i++;
        TRY(encode_word(s, text + at, i - at));
    }
    return ERR_OK;
}

const struct vocab_kind vocab_kind_spm = {
    .type = LLAMA_VOCAB_TYPE_SPM,
    .model = "llama",
    .name = "SPM",
    .bos = 1,
    .eos = 2,
    .unk = 0,
    .sep = -1,
    .pad = -1,
    .mask = -1,
    .add_bos = true,
    .add_space_prefix = true,
    .piece = piece,
    .encode = encode,
};
