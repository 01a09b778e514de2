// config.json as GGUF keys.
#pragma once

#include "base/err.h"
#include "block/weights.h"
#include "gguf.h"

#include <jansson.h>

enum class_flag { CLASS_NORM_PLUS_1 = 1, CLASS_CONV1D = 2, CLASS_QKV_GROUPS = 4 };

struct ckpt_name {
    enum slot slot;
    const char *name;  // "a|b": the first that is there
};

// A row of classes.def.
struct ckpt_class {
    const char *name, *arch, *prefix;
    unsigned flags;
    const struct ckpt_name *names;  // ends with SLOT_NONE
};

// The row for config.json's "architectures". Errors: none fits; the sentence lists those that would.
MUST_USE enum err config_class(json_t *config, const struct ckpt_class **out);
// Writes every value that config.json has a GGUF key for under "<arch>.". Values of a model inside another (text_config) count as its own.
void config_write(json_t *config, const char *arch, struct gguf_context *out);
// A value, there or in text_config; NULL if it is in neither, or null.
json_t *config_get(json_t *config, const char *name);
// The settings of rotary scaling, and their kind ("" if there is none).
json_t *config_rope(json_t *config, const char **kind);
// config.json's frequency factors for n / 2 pairs (Llama 3's rule, or the lists of longrope), malloc'ed; NULL if it has none of that kind.
// name: rope_freqs, rope_factors_long or rope_factors_short.
float *config_rope_factors(json_t *config, const char *name, int64_t n, float base);
