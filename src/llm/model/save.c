// Writing a loaded model back to a file: its keys (overrides included) and its weights, from whatever device they are on.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "model/model.h"

#define SAVE_CHUNK ((size_t) 4 << 20)

static bool write_padding(FILE *f, size_t n) {
    static const char zero[4096];
    while (n) {
        const size_t k = n < sizeof zero ? n : sizeof zero;
        if (fwrite(zero, 1, k, f) != k) return false;
        n -= k;
    }
    return true;
}

static bool write_tensor(FILE *f, const struct ggml_tensor *t, char *chunk, size_t align) {
    const size_t n = ggml_nbytes(t);
    for (size_t off = 0; off < n; off += SAVE_CHUNK) {
        const size_t k = n - off < SAVE_CHUNK ? n - off : SAVE_CHUNK;
        ggml_backend_tensor_get(t, chunk, off, k);
        if (fwrite(chunk, 1, k, f) != k) return false;
    }
    return write_padding(f, GGML_PAD(n, align) - n);
}

// ---- a draft head that was not loaded ---------------------------------------------------------------------------------
// The keys go on naming it, so it must not get lost: its tensors are copied from the files that the model came from.

static bool left_in_file(const struct llama_model *m, const char *name) {
    int il;
    return m->n_nextn == 0 && m->hp.n_nextn > 0 && sscanf(name, "blk.%d.", &il) == 1 && il >= m->hp.n_layer &&
           il < m->hp.n_block;
}

// Calls `each` for every tensor of the head, in the files' order.
static enum err walk_left(const struct llama_model *m, enum err (*each)(const struct source *s, int64_t id, void *ud),
                          void *ud) {
    for (int i = 0; i < m->n_sources; i++) {
        const struct gguf_context *g = m->sources[i].gguf;
        for (int64_t id = 0; id < gguf_get_n_tensors(g); id++)
            if (left_in_file(m, gguf_get_tensor_name(g, id))) TRY(each(&m->sources[i], id, ud));
    }
    return ERR_OK;
}

static enum err count_left(const struct source *s, int64_t id, void *ud) {
    (void) s, (void) id;
    (*(size_t *) ud)++;
    return ERR_OK;
}

struct heads {
    struct gguf_context *g;
    struct ggml_context *ctx;
};

static enum err add_left(const struct source *s, int64_t id, void *ud) {
    struct heads *h = ud;
    struct ggml_tensor *t =
        ggml_new_tensor(h->ctx, gguf_get_tensor_type(s->gguf, id), GGML_MAX_DIMS, gguf_get_tensor_ne(s->gguf, id));
    if (ggml_is_error(t)) return ERR_NOMEM;
    ggml_set_name(t, gguf_get_tensor_name(s->gguf, id));
    gguf_add_tensor(h->g, t);
    return ERR_OK;
}

struct copying {
    FILE *f;
    char *chunk;
    size_t align;
    const char *path;
};

static enum err copy_left(const struct source *s, int64_t id, void *ud) {
    struct copying *c = ud;
    const size_t n = gguf_get_tensor_size(s->gguf, id);
    const uint64_t at = s->base + gguf_get_data_offset(s->gguf) + gguf_get_tensor_offset(s->gguf, id);
    for (size_t off = 0; off < n; off += SAVE_CHUNK) {
        const size_t k = n - off < SAVE_CHUNK ? n - off : SAVE_CHUNK;
        TRY(file_read(&s->file, at + off, c->chunk, k));
        if (fwrite(c->chunk, 1, k, c->f) != k) return err_set(ERR_IO, "a draft head can't be written to %s", c->path);
    }
    return write_padding(c->f, GGML_PAD(n, c->align) - n) ? ERR_OK
                                                          : err_set(ERR_IO, "a draft head can't be written to %s", c->path);
}

static enum err write_model(const struct llama_model *m, FILE *f, const char *path) {
    struct heads h = {.g = gguf_init_empty()};
    struct gguf_context *g = h.g;
    char *chunk = malloc(SAVE_CHUNK);
    size_t n_left = 0;
    (void) walk_left(m, count_left, &n_left);
    h.ctx = ggml_init((struct ggml_init_params){.mem_size = (n_left + 1) * ggml_tensor_overhead(), .no_alloc = true});
    enum err e = g && chunk && h.ctx ? ERR_OK : err_set(ERR_NOMEM, "no memory to save a model");
    if (e == ERR_OK) {
        gguf_set_kv(g, m->meta);
        // the shards it came from are one file now
        (void) gguf_remove_key(g, "split.no");
        (void) gguf_remove_key(g, "split.count");
        (void) gguf_remove_key(g, "split.tensors.count");
        for (int i = 0; i < m->n_tensors; i++)
            if (!m->tensors[i].copy) gguf_add_tensor(g, m->tensors[i].t);
        e = walk_left(m, add_left, &h);
        if (e == ERR_OK && !gguf_write_to_file_ptr(g, f, true)) e = err_set(ERR_IO, "the keys can't be written to %s", path);
    }
    for (int i = 0; e == ERR_OK && i < m->n_tensors; i++)
        if (!m->tensors[i].copy && !write_tensor(f, m->tensors[i].t, chunk, gguf_get_alignment(g)))
            e = err_set(ERR_IO, "tensor %s can't be written to %s", m->tensors[i].t->name, path);
    if (e == ERR_OK)
        e = walk_left(m, copy_left, &(struct copying){.f = f, .chunk = chunk, .align = gguf_get_alignment(g), .path = path});
    gguf_free(g);
    ggml_free(h.ctx);
    free(chunk);
    return e;
}

void llama_model_save_to_file(const struct llama_model *model, const char *path_model) {
    ggml_clear_error();
    if (!model || !path_model || !model->layers) {
        (void) err_set(ERR_INVALID, "save: a NULL argument, or a model without weights");
        return;
    }
    if (data_whole(model) != ERR_OK) return;
    // under another name first: the model may be mapped from the very file that is to be replaced
    const size_t n = strlen(path_model) + 32;
    char *tmp = malloc(n);
    if (!tmp) {
        (void) err_set(ERR_NOMEM, "no memory to save a model");
        return;
    }
    snprintf(tmp, n, "%s.%d.tmp", path_model, (int) getpid());
    FILE *f = ggml_fopen(tmp, "wb");
    bool ok = f && write_model(model, f, path_model) == ERR_OK;
    if (f) ok &= fclose(f) == 0;
    ok = ok && file_rename(tmp, path_model) == 0;
    if (!ok) {
        if (f) unlink(tmp);
        if (!*ggml_last_error()) (void) err_set(ERR_IO, "the model can't be written to %s", path_model);
    }
    free(tmp);
}
