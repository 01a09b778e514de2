// Tensor sizes, and the ggml context with a file's tensors that gguf_init_* makes on request.
#include "gguf/gguf_int.h"
#include "type/type.h"

#define BLOB_NAME "GGUF tensor data binary blob"

size_t gguf_pad(size_t n, size_t alignment) { return (n + alignment - 1) & ~(alignment - 1); }

enum err gguf_tensor_bytes(const char *name, enum ggml_type type, const int64_t *ne, size_t *size) {
    const struct type *t = type_get(type);
    if (!t)
        return err_set(ERR_FORMAT, "gguf: tensor '%s' has type %lld, which is unknown or retired", name, (long long) type);
    uint64_t n = 1;
    for (int i = 0; i < GGML_MAX_DIMS; i++) {
        if (ne[i] < 0) {
            return err_set(ERR_FORMAT, "gguf: tensor '%s' has dimension %d of %lld", name, i, (long long) ne[i]);
        }
        if (__builtin_mul_overflow(n, (uint64_t) ne[i], &n) || n > INT64_MAX) {
            return err_set(ERR_FORMAT, "gguf: tensor '%s' of %lld x %lld x %lld x %lld has more elements than 63 bits count",
                           name, (long long) ne[0], (long long) ne[1], (long long) ne[2], (long long) ne[3]);
        }
    }
    if (ne[0] % t->block) {
        return err_set(ERR_FORMAT, "gguf: tensor '%s' has rows of %lld elements, but type %s comes in blocks of %lld", name,
                       (long long) ne[0], t->name, (long long) t->block);
    }
    uint64_t bytes;
    if (__builtin_mul_overflow(n / (uint64_t) t->block, (uint64_t) t->size, &bytes) || bytes > INT64_MAX / 2) {
        return err_set(ERR_FORMAT, "gguf: tensor '%s' of %llu elements of type %s has more bytes than 62 bits count", name,
                       (unsigned long long) n, t->name);
    }
    *size = (size_t) bytes;
    return ERR_OK;
}

// Bytes of the data section that tensors use, the last one's padding included where the source has it.
static size_t data_size(const struct gguf_context *ctx, const struct source *src) {
    size_t end = 0;
    for (size_t i = 0; i < ctx->n_ti; i++) {
        if (ctx->ti[i].size == 0) continue;  // may claim any offset
        size_t e = gguf_pad((size_t) ctx->ti[i].offset + ctx->ti[i].size, ctx->alignment);
        if (e > end) end = e;
    }
    // the tensors themselves were found to be inside, so only padding is cut off here
    if (end && src->exact_end && end > src->total - ctx->data_offset) end = (size_t) (src->total - ctx->data_offset);
    return end;
}

static enum err fill(const struct gguf_context *ctx, struct ggml_context *out, uint8_t *data) {
    ggml_set_no_alloc(out, true);
    for (size_t i = 0; i < ctx->n_ti; i++) {
        const struct tensor_info *ti = &ctx->ti[i];
        struct ggml_tensor *t = ggml_new_tensor(out, ti->type, ti->n_dims ? (int) ti->n_dims : 1, ti->ne);
        if (!t || ggml_is_error(t)) return err_set(ERR_NOMEM, "gguf: could not make tensor '%s'", ti->name.p);
        ggml_set_name(t, ti->name.p);
        if (data && ti->size) t->data = data + ti->offset;
    }
    return ERR_OK;
}

// Reads every tensor to its place; gaps between tensors stay as they are.
static enum err load(const struct gguf_context *ctx, struct source *src, uint8_t *data, size_t size) {
    if (size == 0) return ERR_OK;
    if (src->exact_end || src->callback == NULL) {
        uint64_t n = size;
        if (!src->exact_end) {  // a stream of unknown length may end without the last tensor's padding
            n = 0;
            for (size_t i = 0; i < ctx->n_ti; i++) {
                uint64_t e = ctx->ti[i].offset + ctx->ti[i].size;
                if (e > n) n = e;
            }
        }
        return source_copy(src, ctx->data_offset, data, n);
    }
    for (size_t i = 0; i < ctx->n_ti; i++) {
        const struct tensor_info *ti = &ctx->ti[i];
        if (ti->size) TRY(source_copy(src, ctx->data_offset + ti->offset, data + ti->offset, ti->size));
    }
    return ERR_OK;
}

enum err gguf_make_tensors(const struct gguf_context *ctx, struct source *src, struct gguf_init_params params) {
    size_t size = params.no_alloc ? 0 : data_size(ctx, src);
    size_t n_objects = ctx->n_ti + (params.no_alloc ? 0 : 1), mem = n_objects * ggml_tensor_overhead();
    if (__builtin_add_overflow(mem, gguf_pad(size, GGML_MEM_ALIGN), &mem)) {
        return err_set(ERR_NOMEM, "gguf: %zu bytes of tensor data do not fit the address space", size);
    }
    struct ggml_context *out =
        ggml_init((struct ggml_init_params){.mem_size = mem ? mem : GGML_MEM_ALIGN, .no_alloc = params.no_alloc});
    if (!out) return err_set(ERR_NOMEM, "gguf: no memory for a context of %zu bytes for %zu tensors", mem, ctx->n_ti);
    uint8_t *data = NULL;
    enum err e = ERR_OK;
    if (!params.no_alloc) {
        struct ggml_tensor *blob = ggml_new_tensor_1d(out, GGML_TYPE_I8, (int64_t) size);
        if (!blob || ggml_is_error(blob)) {
            e = err_set(ERR_NOMEM, "gguf: no memory for %zu bytes of tensor data", size);
        } else {
            ggml_set_name(blob, BLOB_NAME);
            data = blob->data;
            e = load(ctx, src, data, size);
        }
    }
    if (e == ERR_OK) e = fill(ctx, out, data);
    if (e != ERR_OK) {
        ggml_free(out);
        return e;
    }
    ggml_set_no_alloc(out, params.no_alloc);
    *params.ctx = out;
    return ERR_OK;
}
