// Setting and removing keys, adding tensors. A key that is set again moves to the back, as programs expect. Failures
// (no memory, bad names) leave the context as it was; the setters have no result, so the sentence is all there is.
#include "gguf/gguf_int.h"
#include <stdlib.h>

static bool usable(const struct gguf_context *ctx, const char *key) {
    if (ctx && key && *key) return true;
    err_set(ERR_INVALID, "gguf: a key can't be set: %s",
            !ctx   ? "the context is NULL"
            : !key ? "its name is NULL"
                   : "its name is empty");
    return false;
}

static uint32_t alignment_of(const struct kv *kv) {
    uint32_t v = kv->type == GGUF_TYPE_UINT32 ? *(const uint32_t *) kv->data : 0;
    return v && (v & (v - 1)) == 0 ? v : 0;
}

// The alignment key takes effect as soon as there are tensors to align.
enum err gguf_apply_alignment(struct gguf_context *ctx) {
    if (ctx->n_ti == 0) return ERR_OK;
    int64_t id = gguf_find_key(ctx, GGUF_KEY_GENERAL_ALIGNMENT);
    ctx->alignment = id < 0 ? GGUF_DEFAULT_ALIGNMENT : alignment_of(&ctx->kv[id]);
    uint64_t at = 0;
    for (size_t i = 0; i < ctx->n_ti; i++) {
        ctx->ti[i].offset = at;
        uint64_t padded = gguf_pad(ctx->ti[i].size, ctx->alignment);
        if (__builtin_add_overflow(at, padded, &at) || at > INT64_MAX) {
            return err_set(ERR_INVALID, "gguf: the tensors up to '%s' have more bytes than 63 bits count",
                           ctx->ti[i].name.p);
        }
    }
    return ERR_OK;
}

static void remove_at(struct gguf_context *ctx, size_t id) {
    gguf_kv_free(&ctx->kv[id]);
    memmove(&ctx->kv[id], &ctx->kv[id + 1], (ctx->n_kv - id - 1) * sizeof *ctx->kv);
    ctx->n_kv--;
    // the index only shrinks here, so it needs no memory
    if (names_rebuild(&ctx->kv_names, ctx->kv, sizeof *ctx->kv, ctx->n_kv) != ERR_OK) ctx->kv_names.n = 0;
}

int64_t gguf_remove_key(struct gguf_context *ctx, const char *key) {
    int64_t id = gguf_find_key(ctx, key);
    if (id < 0) return -1;
    remove_at(ctx, (size_t) id);
    if (strcmp(key, GGUF_KEY_GENERAL_ALIGNMENT) == 0 && gguf_apply_alignment(ctx) != ERR_OK) return -1;
    return id;
}

static enum err no_memory(const char *key) { return err_set(ERR_NOMEM, "gguf: no memory for the value of key '%s'", key); }

// Setters return nothing, so a caller may not notice that an entry is missing: the context remembers it.
static void note(struct gguf_context *ctx, enum err e) {
    if (e == ERR_NOMEM) ctx->incomplete = true;
}

// Puts a finished entry (owned) at the back, replacing the one of the same name. Frees it on failure.
static void put(struct gguf_context *ctx, struct kv kv) {
    const char *name = kv.key.p;
    bool is_alignment = kv.key.len == sizeof GGUF_KEY_GENERAL_ALIGNMENT - 1 && strcmp(name, GGUF_KEY_GENERAL_ALIGNMENT) == 0;
    if (is_alignment && alignment_of(&kv) == 0) {
        err_set(ERR_INVALID, "gguf: key '" GGUF_KEY_GENERAL_ALIGNMENT "' must be a u32 and a power of two");
        gguf_kv_free(&kv);
        return;
    }
    int64_t old = names_find(&ctx->kv_names, ctx->kv, sizeof *ctx->kv, name, kv.key.len);
    if (ctx->n_kv == ctx->cap_kv) {
        size_t cap = ctx->cap_kv ? ctx->cap_kv * 2 : 32;
        struct kv *p = realloc(ctx->kv, cap * sizeof *p);
        if (!p) {
            note(ctx, no_memory(name));
            gguf_kv_free(&kv);
            return;
        }
        ctx->kv = p;
        ctx->cap_kv = cap;
    }
    if (old >= 0) remove_at(ctx, (size_t) old);
    ctx->kv[ctx->n_kv] = kv;
    const enum err e = names_add(&ctx->kv_names, ctx->kv, sizeof *ctx->kv, ctx->n_kv);
    if (e != ERR_OK) {
        note(ctx, e);
        gguf_kv_free(&kv);
        return;
    }
    ctx->n_kv++;
    if (is_alignment && gguf_apply_alignment(ctx) != ERR_OK) return;
}

// An owned entry with a copy of name and payload (data has room for a terminator).
static enum err make(struct kv *kv, const char *key, size_t key_len, enum gguf_type type, const void *data, size_t bytes) {
    *kv = (struct kv){.type = type, .n = 1, .bytes = bytes, .owned = true};
    kv->key.len = key_len;
    kv->key.p = malloc(key_len + 1);
    kv->data = malloc(bytes + 1);
    if (!kv->key.p || !kv->data) {
        free(kv->key.p);
        free(kv->data);
        return no_memory(key);
    }
    memcpy(kv->key.p, key, key_len);
    kv->key.p[key_len] = 0;
    if (bytes) memcpy(kv->data, data, bytes);
    ((char *) kv->data)[bytes] = 0;
    return ERR_OK;
}

static void set(struct gguf_context *ctx, const char *key, enum gguf_type type, const void *data, size_t bytes) {
    struct kv kv;
    if (!usable(ctx, key)) return;
    const enum err e = make(&kv, key, strlen(key), type, data, bytes);
    if (e == ERR_OK)
        put(ctx, kv);
    else
        note(ctx, e);
}

#define SETTER(name, ctype, TYPE)                                                                                           \
    void gguf_set_val_##name(struct gguf_context *ctx, const char *key, ctype val) {                                        \
        set(ctx, key, GGUF_TYPE_##TYPE, &val, sizeof val);                                                                  \
    }
SETTER(u8, uint8_t, UINT8)
SETTER(i8, int8_t, INT8)
SETTER(u16, uint16_t, UINT16)
SETTER(i16, int16_t, INT16)
SETTER(u32, uint32_t, UINT32)
SETTER(i32, int32_t, INT32)
SETTER(f32, float, FLOAT32)
SETTER(u64, uint64_t, UINT64)
SETTER(i64, int64_t, INT64)
SETTER(f64, double, FLOAT64)
SETTER(bool, bool, BOOL)

void gguf_set_val_str(struct gguf_context *ctx, const char *key, const char *val) {
    if (!val) {
        err_set(ERR_INVALID, "gguf: the string for key '%s' is NULL", key ? key : "");
        return;
    }
    set(ctx, key, GGUF_TYPE_STRING, val, strlen(val));
}

void gguf_set_arr_data(struct gguf_context *ctx, const char *key, enum gguf_type type, const void *data, size_t n) {
    if (!usable(ctx, key)) return;
    size_t size = gguf_scalar_size(type), bytes;
    if (size == 0 || (n && !data) || __builtin_mul_overflow(n, size, &bytes) || bytes > PTRDIFF_MAX) {
        err_set(ERR_INVALID, "gguf: key '%s' can't hold an array of %zu elements of type %s", key, n,
                gguf_type_name(type) ? gguf_type_name(type) : "unknown");
        return;
    }
    struct kv kv;
    const enum err e = make(&kv, key, strlen(key), GGUF_TYPE_ARRAY, data, bytes);
    note(ctx, e);
    if (e != ERR_OK) return;
    kv.arr_type = type;
    kv.n = n;
    put(ctx, kv);
}

// Builds the array as it will lie in the file. lens NULL: terminated strings.
static enum err make_strings(struct kv *kv, const char *key, const char **data, const size_t *lens, size_t n) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        if (!data[i]) return err_set(ERR_INVALID, "gguf: string %zu for key '%s' is NULL", i, key);
        bytes += 8 + (uint64_t) (lens ? lens[i] : strlen(data[i]));
    }
    if (bytes > GGUF_MAX_STR_ARRAY) return err_set(ERR_INVALID, "gguf: the strings for key '%s' take more than 4 GiB", key);
    uint8_t *raw = malloc((size_t) bytes + 1);
    uint32_t *offs = malloc((n + 1) * sizeof *offs);
    if (!raw || !offs) {
        free(raw);
        free(offs);
        return no_memory(key);
    }
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t len = lens ? lens[i] : strlen(data[i]);
        memcpy(raw + at, &len, 8);
        memcpy(raw + at + 8, data[i], (size_t) len);
        offs[i] = (uint32_t) at + 8;
        at += 8 + (size_t) len;
    }
    kv->arr_type = GGUF_TYPE_STRING;
    kv->n = n;
    kv->bytes = bytes;
    kv->strs.raw = raw;
    kv->strs.offs = offs;
    return ERR_OK;
}

void gguf_set_arr_str_n(struct gguf_context *ctx, const char *key, const char **data, const size_t *lens, size_t n) {
    if (!usable(ctx, key)) return;
    if (n && !data) {
        err_set(ERR_INVALID, "gguf: the strings for key '%s' are NULL", key);
        return;
    }
    struct kv kv;
    enum err e = make(&kv, key, strlen(key), GGUF_TYPE_ARRAY, NULL, 0);
    note(ctx, e);
    if (e != ERR_OK) return;
    free(kv.data);
    kv.data = NULL;
    e = make_strings(&kv, key, data, lens, n);
    note(ctx, e);
    if (e != ERR_OK) {
        gguf_kv_free(&kv);
        return;
    }
    put(ctx, kv);
}

void gguf_set_arr_str(struct gguf_context *ctx, const char *key, const char **data, size_t n) {
    gguf_set_arr_str_n(ctx, key, data, NULL, n);
}

static enum err copy(struct kv *out, const struct kv *kv) {
    bool strings = kv->type == GGUF_TYPE_ARRAY && kv->arr_type == GGUF_TYPE_STRING;
    TRY(make(out, kv->key.p, kv->key.len, kv->type, kv->data, strings ? 0 : (size_t) kv->bytes));
    out->arr_type = kv->arr_type;
    out->n = kv->n;
    out->bytes = kv->bytes;
    if (!strings) return ERR_OK;
    free(out->data);
    out->data = NULL;
    uint8_t *raw = malloc((size_t) kv->bytes + 1);
    uint32_t *offs = malloc(((size_t) kv->n + 1) * sizeof *offs);
    out->strs.raw = raw;
    out->strs.offs = offs;
    if (!raw || !offs) {
        gguf_kv_free(out);
        return no_memory(kv->key.p);
    }
    if (kv->n) {
        memcpy(raw, kv->strs.raw, (size_t) kv->bytes);
        memcpy(offs, kv->strs.offs, (size_t) kv->n * sizeof *offs);
    }
    return ERR_OK;
}

void gguf_set_kv(struct gguf_context *ctx, const struct gguf_context *src) {
    if (!ctx || !src) {
        err_set(ERR_INVALID, "gguf: keys can't be copied: a context is NULL");
        return;
    }
    if (ctx == src) return;
    for (size_t i = 0; i < src->n_kv; i++) {
        struct kv kv;
        const enum err e = copy(&kv, &src->kv[i]);
        note(ctx, e);
        if (e != ERR_OK) return;
        put(ctx, kv);
    }
}

// ---- tensors

static enum err describe(struct tensor_info *ti, const struct ggml_tensor *t) {
    *ti = (struct tensor_info){.n_dims = (uint32_t) ggml_n_dims(t), .type = t->type, .data = t->data, .owned = true};
    memcpy(ti->ne, t->ne, sizeof ti->ne);
    size_t len = strnlen(t->name, sizeof t->name);
    if (len == sizeof t->name) return err_set(ERR_INVALID, "gguf: a tensor's name has no terminator");
    if (!ggml_is_contiguous(t))
        return err_set(ERR_INVALID, "gguf: tensor '%s' is not contiguous; add a ggml_cont of it", t->name);
    TRY(gguf_tensor_bytes(t->name, t->type, t->ne, &ti->size));
    ti->name.len = len;
    ti->name.p = malloc(len + 1);
    ti->tensor = t->buffer ? malloc(sizeof *t) : NULL;
    if (!ti->name.p || (t->buffer && !ti->tensor)) {
        free(ti->name.p);
        free(ti->tensor);
        return err_set(ERR_NOMEM, "gguf: no memory for the entry of tensor '%s'", t->name);
    }
    memcpy(ti->name.p, t->name, len + 1);
    if (t->buffer) {
        *ti->tensor = *t;
        ti->buffer = t->buffer;
    }
    return ERR_OK;
}

void gguf_add_tensor(struct gguf_context *ctx, const struct ggml_tensor *tensor) {
    if (!ctx || !tensor || ggml_is_error(tensor)) {
        err_set(ERR_INVALID, "gguf: a tensor can't be added: %s",
                !ctx ? "the context is NULL" : "it is NULL or the error tensor");
        return;
    }
    if (gguf_find_tensor(ctx, tensor->name) >= 0) {
        err_set(ERR_INVALID, "gguf: there is a tensor '%s' already", tensor->name);
        return;
    }
    if (ctx->n_ti == ctx->cap_ti) {
        size_t cap = ctx->cap_ti ? ctx->cap_ti * 2 : 64;
        struct tensor_info *p = realloc(ctx->ti, cap * sizeof *p);
        if (!p) {
            note(ctx, err_set(ERR_NOMEM, "gguf: no memory for %zu tensors", cap));
            return;
        }
        ctx->ti = p;
        ctx->cap_ti = cap;
    }
    struct tensor_info *ti = &ctx->ti[ctx->n_ti];
    enum err e = describe(ti, tensor);
    note(ctx, e);
    if (e != ERR_OK) return;
    e = names_add(&ctx->ti_names, ctx->ti, sizeof *ctx->ti, ctx->n_ti);
    note(ctx, e);
    if (e != ERR_OK) {
        free(ti->name.p);
        free(ti->tensor);
        return;
    }
    ctx->n_ti++;
    if (ctx->n_ti == 1) {
        if (gguf_apply_alignment(ctx) != ERR_OK) return;
    } else {  // only the new one needs an offset
        const struct tensor_info *last = ti - 1;
        ti->offset = last->offset + gguf_pad(last->size, ctx->alignment);
    }
}

void gguf_set_tensor_type(struct gguf_context *ctx, const char *name, enum ggml_type type) {
    int64_t id = gguf_find_tensor(ctx, name);
    if (id < 0) {
        err_set(ERR_INVALID, "gguf: there is no tensor '%s' whose type could be set", name ? name : "(null)");
        return;
    }
    struct tensor_info *ti = &ctx->ti[id];
    size_t size;
    if (gguf_tensor_bytes(ti->name.p, type, ti->ne, &size) != ERR_OK) return;
    ti->type = type;
    ti->size = size;
    if (gguf_apply_alignment(ctx) != ERR_OK) return;
}

void gguf_set_tensor_data(struct gguf_context *ctx, const char *name, const void *data) {
    int64_t id = gguf_find_tensor(ctx, name);
    if (id < 0) {
        err_set(ERR_INVALID, "gguf: there is no tensor '%s' whose data could be set", name ? name : "(null)");
        return;
    }
    struct tensor_info *ti = &ctx->ti[id];
    ti->data = data;
    ti->buffer = NULL;
    free(ti->tensor);
    ti->tensor = NULL;
}
