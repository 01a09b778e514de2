// A checkpoint's tokenizer as GGUF keys (tokenizer.ggml.*).
#pragma once

#include "convert/checkpoint.h"
#include "gguf.h"

// Reads tokenizer.model (sentencepiece) or tokenizer.json, and the special tokens of tokenizer_config.json and config.json.
// n_vocab: rows of the embedding; tokens that the tokenizer lacks become unused ones.
MUST_USE enum err tokenizer_convert(const struct checkpoint *c, json_t *config, int64_t n_vocab, struct gguf_context *out);
