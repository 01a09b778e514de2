// lamina split: one GGUF file into several, in upstream's naming (PREFIX-00001-of-00003.gguf). The first holds all the metadata.
#include "base/file.h"
#include "cli/console.h"
#include "llama.h"
#include "tools/shards.h"
#include "tools/tool.h"

#include <stdlib.h>
#include <string.h>

extern const struct tool tool_merge;

// Bytes from "300M", "2G" (powers of 1000, as the field's tools have it). 0 when it is not such a text.
static uint64_t parse_size(const char *s) {
    char *end;
    const unsigned long long n = strtoull(s, &end, 10);
    if (end == s || n == 0 || n > 1u << 30) return 0;
    if (strcmp(end, "M") == 0) return n * 1000000;
    if (strcmp(end, "G") == 0) return n * 1000000000;
    return 0;
}

// Number of the shard of every tensor in out [n]; gives the count of shards.
static int assign(const struct source *s, uint64_t max_bytes, int64_t max_tensors, bool first_empty, int *out) {
    int shard = first_empty;
    uint64_t bytes = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < gguf_get_n_tensors(s->gguf); i++) {
        const uint64_t size = gguf_get_tensor_size(s->gguf, i);
        if (count && (bytes + size > max_bytes || count == max_tensors)) shard++, bytes = 0, count = 0;
        bytes += size;
        count++;
        out[i] = shard;
    }
    return shard + 1;
}

static int write_shard(struct shard *w, const struct source *s, const char *prefix, const int *shard_of, int no, int count) {
    const int64_t n = gguf_get_n_tensors(s->gguf);
    struct gguf_context *out = gguf_init_empty();
    char path[4000];
    if (!out) return console_library_error();
    if (no == 0)
        gguf_set_kv(out, s->gguf);
    else
        gguf_set_val_u32(out, GGUF_KEY_GENERAL_ALIGNMENT, (uint32_t) gguf_get_alignment(s->gguf));
    gguf_set_val_u16(out, "split.no", (uint16_t) no);
    gguf_set_val_u16(out, "split.count", (uint16_t) count);
    gguf_set_val_i32(out, "split.tensors.count", (int32_t) n);
    for (int64_t i = 0; i < n; i++)
        if (shard_of[i] == no) gguf_add_tensor(out, ggml_get_tensor(s->tensors, gguf_get_tensor_name(s->gguf, i)));
    int status = 0;
    if (llama_split_path(path, sizeof(path), prefix, no, count) <= 0)
        status = console_error("the name %s is too long", prefix);
    if (!status && file_is(fileno(s->file), path))
        status = console_error("%s is the model itself; choose another prefix", path);
    if (!status) status = shard_begin(w, path, out);
    for (int64_t i = 0; i < n && !status; i++)
        if (shard_of[i] == no) status = shard_copy(w, s, i, gguf_get_alignment(out));
    if (!status) status = shard_finish(w);
    gguf_free(out);
    return status;
}

static int split(const struct source *s, const struct params *p, uint64_t max_bytes) {
    const int64_t n = gguf_get_n_tensors(s->gguf);
    int *shard_of = calloc((size_t) n + 1, sizeof(int));
    if (!shard_of) return console_error("no memory for %lld tensors", (long long) n);
    const int count =
        assign(s, max_bytes, p->split_tensors > 0 ? p->split_tensors : INT64_MAX, p->no_tensor_first, shard_of);
    struct shard *w = calloc((size_t) count, sizeof(*w));
    int status = !w              ? console_error("no memory for %d files", count)
                 : count > 65535 ? console_error("%d files are too many", count)
                                 : 0;
    if (p->dry_run && !status) printf("%d files\n", count);
    for (int i = 0; i < count && !status && !p->dry_run; i++) {
        status = write_shard(&w[i], s, p->args[1], shard_of, i, count);
        console_progress("splitting", (float) (i + 1) / (float) count);
    }
    console_progress_end();
    for (int i = 0; i < count && !status && !p->dry_run; i++) {
        status = shard_commit(&w[i]);
        if (!status) printf("%s\n", w[i].path);
    }
    for (int i = 0; w && i < count; i++) shard_discard(&w[i]);
    free(w);
    free(shard_of);
    return status;
}

static int run(struct params *p) {
    if (p->merge) return tool_merge.run(p);
    const uint64_t max_bytes = p->split_size ? parse_size(p->split_size) : UINT64_MAX;
    if (max_bytes == 0) {
        console_error("--split-max-size is '%s', but should be a number and M or G", p->split_size);
        return 2;
    }
    if (!p->split_size && p->split_tensors <= 0) p->split_tensors = 128;
    struct source s = {0};
    int status = source_open(&s, p->args[0]);
    if (!status && gguf_find_key(s.gguf, "split.count") >= 0 &&
        gguf_get_val_u16(s.gguf, gguf_find_key(s.gguf, "split.count")) > 1)
        status = console_error("%s is already one part of a split model; merge it first", p->args[0]);
    if (!status) status = split(&s, p, max_bytes);
    source_close(&s);
    return status;
}

const struct tool tool_split = {
    .name = "split",
    .alias = "llama-gguf-split",
    .summary = "Splits a model into several files",
    .args = "MODEL PREFIX",
    .min_args = 2,
    .max_args = 2,
    .groups = G_SPLIT,
    .run = run,
};
