// Vocabularies: tokens, tokenizing, chat formats.
//
// A vocabulary belongs to its model (llama_model_get_vocab) and never changes: any number of threads may use it. Functions that
// take a token id record a sentence at ggml_last_error() for ids outside 0 .. llama_vocab_n_tokens - 1 and give the value named.
// Tokens that a model does not have are LLAMA_TOKEN_NULL.
#pragma once

#include "llama/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- facts

// Kind of tokenizer; NONE: the model has no vocabulary.
LLAMA_API enum llama_vocab_type llama_vocab_type(const struct llama_vocab *vocab);
LLAMA_API int32_t llama_vocab_n_tokens(const struct llama_vocab *vocab);
GGML_DEPRECATED(LLAMA_API int32_t llama_n_vocab(const struct llama_vocab *vocab), "use the newer call");
// Text as the file spells it (bytes mapped or escaped); llama_token_to_piece gives what it stands for. Owner: vocab. Errors: NULL.
LLAMA_API const char *llama_vocab_get_text(const struct llama_vocab *vocab, llama_token token);
// Log-probability or merge priority, 0 in vocabularies without scores. Errors: 0.
LLAMA_API float llama_vocab_get_score(const struct llama_vocab *vocab, llama_token token);
// A set of enum llama_token_attr. Errors: LLAMA_TOKEN_ATTR_UNDEFINED.
LLAMA_API enum llama_token_attr llama_vocab_get_attr(const struct llama_vocab *vocab, llama_token token);
// Whether the token ends a generation: EOS, end of turn, end of message, and the tokens known by name to do so. Errors: false.
LLAMA_API bool llama_vocab_is_eog(const struct llama_vocab *vocab, llama_token token);
// Whether the token is a control token, which has no text of its own. Errors: false.
LLAMA_API bool llama_vocab_is_control(const struct llama_vocab *vocab, llama_token token);
LLAMA_API llama_token llama_vocab_bos(const struct llama_vocab *vocab);
LLAMA_API llama_token llama_vocab_eos(const struct llama_vocab *vocab);
LLAMA_API llama_token llama_vocab_eot(const struct llama_vocab *vocab);
LLAMA_API llama_token llama_vocab_sep(const struct llama_vocab *vocab);
LLAMA_API llama_token llama_vocab_nl(const struct llama_vocab *vocab);
LLAMA_API llama_token llama_vocab_pad(const struct llama_vocab *vocab);
LLAMA_API llama_token llama_vocab_mask(const struct llama_vocab *vocab);
// What llama_tokenize adds with add_special.
LLAMA_API bool llama_vocab_get_add_bos(const struct llama_vocab *vocab);
LLAMA_API bool llama_vocab_get_add_eos(const struct llama_vocab *vocab);
LLAMA_API bool llama_vocab_get_add_sep(const struct llama_vocab *vocab);
// Tokens [*n_suppress_tokens] that the model's makers want never generated; NULL and 0 if there are none. Owner: vocab.
LLAMA_API const llama_token *llama_vocab_get_suppress_tokens(const struct llama_vocab *vocab, int32_t *n_suppress_tokens);
// Fill in the middle: prefix, suffix, middle, padding, repository, file separator; by the file's keys or their usual names.
LLAMA_API llama_token llama_vocab_fim_pre(const struct llama_vocab *vocab);
LLAMA_API llama_token llama_vocab_fim_suf(const struct llama_vocab *vocab);
LLAMA_API llama_token llama_vocab_fim_mid(const struct llama_vocab *vocab);
LLAMA_API llama_token llama_vocab_fim_pad(const struct llama_vocab *vocab);
LLAMA_API llama_token llama_vocab_fim_rep(const struct llama_vocab *vocab);
LLAMA_API llama_token llama_vocab_fim_sep(const struct llama_vocab *vocab);

// ---- older names of the above

GGML_DEPRECATED(LLAMA_API const char *llama_token_get_text(const struct llama_vocab *vocab, llama_token token),
                "use the newer call");
GGML_DEPRECATED(LLAMA_API float llama_token_get_score(const struct llama_vocab *vocab, llama_token token),
                "use the newer call");
GGML_DEPRECATED(LLAMA_API enum llama_token_attr llama_token_get_attr(const struct llama_vocab *vocab, llama_token token),
                "use the newer call");
GGML_DEPRECATED(LLAMA_API bool llama_token_is_eog(const struct llama_vocab *vocab, llama_token token), "use the newer call");
GGML_DEPRECATED(LLAMA_API bool llama_token_is_control(const struct llama_vocab *vocab, llama_token token),
                "use the newer call");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_bos(const struct llama_vocab *vocab), "use the newer call");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_eos(const struct llama_vocab *vocab), "use the newer call");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_eot(const struct llama_vocab *vocab), "use the newer call");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_cls(const struct llama_vocab *vocab), "use the newer call");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_sep(const struct llama_vocab *vocab), "use the newer call");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_nl(const struct llama_vocab *vocab), "use the newer call");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_pad(const struct llama_vocab *vocab), "use the newer call");
GGML_DEPRECATED(LLAMA_API bool llama_add_bos_token(const struct llama_vocab *vocab), "use the newer call");
GGML_DEPRECATED(LLAMA_API bool llama_add_eos_token(const struct llama_vocab *vocab), "use the newer call");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_fim_pre(const struct llama_vocab *vocab), "use the newer call");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_fim_suf(const struct llama_vocab *vocab), "use the newer call");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_fim_mid(const struct llama_vocab *vocab), "use the newer call");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_fim_pad(const struct llama_vocab *vocab), "use the newer call");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_fim_rep(const struct llama_vocab *vocab), "use the newer call");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_fim_sep(const struct llama_vocab *vocab), "use the newer call");
// What BERT calls CLS is BOS here.
GGML_DEPRECATED(LLAMA_API llama_token llama_vocab_cls(const struct llama_vocab *vocab), "use the newer call");

// ---- text to tokens and back

// Tokens of text_len bytes (any bytes; no terminator needed) into tokens [n_tokens_max].
// add_special: add BOS, EOS and SEP as the vocabulary says; a BOS or EOS that the text itself brings is not doubled.
// parse_special: texts of control tokens in the text become these tokens; otherwise they stay plain text. User-defined tokens are
// found in either case. Of texts that overlap, the leftmost counts, and of those the longest.
// Broken UTF-8 is kept: byte-level vocabularies give its bytes, the others byte tokens or <unk>. Time is linear in the text.
// Returns the number of tokens, or if there are more than n_tokens_max its negative (nothing is written then).
// Errors: INT32_MIN (no vocabulary, negative length, NULL text, a number that an int32_t can't hold, no memory).
LLAMA_API int32_t llama_tokenize(const struct llama_vocab *vocab, const char *text, int32_t text_len, llama_token *tokens,
                                 int32_t n_tokens_max, bool add_special, bool parse_special);
// The bytes of one token into buf [length], without a terminator. lstrip: spaces to leave out at its start, at most.
// special: control tokens give their text instead of nothing. Bytes of one character may be spread over tokens.
// Returns the number of bytes, or if length is less its negative (nothing is written then). Errors (no such token): 0.
LLAMA_API int32_t llama_token_to_piece(const struct llama_vocab *vocab, llama_token token, char *buf, int32_t length,
                                       int32_t lstrip, bool special);
// The text of tokens [n_tokens] into text [text_len_max], without a terminator. The space that the vocabulary puts in front of a text
// is taken off again; vocabularies that clean spaces lose those before . , ! ? and contractions.
// remove_special: leave out a BOS in front and an EOS at the end, if the vocabulary adds them. unparse_special: control tokens give
// their text. Returns the number of bytes, or if text_len_max is less its negative. Errors: ids that don't exist give nothing.
LLAMA_API int32_t llama_detokenize(const struct llama_vocab *vocab, const llama_token *tokens, int32_t n_tokens, char *text,
                                   int32_t text_len_max, bool remove_special, bool unparse_special);

// ---- chat formats

// The messages chat [n_msg] as one text in the format tmpl: one of llama_chat_builtin_templates, or a model's template
// (llama_model_chat_template), whose text serves to recognise the format; it is not run. NULL: chatml. add_ass: end with what asks the
// model for its turn. At most length bytes are written to buf, and a terminator if there is room.
// Returns the size of the whole text, which may be more than length. Errors: -1 (unknown template, no role or content).
// llama_chat_tokenize (llama/ext.h) keeps control tokens out of what users wrote.
LLAMA_API int32_t llama_chat_apply_template(const char *tmpl, const struct llama_chat_message *chat, size_t n_msg,
                                            bool add_ass, char *buf, int32_t length);
// Up to len names of formats into output (may be NULL). Returns how many there are. Owner: library.
LLAMA_API int32_t llama_chat_builtin_templates(const char **output, size_t len);

#ifdef __cplusplus
}
#endif
