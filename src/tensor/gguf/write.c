// Writing GGUF. Metadata goes out as it came in, byte for byte, and a file appears under its name only when it is whole:
// it is written beside it under another name and renamed.
#include "base/file.h"
#include "gguf/gguf_int.h"
#include "ggml-backend.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define STAGE_BYTES ((size_t) 1 << 20)  // for data that lies in device memory

// Where metadata goes: counted only if p is NULL.
struct sink {
    uint8_t *p;
    size_t n;
};

static void put(struct sink *s, const void *data, size_t n) {
    if (s->p && n) memcpy(s->p + s->n, data, n);
    s->n += n;
}

static void put_u32(struct sink *s, uint32_t v) { put(s, &v, sizeof v); }

static void put_u64(struct sink *s, uint64_t v) { put(s, &v, sizeof v); }

static void put_string(struct sink *s, const char *p, size_t len) {
    put_u64(s, len);
    put(s, p, len);
}

static void put_kv(struct sink *s, const struct kv *kv) {
    put_string(s, kv->key.p, kv->key.len);
    put_u32(s, kv->type);
    if (kv->type == GGUF_TYPE_STRING) {
        put_u64(s, kv->bytes);
    } else if (kv->type == GGUF_TYPE_ARRAY) {
        put_u32(s, kv->arr_type);
        put_u64(s, kv->n);
        if (kv->arr_type == GGUF_TYPE_STRING) {
            put(s, kv->strs.raw, (size_t) kv->bytes);
            return;
        }
    }
    put(s, kv->data, (size_t) kv->bytes);
}

static void put_meta(struct sink *s, const struct gguf_context *ctx) {
    put(s, GGUF_MAGIC, 4);
    put_u32(s, ctx->version);
    put_u64(s, ctx->n_ti);
    put_u64(s, ctx->n_kv);
    for (size_t i = 0; i < ctx->n_kv; i++) put_kv(s, &ctx->kv[i]);
    for (size_t i = 0; i < ctx->n_ti; i++) {
        const struct tensor_info *ti = &ctx->ti[i];
        put_string(s, ti->name.p, ti->name.len);
        put_u32(s, ti->n_dims);
        for (uint32_t d = 0; d < ti->n_dims; d++) put_u64(s, (uint64_t) ti->ne[d]);
        put_u32(s, ti->type);
        put_u64(s, ti->offset);
    }
    size_t padded = gguf_pad(s->n, ctx->alignment);
    if (s->p) memset(s->p + s->n, 0, padded - s->n);
    s->n = padded;
}

size_t gguf_get_meta_size(const struct gguf_context *ctx) {
    if (!ctx) return 0;
    struct sink s = {NULL, 0};
    put_meta(&s, ctx);
    return s.n;
}

void gguf_get_meta_data(const struct gguf_context *ctx, void *data) {
    if (!ctx || !data) {
        err_set(ERR_INVALID, "gguf: no metadata written: %s is NULL", ctx ? "the destination" : "the context");
        return;
    }
    struct sink s = {data, 0};
    put_meta(&s, ctx);
}

// ---- to files

static enum err write_bytes(FILE *f, const void *p, size_t n) {
    if (n == 0 || fwrite(p, 1, n, f) == n) return ERR_OK;
    return err_set(ERR_IO, "gguf: writing %zu bytes failed: %s", n, strerror(errno));
}

static enum err write_zeros(FILE *f, size_t n) {
    static const uint8_t zeros[4096];
    for (; n; n -= n < sizeof zeros ? n : sizeof zeros) TRY(write_bytes(f, zeros, n < sizeof zeros ? n : sizeof zeros));
    return ERR_OK;
}

static enum err write_staged(FILE *f, const struct tensor_info *ti) {
    uint8_t *stage = malloc(STAGE_BYTES);
    if (!stage) return err_set(ERR_NOMEM, "gguf: no memory to read tensor '%s' from its device", ti->name.p);
    enum err e = ERR_OK;
    for (size_t at = 0; at < ti->size && e == ERR_OK; at += STAGE_BYTES) {
        size_t n = ti->size - at < STAGE_BYTES ? ti->size - at : STAGE_BYTES;
        ggml_backend_tensor_get(ti->tensor, stage, at, n);
        e = write_bytes(f, stage, n);
    }
    free(stage);
    return e;
}

static enum err write_tensor(FILE *f, const struct gguf_context *ctx, const struct tensor_info *ti) {
    if (ti->size && !ti->data && !ti->tensor) {
        return err_set(ERR_INVALID, "gguf: tensor '%s' has no data to write; set it with gguf_set_tensor_data", ti->name.p);
    }
    TRY(ti->tensor ? write_staged(f, ti) : write_bytes(f, ti->data, ti->size));
    return write_zeros(f, gguf_pad(ti->size, ctx->alignment) - ti->size);
}

// A context that was read may have gaps between its tensors, or another order; the data is written as the offsets say.
static enum err write_data(FILE *f, const struct gguf_context *ctx) {
    uint64_t at = 0;
    for (size_t i = 0; i < ctx->n_ti; i++) {
        const struct tensor_info *ti = &ctx->ti[i];
        if (ti->size == 0) continue;  // may stand anywhere
        if (ti->offset < at) {
            return err_set(ERR_UNSUPPORTED,
                           "gguf: tensor '%s' lies before the end of the tensor that precedes it in the list", ti->name.p);
        }
        while (at < ti->offset) {
            size_t gap = ti->offset - at < SIZE_MAX / 2 ? (size_t) (ti->offset - at) : SIZE_MAX / 2;
            TRY(write_zeros(f, gap));
            at += gap;
        }
        TRY(write_tensor(f, ctx, ti));
        at += gguf_pad(ti->size, ctx->alignment);
    }
    return ERR_OK;
}

static enum err write_all(FILE *f, const struct gguf_context *ctx, bool only_meta) {
    if (ctx->incomplete) return err_set(ERR_NOMEM, "gguf: not written: an entry is missing that there was no memory for");
    size_t n = gguf_get_meta_size(ctx);
    void *meta = malloc(n);
    if (!meta) return err_set(ERR_NOMEM, "gguf: no memory for %zu bytes of metadata", n);
    gguf_get_meta_data(ctx, meta);
    enum err e = write_bytes(f, meta, n);
    free(meta);
    TRY(e);
    return only_meta ? ERR_OK : write_data(f, ctx);
}

bool gguf_write_to_file_ptr(const struct gguf_context *ctx, FILE *file, bool only_meta) {
    if (!ctx || !file) {
        err_set(ERR_INVALID, "gguf: nothing written: %s is NULL", ctx ? "the file" : "the context");
        return false;
    }
    if (write_all(file, ctx, only_meta) != ERR_OK) return false;
    if (fflush(file) == 0) return true;
    err_set(ERR_IO, "gguf: writing failed: %s", strerror(errno));
    return false;
}

static enum err write_and_close(FILE *f, const char *fname, const struct gguf_context *ctx, bool only_meta) {
    enum err e = write_all(f, ctx, only_meta);
    if (fclose(f) != 0 && e == ERR_OK) e = err_set(ERR_IO, "gguf: writing '%s' failed: %s", fname, strerror(errno));
    return e;
}

// Opens a new file beside `path`; its name in tmp.
static FILE *open_beside(const char *path, char tmp[PATH_MAX + 32], mode_t mode) {
    static atomic_uint counter;
    for (int i = 0; i < 100; i++) {
        snprintf(tmp, PATH_MAX + 32, "%s.%ld-%u.tmp", path, (long) getpid(), atomic_fetch_add(&counter, 1));
        int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd < 0 && errno == EEXIST) continue;
        if (fd < 0) return NULL;
        FILE *f = fdopen(fd, "wb");
        if (!f) close(fd);
        return f;
    }
    return NULL;
}

static enum err write_file(const struct gguf_context *ctx, const char *fname, bool only_meta) {
    struct stat st;
    bool exists = stat(fname, &st) == 0;
    if (exists && !S_ISREG(st.st_mode)) {  // devices and pipes can't be replaced
        FILE *f = fopen(fname, "wb");
        if (!f) return err_set(ERR_IO, "gguf: cannot open '%s' to write: %s", fname, strerror(errno));
        return write_and_close(f, fname, ctx, only_meta);
    }
    // a link stays a link: its target is what gets replaced
    char *target = exists ? realpath(fname, NULL) : NULL;
    const char *path = target ? target : fname;
    enum err e;
    if (strlen(path) >= PATH_MAX) {
        e = err_set(ERR_IO, "gguf: the name of the file to write has %zu characters", strlen(path));
    } else {
        char tmp[PATH_MAX + 32];
        FILE *f = open_beside(path, tmp, exists ? st.st_mode & 0777 : 0666);
        if (!f) {
            e = err_set(ERR_IO, "gguf: cannot open '%s' to write: %s", tmp, strerror(errno));
        } else {
            e = write_and_close(f, tmp, ctx, only_meta);
            if (e == ERR_OK && file_rename(tmp, path) != 0) {
                e = err_set(ERR_IO, "gguf: cannot rename '%s' to '%s': %s", tmp, path, strerror(errno));
            }
            if (e != ERR_OK) unlink(tmp);
        }
    }
    free(target);
    return e;
}

bool gguf_write_to_file(const struct gguf_context *ctx, const char *fname, bool only_meta) {
    if (!ctx || !fname) {
        err_set(ERR_INVALID, "gguf: nothing written: %s is NULL", ctx ? "the file name" : "the context");
        return false;
    }
    return write_file(ctx, fname, only_meta) == ERR_OK;
}
