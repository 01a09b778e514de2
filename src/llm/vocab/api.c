// The facts of a vocabulary, and their older names.
#include "vocab/vocab_int.h"

static bool has(const struct llama_vocab *v, llama_token t, const char *what) {
    if (v && v->attrs && t >= 0 && t < v->n) return true;
    vocab_unknown_id(what, v, t);
    return false;
}

enum llama_vocab_type llama_vocab_type(const struct llama_vocab *vocab) {
    return vocab ? vocab->kind->type : LLAMA_VOCAB_TYPE_NONE;
}

int32_t llama_vocab_n_tokens(const struct llama_vocab *vocab) { return vocab ? vocab->n : 0; }

const char *llama_vocab_get_text(const struct llama_vocab *vocab, llama_token token) {
    // with a terminator: copies, made when the first is asked for
    return has(vocab, token, "vocab_get_text") ? gguf_get_arr_str(vocab->meta, vocab->text_id, (size_t) token) : NULL;
}

float llama_vocab_get_score(const struct llama_vocab *vocab, llama_token token) {
    return has(vocab, token, "vocab_get_score") && vocab->scores ? vocab->scores[token] : 0.0f;
}

enum llama_token_attr llama_vocab_get_attr(const struct llama_vocab *vocab, llama_token token) {
    return has(vocab, token, "vocab_get_attr") ? (enum llama_token_attr) vocab->attrs[token] : LLAMA_TOKEN_ATTR_UNDEFINED;
}

bool llama_vocab_is_eog(const struct llama_vocab *vocab, llama_token token) {
    if (token == LLAMA_TOKEN_NULL || !vocab || !vocab->eog) return false;
    return has(vocab, token, "vocab_is_eog") && vocab->eog[token >> 3] >> (token & 7) & 1;
}

bool llama_vocab_is_control(const struct llama_vocab *vocab, llama_token token) {
    if (token == LLAMA_TOKEN_NULL || !vocab || !vocab->attrs) return false;
    return has(vocab, token, "vocab_is_control") && vocab->attrs[token] & LLAMA_TOKEN_ATTR_CONTROL;
}

#define SPECIAL(name, NAME)                                                                                                 \
    llama_token llama_vocab_##name(const struct llama_vocab *vocab) {                                                       \
        return vocab ? vocab->special[SPECIAL_##NAME] : LLAMA_TOKEN_NULL;                                                   \
    }
SPECIAL(bos, BOS)
SPECIAL(eos, EOS)
SPECIAL(eot, EOT)
SPECIAL(sep, SEP)
SPECIAL(nl, NL)
SPECIAL(pad, PAD)
SPECIAL(mask, MASK)
SPECIAL(fim_pre, FIM_PRE)
SPECIAL(fim_suf, FIM_SUF)
SPECIAL(fim_mid, FIM_MID)
SPECIAL(fim_pad, FIM_PAD)
SPECIAL(fim_rep, FIM_REP)
SPECIAL(fim_sep, FIM_SEP)

bool llama_vocab_get_add_bos(const struct llama_vocab *vocab) { return vocab && vocab->add_bos; }

bool llama_vocab_get_add_eos(const struct llama_vocab *vocab) { return vocab && vocab->add_eos; }

bool llama_vocab_get_add_sep(const struct llama_vocab *vocab) { return vocab && vocab->add_sep; }

const llama_token *llama_vocab_get_suppress_tokens(const struct llama_vocab *vocab, int32_t *n_suppress_tokens) {
    if (n_suppress_tokens) *n_suppress_tokens = vocab ? vocab->n_suppress : 0;
    return vocab ? vocab->suppress : NULL;
}

// ---- older names

int32_t llama_n_vocab(const struct llama_vocab *vocab) { return llama_vocab_n_tokens(vocab); }

const char *llama_token_get_text(const struct llama_vocab *vocab, llama_token token) {
    return llama_vocab_get_text(vocab, token);
}

float llama_token_get_score(const struct llama_vocab *vocab, llama_token token) {
    return llama_vocab_get_score(vocab, token);
}

enum llama_token_attr llama_token_get_attr(const struct llama_vocab *vocab, llama_token token) {
    return llama_vocab_get_attr(vocab, token);
}

bool llama_token_is_eog(const struct llama_vocab *vocab, llama_token token) { return llama_vocab_is_eog(vocab, token); }

bool llama_token_is_control(const struct llama_vocab *vocab, llama_token token) {
    return llama_vocab_is_control(vocab, token);
}

bool llama_add_bos_token(const struct llama_vocab *vocab) { return llama_vocab_get_add_bos(vocab); }

bool llama_add_eos_token(const struct llama_vocab *vocab) { return llama_vocab_get_add_eos(vocab); }

// What BERT calls CLS is the first token of a text.
llama_token llama_vocab_cls(const struct llama_vocab *vocab) { return llama_vocab_bos(vocab); }

llama_token llama_token_cls(const struct llama_vocab *vocab) { return llama_vocab_bos(vocab); }

#define OLD(name)                                                                                                           \
    llama_token llama_token_##name(const struct llama_vocab *vocab) { return llama_vocab_##name(vocab); }
OLD(bos)
OLD(eos)
OLD(eot)
OLD(sep)
OLD(nl)
OLD(pad)
OLD(fim_pre)
OLD(fim_suf)
OLD(fim_mid)
OLD(fim_pad)
OLD(fim_rep)
OLD(fim_sep)
