// Copying tensors between GGUF files without holding them in memory. Used by split, merge, lora and inspect.
#pragma once

#include "gguf.h"

#include <stdio.h>

struct source {
    const char *path;
    FILE *file;
    struct gguf_context *gguf;
    struct ggml_context *tensors;  // headers only
};

// 0, or the exit status after a sentence on stderr. source_close takes a zeroed one too.
int source_open(struct source *s, const char *path);
void source_close(struct source *s);

// A model: one file, or all the parts of a split one, of which `first` is the first. 0, or the exit status after a sentence on stderr.
// parts_close takes a zeroed or half-open one, too.
struct parts {
    struct source *v;
    char (*paths)[4096];
    int n;
};
int parts_open(struct parts *m, const char *first);
void parts_close(struct parts *m);
// The keys of the whole model, and its tensors in the order of the parts. 0, or the exit status.
int parts_describe(const struct parts *m, struct gguf_context *out);
// Whether one of them is the file that path names; then a sentence says so.
bool parts_have(const struct parts *m, const char *path);

// A file being written under a temporary name; shard_finish closes it, shard_commit gives it its name.
struct shard {
    char path[4096], tmp[4104];
    FILE *file;
};
// Writes the metadata of `out`, whose tensors must all be added in the order in which shard_copy brings their data.
int shard_begin(struct shard *w, const char *path, const struct gguf_context *out);
// Copies the data of a source's tensor and pads it to `alignment`.
int shard_copy(struct shard *w, const struct source *from, int64_t i_tensor, size_t alignment);
int shard_finish(struct shard *w);
int shard_commit(struct shard *w);
void shard_discard(struct shard *w);
