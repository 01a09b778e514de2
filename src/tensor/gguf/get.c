// Contexts from nothing, their end, and everything that is asked of them.
#include "gguf/gguf_int.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const type_names[GGUF_TYPE_COUNT] = {"u8",   "i8",  "u16", "i16", "u32", "i32", "f32",
                                                        "bool", "str", "arr", "u64", "i64", "f64"};

struct gguf_context *gguf_init_empty(void) {
    struct gguf_context *ctx = calloc(1, sizeof *ctx);
    if (!ctx) {
        err_set(ERR_NOMEM, "gguf: no memory for a context");
        return NULL;
    }
    ctx->version = GGUF_VERSION;
    ctx->alignment = GGUF_DEFAULT_ALIGNMENT;
    names_init(&ctx->kv_names);
    names_init(&ctx->ti_names);
    return ctx;
}

void gguf_kv_free(struct kv *kv) {
    free(atomic_load(&kv->strs.c_view));
    free(kv->strs.offs);
    if (!kv->owned) return;
    free(kv->key.p);
    free(kv->data);
    free((void *) (uintptr_t) kv->strs.raw);
}

void gguf_free(struct gguf_context *ctx) {
    if (!ctx) return;
    for (size_t i = 0; i < ctx->n_kv; i++) gguf_kv_free(&ctx->kv[i]);
    for (size_t i = 0; i < ctx->n_ti; i++) {
        if (ctx->ti[i].owned) free(ctx->ti[i].name.p);
        free(ctx->ti[i].tensor);
    }
    names_free(&ctx->kv_names);
    names_free(&ctx->ti_names);
    free(ctx->kv);
    free(ctx->ti);
    free(ctx->pool);
    free(ctx->image);
    if (ctx->map) munmap(ctx->map, ctx->map_size);
    free(ctx);
}

static size_t c_view_bytes(const struct kv *kv) {
    const size_t n = (size_t) kv->n;
    return n * sizeof(char *) + (size_t) kv->bytes - n * 8 + n;
}

// What an entry holds beside its part of the pool.
static size_t kv_memory(const struct kv *kv) {
    size_t n = 0;
    if (kv->strs.offs) n += ((size_t) kv->n + (kv->owned ? 1 : 0)) * sizeof *kv->strs.offs;
    if (atomic_load(&kv->strs.c_view)) n += c_view_bytes(kv);
    if (!kv->owned) return n;
    return n + kv->key.len + 1 + (kv->data || kv->strs.raw ? (size_t) kv->bytes + 1 : 0);
}

size_t gguf_memory_size(const struct gguf_context *ctx) {
    if (!ctx) return 0;
    size_t n = sizeof *ctx + ctx->cap_kv * sizeof *ctx->kv + ctx->cap_ti * sizeof *ctx->ti;
    n += (ctx->kv_names.n_slot + ctx->ti_names.n_slot) * sizeof *ctx->kv_names.slots;
    n += (ctx->pool ? ctx->pool_bytes : 0) + (ctx->image ? ctx->image_bytes : 0);
    for (size_t i = 0; i < ctx->n_kv; i++) n += kv_memory(&ctx->kv[i]);
    for (size_t i = 0; i < ctx->n_ti; i++)
        n += (ctx->ti[i].owned ? ctx->ti[i].name.len + 1 : 0) + (ctx->ti[i].tensor ? sizeof *ctx->ti[i].tensor : 0);
    return n;
}

const char *gguf_type_name(enum gguf_type type) { return (unsigned) type < GGUF_TYPE_COUNT ? type_names[type] : NULL; }

uint32_t gguf_get_version(const struct gguf_context *ctx) { return ctx ? ctx->version : 0; }

size_t gguf_get_alignment(const struct gguf_context *ctx) { return ctx ? ctx->alignment : 0; }

void gguf_drop_data(struct gguf_context *ctx) {
    if (!ctx || !ctx->map) return;
    const size_t page = (size_t) sysconf(_SC_PAGESIZE), keep = gguf_pad(ctx->data_offset, page);
    if (keep >= ctx->map_size || munmap((char *) ctx->map + keep, ctx->map_size - keep) != 0) return;
    ctx->map_size = keep;
    for (size_t i = 0; i < ctx->n_ti; i++) ctx->ti[i].data = NULL;
}

size_t gguf_get_data_offset(const struct gguf_context *ctx) { return ctx ? ctx->data_offset : 0; }

int64_t gguf_get_n_kv(const struct gguf_context *ctx) { return ctx ? (int64_t) ctx->n_kv : 0; }

int64_t gguf_find_key(const struct gguf_context *ctx, const char *key) {
    if (!ctx || !key) return -1;
    return names_find(&ctx->kv_names, ctx->kv, sizeof *ctx->kv, key, strlen(key));
}

const void *gguf_get_mapping(const struct gguf_context *ctx, size_t *size) {
    if (size) *size = ctx ? ctx->map_size : 0;
    return ctx ? ctx->map : NULL;
}

// ---- keys

static const struct kv *kv_at(const struct gguf_context *ctx, int64_t id) {
    if (ctx && id >= 0 && (uint64_t) id < ctx->n_kv) return &ctx->kv[id];
    err_set(ERR_INVALID, "gguf: key %lld asked for, of %lld", (long long) id, (long long) gguf_get_n_kv(ctx));
    return NULL;
}

static const struct kv *kv_of(const struct gguf_context *ctx, int64_t id, enum gguf_type type) {
    const struct kv *kv = kv_at(ctx, id);
    if (!kv || kv->type == type) return kv;
    err_set(ERR_INVALID, "gguf: key '%s' has type %s, not %s", kv->key.p, type_names[kv->type], type_names[type]);
    return NULL;
}

static const struct kv *arr_of(const struct gguf_context *ctx, int64_t id, bool strings) {
    const struct kv *kv = kv_of(ctx, id, GGUF_TYPE_ARRAY);
    if (!kv || strings == (kv->arr_type == GGUF_TYPE_STRING)) return kv;
    err_set(ERR_INVALID, "gguf: key '%s' is an array of %s", kv->key.p, type_names[kv->arr_type]);
    return NULL;
}

const char *gguf_get_key(const struct gguf_context *ctx, int64_t key_id) {
    const struct kv *kv = kv_at(ctx, key_id);
    return kv ? kv->key.p : NULL;
}

enum gguf_type gguf_get_kv_type(const struct gguf_context *ctx, int64_t key_id) {
    const struct kv *kv = kv_at(ctx, key_id);
    return kv ? kv->type : GGUF_TYPE_COUNT;
}

enum gguf_type gguf_get_arr_type(const struct gguf_context *ctx, int64_t key_id) {
    const struct kv *kv = kv_of(ctx, key_id, GGUF_TYPE_ARRAY);
    return kv ? kv->arr_type : GGUF_TYPE_COUNT;
}

#define GETTER(name, ctype, TYPE)                                                                                           \
    ctype gguf_get_val_##name(const struct gguf_context *ctx, int64_t key_id) {                                             \
        const struct kv *kv = kv_of(ctx, key_id, GGUF_TYPE_##TYPE);                                                         \
        return kv ? *(const ctype *) kv->data : (ctype) 0;                                                                  \
    }
GETTER(u8, uint8_t, UINT8)
GETTER(i8, int8_t, INT8)
GETTER(u16, uint16_t, UINT16)
GETTER(i16, int16_t, INT16)
GETTER(u32, uint32_t, UINT32)
GETTER(i32, int32_t, INT32)
GETTER(f32, float, FLOAT32)
GETTER(u64, uint64_t, UINT64)
GETTER(i64, int64_t, INT64)
GETTER(f64, double, FLOAT64)
GETTER(bool, bool, BOOL)

const char *gguf_get_val_str(const struct gguf_context *ctx, int64_t key_id) {
    return gguf_get_val_str_n(ctx, key_id, NULL);
}

const char *gguf_get_val_str_n(const struct gguf_context *ctx, int64_t key_id, size_t *len) {
    const struct kv *kv = kv_of(ctx, key_id, GGUF_TYPE_STRING);
    if (len) *len = kv ? (size_t) kv->bytes : 0;
    return kv ? kv->data : NULL;
}

const void *gguf_get_val_data(const struct gguf_context *ctx, int64_t key_id) {
    const struct kv *kv = kv_at(ctx, key_id);
    if (!kv) return NULL;
    if (kv->type == GGUF_TYPE_STRING || kv->type == GGUF_TYPE_ARRAY) {
        err_set(ERR_INVALID, "gguf: key '%s' has type %s, not a number's", kv->key.p, type_names[kv->type]);
        return NULL;
    }
    return kv->data;
}

size_t gguf_get_arr_n(const struct gguf_context *ctx, int64_t key_id) {
    const struct kv *kv = kv_of(ctx, key_id, GGUF_TYPE_ARRAY);
    return kv ? (size_t) kv->n : 0;
}

const void *gguf_get_arr_data(const struct gguf_context *ctx, int64_t key_id) {
    const struct kv *kv = arr_of(ctx, key_id, false);
    return kv ? kv->data : NULL;
}

static const char *view(const struct kv *kv, size_t i, size_t *len) {
    const uint8_t *p = kv->strs.raw + kv->strs.offs[i];
    uint64_t n;
    memcpy(&n, p - 8, sizeof n);
    *len = (size_t) n;
    return (const char *) p;
}

static const struct kv *str_at(const struct gguf_context *ctx, int64_t key_id, size_t i) {
    const struct kv *kv = arr_of(ctx, key_id, true);
    if (!kv || i < kv->n) return kv;
    err_set(ERR_INVALID, "gguf: string %zu asked for of the %llu of key '%s'", i, (unsigned long long) kv->n, kv->key.p);
    return NULL;
}

const char *gguf_get_arr_str_view(const struct gguf_context *ctx, int64_t key_id, size_t i, size_t *len) {
    const struct kv *kv = str_at(ctx, key_id, i);
    size_t n = 0;
    const char *p = kv ? view(kv, i, &n) : NULL;
    if (len) *len = n;
    return p;
}

struct gguf_str_span gguf_get_arr_str_span(const struct gguf_context *ctx, int64_t key_id) {
    const struct kv *kv = arr_of(ctx, key_id, true);
    if (!kv || kv->n == 0) return (struct gguf_str_span){0};
    return (struct gguf_str_span){(const char *) kv->strs.raw, kv->strs.offs, (size_t) kv->n, (size_t) kv->bytes};
}

// All strings of an array with terminators behind them, in one block: the pointers first.
static char *make_c_view(const struct kv *kv) {
    size_t n = (size_t) kv->n;
    char *block = malloc(c_view_bytes(kv));
    if (!block) {
        err_set(ERR_NOMEM, "gguf: no memory for the %zu strings of key '%s'", n, kv->key.p);
        return NULL;
    }
    char **ptrs = (char **) (void *) block, *out = block + n * sizeof(char *);
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *p = view(kv, i, &len);
        ptrs[i] = memcpy(out, p, len);
        out[len] = 0;
        out += len + 1;
    }
    return block;
}

const char *gguf_get_arr_str(const struct gguf_context *ctx, int64_t key_id, size_t i) {
    const struct kv *kv = str_at(ctx, key_id, i);
    if (!kv) return NULL;
    _Atomic(char *) *slot = (_Atomic(char *) *) &ctx->kv[key_id].strs.c_view;
    char *block = atomic_load_explicit(slot, memory_order_acquire);
    if (!block) {
        char *made = make_c_view(kv);
        if (!made) return NULL;
        if (atomic_compare_exchange_strong(slot, &block, made)) {
            block = made;
        } else {
            free(made);  // another thread was faster
        }
    }
    return ((char **) (void *) block)[i];
}

// ---- tensors

int64_t gguf_get_n_tensors(const struct gguf_context *ctx) { return ctx ? (int64_t) ctx->n_ti : 0; }

int64_t gguf_find_tensor(const struct gguf_context *ctx, const char *name) {
    if (!ctx || !name) return -1;
    return names_find(&ctx->ti_names, ctx->ti, sizeof *ctx->ti, name, strlen(name));
}

static const struct tensor_info *ti_at(const struct gguf_context *ctx, int64_t id) {
    if (ctx && id >= 0 && (uint64_t) id < ctx->n_ti) return &ctx->ti[id];
    err_set(ERR_INVALID, "gguf: tensor %lld asked for, of %lld", (long long) id, (long long) gguf_get_n_tensors(ctx));
    return NULL;
}

size_t gguf_get_tensor_offset(const struct gguf_context *ctx, int64_t tensor_id) {
    const struct tensor_info *ti = ti_at(ctx, tensor_id);
    return ti ? (size_t) ti->offset : 0;
}

const char *gguf_get_tensor_name(const struct gguf_context *ctx, int64_t tensor_id) {
    const struct tensor_info *ti = ti_at(ctx, tensor_id);
    return ti ? ti->name.p : NULL;
}

const int64_t *gguf_get_tensor_ne(const struct gguf_context *ctx, int64_t tensor_id) {
    const struct tensor_info *ti = ti_at(ctx, tensor_id);
    return ti ? ti->ne : NULL;
}

enum ggml_type gguf_get_tensor_type(const struct gguf_context *ctx, int64_t tensor_id) {
    const struct tensor_info *ti = ti_at(ctx, tensor_id);
    return ti ? ti->type : GGML_TYPE_COUNT;
}

size_t gguf_get_tensor_size(const struct gguf_context *ctx, int64_t tensor_id) {
    const struct tensor_info *ti = ti_at(ctx, tensor_id);
    return ti ? ti->size : 0;
}
