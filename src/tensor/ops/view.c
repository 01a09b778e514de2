// VIEW: a window into another tensor's memory, with strides and an offset of the caller's choice.
// ggml_view_tensor, which makes no node, is in graph/tensor.c.
#include "ops/backward.h"

#include <string.h>

// The window must begin and step at whole elements (blocks) and lie inside the tensor that owns the memory.
static enum err check_window(const struct ggml_tensor *t) {
    const size_t size = ggml_type_size(t->type), root = ggml_nbytes(t->view_src), bytes = ggml_nbytes(t);
    if (t->view_offs % size != 0) {
        return err_set(ERR_INVALID, "view: offset %zu lies inside an element of type %s (%zu bytes)", t->view_offs,
                       ggml_type_name(t->type), size);
    }
    for (int i = 1; i < GGML_MAX_DIMS; i++) {
        if (t->ne[i] > 1 && t->nb[i] % size != 0) {
            return err_set(ERR_INVALID, "view: stride nb[%d] = %zu is not a whole number of elements of type %s (%zu bytes)",
                           i, t->nb[i], ggml_type_name(t->type), size);
        }
    }
    if (t->view_offs > root || bytes > root - t->view_offs) {
        return err_set(ERR_INVALID, "view: [%lld, %lld, %lld, %lld] needs %zu bytes from offset %zu, but %s has %zu",
                       (long long) t->ne[0], (long long) t->ne[1], (long long) t->ne[2], (long long) t->ne[3], bytes,
                       t->view_offs, t->view_src->name[0] ? t->view_src->name : "its source", root);
    }
    return ERR_OK;
}

// The shape is the caller's choice, not a function of the source: it is what the tensor says.
static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *a = t->src[0];
    if (!t->view_src || t->type != a->type) return err_set(ERR_INVALID, "view: not a view of its source");
    shape->type = t->type;
    memcpy(shape->ne, t->ne, sizeof shape->ne);
    return check_window(t);
}

// Whether t, which was made before from a as it is now, is the view that would be made.
static bool is_as_before(const struct ggml_tensor *t, const struct ggml_tensor *a, int n_dims, const int64_t *ne,
                         const size_t *nb, size_t offset) {
    int64_t other = t->op != GGML_OP_VIEW || t->src[0] != a;
    for (int i = 0; i < GGML_MAX_DIMS; i++) other |= t->ne[i] ^ (i < n_dims ? ne[i] : 1);
    for (int i = 1; i < n_dims; i++) other |= (int64_t) (t->nb[i] ^ nb[i - 1]);
    return !other && memcmp(t->op_params, &offset, sizeof offset) == 0;
}

// nb: strides of dimensions 1 .. n_dims-1, the further ones follow; NULL for packed ones.
static struct ggml_tensor *view(struct ggml_context *ctx, struct ggml_tensor *a, int n_dims, const int64_t *ne,
                                const size_t *nb, size_t offset) {
    if (!a) {
        (void) err_set(ERR_INVALID, "view: no tensor given (NULL)");
        return tensor_error();
    }
    if (ggml_is_error(a)) return a;
    struct ggml_tensor *before = tensor_before(ctx);
    if (before && is_as_before(before, a, n_dims, ne, nb, offset)) return tensor_keep(ctx, before);
    // Judged before anything is taken from the context.
    struct ggml_tensor head = {.type = a->type, .ne = {1, 1, 1, 1}};
    head.view_src = a->view_src ? a->view_src : a;
    head.view_offs = (a->view_src ? a->view_offs : 0) + offset;
    head.nb[0] = ggml_type_size(a->type);
    for (int i = 0; i < n_dims; i++) head.ne[i] = ne[i];
    for (int i = 1; i < GGML_MAX_DIMS; i++) {
        const size_t packed =
            i == 1 ? head.nb[0] * (size_t) (head.ne[0] / ggml_blck_size(a->type)) : head.nb[i - 1] * (size_t) head.ne[i - 1];
        head.nb[i] = nb && i < n_dims ? nb[i - 1] : packed;
    }
    for (int i = 0; i < n_dims; i++) {
        size_t reach;
        if (ne[i] < 0 || __builtin_mul_overflow((size_t) ne[i], head.nb[i], &reach) || reach > INT64_MAX / 8) {
            (void) err_set(ERR_INVALID, "view: dimension %d has %lld steps of %zu bytes", i, (long long) ne[i], head.nb[i]);
            return tensor_error();
        }
    }
    if (check_window(&head) != ERR_OK) return tensor_error();

    struct ggml_tensor *t = tensor_new(ctx, a->type, n_dims, ne, a, offset);
    if (ggml_is_error(t)) return t;
    memcpy(t->nb, head.nb, sizeof t->nb);
    tensor_name_suffix(t, a->name, " (view)", sizeof " (view)");
    t->op = GGML_OP_VIEW;
    memcpy(t->op_params, &offset, sizeof offset);
    t->src[0] = a;
    return t;
}

struct ggml_tensor *ggml_view_1d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, size_t offset) {
    return view(ctx, a, 1, &ne0, NULL, offset);
}

struct ggml_tensor *ggml_view_2d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1, size_t nb1,
                                 size_t offset) {
    return view(ctx, a, 2, (int64_t[]){ne0, ne1}, &nb1, offset);
}

struct ggml_tensor *ggml_view_3d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1, int64_t ne2,
                                 size_t nb1, size_t nb2, size_t offset) {
    return view(ctx, a, 3, (int64_t[]){ne0, ne1, ne2}, (size_t[]){nb1, nb2}, offset);
}

struct ggml_tensor *ggml_view_4d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1, int64_t ne2,
                                 int64_t ne3, size_t nb1, size_t nb2, size_t nb3, size_t offset) {
    return view(ctx, a, 4, (int64_t[]){ne0, ne1, ne2, ne3}, (size_t[]){nb1, nb2, nb3}, offset);
}

// The gradient goes straight to the tensor that owns the memory, whose layout the strides and the offset are of; where that
// takes no part (the source is a copy into it), to the source if it lies in one piece.
static enum err backward(struct backward *b, struct ggml_tensor *t) {
    struct ggml_tensor *to = t->view_src, *a = t->src[0];
    size_t offset = t->view_offs;
    if (!backward_wants(b, to) && ggml_is_contiguous(a)) {
        offset -= a->view_src ? a->view_offs : 0;
        to = a;
    }
    bool twice = false;
    for (int i = 1; i < GGML_MAX_DIMS; i++) twice |= t->ne[i] > 1 && t->nb[i] < (size_t) t->ne[i - 1] * t->nb[i - 1];
    if (backward_wants(b, to) && !twice && to->type == GGML_TYPE_F32) {
        return backward_add_part(b, to, backward_grad(b, t), t->nb[1], t->nb[2], t->nb[3], offset);
    }
    return err_set(ERR_UNSUPPORTED, "gradient of %s: %s", t->name,
                   twice                       ? "the view shows elements more than once"
                   : to->type != GGML_TYPE_F32 ? "views into tensors that are not F32 have none; cast first"
                                               : "the tensor that it is a view of takes no part in the graph");
}

const struct op op_view = {.id = GGML_OP_VIEW,
                           .name = "VIEW",
                           .symbol = "view(x)",
                           .n_src = 1,
                           .flags = OP_VIEW,
                           .infer = infer,
                           .backward = backward};
