// WordPiece (BERT): text is lower-cased, accents are taken off, punctuation and CJK characters stand alone, and each word is
// covered by its longest known beginning, then the longest continuation, and so on; a word that can't be is unknown.
// In files a word's beginning carries U+2581 (a space here) and a continuation nothing.
// Reference: the BertNormalizer, BertPreTokenizer and WordPiece of Hugging Face's tokenizers.
#include "vocab/vocab_int.h"
#include "vocab/charset.h"
#include <utf8proc.h>

#define MAX_CHARS 100  // longer words are unknown, as in the reference

struct word {
    char text[1 + 4 * MAX_CHARS + 8];
    size_t len;  // bytes, the space in front included
    int n_char;
};

static int category(uint32_t c) { return utf8proc_category((utf8proc_int32_t) c); }

static bool is_control(uint32_t c) {
    if (c == '\t' || c == '\n' || c == '\r') return false;
    int k = category(c);
    return k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CF || k == UTF8PROC_CATEGORY_CO || k == UTF8PROC_CATEGORY_CS;
}

static bool is_cjk(uint32_t c) {
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
           (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

static bool is_punctuation(uint32_t c) {
    if (c < 128) return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
    int k = category(c);
    return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

// The word's tokens, and an empty word after it.
static enum err flush(struct session *s, struct word *w) {
    const struct llama_vocab *v = s->v;
    size_t start = s->n, at = 0, len = w->len;
    int n_char = w->n_char;
    w->len = 1;
    w->n_char = 0;
    if (n_char == 0) return ERR_OK;
    bool covered = n_char <= MAX_CHARS;
    while (covered && at < len) {
        size_t k = len - at < v->max_piece ? len - at : v->max_piece;
        llama_token t = -1;
        for (; k > (at == 0) && t < 0; k--) t = vocab_find(v, w->text + at, k);
        covered = t >= 0;
        if (!covered) break;
        TRY(session_push(s, t));
        at += k + 1;
    }
    if (covered) return ERR_OK;
    s->n = start;
    return v->special[SPECIAL_UNK] >= 0 ? session_push(s, v->special[SPECIAL_UNK]) : ERR_OK;
}

static void append(struct word *w, uint32_t c) {
    if (++w->n_char > MAX_CHARS) return;
    w->len += (size_t) utf8_encode(c, w->text + w->len);
}

static enum err alone(struct session *s, struct word *w, uint32_t c) {
    TRY(flush(s, w));
    append(w, c);
    return flush(s, w);
}

// One character after decomposition, in lower case.
static enum err add(struct session *s, struct word *w, uint32_t c) {
    if (charset_is_space(c)) return flush(s, w);
    return is_punctuation(c) ? alone(s, w, c) : (append(w, c), ERR_OK);
}

static enum err add_original(struct session *s, struct word *w, uint32_t c) {
    if (c == 0 || c == UTF8_BAD || is_control(c)) return ERR_OK;
    if (charset_is_space(c)) return flush(s, w);
    if (c < 128) return add(s, w, s->v->lowercase && c >= 'A' && c <= 'Z' ? c + 32 : c);
    bool cjk = is_cjk(c);
    if (cjk) TRY(flush(s, w));
    if (!s->v->lowercase) {
        TRY(add(s, w, c));
        return cjk ? flush(s, w) : ERR_OK;
    }
    utf8proc_int32_t parts[32];
    int cls = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t) c, parts, 32, UTF8PROC_DECOMPOSE, &cls);
    if (n < 1 || n > 32) {
        parts[0] = (utf8proc_int32_t) c;
        n = 1;
    }
    for (utf8proc_ssize_t i = 0; i < n; i++) {
        if (category((uint32_t) parts[i]) == UTF8PROC_CATEGORY_MN) continue;
        TRY(add(s, w, (uint32_t) utf8proc_tolower(parts[i])));
    }
    return cjk ? flush(s, w) : ERR_OK;
}

static enum err encode(struct session *s, const char *p, const char *end, bool after_special) {
    (void) after_special;
    struct word w = {.text = " ", .len = 1};
    while (p < end) {
        int len;
        uint32_t c = utf8_decode(p, end, &len);
        p += len;
        TRY(add_original(s, &w, c));
    }
    return flush(s, &w);
}

static size_t piece(const char *text, size_t len, enum llama_token_attr attr, char *out, struct llama_vocab *v,
                    bool *findable) {
    (void) v;
    *findable = !(attr & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN));
    if (!(attr & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN | LLAMA_TOKEN_ATTR_USER_DEFINED))) {
        return vocab_unescape(text, len, out);
    }
    memcpy(out, text, len);
    return len;
}

const struct vocab_kind vocab_kind_wpm = {
    .type = LLAMA_VOCAB_TYPE_WPM,
    .model = "bert",
    .name = "WPM",
    .bos = 101,
    .eos = -1,
    .unk = 100,
    .sep = 102,
    .pad = 0,
    .mask = 103,
    .add_bos = true,
    .add_sep = true,
    .clean_spaces = true,
    .piece = piece,
    .encode = encode,
};
