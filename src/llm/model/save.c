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

static enum err write_model(const struct llama_model *m, FILE *f, const char *path) {
    struct gguf_context *g = gguf_init_empty();
    char *chunk = malloc(SAVE_CHUNK);
    enum err e = g && chunk ? ERR_OK : err_set(ERR_NOMEM, "no memory to save a model");
    if (e == ERR_OK) {
        gguf_set_kv(g, m->meta);
        // the shards it came from are one file now
        (void) gguf_remove_key(g, "split.no");
        (void) gguf_remove_key(g, "split.count");
        (void) gguf_remove_key(g, "split.tensors.count");
        for (int i = 0; i < m->n_tensors; i++)
            if (!m->tensors[i].copy) gguf_add_tensor(g, m->tensors[i].t);
        if (!gguf_write_to_file_ptr(g, f, true)) e = err_set(ERR_IO, "the keys can't be written to %s", path);
    }
    for (int i = 0; e == ERR_OK && i < m->n_tensors; i++)
        if (!m->tensors[i].copy && !write_tensor(f, m->tensors[i].t, chunk, gguf_get_alignment(g)))
            e = err_set(ERR_IO, "tensor %s can't be written to %s", m->tensors[i].t->name, path);
    gguf_free(g);
    free(chunk);
    return e;
}

void llama_model_save_to_file(const struct llama_model *model, const char *path_model) {
    ggml_clear_error();
    if (!model || !path_model || !model->layers) {
        (void) err_set(ERR_INVALID, "save: a NULL argument, or a model without weights");
        return;
    }
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
