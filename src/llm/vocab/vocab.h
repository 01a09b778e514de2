// Vocabularies: what the model loader and the samplers need beyond include/llama/vocab.h.
#pragma once

#include "base/err.h"
#include "llama/vocab.h"

struct gguf_context;

// Reads the tokenizer.* keys (and ARCH.vocab_size where there is no tokenizer). Texts and scores stay where they lie: meta must live
// as long as the vocabulary, unchanged. Key overrides are the caller's: set them in meta first. On success *out is to be freed with vocab_free.
// Errors: a sentence that names the key.
enum err vocab_load(struct llama_vocab **out, const struct gguf_context *meta) MUST_USE;
void vocab_free(struct llama_vocab *vocab);  // NULL is fine

// Bytes that vocab_load would allocate for these keys, from counts and lengths alone; an upper bound for tries. 0: no vocabulary.
size_t vocab_memory(const struct gguf_context *meta);

// The bytes that a token stands for, in place: *len bytes (they may hold zeros). Control tokens give their text.
// Invalid ids give NULL and 0. Owner: vocab. Allocates nothing.
const char *vocab_piece(const struct llama_vocab *vocab, llama_token token, size_t *len);

// All tokens that text may contain (not those that end a generation, unknown or unused ones), in the byte order of their
// pieces. same[i]: how many bytes token i's piece shares with the one before it, at most 255; same[0] is 0.
struct vocab_order {
    uint32_t n;
    const llama_token *ids;
    const uint8_t *same;
    uint32_t n_end;
    const llama_token *ends;  // those that end a generation
};
// Made when first asked for (a few milliseconds), then kept. NULL: no memory, or no tokens. Thread: any number at a time.
const struct vocab_order *vocab_sorted(const struct llama_vocab *vocab);
