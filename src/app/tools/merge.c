// lamina merge: the parts of a split model into one file again.
#include "cli/console.h"
#include "tools/shards.h"
#include "tools/tool.h"

static int merge(const struct parts *m, const char *path) {
    struct gguf_context *out = gguf_init_empty();
    struct shard w = {0};
    if (!out) return console_library_error();
    int status = parts_describe(m, out);
    if (!status) status = shard_begin(&w, path, out);
    for (int k = 0; k < m->n && !status; k++) {
        for (int64_t i = 0; i < gguf_get_n_tensors(m->v[k].gguf) && !status; i++)
            status = shard_copy(&w, &m->v[k], i, gguf_get_alignment(out));
        console_progress("merging", (float) (k + 1) / (float) m->n);
    }
    console_progress_end();
    if (!status) status = shard_finish(&w);
    if (!status) status = shard_commit(&w);
    shard_discard(&w);
    gguf_free(out);
    return status;
}

static int run(struct params *p) {
    struct parts m = {0};
    int status = parts_open(&m, p->args[0]);
    if (!status && m.n < 2) status = console_error("%s is not a part of a split model", p->args[0]);
    // as happens with FIRST-0000*: the shell puts the second part where the output is expected
    if (!status && parts_have(&m, p->args[1])) status = 1;
    if (!status) status = merge(&m, p->args[1]);
    parts_close(&m);
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
