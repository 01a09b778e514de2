// Finds the name (tokenizer.ggml.pre) of a pre-tokenizer that tokenizer.json describes by its patterns.
#pragma once

#include "base/err.h"

#include <jansson.h>

// pre: the value of "pre_tokenizer". *name: static. Errors: a kind or pattern that cannot be read, or none of our pre-tokenizers
// cuts a probing text as it does.
MUST_USE enum err pre_name_of(json_t *pre, const char **name);
