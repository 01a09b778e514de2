// config.json as GGUF keys.
#pragma once

#include "base/err.h"
#include "gguf.h"

#include <jansson.h>

enum class_flag { CLASS_NORM_PLUS_1 = 1, CLASS_CONV1D = 2 };

// A row of classes.def.
struct ckpt_class {
    const char *name, *arch, *prefix;
    unsigned flags;
};

// The row for config.json's "architectures". Errors: none fits; the sentence lists those that would.
MUST_USE enum err config_class(json_t *config, const struct ckpt_class **out);
// Writes every value that config.json has a GGUF key for under "<arch>.".
void config_write(json_t *config, const char *arch, struct gguf_context *out);
