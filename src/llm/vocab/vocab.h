// Vocabularies: what the model loader and the samplers need beyond include/llama/vocab.h.
#pragma once

#include "base/err.h"
#include "llama/vocab.h"

struct gguf_context;

// Reads the tokenizer.* keys (and ARCH.vocab_size where there is no tokenizer). Nothing of meta is needed afterwards. Key
// overrides are the caller's: set them in meta first. On success *out is to be freed with vocab_free.
// Errors: a sentence that names the key.
enum err vocab_load(struct llama_vocab **out, const struct gguf_context *meta) MUST_USE;
void vocab_free(struct llama_vocab *vocab);  // NULL is fine

// The bytes that a token stands for, in place: *len bytes without a terminator. Control tokens give their text.
// Invalid ids give NULL and 0. Owner: vocab. Allocates nothing.
const char *vocab_piece(const struct llama_vocab *vocab, llama_token token, size_t *len);
