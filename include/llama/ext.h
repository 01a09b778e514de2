// Lamina's additions to the language-model interface.
#pragma once

#include "llama/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- text that others wrote ------------------------------------------------------------------------------------------
// llama_tokenize for a text in parts, of which only some may hold control tokens: what a user or a tool wrote stays plain
// text, even if it spells a control token. The tokens are those of the whole text.
// text: the parts end to end; lens [n_parts] bytes; parse_special [n_parts]. Result as of llama_tokenize.
LLAMA_API int32_t llama_tokenize_parts(const struct llama_vocab *vocab, const char *text, const size_t *lens, const bool *parse_special,
                                       size_t n_parts, llama_token *tokens, int32_t n_tokens_max, bool add_special);
// The tokens of a conversation in the format of llama_chat_apply_template, where only the format's own text becomes control
// tokens. BOS is added as the vocabulary says. Errors: INT32_MIN (unknown template, messages without role or content).
LLAMA_API int32_t llama_chat_tokenize(const struct llama_vocab *vocab, const char *tmpl, const struct llama_chat_message *chat,
                                      size_t n_msg, bool add_ass, llama_token *tokens, int32_t n_tokens_max);

#ifdef __cplusplus
}
#endif
