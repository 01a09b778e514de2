// Making tensors, and views into them. A view refers to the tensor that owns the memory (its root), never to another
// view, and so an allocator needs to look up one step only.
#include "graph/graph_int.h"
#include "type/type.h"

#include <stdarg.h>
#include <string.h>
#include <stdlib.h>

// The error tensor. Const: whoever writes to it instead of looking at ggml_is_error() finds out at once. One element
// wide, so that callers may divide by its sizes.
static const _Alignas(16) struct ggml_tensor error_tensor = {
    .type = GGML_TYPE_F32,
    .ne = {1, 1, 1, 1},
    .nb = {4, 4, 4, 4},
    .name = "error",
};

struct ggml_tensor *tensor_error(void) {
    return (struct ggml_tensor *) (uintptr_t) &error_tensor;
}

bool ggml_is_error(const struct ggml_tensor *tensor) { return tensor == &error_tensor; }

size_t ggml_tensor_overhead(void) { return sizeof(struct ggml_object) + GGML_TENSOR_SIZE; }

static enum err check_shape(enum ggml_type type, int n_dims, const int64_t *ne) {
    const struct type *facts = type_facts(type);
    if (!facts) return err_set(ERR_INVALID, "new tensor: there is no element type %d", (int) type);
    if (n_dims < 1 || n_dims > GGML_MAX_DIMS) {
        return err_set(ERR_INVALID, "new tensor: %d dimensions; 1 to %d are possible", n_dims, GGML_MAX_DIMS);
    }
    for (int i = 0; i < n_dims; i++) {
        if (ne[i] < 0) return err_set(ERR_INVALID, "new tensor: dimension %d is negative (%lld)", i, (long long) ne[i]);
    }
    if (facts->block == 1 || ne[0] % facts->block == 0) return ERR_OK;
    return err_set(ERR_INVALID, "new tensor: rows of %lld elements do not divide into blocks of %lld, as type %s needs",
                   (long long) ne[0], (long long) facts->block, ggml_type_name(type));
}

// Strides of a packed tensor, and its bytes; false if they do not fit 63 bits.
static bool pack(const struct type *facts, const int64_t ne[GGML_MAX_DIMS], size_t nb[GGML_MAX_DIMS], size_t *bytes) {
    const size_t n_block = facts->block == 1 ? (size_t) ne[0] : (size_t) (ne[0] / facts->block);
    bool over = __builtin_mul_overflow(facts->size, n_block, &nb[1]);
    nb[0] = facts->size;
    for (int i = 2; i < GGML_MAX_DIMS; i++) over |= __builtin_mul_overflow(nb[i - 1], (size_t) ne[i - 1], &nb[i]);
    over |= __builtin_mul_overflow(nb[3], (size_t) ne[3], bytes);
    return !over && *bytes <= INT64_MAX;
}

struct ggml_tensor *tensor_new(struct ggml_context *ctx, enum ggml_type type, int n_dims, const int64_t *sizes,
                               struct ggml_tensor *view_src, size_t view_offs) {
    if (check_shape(type, n_dims, sizes) != ERR_OK) return tensor_error();
    if (ggml_is_error(view_src)) return view_src;
    int64_t ne[GGML_MAX_DIMS] = {1, 1, 1, 1};
    size_t nb[GGML_MAX_DIMS], all;
    for (int i = 0; i < n_dims; i++) ne[i] = sizes[i];
    if (!pack(type_facts(type), ne, nb, &all)) {
        (void) err_set(ERR_INVALID, "new tensor: %s [%lld, %lld, %lld, %lld] is larger than 64 bits can count",
                       ggml_type_name(type), (long long) ne[0], (long long) ne[1], (long long) ne[2], (long long) ne[3]);
        return tensor_error();
    }
    if (view_src && view_src->view_src) {
        view_offs += view_src->view_offs;
        view_src = view_src->view_src;
    }
    const bool has_data = ctx && !ctx->no_alloc && !view_src;
    const size_t bytes = has_data ? all : 0;
    struct ggml_object *o = context_object_new(ctx, GGML_OBJECT_TYPE_TENSOR, GGML_TENSOR_SIZE + bytes);
    if (!o) return tensor_error();
    struct ggml_tensor *t = object_content(ctx, o);
    memset(t, 0, sizeof *t);
    t->type = type;
    memcpy(t->ne, ne, sizeof ne);
    memcpy(t->nb, nb, sizeof nb);
    t->view_src = view_src;
    t->view_offs = view_src ? view_offs : 0;
    if (view_src && view_src->data) t->data = (char *) view_src->data + view_offs;
    if (bytes > 0) t->data = t + 1;
    return t;
}

struct ggml_tensor *ggml_new_tensor(struct ggml_context *ctx, enum ggml_type type, int n_dims, const int64_t *ne) {
    if (!ne && n_dims > 0) {
        (void) err_set(ERR_INVALID, "ggml_new_tensor: no sizes given (NULL)");
        return tensor_error();
    }
    return tensor_new(ctx, type, n_dims, ne, NULL, 0);
}

struct ggml_tensor *ggml_new_tensor_1d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0) {
    return tensor_new(ctx, type, 1, &ne0, NULL, 0);
}

struct ggml_tensor *ggml_new_tensor_2d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0, int64_t ne1) {
    return tensor_new(ctx, type, 2, (int64_t[]){ne0, ne1}, NULL, 0);
}

struct ggml_tensor *ggml_new_tensor_3d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0, int64_t ne1,
                                       int64_t ne2) {
    return tensor_new(ctx, type, 3, (int64_t[]){ne0, ne1, ne2}, NULL, 0);
}

struct ggml_tensor *ggml_new_tensor_4d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0, int64_t ne1, int64_t ne2,
                                       int64_t ne3) {
    return tensor_new(ctx, type, 4, (int64_t[]){ne0, ne1, ne2, ne3}, NULL, 0);
}

static bool missing(const struct ggml_tensor *src, const char *call) {
    if (src) return false;
    (void) err_set(ERR_INVALID, "%s: no tensor given (NULL)", call);
    return true;
}

struct ggml_tensor *ggml_dup_tensor(struct ggml_context *ctx, const struct ggml_tensor *src) {
    if (missing(src, "ggml_dup_tensor") || ggml_is_error(src)) return tensor_error();
    return tensor_new(ctx, src->type, GGML_MAX_DIMS, src->ne, NULL, 0);
}

struct ggml_tensor *ggml_view_tensor(struct ggml_context *ctx, struct ggml_tensor *src) {
    if (missing(src, "ggml_view_tensor") || ggml_is_error(src)) return tensor_error();
    struct ggml_tensor *t = tensor_new(ctx, src->type, GGML_MAX_DIMS, src->ne, src, 0);
    if (ggml_is_error(t)) return t;
    tensor_name_suffix(t, src->name, " (view)", sizeof " (view)");
    memcpy(t->nb, src->nb, sizeof t->nb);
    return t;
}

// ---- names, flags and simple facts -----------------------------------------------------------------------------------

const char *ggml_get_name(const struct ggml_tensor *tensor) { return tensor ? tensor->name : ""; }

struct ggml_tensor *ggml_set_name(struct ggml_tensor *tensor, const char *name) {
    if (!tensor || ggml_is_error(tensor)) return tensor;
    const size_t n = name ? strnlen(name, GGML_MAX_NAME - 1) : 0;
    memmove(tensor->name, name ? name : "", n);
    tensor->name[n] = '\0';
    return tensor;
}

struct ggml_tensor *ggml_format_name(struct ggml_tensor *tensor, const char *fmt, ...) {
    if (!tensor || ggml_is_error(tensor)) return tensor;
    if (!fmt) {
        err_set(ERR_INVALID, "ggml_format_name: the format is NULL");
        return tensor;
    }
    char name[GGML_MAX_NAME];  // the arguments may contain the old name
    va_list args;
    va_start(args, fmt);
    vsnprintf(name, sizeof name, fmt, args);
    va_end(args);
    memcpy(tensor->name, name, sizeof name);
    return tensor;
}

void tensor_name_from(struct ggml_tensor *t, const char *a, const char *b, const char *c) {
    if (ggml_is_error(t)) return;
    const char *part[3] = {a, b, c};
    size_t n = 0;
    for (int i = 0; i < 3 && part[i]; i++) {
        const size_t k = strnlen(part[i], GGML_MAX_NAME - 1 - n);
        memmove(t->name + n, part[i], k);
        n += k;
    }
    t->name[n] = '\0';
}

void tensor_name_number(struct ggml_tensor *t, const char *prefix, int number) {
    char digits[12], *p = digits + sizeof digits;
    unsigned n = (unsigned) number;
    char *to = t->name;
    if (ggml_is_error(t)) return;
    do *--p = (char) ('0' + n % 10);
    while ((n /= 10) > 0);
    while (*prefix) *to++ = *prefix++;
    while (p < digits + sizeof digits) *to++ = *p++;
    *to = '\0';
}

static void set_flag(struct ggml_tensor *t, enum ggml_tensor_flag flag) {
    if (t && !ggml_is_error(t)) t->flags |= flag;
}

void ggml_set_input(struct ggml_tensor *tensor) { set_flag(tensor, GGML_TENSOR_FLAG_INPUT); }

void ggml_set_output(struct ggml_tensor *tensor) { set_flag(tensor, GGML_TENSOR_FLAG_OUTPUT); }

void ggml_set_param(struct ggml_tensor *tensor) {
    if (tensor && tensor->op != GGML_OP_NONE) {
        (void) err_set(ERR_INVALID,
                       "ggml_set_param: %s is the result of %s; only a tensor that no operation writes can be "
                       "trained",
                       tensor->name, ggml_op_name(tensor->op));
        return;
    }
    set_flag(tensor, GGML_TENSOR_FLAG_PARAM);
}

void ggml_set_loss(struct ggml_tensor *tensor) {
    if (tensor && (!ggml_is_scalar(tensor) || tensor->type != GGML_TYPE_F32)) {
        (void) err_set(ERR_INVALID, "ggml_set_loss: %s has %lld elements of type %s; a loss is one F32 value", tensor->name,
                       (long long) ggml_nelements(tensor), ggml_type_name(tensor->type));
        return;
    }
    set_flag(tensor, GGML_TENSOR_FLAG_LOSS);
}

void *ggml_get_data(const struct ggml_tensor *tensor) { return tensor ? tensor->data : NULL; }

float *ggml_get_data_f32(const struct ggml_tensor *tensor) {
    if (tensor && tensor->type == GGML_TYPE_F32) return tensor->data;
    if (tensor)
        (void) err_set(ERR_INVALID, "ggml_get_data_f32: %s is of type %s", tensor->name, ggml_type_name(tensor->type));
    return NULL;
}

enum ggml_unary_op ggml_get_unary_op(const struct ggml_tensor *tensor) {
    if (tensor && tensor->op == GGML_OP_UNARY) return (enum ggml_unary_op) tensor_param_i32(tensor, 0);
    (void) err_set(ERR_INVALID, "ggml_get_unary_op: the tensor is not the result of an element-wise function");
    return GGML_UNARY_OP_COUNT;
}

enum ggml_glu_op ggml_get_glu_op(const struct ggml_tensor *tensor) {
    if (tensor && tensor->op == GGML_OP_GLU) return (enum ggml_glu_op) tensor_param_i32(tensor, 0);
    (void) err_set(ERR_INVALID, "ggml_get_glu_op: the tensor is not the result of a gated unit");
    return GGML_GLU_OP_COUNT;
}

void ggml_unravel_index(const struct ggml_tensor *tensor, int64_t i, int64_t *i0, int64_t *i1, int64_t *i2, int64_t *i3) {
    int64_t *const out[GGML_MAX_DIMS] = {i0, i1, i2, i3};
    for (int d = 0; d < GGML_MAX_DIMS; d++) {
        const int64_t n = tensor && tensor->ne[d] > 0 ? tensor->ne[d] : 1;
        if (out[d]) *out[d] = d == GGML_MAX_DIMS - 1 ? i : i % n;
        i /= n;
    }
}
