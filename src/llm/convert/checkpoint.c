// Opening and reading safetensors checkpoints.
#include "convert/checkpoint.h"

#include "convert/packed.h"
#include "ggml.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_HEADER ((uint64_t) 100 << 20)  // the format's own limit
#define MAX_FILES 4096

static const struct dtype {
    const char *name;
    enum ggml_type type;
    size_t size;
    enum ckpt_kind kind;
} dtypes[] = {
    {"F32", GGML_TYPE_F32, 4, CKPT_PLAIN},  {"F16", GGML_TYPE_F16, 2, CKPT_PLAIN},   {"BF16", GGML_TYPE_BF16, 2, CKPT_PLAIN},
    {"F64", GGML_TYPE_F64, 8, CKPT_PLAIN},  {"I64", GGML_TYPE_I64, 8, CKPT_PLAIN},   {"I32", GGML_TYPE_I32, 4, CKPT_PLAIN},
    {"I16", GGML_TYPE_I16, 2, CKPT_PLAIN},  {"I8", GGML_TYPE_I8, 1, CKPT_PLAIN},     {"U8", GGML_TYPE_I8, 1, CKPT_PLAIN},
    {"BOOL", GGML_TYPE_I8, 1, CKPT_PLAIN},  {"F8_E4M3", GGML_TYPE_I8, 1, CKPT_E4M3}, {"F8_E5M2", GGML_TYPE_I8, 1, CKPT_E5M2},
    {"F8_E8M0", GGML_TYPE_I8, 1, CKPT_E8M0}};

static const struct dtype *find_dtype(const char *name) {
    for (size_t i = 0; name && i < sizeof(dtypes) / sizeof(dtypes[0]); i++)
        if (strcmp(name, dtypes[i].name) == 0) return &dtypes[i];
    return NULL;
}

int64_t ckpt_tensor_count(const struct ckpt_tensor *t) {
    int64_t n = 1;
    for (int i = 0; i < t->n_dims; i++) n *= t->shape[i];
    return n;
}

enum err checkpoint_add(struct checkpoint *c, const struct ckpt_tensor *t) {
    if (c->n_tensors == c->room) {
        const size_t room = c->room ? 2 * c->room : 256;
        struct ckpt_tensor *grown = realloc(c->tensors, room * sizeof(*grown));
        if (!grown) return err_set(ERR_NOMEM, "no memory for %zu tensors of the checkpoint", room);
        c->tensors = grown;
        c->room = room;
    }
    bool found = false;
    if (!map_add(&c->by_name, t->name, strlen(t->name), (int64_t) c->n_tensors, &found))
        return err_set(ERR_NOMEM, "no memory for %zu tensor names", c->n_tensors);
    if (found) return err_set(ERR_FORMAT, "the checkpoint holds the tensor '%s' twice", t->name);
    c->tensors[c->n_tensors++] = *t;
    return ERR_OK;
}

// One entry of a header. data_start: where the file's data begins.
static enum err take_entry(struct checkpoint *c, int i_file, uint64_t data_start, const char *name, json_t *entry) {
    const char *path = c->files[i_file].path;
    const struct dtype *d = find_dtype(json_string_value(json_object_get(entry, "dtype")));
    json_t *shape = json_object_get(entry, "shape"), *range = json_object_get(entry, "data_offsets");
    if (!d)
        return err_set(ERR_UNSUPPORTED, "%s: tensor '%s' has the element type %s, which is not supported", path, name,
                       json_string_value(json_object_get(entry, "dtype"))
                           ? json_string_value(json_object_get(entry, "dtype"))
                           : "(none)");
    if (!json_is_array(shape) || !json_is_array(range) || json_array_size(range) != 2)
        return err_set(ERR_FORMAT, "%s: tensor '%s' has no shape, or no data_offsets", path, name);
    struct ckpt_tensor t = {.name = name, .kind = d->kind, .type = d->type, .i_file = i_file, .i_scale = -1};
    uint64_t n = 1;
    size_t i;
    json_t *side;
    json_array_foreach(shape, i, side) {
        const json_int_t v = json_integer_value(side);
        if (v < 0 || (v > 0 && n > (uint64_t) INT64_MAX / 8 / (uint64_t) v))
            return err_set(ERR_FORMAT, "%s: tensor '%s' has an impossible shape", path, name);
        n *= (uint64_t) v;
        if (i < 4)
            t.shape[t.n_dims++] = v;
        else
            t.shape[3] *= v;  // convolutions over images in time, which no file takes, have five
    }
    const json_int_t from = json_integer_value(json_array_get(range, 0)), to = json_integer_value(json_array_get(range, 1));
    if (from < 0 || to < from || (uint64_t) to > c->files[i_file].size - data_start || (uint64_t) (to - from) != n * d->size)
        return err_set(ERR_FORMAT,
                       "%s: tensor '%s' lies at bytes %" JSON_INTEGER_FORMAT " to %" JSON_INTEGER_FORMAT " of %" PRIu64
                       ", but needs %" PRIu64,
                       path, name, from, to, c->files[i_file].size - data_start, n * d->size);
    t.offset = data_start + (uint64_t) from;
    t.bytes = (uint64_t) (to - from);
    return checkpoint_add(c, &t);
}

static enum err take_file(struct checkpoint *c, const char *path) {
    if (c->n_files == MAX_FILES) return err_set(ERR_FORMAT, "%s: more than %d files", c->dir, MAX_FILES);
    struct file *files = realloc(c->files, sizeof(*files) * (size_t) (c->n_files + 1));
    if (files) c->files = files;
    json_t **headers = realloc(c->headers, sizeof(*headers) * (size_t) (c->n_files + 1));
    if (headers) c->headers = headers;
    if (!files || !headers) return err_set(ERR_NOMEM, "no memory for %d files", c->n_files + 1);
    TRY(file_open(&c->files[c->n_files], path));
    const int i_file = c->n_files++;
    c->headers[i_file] = NULL;
    struct file *f = &c->files[i_file];
    uint8_t raw[8];
    TRY(file_read(f, 0, raw, 8));
    uint64_t size = 0;
    for (int i = 7; i >= 0; i--) size = size << 8 | raw[i];
    if (size > MAX_HEADER || size > f->size - 8)
        return err_set(ERR_FORMAT, "%s is not a safetensors file: its header would have %" PRIu64 " bytes of %" PRIu64, path,
                       size, f->size);
    char *text = malloc(size + 1);
    if (!text) return err_set(ERR_NOMEM, "%s: no memory for a header of %" PRIu64 " bytes", path, size);
    enum err e = file_read(f, 8, text, size);
    json_error_t why;
    if (e == ERR_OK) {
        c->headers[i_file] = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
        if (!json_is_object(c->headers[i_file]))
            e = err_set(ERR_FORMAT, "%s: the header is not a JSON object (%s, byte %d)", path,
                        c->headers[i_file] ? "another value" : why.text, why.position);
    }
    free(text);
    const char *name;
    json_t *entry;
    for (void *it = e == ERR_OK ? json_object_iter(c->headers[i_file]) : NULL; it && e == ERR_OK;
         it = json_object_iter_next(c->headers[i_file], it)) {
        name = json_object_iter_key(it);
        entry = json_object_iter_value(it);
        if (strcmp(name, "__metadata__") != 0) e = take_entry(c, i_file, 8 + size, name, entry);
    }
    return e;
}

static enum err join(char out[8192], const char *dir, const char *name) {
    const int n = snprintf(out, 8192, "%s/%s", dir, name);
    return n > 0 && n < 8192 ? ERR_OK : err_set(ERR_INVALID, "the path %s/%s is too long", dir, name);
}

// Every file that the index names, each once.
static enum err take_index(struct checkpoint *c, json_t *index) {
    json_t *map = json_object_get(index, "weight_map"), *seen = json_object();
    const char *name;
    json_t *file;
    enum err e = json_is_object(map) && seen ? ERR_OK : err_set(ERR_FORMAT, "%s: the index has no weight_map", c->dir);
    if (e == ERR_OK) json_object_foreach(map, name, file) {
            const char *base = json_string_value(file);
            char path[8192];
            if (!base || strchr(base, '/'))
                e = err_set(ERR_FORMAT, "%s: the index gives no file name in the folder for '%s'", c->dir, name);
            else if (!json_object_get(seen, base)) {
                json_object_set_new(seen, base, json_true());
                e = join(path, c->dir, base);
                if (e == ERR_OK) e = take_file(c, path);
            }
            if (e != ERR_OK) break;
        }
    json_decref(seen);
    return e;
}

static enum err open_files(struct checkpoint *c, const char *path) {
    struct stat st;
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
        const char *slash = strrchr(path, '/');
        snprintf(c->dir, sizeof(c->dir), "%.*s", slash ? (int) (slash - path) : 1, slash ? path : ".");
        return take_file(c, path);
    }
    if (snprintf(c->dir, sizeof(c->dir), "%s", path) >= (int) sizeof(c->dir))
        return err_set(ERR_INVALID, "the path %s is too long", path);
    json_t *index = NULL;
    TRY(checkpoint_json(c, "model.safetensors.index.json", false, &index));
    if (index) {
        const enum err e = take_index(c, index);
        json_decref(index);
        return e;
    }
    char file[8192];
    TRY(join(file, path, "model.safetensors"));
    if (access(file, F_OK) != 0)
        return err_set(ERR_IO, "%s holds neither model.safetensors nor model.safetensors.index.json", path);
    return take_file(c, file);
}

enum err checkpoint_open(struct checkpoint *c, const char *path) {
    *c = (struct checkpoint){0};
    TRY(open_files(c, path));
    return packed_join(c);
}

void checkpoint_close(struct checkpoint *c) {
    packed_free(c);
    for (int i = 0; i < c->n_files; i++) {
        json_decref(c->headers[i]);
        file_close(&c->files[i]);
    }
    free(c->files);
    free(c->headers);
    free(c->tensors);
    map_free(&c->by_name);
    arena_free(&c->arena);
    *c = (struct checkpoint){0};
}

struct ckpt_tensor *checkpoint_find(const struct checkpoint *c, const char *name) {
    const int64_t *i = map_get(&c->by_name, name, strlen(name));
    return i ? &c->tensors[*i] : NULL;
}

static float element(enum ggml_type type, const char *p) {
    union {
        float f32;
        double f64;
        int64_t i64;
        int32_t i32;
        int16_t i16;
        int8_t i8;
    } v = {0};
    switch (type) {
        case GGML_TYPE_F64: memcpy(&v.f64, p, 8); return (float) v.f64;
        case GGML_TYPE_I64: memcpy(&v.i64, p, 8); return (float) v.i64;
        case GGML_TYPE_I32: memcpy(&v.i32, p, 4); return (float) v.i32;
        case GGML_TYPE_I16: memcpy(&v.i16, p, 2); return (float) v.i16;
        default: memcpy(&v.i8, p, 1); return (float) v.i8;
    }
}

enum err checkpoint_read(const struct checkpoint *c, const struct ckpt_tensor *t, int64_t i0, int64_t n, float *out) {
    if (t->kind != CKPT_PLAIN) return packed_read(c, t, i0, n, out);
    const size_t size = ggml_type_size(t->type), step = n < 1 << 16 ? (size_t) (n > 0 ? n : 1) : 1 << 16;
    char *raw = malloc(step * size);
    if (!raw) return err_set(ERR_NOMEM, "no memory to read '%s'", t->name);
    enum err e = ERR_OK;
    for (int64_t done = 0; done < n && e == ERR_OK; done += (int64_t) step) {
        const size_t now = n - done < (int64_t) step ? (size_t) (n - done) : step;
        e = file_read(&c->files[t->i_file], t->offset + (uint64_t) (i0 + done) * size, raw, now * size);
        if (e != ERR_OK) break;
        if (t->type == GGML_TYPE_F32)
            memcpy(out + done, raw, now * 4);
        else if (t->type == GGML_TYPE_F16)
            ggml_fp16_to_fp32_row((const ggml_fp16_t *) (const void *) raw, out + done, (int64_t) now);
        else if (t->type == GGML_TYPE_BF16)
            ggml_bf16_to_fp32_row((const ggml_bf16_t *) (const void *) raw, out + done, (int64_t) now);
        else
            for (size_t i = 0; i < now; i++) out[done + (int64_t) i] = element(t->type, raw + i * size);
    }
    free(raw);
    return e;
}

// Whole numbers that no integer holds ("model_max_length": 1000000000000000019884624838656 is common) become real ones, in place.
static void shorten_numbers(char *text) {
    bool quoted = false;
    for (char *p = text; *p; p++) {
        if (quoted && *p == '\\' && p[1])
            p++;
        else if (*p == '"')
            quoted = !quoted;
        const size_t n = quoted ? 0 : strspn(p, "0123456789");
        if (n > 18 && !strchr(".eE", p[n] ? p[n] : ' ')) memset(p, ' ', n), memcpy(p, "1e30", 4);
        if (n > 1) p += n - 1;
    }
}

enum err checkpoint_json(const struct checkpoint *c, const char *name, bool need, json_t **out) {
    char path[8192];
    *out = NULL;
    TRY(join(path, c->dir, name));
    if (access(path, F_OK) != 0) return need ? err_set(ERR_IO, "%s holds no %s", c->dir, name) : ERR_OK;
    struct file f;
    TRY(file_open(&f, path));
    char *text = f.size < (uint64_t) 1 << 30 ? malloc(f.size + 1) : NULL;
    enum err e = text ? file_read(&f, 0, text, f.size) : err_set(ERR_NOMEM, "%s: no memory for its text", path);
    if (e == ERR_OK) {
        json_error_t why;
        text[f.size] = '\0';
        shorten_numbers(text);
        *out = json_loadb(text, f.size, 0, &why);
        if (!*out) e = err_set(ERR_FORMAT, "%s: %s (line %d)", path, why.text, why.line);
    }
    free(text);
    file_close(&f);
    return e;
}
