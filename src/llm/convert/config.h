// config.json as GGUF keys.
#pragma once

#include "base/err.h"
#include "block/weights.h"
#include "gguf.h"

#include <jansson.h>

enum class_flag {
    CLASS_NORM_PLUS_1 = 1,
    CLASS_CONV1D = 2,
    CLASS_QKV_GROUPS = 4,
    CLASS_HALVES = 8,       // heads turn in halves, though the architecture's file has pairs (beside ARCH_HF_PERMUTED)
    CLASS_PAIRS = 16,       // in pairs, though ARCH_HF_PERMUTED is set
    CLASS_KV_LAYERS = 32,   // recurrent layers are those without key heads: head_count_kv is an array
    CLASS_REC_LAYERS = 64,  // recurrent layers are listed: attention.recurrent_layers
    CLASS_STACKS = 128,     // the second half of the file's layers are named by the second prefix, and counted from 0 again
    CLASS_MTP = 512,        // layers behind the model's own, its draft heads, have the second prefix and are counted from 0
    CLASS_INDEX_PAIRS = 256,  // the indexer's heads turn in pairs, though the file's turn in halves
    CLASS_BACKWARDS = 1024,   // heads turn the other way round: their halves change places
};

// Where a slot's weight is. Several rows may name one slot: the first whose tensors are there is taken.
struct ckpt_name {
    enum slot slot;
    // Up to three parts with tabs between them (one string, because there are a thousand of them): the name, a cut, an operation.
    // The name. "a|b": the first that is there; "a&b": both, one after the other in the file; "{}" counts experts, "{expression}" what it says. "!" at
    // the end: the name has no ".weight". "bias:a!" is the weight's bias, where its name or its cut differs; "scale:a!" its scale. "^a": of no layer; "=path": no tensor,
    // but that value of config.json (or number) in every place.
    // The cut: through each (view.h), for each one of "a&b" its own; none: as they are.
    // The operation, what happens to the values: "+x", "=" (nothing, where the class or the slot has a rule), "-exp" (x to -exp(x)), "exp", "product" (of the vectors of
    // "a&b", value by value), or "*path" (times that value of config.json; several are multiplied, "*{expression}" over hparams too), for each one of "a&b" its own. None: the rules.
    const char *name;
};

// A row of classes.def. name: the class; "class?path" holds where that value of config.json is there and neither 0 nor false,
// "class?layers:kind" where a layer is of that kind. The first row that holds counts.
struct ckpt_class {
    const char *name, *arch, *prefix;
    unsigned flags;
    const struct ckpt_name *names;  // ends with SLOT_NONE
};

// The row for config.json's "architectures". Errors: none fits; the sentence lists those that would.
MUST_USE enum err config_class(json_t *config, const struct ckpt_class **out);
// Writes every value that config.json has a GGUF key for under "<arch>.". Values of a model inside another (text_config) count as its own.
// May add values to config that rows of names ask for.
void config_write(json_t *config, const struct ckpt_class *cls, struct gguf_context *out);
// A value, there or in text_config; NULL if it is in neither, or null.
json_t *config_get(json_t *config, const char *name);
// "a.b.c" or "a[2]" in config.json; NULL if it is not there.
json_t *config_path(json_t *config, const char *path);
// The settings of rotary scaling, and their kind ("" if there is none).
json_t *config_rope(json_t *config, const char **kind);
// config.json's frequency factors for n / 2 pairs (Llama 3's rule, or the lists of longrope), malloc'ed; NULL if it has none of that kind.
// name: rope_freqs, rope_factors_long or rope_factors_short.
// Whether it has those.
bool config_has_factors(json_t *config, const char *name);
float *config_rope_factors(json_t *config, const char *name, int64_t n, float base);
