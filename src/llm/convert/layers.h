// What config.json says about single layers: windows, recurrences, rotation. Its lists have many forms; all end in the same keys.
#pragma once

#include "convert/config.h"

// Windows, recurrent layers (by the class's flags) and layers without feed forward or attention, as keys under "<arch>.".
void layers_write(json_t *config, const struct ckpt_class *cls, struct gguf_context *out);
// Whether a layer is of that kind ("moe").
bool layers_have(json_t *config, const char *kind);
// How many entries at the list's beginning are that word.
size_t layers_leading(json_t *list, const char *word);
