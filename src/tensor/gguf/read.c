// Reading GGUF. Every count, length and offset is compared in 64 bits with what is left of the source before anything is
// allocated for it, and each failure names the key or tensor and the offset. Method: the GGUF specification (ggml/docs).
#include "gguf/gguf_int.h"
#include "type/type.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct reader {
    struct source *src;
    struct gguf_context *ctx;
    uint64_t pos;
    struct span *kv_spans, *ti_spans;  // where in the image the strings of each entry lie
    size_t cap_kv_spans, cap_ti_spans;
    uint64_t pool_bytes;
};

// Places in the image: pointers would move while it grows.
struct span {
    uint64_t name, data;
};

static uint64_t left(const struct reader *r) { return r->src->total - r->pos; }

// Makes n more bytes available; the sentence says what was being read.
static enum err need(struct reader *r, uint64_t n, const char *what, const char *of) {
    if (n <= left(r) && n <= SIZE_MAX / 2) {
        enum err e = source_need(r->src, r->pos + n);
        if (e != ERR_FORMAT) return e;
    }
    unsigned long long have = r->src->exact_end ? left(r) : r->src->have > r->pos ? r->src->have - r->pos : 0;
    return err_set(ERR_FORMAT, "gguf: %s ends inside %s%s%s: %llu bytes wanted at offset %llu, %llu left", r->src->what,
                   what, of ? " of " : "", of ? of : "", (unsigned long long) n, (unsigned long long) r->pos, have);
}

static uint32_t get_u32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint64_t get_u64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static enum err read_u32(struct reader *r, uint32_t *v, const char *what, const char *of) {
    TRY(need(r, 4, what, of));
    *v = get_u32(r->src->p + r->pos);
    r->pos += 4;
    return ERR_OK;
}

static enum err read_u64(struct reader *r, uint64_t *v, const char *what, const char *of) {
    TRY(need(r, 8, what, of));
    *v = get_u64(r->src->p + r->pos);
    r->pos += 8;
    return ERR_OK;
}

// Length in *len, place of the bytes in *at.
static enum err read_string(struct reader *r, uint64_t *at, uint64_t *len, const char *what, const char *of) {
    TRY(read_u64(r, len, what, of));
    TRY(need(r, *len, what, of));
    *at = r->pos;
    r->pos += *len;
    return ERR_OK;
}

// A printable copy of a name for messages: bounded, control characters and non-ASCII bytes replaced.
static const char *shown(char buf[80], const uint8_t *p, uint64_t len) {
    size_t n = len < 76 ? (size_t) len : 76;
    for (size_t i = 0; i < n; i++) buf[i] = p[i] >= 0x20 && p[i] < 0x7f ? (char) p[i] : '?';
    if (len > n) memcpy(buf + 73, "...", 3);
    buf[n] = 0;
    return buf;
}

static enum err grow(void **p, size_t *cap, size_t n, size_t size) {
    if (n <= *cap) return ERR_OK;
    size_t c = *cap ? *cap * 2 : 32;
    void *q = realloc(*p, c * size);
    if (!q) return err_set(ERR_NOMEM, "gguf: no memory for a table of %zu entries", c);
    *p = q;
    *cap = c;
    return ERR_OK;
}

static enum err check_count(struct reader *r, uint64_t n, uint64_t least, const char *what) {
    if (n <= left(r) / least && n < INT32_MAX) return ERR_OK;
    return err_set(ERR_FORMAT, "gguf: %s claims %llu %s, more than its %llu remaining bytes can hold", r->src->what,
                   (unsigned long long) n, what, (unsigned long long) left(r));
}

// ---- header

static enum err read_header(struct reader *r, uint64_t *n_ti, uint64_t *n_kv) {
    if (r->src->exact_end && r->src->total == 0) return err_set(ERR_FORMAT, "gguf: %s is empty", r->src->what);
    TRY(need(r, 8, "the header", NULL));
    const uint8_t *p = r->src->p;
    if (memcmp(p, GGUF_MAGIC, 4) != 0) {
        return err_set(ERR_FORMAT,
                       "gguf: %s is not a GGUF file: it begins with bytes %02x %02x %02x %02x instead of \"GGUF\"",
                       r->src->what, p[0], p[1], p[2], p[3]);
    }
    uint32_t version = get_u32(p + 4);
    if (version != 0 && (version & 0xffff) == 0) {
        return err_set(ERR_UNSUPPORTED,
                       "gguf: %s is in big-endian byte order (version field %08x); convert it to little-endian",
                       r->src->what, (unsigned) version);
    }
    if (version < 2 || version > GGUF_VERSION) {
        return err_set(ERR_UNSUPPORTED, "gguf: %s has version %u; versions 2 to %d can be read", r->src->what,
                       (unsigned) version, GGUF_VERSION);
    }
    r->ctx->version = version;
    r->pos = 8;
    TRY(read_u64(r, n_ti, "the header", NULL));
    TRY(read_u64(r, n_kv, "the header", NULL));
    TRY(check_count(r, *n_kv, 13, "keys"));     // length, a byte, type, a byte: all that the shortest key takes
    TRY(check_count(r, *n_ti, 24, "tensors"));  // length, dimension count, type, offset
    return ERR_OK;
}

// ---- keys

size_t gguf_scalar_size(enum gguf_type type) {
    static const uint8_t sizes[GGUF_TYPE_COUNT] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return (unsigned) type < GGUF_TYPE_COUNT ? sizes[type] : 0;
}

// Strings from i to n that have arrived, in a tight loop: vocabularies have hundreds of thousands. Gives the first that has not.
static uint64_t hop(struct reader *r, uint64_t start, uint32_t *offs, uint64_t i, uint64_t n) {
    const uint8_t *const p = r->src->p + start;
    uint64_t at = r->pos - start, have = r->src->have - start;
    if (have > GGUF_MAX_STR_ARRAY) have = GGUF_MAX_STR_ARRAY;
    while (i < n && at + 8 <= have) {
        const uint64_t len = get_u64(p + at);
        if (len > have - at - 8) break;
        offs[i++] = (uint32_t) (at + 8);
        at += 8 + len;
    }
    r->pos = start + at;
    return i;
}

static enum err read_str_array(struct reader *r, struct kv *kv, const char *key) {
    uint64_t n = kv->n, start = r->pos, i = 0;
    if (n > left(r) / 8) return need(r, n > UINT64_MAX / 8 ? UINT64_MAX : n * 8, "the array", key);
    size_t cap = 0;
    while (i < n) {
        // grown as the strings arrive if the end is not known, at once otherwise
        if (i == cap) {
            cap = r->src->exact_end ? (size_t) n : cap ? cap * 2 : 64;
            uint32_t *offs = realloc(kv->strs.offs, cap * sizeof *offs);
            if (!offs)
                return err_set(ERR_NOMEM, "gguf: no memory for the %llu strings of key '%s'", (unsigned long long) n, key);
            kv->strs.offs = offs;
        }
        i = hop(r, start, kv->strs.offs, i, n < cap ? n : cap);
        if (i == n || i == cap) continue;
        uint64_t at, len;
        TRY(read_string(r, &at, &len, "a string of the array", key));
        if (r->pos - start > GGUF_MAX_STR_ARRAY) {
            return err_set(ERR_UNSUPPORTED, "gguf: the strings of key '%s' take more than 4 GiB", key);
        }
        kv->strs.offs[i++] = (uint32_t) (at - start);
    }
    kv->bytes = r->pos - start;
    return ERR_OK;
}

static enum err read_array(struct reader *r, struct kv *kv, const char *key) {
    uint32_t type;
    TRY(read_u32(r, &type, "the array", key));
    TRY(read_u64(r, &kv->n, "the array", key));
    kv->arr_type = (enum gguf_type) type;
    if (type == GGUF_TYPE_STRING) return read_str_array(r, kv, key);
    size_t size = type < GGUF_TYPE_COUNT ? gguf_scalar_size(kv->arr_type) : 0;
    if (size == 0) {
        return err_set(ERR_FORMAT, "gguf: key '%s' is an array of type %u (%s), which can't be read, at offset %llu", key,
                       (unsigned) type, type == GGUF_TYPE_ARRAY ? "arrays" : "unknown", (unsigned long long) (r->pos - 12));
    }
    if (kv->n > left(r) / size) return need(r, kv->n > UINT64_MAX / size ? UINT64_MAX : kv->n * size, "the array", key);
    kv->bytes = kv->n * size;
    TRY(need(r, kv->bytes, "the array", key));
    r->pos += kv->bytes;
    return ERR_OK;
}

static enum err read_value(struct reader *r, struct kv *kv, struct span *span, const char *key) {
    uint32_t type;
    TRY(read_u32(r, &type, "the type", key));
    kv->type = (enum gguf_type) type;
    kv->n = 1;
    if (type == GGUF_TYPE_STRING) return read_string(r, &span->data, &kv->bytes, "the string", key);
    if (type == GGUF_TYPE_ARRAY) {
        uint64_t start = r->pos + 12;
        span->data = start;
        return read_array(r, kv, key);
    }
    kv->bytes = type < GGUF_TYPE_COUNT ? gguf_scalar_size(kv->type) : 0;
    if (kv->bytes == 0) {
        return err_set(ERR_FORMAT, "gguf: key '%s' has the unknown value type %u at offset %llu", key, (unsigned) type,
                       (unsigned long long) (r->pos - 4));
    }
    span->data = r->pos;
    TRY(need(r, kv->bytes, "the value", key));
    r->pos += kv->bytes;
    return ERR_OK;
}

static enum err read_kv(struct reader *r, size_t i) {
    struct gguf_context *ctx = r->ctx;
    TRY(grow((void **) &ctx->kv, &ctx->cap_kv, i + 1, sizeof *ctx->kv));
    TRY(grow((void **) &r->kv_spans, &r->cap_kv_spans, i + 1, sizeof *r->kv_spans));
    struct kv *kv = &ctx->kv[i];
    memset(kv, 0, sizeof *kv);
    ctx->n_kv = i + 1;
    char nth[32], buf[80];
    snprintf(nth, sizeof nth, "key number %zu", i);
    uint64_t len, start = r->pos;
    TRY(read_string(r, &r->kv_spans[i].name, &len, "the name", nth));
    if (len == 0)
        return err_set(ERR_FORMAT, "gguf: key number %zu at offset %llu has no name", i, (unsigned long long) start);
    kv->key.len = (size_t) len;
    TRY(read_value(r, kv, &r->kv_spans[i], shown(buf, r->src->p + r->kv_spans[i].name, len)));
    r->pool_bytes += len + 1 + 8;
    if (!kv->strs.offs) r->pool_bytes += gguf_pad(kv->bytes + 1, 8);
    return ERR_OK;
}

// ---- tensors

static enum err read_tensor(struct reader *r, size_t i) {
    struct gguf_context *ctx = r->ctx;
    TRY(grow((void **) &ctx->ti, &ctx->cap_ti, i + 1, sizeof *ctx->ti));
    TRY(grow((void **) &r->ti_spans, &r->cap_ti_spans, i + 1, sizeof *r->ti_spans));
    struct tensor_info *ti = &ctx->ti[i];
    memset(ti, 0, sizeof *ti);
    ctx->n_ti = i + 1;
    char nth[32], buf[80];
    snprintf(nth, sizeof nth, "tensor number %zu", i);
    uint64_t len, at = 0, start = r->pos;
    TRY(read_string(r, &at, &len, "the name", nth));
    r->ti_spans[i].name = at;
    ti->name.len = (size_t) len;
    shown(buf, r->src->p + at, len);
    if (len >= GGML_MAX_NAME) {
        return err_set(ERR_FORMAT,
                       "gguf: the name of tensor '%s' at offset %llu has %llu characters; at most %d can be kept", buf,
                       (unsigned long long) start, (unsigned long long) len, GGML_MAX_NAME - 1);
    }
    if (memchr(r->src->p + at, 0, (size_t) len)) {
        return err_set(ERR_FORMAT, "gguf: the name of tensor '%s' at offset %llu holds a zero byte", buf,
                       (unsigned long long) start);
    }
    TRY(read_u32(r, &ti->n_dims, "the dimensions", buf));
    if (ti->n_dims > GGML_MAX_DIMS) {
        return err_set(ERR_FORMAT, "gguf: tensor '%s' at offset %llu has %u dimensions; at most %d are known", buf,
                       (unsigned long long) start, (unsigned) ti->n_dims, GGML_MAX_DIMS);
    }
    for (uint32_t d = 0; d < GGML_MAX_DIMS; d++) {
        uint64_t ne = 1;
        if (d < ti->n_dims) TRY(read_u64(r, &ne, "the dimensions", buf));
        ti->ne[d] = (int64_t) ne;
    }
    uint32_t type;
    TRY(read_u32(r, &type, "the type", buf));
    if (type >= GGML_TYPE_COUNT || !type_get((enum ggml_type) type)) {
        return err_set(ERR_FORMAT, "gguf: tensor '%s' at offset %llu has type %u, which is unknown or retired", buf,
                       (unsigned long long) start, (unsigned) type);
    }
    ti->type = (enum ggml_type) type;
    TRY(gguf_tensor_bytes(buf, ti->type, ti->ne, &ti->size));
    TRY(read_u64(r, &ti->offset, "the offset", buf));
    r->pool_bytes += len + 1;
    return ERR_OK;
}

// ---- after the parse: the image stands still now, so names and values get their final places

static void place_kv(struct kv *kv, const struct span *span, const uint8_t *image, uint8_t **pool) {
    if (kv->strs.offs || kv->arr_type == GGUF_TYPE_STRING) {
        kv->strs.raw = image + span->data;
    } else {
        kv->data = *pool;
        memcpy(kv->data, image + span->data, (size_t) kv->bytes);
        ((uint8_t *) kv->data)[kv->bytes] = 0;
        *pool += gguf_pad((size_t) kv->bytes + 1, 8);
        bool is_bool = kv->type == GGUF_TYPE_BOOL || (kv->type == GGUF_TYPE_ARRAY && kv->arr_type == GGUF_TYPE_BOOL);
        for (uint64_t i = 0; is_bool && i < kv->bytes; i++) ((uint8_t *) kv->data)[i] = ((uint8_t *) kv->data)[i] != 0;
    }
}

static void place_name(struct name *name, uint64_t at, const uint8_t *image, uint8_t **pool) {
    name->p = (char *) *pool;
    memcpy(name->p, image + at, name->len);
    name->p[name->len] = 0;
    *pool += name->len + 1;
}

static enum err place_all(struct reader *r) {
    struct gguf_context *ctx = r->ctx;
    const uint8_t *image = r->src->p;
    ctx->pool_bytes = (size_t) r->pool_bytes + 1;
    ctx->pool = malloc(ctx->pool_bytes);
    if (!ctx->pool) {
        return err_set(ERR_NOMEM, "gguf: no memory for %llu bytes of metadata", (unsigned long long) r->pool_bytes);
    }
    uint8_t *pool = ctx->pool;
    for (size_t i = 0; i < ctx->n_kv; i++) place_kv(&ctx->kv[i], &r->kv_spans[i], image, &pool);
    for (size_t i = 0; i < ctx->n_kv; i++) place_name(&ctx->kv[i].key, r->kv_spans[i].name, image, &pool);
    for (size_t i = 0; i < ctx->n_ti; i++) place_name(&ctx->ti[i].name, r->ti_spans[i].name, image, &pool);
    char buf[80];
    for (size_t i = 0; i < ctx->n_kv; i++) {
        enum err e = names_add(&ctx->kv_names, ctx->kv, sizeof *ctx->kv, i);
        if (e == ERR_INVALID) {
            return err_set(ERR_FORMAT, "gguf: key '%s' occurs twice, the second time at offset %llu",
                           shown(buf, image + r->kv_spans[i].name, ctx->kv[i].key.len),
                           (unsigned long long) r->kv_spans[i].name - 8);
        }
        TRY(e);
    }
    for (size_t i = 0; i < ctx->n_ti; i++) {
        enum err e = names_add(&ctx->ti_names, ctx->ti, sizeof *ctx->ti, i);
        if (e == ERR_INVALID) {
            return err_set(ERR_FORMAT, "gguf: tensor '%s' occurs twice, the second time at offset %llu",
                           shown(buf, image + r->ti_spans[i].name, ctx->ti[i].name.len),
                           (unsigned long long) r->ti_spans[i].name - 8);
        }
        TRY(e);
    }
    return ERR_OK;
}

static enum err read_alignment(struct gguf_context *ctx) {
    int64_t id = names_find(&ctx->kv_names, ctx->kv, sizeof *ctx->kv, GGUF_KEY_GENERAL_ALIGNMENT,
                            sizeof GGUF_KEY_GENERAL_ALIGNMENT - 1);
    if (id < 0) return ERR_OK;
    const struct kv *kv = &ctx->kv[id];
    if (kv->type != GGUF_TYPE_UINT32) {
        return err_set(ERR_FORMAT, "gguf: key '" GGUF_KEY_GENERAL_ALIGNMENT "' has type %s; it must be u32",
                       gguf_type_name(kv->type));
    }
    uint32_t v = *(const uint32_t *) kv->data;
    if (v == 0 || (v & (v - 1))) {
        return err_set(ERR_FORMAT, "gguf: key '" GGUF_KEY_GENERAL_ALIGNMENT "' is %u; it must be a power of two",
                       (unsigned) v);
    }
    ctx->alignment = v;
    return ERR_OK;
}

static int by_offset(const void *a, const void *b) {
    const struct tensor_info *x = *(const struct tensor_info *const *) a, *y = *(const struct tensor_info *const *) b;
    return x->offset != y->offset ? (x->offset < y->offset ? -1 : 1) : (x->size > y->size) - (x->size < y->size);
}

// No byte belongs to two tensors. Files usually list them as they lie; only others are sorted.
static enum err check_overlap(const struct gguf_context *ctx) {
    bool in_order = true;
    uint64_t end = 0;
    for (size_t i = 0; i < ctx->n_ti && in_order; i++) {
        in_order = ctx->ti[i].offset >= end;
        end = ctx->ti[i].offset + ctx->ti[i].size;
    }
    if (in_order) return ERR_OK;
    const struct tensor_info **sorted = malloc(ctx->n_ti * sizeof *sorted);
    if (!sorted) return err_set(ERR_NOMEM, "gguf: no memory to order %zu tensors", ctx->n_ti);
    for (size_t i = 0; i < ctx->n_ti; i++) sorted[i] = &ctx->ti[i];
    qsort(sorted, ctx->n_ti, sizeof *sorted, by_offset);
    enum err e = ERR_OK;
    const struct tensor_info *last = NULL;  // that has bytes
    for (size_t i = 0; i < ctx->n_ti && e == ERR_OK; i++) {
        const struct tensor_info *ti = sorted[i];
        if (ti->size == 0) continue;
        if (last && ti->offset < last->offset + last->size)
            e = err_set(ERR_FORMAT,
                        "gguf: tensors '%s' (%zu bytes at %llu of the data section) and '%s' (%zu bytes at %llu) overlap",
                        last->name.p, last->size, (unsigned long long) last->offset, ti->name.p, ti->size,
                        (unsigned long long) ti->offset);
        last = ti;
    }
    free(sorted);
    return e;
}

// bounded: the source is a whole file, so the data must be there.
static enum err check_data(struct reader *r, bool bounded) {
    struct gguf_context *ctx = r->ctx;
    uint64_t start = ctx->n_ti ? (r->pos + ctx->alignment - 1) & ~((uint64_t) ctx->alignment - 1) : r->pos;
    if (start > SIZE_MAX / 2)
        return err_set(ERR_FORMAT, "gguf: the data section starts at %llu", (unsigned long long) start);
    ctx->data_offset = (size_t) start;
    uint64_t total = r->src->total;
    for (size_t i = 0; i < ctx->n_ti; i++) {
        const struct tensor_info *ti = &ctx->ti[i];
        if (ti->offset & (ctx->alignment - 1)) {
            return err_set(ERR_FORMAT,
                           "gguf: tensor '%s' starts at %llu in the data section, which is no multiple of the alignment %zu",
                           ti->name.p, (unsigned long long) ti->offset, ctx->alignment);
        }
        if (ti->offset > INT64_MAX / 2) {
            return err_set(ERR_FORMAT, "gguf: tensor '%s' starts at %llu in the data section", ti->name.p,
                           (unsigned long long) ti->offset);
        }
        if (ti->size == 0 || !bounded) continue;
        if (start > total || ti->offset > total - start || ti->size > total - start - ti->offset) {
            return err_set(ERR_FORMAT, "gguf: tensor '%s' takes %zu bytes at offset %llu, but %s ends at %llu: cut off?",
                           ti->name.p, ti->size, (unsigned long long) (start + ti->offset), r->src->what,
                           (unsigned long long) total);
        }
    }
    return check_overlap(ctx);
}

static enum err parse(struct reader *r) {
    uint64_t n_ti = 0, n_kv = 0;
    TRY(read_header(r, &n_ti, &n_kv));
    for (uint64_t i = 0; i < n_kv; i++) TRY(read_kv(r, (size_t) i));
    for (uint64_t i = 0; i < n_ti; i++) TRY(read_tensor(r, (size_t) i));
    TRY(place_all(r));
    return read_alignment(r->ctx);
}

// Parses from src; takes over its storage on success. bounded as in check_data.
static struct gguf_context *init(struct source *src, struct gguf_init_params params, bool bounded) {
    struct gguf_context *ctx = gguf_init_empty();
    struct reader r = {.src = src, .ctx = ctx};
    enum err e = ctx ? parse(&r) : ERR_NOMEM;
    if (e == ERR_OK) e = check_data(&r, bounded);
    free(r.kv_spans);
    free(r.ti_spans);
    if (e == ERR_OK && params.ctx) e = gguf_make_tensors(ctx, src, params);
    if (e == ERR_OK) {
        ctx->image = src->block;
        ctx->image_bytes = src->cap;
        src->block = NULL;
        return ctx;
    }
    gguf_free(ctx);
    source_free(src);
    return NULL;
}

struct gguf_context *gguf_init_from_buffer(const void *data, size_t size, struct gguf_init_params params) {
    if (!data) {
        err_set(ERR_INVALID, "gguf: the buffer to read is NULL");
        return NULL;
    }
    struct source src = {.p = data, .have = size, .total = size, .exact_end = true, .what = "the buffer"};
    struct gguf_context *ctx = init(&src, params, params.ctx && !params.no_alloc);
    if (!ctx) return NULL;
    // arrays of strings point into the caller's buffer, which may go: keep a copy from the first to the last of them
    size_t lo = SIZE_MAX, hi = 0;
    for (size_t i = 0; i < ctx->n_kv; i++) {
        const struct kv *kv = &ctx->kv[i];
        if (!kv->strs.raw) continue;
        size_t at = (size_t) (kv->strs.raw - (const uint8_t *) data);
        if (at < lo) lo = at;
        if (at + kv->bytes > hi) hi = at + (size_t) kv->bytes;
    }
    if (hi <= lo) return ctx;
    ctx->image_bytes = hi - lo;
    ctx->image = malloc(ctx->image_bytes);
    if (!ctx->image) {
        err_set(ERR_NOMEM, "gguf: no memory for %zu bytes of metadata", hi - lo);
        if (params.ctx) {
            ggml_free(*params.ctx);
            *params.ctx = NULL;
        }
        gguf_free(ctx);
        return NULL;
    }
    memcpy(ctx->image, (const uint8_t *) data + lo, hi - lo);
    for (size_t i = 0; i < ctx->n_kv; i++) {
        struct kv *kv = &ctx->kv[i];
        if (kv->strs.raw) kv->strs.raw = ctx->image + (kv->strs.raw - (const uint8_t *) data) - lo;
    }
    return ctx;
}

struct gguf_context *gguf_init_from_callback(gguf_reader_callback_t callback, void *userdata, size_t max_chunk_read,
                                             uint64_t max_expected_size, struct gguf_init_params params) {
    if (!callback) {
        err_set(ERR_INVALID, "gguf: the callback to read with is NULL");
        return NULL;
    }
    struct source src = {.callback = callback,
                         .userdata = userdata,
                         .max_chunk = max_chunk_read,
                         .total = max_expected_size ? max_expected_size : UINT64_MAX,
                         .what = "the callback's data"};
    return init(&src, params, true);
}

struct gguf_context *gguf_init_from_file_ptr(FILE *file, struct gguf_init_params params) {
    if (!file) {
        err_set(ERR_INVALID, "gguf: the FILE to read is NULL");
        return NULL;
    }
    struct source src = {.file = file, .total = UINT64_MAX, .what = "the file"};
    struct stat st;
    off_t at = ftello(file);
    if (at >= 0 && fileno(file) >= 0 && fstat(fileno(file), &st) == 0 && S_ISREG(st.st_mode)) {
        src.total = st.st_size > at ? (uint64_t) (st.st_size - at) : 0;
        src.exact_end = true;
    } else {
        src.one_by_one = true;
    }
    struct gguf_context *ctx = init(&src, params, true);
    // reading ran ahead: leave the file where the data begins, or at the end if the data was read
    if (ctx && src.exact_end && !(params.ctx && !params.no_alloc)) {
        if (fseeko(file, at + (off_t) ctx->data_offset, SEEK_SET) != 0) clearerr(file);
    }
    return ctx;
}

static enum err open_map(const char *fname, int *fd, struct source *src) {
    *fd = open(fname, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // O_NONBLOCK: opening a FIFO must not wait for a writer
    if (*fd < 0) return err_set(ERR_IO, "gguf: cannot open '%s': %s", fname, strerror(errno));
    struct stat st;
    if (fstat(*fd, &st) != 0) return err_set(ERR_IO, "gguf: cannot ask for the size of '%s': %s", fname, strerror(errno));
    if (!S_ISREG(st.st_mode)) {
        return err_set(ERR_IO, "gguf: '%s' is %s, not a file", fname,
                       S_ISDIR(st.st_mode) ? "a directory" : "a device or a pipe");
    }
    src->total = (uint64_t) st.st_size;
    src->exact_end = true;
    if (st.st_size == 0) return ERR_OK;
    void *map = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE, *fd, 0);
    if (map == MAP_FAILED) return ERR_OK;  // file systems without mmap: read instead
    src->p = map;
    src->have = (size_t) st.st_size;
    return ERR_OK;
}

struct gguf_context *gguf_init_from_file(const char *fname, struct gguf_init_params params) {
    if (!fname) {
        err_set(ERR_INVALID, "gguf: the file name is NULL");
        return NULL;
    }
    char what[PATH_MAX + 8];
    snprintf(what, sizeof what, "'%s'", fname);
    struct source src = {.what = what};
    int fd = -1;
    enum err e = open_map(fname, &fd, &src);
    void *map = (void *) (uintptr_t) src.p;
    size_t map_size = src.have;
    struct gguf_context *ctx = NULL;
    if (e == ERR_OK && !map && src.total) {
        src.file = fdopen(fd, "rb");
        if (src.file) fd = -1;
        if (!src.file) e = err_set(ERR_IO, "gguf: cannot read '%s': %s", fname, strerror(errno));
    }
    if (e == ERR_OK) ctx = init(&src, params, true);
    if (src.file) fclose(src.file);
    if (fd >= 0) close(fd);
    if (!ctx) {
        if (map) munmap(map, map_size);
        return NULL;
    }
    ctx->map = map;
    ctx->map_size = map_size;
    for (size_t i = 0; map && i < ctx->n_ti; i++) {
        if (ctx->ti[i].size) ctx->ti[i].data = (const uint8_t *) map + ctx->data_offset + ctx->ti[i].offset;
    }
    return ctx;
}
