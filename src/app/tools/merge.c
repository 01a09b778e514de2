// lamina merge: the parts of a split model into one file again.
#include "cli/console.h"
#include "llama.h"
#include "tools/shards.h"
#include "tools/tool.h"

#include <stdlib.h>
#include <string.h>

static int key_u16(const struct gguf_context *g, const char *key, int fallback) {
    const int64_t id = gguf_find_key(g, key);
    return id >= 0 && gguf_get_kv_type(g, id) == GGUF_TYPE_UINT16 ? gguf_get_val_u16(g, id) : fallback;
}

// Opens every part named after the first. 0, or the exit status.
static int open_parts(struct source *parts, char (*paths)[4096], int count, const char *first) {
    char prefix[4096];
    if (llama_split_prefix(prefix, sizeof(prefix), first, 0, count) <= 0)
        return console_error("%s is not named like the first of %d parts (PREFIX-00001-of-%05d.gguf)", first, count, count);
    for (int i = 1; i < count; i++) {
        llama_split_path(paths[i], sizeof(paths[i]), prefix, i, count);
        const int status = source_open(&parts[i], paths[i]);
        if (status) return status;
        if (key_u16(parts[i].gguf, "split.no", -1) != i || key_u16(parts[i].gguf, "split.count", -1) != count)
            return console_error("%s says it is part %d of %d, but should be part %d of %d", paths[i],
                                 key_u16(parts[i].gguf, "split.no", -1) + 1, key_u16(parts[i].gguf, "split.count", -1),
                                 i + 1, count);
    }
    return 0;
}

static int merge(const struct source *parts, int count, const char *path) {
    struct gguf_context *out = gguf_init_empty();
    struct shard w = {0};
    if (!out) return console_library_error();
    gguf_set_kv(out, parts[0].gguf);
    gguf_remove_key(out, "split.no");
    gguf_remove_key(out, "split.count");
    gguf_remove_key(out, "split.tensors.count");
    for (int k = 0; k < count; k++)
        for (int64_t i = 0; i < gguf_get_n_tensors(parts[k].gguf); i++)
            gguf_add_tensor(out, ggml_get_tensor(parts[k].tensors, gguf_get_tensor_name(parts[k].gguf, i)));
    int status = shard_begin(&w, path, out);
    for (int k = 0; k < count && !status; k++) {
        for (int64_t i = 0; i < gguf_get_n_tensors(parts[k].gguf) && !status; i++)
            status = shard_copy(&w, &parts[k], i, gguf_get_alignment(out));
        console_progress("merging", (float) (k + 1) / (float) count);
    }
    console_progress_end();
    if (!status) status = shard_finish(&w);
    if (!status) status = shard_commit(&w);
    shard_discard(&w);
    gguf_free(out);
    return status;
}

static int run(struct params *p) {
    struct source first = {0};
    int status = source_open(&first, p->args[0]);
    const int count = status ? 0 : key_u16(first.gguf, "split.count", 0);
    if (!status && count < 2) status = console_error("%s is not a part of a split model", p->args[0]);
    if (!status && key_u16(first.gguf, "split.no", 0) != 0)
        status = console_error("%s is part %d; name the first one", p->args[0], key_u16(first.gguf, "split.no", 0) + 1);
    struct source *parts = count ? calloc((size_t) count, sizeof(*parts)) : NULL;
    char(*paths)[4096] = count ? calloc((size_t) count, sizeof(*paths)) : NULL;
    if (!status && (!parts || !paths)) status = console_error("no memory for %d parts", count);
    if (!status) {
        parts[0] = first;
        first = (struct source){0};
        status = open_parts(parts, paths, count, p->args[0]);
    }
    // as happens with FIRST-0000*: the shell puts the second part where the output is expected
    for (int i = 0; i < count && !status; i++)
        if (source_is(&parts[i], p->args[1]))
            status = console_error("%s is a part of the model; name another output", p->args[1]);
    if (!status) status = merge(parts, count, p->args[1]);
    for (int i = 0; parts && i < count; i++) source_close(&parts[i]);
    source_close(&first);
    free(parts);
    free(paths);
    return status;
}

const struct tool tool_merge = {
    .name = "merge",
    .summary = "Makes one file of a split model",
    .args = "FIRST_PART OUTPUT",
    .min_args = 2,
    .max_args = 2,
    .groups = 0,
    .run = run,
};
