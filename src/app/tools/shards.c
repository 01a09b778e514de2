// Copying tensors between GGUF files without holding them in memory.
#include "base/file.h"
#include "tools/shards.h"
#include "cli/console.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
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

bool source_is(const struct source *s, const char *path) {
    struct stat a, b;
    return s->file && fstat(fileno(s->file), &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
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
    return f && fclose(f) == 0 ? 0 : console_error("writing %s failed: %s", w->tmp, strerror(errno));
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
