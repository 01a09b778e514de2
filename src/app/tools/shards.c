// Copying tensors between GGUF files without holding them in memory.
#include "base/file.h"
#include "tools/shards.h"
#include "cli/console.h"
#include "llama.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int source_open(struct source *s, const char *path) {
    s->path = path;
    s->gguf = gguf_init_from_file(path, (struct gguf_init_params){.no_alloc = true, .ctx = &s->tensors});
    if (!s->gguf) return console_library_error();
    s->file = fopen(path, "rb");
    return s->file ? 0 : console_error("cannot open %s: %s", path, strerror(errno));
}

void source_close(struct source *s) {
    if (s->file) fclose(s->file);
    if (s->gguf) gguf_free(s->gguf);
    if (s->tensors) ggml_free(s->tensors);
    *s = (struct source){0};
}

static int key_u16(const struct gguf_context *g, const char *key, int fallback) {
    const int64_t id = gguf_find_key(g, key);
    return id >= 0 && gguf_get_kv_type(g, id) == GGUF_TYPE_UINT16 ? gguf_get_val_u16(g, id) : fallback;
}

static int open_rest(struct parts *m, const char *first, int count) {
    char prefix[4096];
    if (llama_split_prefix(prefix, sizeof(prefix), first, 0, count) <= 0)
        return console_error("%s is not named like the first of %d parts (PREFIX-00001-of-%05d.gguf)", first, count, count);
    for (int i = 1; i < count; i++) {
        llama_split_path(m->paths[i], sizeof(m->paths[i]), prefix, i, count);
        const int status = source_open(&m->v[i], m->paths[i]);
        if (status) return status;
        const struct gguf_context *g = m->v[i].gguf;
        if (key_u16(g, "split.no", -1) != i || key_u16(g, "split.count", -1) != count)
            return console_error("%s says it is part %d of %d, but should be part %d of %d", m->paths[i],
                                 key_u16(g, "split.no", -1) + 1, key_u16(g, "split.count", -1), i + 1, count);
    }
    return 0;
}

int parts_open(struct parts *m, const char *path) {
    struct source first = {0};
    int status = source_open(&first, path);
    const int count = status ? 1 : key_u16(first.gguf, "split.count", 1),
              no = status ? 0 : key_u16(first.gguf, "split.no", 0);
    m->n = count > 1 ? count : 1;
    m->v = calloc((size_t) m->n, sizeof(*m->v));
    m->paths = calloc((size_t) m->n, sizeof(*m->paths));
    if (!m->v || !m->paths) {
        source_close(&first);
        return console_error("no memory for %d parts", m->n);
    }
    m->v[0] = first;
    if (!status && no != 0) status = console_error("%s is part %d; name the first one", path, no + 1);
    return status || m->n == 1 ? status : open_rest(m, path, m->n);
}

void parts_close(struct parts *m) {
    for (int i = 0; m->v && i < m->n; i++) source_close(&m->v[i]);
    free(m->v);
    free(m->paths);
    *m = (struct parts){0};
}

int parts_describe(const struct parts *m, struct gguf_context *out) {
    gguf_set_kv(out, m->v[0].gguf);
    gguf_remove_key(out, "split.no");
    gguf_remove_key(out, "split.count");
    gguf_remove_key(out, "split.tensors.count");
    int64_t n = 0;
    for (int k = 0; k < m->n; k++)
        for (int64_t i = 0; i < gguf_get_n_tensors(m->v[k].gguf); i++, n++)
            gguf_add_tensor(out, ggml_get_tensor(m->v[k].tensors, gguf_get_tensor_name(m->v[k].gguf, i)));
    return gguf_get_n_tensors(out) == n ? 0 : console_library_error();
}

bool parts_have(const struct parts *m, const char *path) {
    for (int i = 0; i < m->n; i++) {
        if (!m->v[i].file || !file_is(fileno(m->v[i].file), path)) continue;
        console_error("%s is %s; name another output", path, m->n > 1 ? "a part of the model" : "the model itself");
        return true;
    }
    return false;
}

int shard_begin(struct shard *w, const char *path, const struct gguf_context *out) {
    if (file_replaceable(path) != 0) return console_error("cannot write %s: %s", path, strerror(errno));
    snprintf(w->path, sizeof(w->path), "%s", path);
    snprintf(w->tmp, sizeof(w->tmp), "%s.part", path);
    console_finish_first();
    w->file = fopen(w->tmp, "wb");
    if (!w->file) return console_error("cannot write %s: %s", w->tmp, strerror(errno));
    return gguf_write_to_file_ptr(out, w->file, true) ? 0 : console_library_error();
}

int shard_copy(struct shard *w, const struct source *from, int64_t i_tensor, size_t alignment) {
    static char piece[1 << 20];
    const size_t size = gguf_get_tensor_size(from->gguf, i_tensor);
    size_t left = size;
    if (fseeko(from->file, (off_t) (gguf_get_data_offset(from->gguf) + gguf_get_tensor_offset(from->gguf, i_tensor)),
               SEEK_SET))
        return console_error("cannot seek in %s: %s", from->path, strerror(errno));
    while (left) {
        const size_t now = left < sizeof(piece) ? left : sizeof(piece);
        if (fread(piece, 1, now, from->file) != now)
            return console_error("%s ends inside the tensor '%s'", from->path, gguf_get_tensor_name(from->gguf, i_tensor));
        if (fwrite(piece, 1, now, w->file) != now) return console_error("writing %s failed: %s", w->tmp, strerror(errno));
        if (console_interrupted()) return 130;
        left -= now;
    }
    for (size_t pad = (alignment - size % alignment) % alignment; pad; pad--)
        if (fputc(0, w->file) == EOF) return console_error("writing %s failed: %s", w->tmp, strerror(errno));
    return 0;
}

int shard_finish(struct shard *w) {
    FILE *f = w->file;
    w->file = NULL;
    const bool failed = !f || ferror(f);
    return (f && fclose(f) != 0) || failed ? console_error("writing %s failed: %s", w->tmp, strerror(errno)) : 0;
}

int shard_commit(struct shard *w) {
    if (file_rename(w->tmp, w->path) != 0)
        return console_error("cannot rename %s to %s: %s", w->tmp, w->path, strerror(errno));
    w->tmp[0] = '\0';
    return 0;
}

void shard_discard(struct shard *w) {
    if (w->file) fclose(w->file);
    if (w->tmp[0]) unlink(w->tmp);
    w->file = NULL;
    w->tmp[0] = '\0';
}
