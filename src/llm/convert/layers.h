// What config.json says about single layers: windows, recurrences, rotation. Its lists have many forms; all end in the same keys.
#pragma once

#include "convert/config.h"

// what: "word:path". Writes an array of 1 where that list of config.json has the word, 0 where it has another. false: there is no such list.
bool layers_where(json_t *config, const char *what, struct gguf_context *out, const char *key);
// Makes what windowed and full layers have of their own (per_layer_config) values of config.json whose names begin with "swa_" and "global_", as
// older files have them.
void layers_prepare(json_t *config);
// Windows, recurrent layers (by the class's flags) and layers without feed forward or attention, as keys under "<arch>.".
void layers_write(json_t *config, const struct ckpt_class *cls, struct gguf_context *out);
// Whether a layer is of that kind ("moe").
bool layers_have(json_t *config, const char *kind);
// How many entries at the list's beginning are that word.
size_t layers_leading(json_t *list, const char *word);
