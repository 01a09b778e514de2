// The map of a plan: one page of HTML that draws each compute buffer as offset over time.
#pragma once

#include "llama/ext.h"

// Writes the map of ctx (whose devices are d[0..n)) to path; model names the file in the heading. 0, or 1 after a sentence on stderr.
int plan_map_write(const char *path, struct llama_context *ctx, const struct llama_device_bytes *d, int n,
                   const char *model);
