// The files of a model: one, or several shards. Their metadata decides what they are, never their names.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/model.h"

bool meta_get_int(const struct gguf_context *g, const char *key, int64_t *out) {
    const int64_t id = gguf_find_key(g, key);
    if (id < 0) return false;
    switch (gguf_get_kv_type(g, id)) {
        case GGUF_TYPE_UINT8: *out = gguf_get_val_u8(g, id); return true;
        case GGUF_TYPE_INT8: *out = gguf_get_val_i8(g, id); return true;
        case GGUF_TYPE_UINT16: *out = gguf_get_val_u16(g, id); return true;
        case GGUF_TYPE_INT16: *out = gguf_get_val_i16(g, id); return true;
        case GGUF_TYPE_UINT32: *out = gguf_get_val_u32(g, id); return true;
        case GGUF_TYPE_INT32: *out = gguf_get_val_i32(g, id); return true;
        case GGUF_TYPE_UINT64: *out = (int64_t) gguf_get_val_u64(g, id); return true;
        case GGUF_TYPE_INT64: *out = gguf_get_val_i64(g, id); return true;
        case GGUF_TYPE_BOOL: *out = gguf_get_val_bool(g, id); return true;
        default: return false;
    }
}

static enum err add_source(struct llama_model *m, struct source **out) {
    struct source *s = realloc(m->sources, (size_t) (m->n_sources + 1) * sizeof *s);
    if (!s) return err_set(ERR_NOMEM, "no memory for the list of files");
    m->sources = s;
    *out = &s[m->n_sources++];
    memset(*out, 0, sizeof **out);
    (*out)->file.fd = -1;
    return ERR_OK;
}

static enum err open_one(struct llama_model *m, const char *path) {
    struct source *s;
    TRY(add_source(m, &s));
    TRY(file_open(&s->file, path));
    s->open = true;
    s->gguf = gguf_init_from_file(path, (struct gguf_init_params){.no_alloc = true});
    if (!s->gguf) return ERR_FORMAT;
    gguf_drop_data(s->gguf);  // tensors are mapped by themselves: data.c
    return ERR_OK;
}

// Where the last tensor of this file ends.
static uint64_t data_end(const struct gguf_context *g) {
    uint64_t end = gguf_get_data_offset(g);
    for (int64_t i = 0; i < gguf_get_n_tensors(g); i++) {
        const uint64_t e = (uint64_t) gguf_get_data_offset(g) + gguf_get_tensor_offset(g, i) + gguf_get_tensor_size(g, i);
        if (e > end) end = e;
    }
    return end;
}

static enum err check_shard(const struct source *s, int no, int count, const char *path) {
    int64_t have_no = 0, have_count = 0;
    (void) meta_get_int(s->gguf, "split.no", &have_no);
    (void) meta_get_int(s->gguf, "split.count", &have_count);
    if (have_count != count || have_no != no)
        return err_set(
            ERR_FORMAT,
            "%s should be shard %d of %d, but says that it is shard %lld of %lld: the files have been renamed or mixed up",
            path, no + 1, count, (long long) have_no + 1, (long long) have_count);
    return ERR_OK;
}

// Several shards were written one after the other into one file.
static bool is_joined(const struct source *s) {
    const uint64_t end = data_end(s->gguf), align = gguf_get_alignment(s->gguf);
    for (uint64_t at = end; at <= end + align && at + 4 <= s->file.size; at++) {
        char magic[4];
        if (file_read(&s->file, at, magic, 4) != ERR_OK) return false;
        if (!memcmp(magic, "GGUF", 4)) return true;
    }
    return false;
}

enum err sources_open(struct llama_model *m, const char *path) {
    TRY(open_one(m, path));
    int64_t count = 0, no = 0;
    (void) meta_get_int(m->sources[0].gguf, "split.count", &count);
    (void) meta_get_int(m->sources[0].gguf, "split.no", &no);
    if (count <= 1) return ERR_OK;
    if (count > 65535) return err_set(ERR_FORMAT, "%s says that the model has %lld shards", path, (long long) count);
    if (is_joined(&m->sources[0]))
        return err_set(
            ERR_FORMAT,
            "%s holds several shards joined end to end; keep them as separate files, or join them with `lamina merge`",
            path);
    if (no != 0)
        return err_set(ERR_FORMAT, "%s is shard %lld of %lld, not the first; open the first one", path, (long long) no + 1,
                       (long long) count);
    char prefix[4096], name[4096];
    if (llama_split_prefix(prefix, sizeof prefix, path, 0, (int32_t) count) <= 0)
        return err_set(ERR_FORMAT,
                       "%s is the first of %lld shards, but its name doesn't end in -00001-of-%05lld.gguf, so the others "
                       "can't be found",
                       path, (long long) count, (long long) count);
    for (int i = 1; i < count; i++) {
        llama_split_path(name, sizeof name, prefix, i, (int32_t) count);
        if (access(name, R_OK) != 0)
            return err_set(ERR_IO, "shard %d of %lld is missing at %s", i + 1, (long long) count, name);
        TRY(open_one(m, name));
        TRY(check_shard(&m->sources[i], i, (int) count, name));
    }
    return ERR_OK;
}

enum err sources_open_list(struct llama_model *m, const char *const *paths, size_t n) {
    if (!n) return err_set(ERR_INVALID, "no files are given");
    for (size_t i = 0; i < n; i++) {
        TRY(open_one(m, paths[i]));
        if (n > 1) TRY(check_shard(&m->sources[i], (int) i, (int) n, paths[i]));
    }
    int64_t count = 0;
    (void) meta_get_int(m->sources[0].gguf, "split.count", &count);
    if (count > 1 && (size_t) count != n)
        return err_set(ERR_FORMAT, "%s is one of %lld shards; %zu are given", paths[0], (long long) count, n);
    return ERR_OK;
}

enum err sources_open_stream(struct llama_model *m, FILE *file) {
    if (!file) return err_set(ERR_INVALID, "the file pointer is NULL");
    struct source *s;
    TRY(add_source(m, &s));
    const long at = ftell(file);
    const int fd = dup(fileno(file));
    struct stat st;
    if (fd < 0 || at < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        if (fd >= 0) close(fd);
        return err_set(ERR_IO, "the open file is not one that can be read at any place");
    }
    s->file.fd = fd;
    s->file.size = (uint64_t) st.st_size;
    snprintf(s->file.path, sizeof s->file.path, "(open file)");
    s->open = true;
    s->base = (uint64_t) at;
    s->gguf = gguf_init_from_file_ptr(file, (struct gguf_init_params){.no_alloc = true});
    return s->gguf ? ERR_OK : ERR_FORMAT;
}

enum err sources_index(struct llama_model *m) {
    int64_t total = 0, want = -1;
    for (int s = 0; s < m->n_sources; s++) {
        const struct gguf_context *g = m->sources[s].gguf;
        for (int64_t i = 0; i < gguf_get_n_tensors(g); i++) {
            const char *name = gguf_get_tensor_name(g, i);
            bool found;
            int64_t *v = map_add(&m->index, name, strlen(name), (int64_t) s << 32 | i, &found);
            if (!v) return err_set(ERR_NOMEM, "no memory for the index of %lld tensors", (long long) gguf_get_n_tensors(g));
            if (found)
                return err_set(ERR_FORMAT, "tensor %s is in shard %d and in shard %d", name, (int) (*v >> 32) + 1, s + 1);
            total++;
        }
    }
    if (m->n_sources > 1 && meta_get_int(m->sources[0].gguf, "split.tensors.count", &want) && want != total)
        return err_set(ERR_FORMAT, "the shards hold %lld tensors; the first one says %lld", (long long) total,
                       (long long) want);
    return ERR_OK;
}

void sources_free(struct llama_model *m) {
    for (int i = 0; i < m->n_sources; i++) {
        gguf_free(m->sources[i].gguf);
        if (m->sources[i].open) file_close(&m->sources[i].file);
    }
    free(m->sources);
    m->sources = NULL;
    m->n_sources = 0;
    map_free(&m->index);
}

static void override_key(struct gguf_context *g, const struct llama_model_kv_override *o) {
    switch (o->tag) {
        case LLAMA_KV_OVERRIDE_TYPE_INT: {
            // keep the file's own integer type where the value fits it
            const int64_t id = gguf_find_key(g, o->key);
            if (id >= 0 && gguf_get_kv_type(g, id) == GGUF_TYPE_FLOAT32)
                gguf_set_val_f32(g, o->key, (float) o->val_i64);
            else if (o->val_i64 >= 0 && o->val_i64 <= UINT32_MAX)
                gguf_set_val_u32(g, o->key, (uint32_t) o->val_i64);
            else
                gguf_set_val_i64(g, o->key, o->val_i64);
            break;
        }
        case LLAMA_KV_OVERRIDE_TYPE_FLOAT: gguf_set_val_f32(g, o->key, (float) o->val_f64); break;
        case LLAMA_KV_OVERRIDE_TYPE_BOOL: gguf_set_val_bool(g, o->key, o->val_bool); break;
        case LLAMA_KV_OVERRIDE_TYPE_STR: gguf_set_val_str(g, o->key, o->val_str); break;
    }
}

void meta_override(struct gguf_context *g, const struct llama_model_kv_override *o) {
    for (; o && o->key[0]; o++) override_key(g, o);
}

enum err meta_prepare(struct llama_model *m, const struct gguf_context *user) {
    const struct llama_model_kv_override *own = m->params.kv_overrides;
    if (!user && !(own && own[0].key[0])) {
        m->meta = m->sources[0].gguf;
        return ERR_OK;
    }
    const struct gguf_context *src = user ? user : m->sources[0].gguf;
    m->meta = gguf_init_empty();
    if (!m->meta) return err_set(ERR_NOMEM, "no memory for the model's keys");
    gguf_set_kv(m->meta, src);
    meta_override(m->meta, own);
    return gguf_get_n_kv(m->meta) >= gguf_get_n_kv(src) ? ERR_OK : err_set(ERR_NOMEM, "no memory for the model's keys");
}

void meta_free(struct llama_model *m) {
    if (m->meta && !(m->n_sources && m->meta == m->sources[0].gguf)) gguf_free(m->meta);
    m->meta = NULL;
}
