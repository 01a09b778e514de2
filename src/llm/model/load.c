// Loading a model from files, an open file or the caller's own data.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml/plan.h"
#include "llama/ext.h"
#include "model/adapter.h"
#include "model/model.h"
#include "vocab/vocab.h"

static enum err find_arch(struct llama_model *m) {
    const int64_t id = gguf_find_key(m->meta, "general.architecture");
    if (id < 0) return err_set(ERR_FORMAT, "key general.architecture is missing: this file is no language model");
    if (gguf_get_kv_type(m->meta, id) != GGUF_TYPE_STRING)
        return err_set(ERR_FORMAT, "key general.architecture is not a string");
    const char *name = gguf_get_val_str(m->meta, id);
    m->arch = arch_by_name(name);
    if (m->arch) return ERR_OK;
    if (strcmp(name, "clip") == 0)
        return err_set(
            ERR_UNSUPPORTED,
            "unknown architecture 'clip': this file is a multimodal projector, the part that reads images for a language "
            "model; the model is in another file");
    return err_set(ERR_UNSUPPORTED, "unknown architecture '%.64s'; this build knows %d", name, arch_count());
}

static bool has_tensor(const struct model_build *b, const char *name) {
    const struct llama_model *m = b->ud;
    if (m->params.vocab_only) return true;  // the file may hold none; nothing of the model's shape is used
    if (m->n_sources == 0) return gguf_find_tensor(b->meta, name) >= 0;
    return map_get(&m->index, name, strlen(name)) != NULL;
}

static void guess_ftype(struct llama_model *m) {
    int64_t v;
    if (meta_get_int(m->meta, "general.file_type", &v) && v >= 0 && v < LLAMA_FTYPE_GUESSED)
        m->ftype = (enum llama_ftype) v;
    else
        m->ftype = LLAMA_FTYPE_GUESSED;
}

// As many tokens as the vocabulary has, from the header alone.
static int count_tokens(const struct llama_model *m) {
    const int64_t id = gguf_find_key(m->meta, "tokenizer.ggml.tokens");
    if (id >= 0 && gguf_get_kv_type(m->meta, id) == GGUF_TYPE_ARRAY) {
        const size_t n = gguf_get_arr_n(m->meta, id);
        return n > INT32_MAX ? INT32_MAX : (int) n;
    }
    char key[160];
    int64_t n = 0;
    snprintf(key, sizeof key, "%s.vocab_size", m->arch->name);
    return meta_get_int(m->meta, key, &n) && n > 0 && n < INT32_MAX ? (int) n : 0;
}

static enum err load(struct llama_model *m, const struct gguf_context *user, llama_model_set_tensor_data_t set, void *ud) {
    if (!user) TRY(sources_index(m));
    TRY(meta_prepare(m, user));
    TRY(find_arch(m));
    guess_ftype(m);
    const struct model_build b = {
        .arch = m->arch, .meta = m->meta, .has_tensor = has_tensor, .ud = m, .vocab_only = m->params.vocab_only};
    const int n_vocab = count_tokens(m);
    if (n_vocab == 0 && gguf_find_key(m->meta, "tokenizer.ggml.model") >= 0 && !m->params.vocab_only)
        return err_set(ERR_FORMAT, "keys tokenizer.ggml.tokens and %s.vocab_size say of no token", m->arch->name);
    TRY(arch_read_keys(&m->hp, &b, n_vocab));
    if (m->params.vocab_only) return vocab_load(&m->vocab, m->meta);
    TRY(place_devices(m));
    TRY(tensors_make(m, user));
    TRY(data_map(m));
    struct prefault *p = prefault_begin(m);
    enum err e = m->plan_only ? ERR_OK : vocab_load(&m->vocab, m->meta);
    if (e == ERR_OK) e = data_load(m, set, ud);
    prefault_end(p);
    return e == ERR_OK ? data_whole(m) : e;
}

// `open` is done; on failure everything goes.
static struct llama_model *finish(struct llama_model *m, enum err opened, const struct gguf_context *user,
                                  llama_model_set_tensor_data_t set, void *ud) {
    if (opened != ERR_OK || load(m, user, set, ud) != ERR_OK) {
        llama_model_free(m);
        return NULL;
    }
    m->t_load_us = ggml_time_us() - m->t_start_us;
    return m;
}

static struct llama_model *begin(struct llama_model_params params) {
    ggml_clear_error();
    struct llama_model *m = calloc(1, sizeof *m);
    if (!m) {
        (void) err_set(ERR_NOMEM, "no memory for a model");
        return NULL;
    }
    m->params = params;
    m->t_start_us = ggml_time_us();
    return m;
}

struct llama_model *llama_model_load_from_file(const char *path_model, struct llama_model_params params) {
    struct llama_model *m = begin(params);
    if (!m) return NULL;
    return finish(m, path_model ? sources_open(m, path_model) : err_set(ERR_INVALID, "the model's path is NULL"), NULL, NULL,
                  NULL);
}

struct llama_model *llama_model_load_from_splits(const char **paths, size_t n_paths, struct llama_model_params params) {
    struct llama_model *m = begin(params);
    if (!m) return NULL;
    return finish(m, sources_open_list(m, paths, paths ? n_paths : 0), NULL, NULL, NULL);
}

struct llama_model *llama_model_load_from_file_ptr(FILE *file, struct llama_model_params params) {
    struct llama_model *m = begin(params);
    if (!m) return NULL;
    return finish(m, sources_open_stream(m, file), NULL, NULL, NULL);
}

struct llama_model *llama_model_init_from_user(struct gguf_context *metadata, llama_model_set_tensor_data_t set_tensor_data,
                                               void *set_tensor_data_ud, struct llama_model_params params) {
    struct llama_model *m = begin(params);
    if (!m) return NULL;
    const enum err e = metadata ? ERR_OK : err_set(ERR_INVALID, "the metadata is NULL");
    return finish(m, e, metadata, set_tensor_data, set_tensor_data_ud);
}

struct llama_model *model_load_plan(const char *path, struct llama_model_params params) {
    struct llama_model *m = begin(params);
    if (!m) return NULL;
    m->params.no_alloc = m->plan_only = true;
    m->params.vocab_only = false;
    return finish(m, path ? sources_open(m, path) : err_set(ERR_INVALID, "the model's path is NULL"), NULL, NULL, NULL);
}

struct llama_model *llama_model_plan_from_file(const char *path_model, struct llama_model_params params) {
    return model_load_plan(path_model, params);
}

static size_t mapping_overhead(const struct llama_model *m) {
    size_t n = 0;
    int n_all = 0, n_copied = 0;
    for (int i = 0; i < m->home.n; i++) {
        const ggml_backend_buffer_type_t buft = m->home.part[i].buft;
        int n_maps;
        (void) data_mapped_bytes(m, buft, &n_maps);
        n += (size_t) n_maps * ggml_backend_buft_overhead(buft == ggml_backend_cpu_buffer_type() ? NULL : buft);
        n_all += n_maps;
        n_copied += m->home.part[i].overhead > 0;
    }
    return n + (size_t) n_all * sizeof *m->maps + (size_t) (n_all + n_copied) * sizeof *m->bufs;
}

size_t model_overhead(const struct llama_model *m) {
    size_t n = sizeof *m + (size_t) m->cap_tensors * sizeof *m->tensors + m->index.size * sizeof *m->index.slots;
    n += ((size_t) m->n_layers_alloc + 1) * sizeof *m->layers + (size_t) m->n_sources * sizeof *m->sources;
    if (m->enc_layers) n += ((size_t) m->hp.n_block + 1) * sizeof *m->enc_layers;
    return n + home_overhead(&m->home) + mapping_overhead(m);
}

void llama_model_free(struct llama_model *m) {
    if (!m) return;
    while (m->n_adapters) llama_adapter_lora_free(m->adapters[m->n_adapters - 1]);
    free(m->adapters);
    data_free(m);
    free(m->layers);
    free(m->enc_layers);
    free(m->tensors);
    vocab_free(m->vocab);
    meta_free(m);
    sources_free(m);
    free(m);
}

struct llama_model *llama_load_model_from_file(const char *path_model, struct llama_model_params params) {
    return llama_model_load_from_file(path_model, params);
}

void llama_free_model(struct llama_model *model) { llama_model_free(model); }
