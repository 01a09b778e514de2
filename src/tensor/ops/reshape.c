// RESHAPE: the same elements in the same order under another shape; only for packed tensors.
#include "ops/backward.h"

#include <string.h>

static enum err check(const struct ggml_tensor *a, const int64_t *ne) {
    if (!ggml_is_contiguous(a)) {
        return err_set(ERR_INVALID, "reshape: %s is not contiguous; use ggml_cont (or ggml_cont_2d ...) first",
                       a->name[0] ? a->name : "the tensor");
    }
    int64_t n = 1;
    bool overflow = false;
    for (int i = 0; i < GGML_MAX_DIMS; i++) overflow |= __builtin_mul_overflow(n, ne[i], &n);
    if (!overflow && n == ggml_nelements(a)) return ERR_OK;
    return err_set(ERR_INVALID, "reshape: %lld elements do not fill [%lld, %lld, %lld, %lld]", (long long) ggml_nelements(a),
                   (long long) ne[0], (long long) ne[1], (long long) ne[2], (long long) ne[3]);
}

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    shape->type = t->src[0]->type;
    memcpy(shape->ne, t->ne, sizeof shape->ne);
    return check(t->src[0], t->ne);
}

static struct ggml_tensor *reshape(struct ggml_context *ctx, struct ggml_tensor *a, int n_dims, const int64_t *sizes) {
    int64_t ne[GGML_MAX_DIMS] = {1, 1, 1, 1};
    memcpy(ne, sizes, (size_t) n_dims * sizeof *ne);
    if (!a) {
        (void) err_set(ERR_INVALID, "reshape: no tensor given (NULL)");
        return tensor_error();
    }
    if (ggml_is_error(a)) return a;
    struct ggml_tensor *before = tensor_before(ctx);
    if (before && before->op == GGML_OP_RESHAPE && before->src[0] == a && memcmp(before->ne, ne, sizeof ne) == 0)
        return tensor_keep(ctx, before);
    if (check(a, ne) != ERR_OK) return tensor_error();
    struct ggml_tensor *t = tensor_new(ctx, a->type, n_dims, sizes, a, 0);
    if (ggml_is_error(t)) return t;
    tensor_name_suffix(t, a->name, " (reshaped)", sizeof " (reshaped)");
    t->op = GGML_OP_RESHAPE;
    t->src[0] = a;
    return t;
}

struct ggml_tensor *ggml_reshape(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b) {
    if (!b) {
        (void) err_set(ERR_INVALID, "reshape: no tensor of the wanted shape given (NULL)");
        return tensor_error();
    }
    return ggml_is_error(b) ? b : reshape(ctx, a, GGML_MAX_DIMS, b->ne);
}

struct ggml_tensor *ggml_reshape_1d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0) {
    return reshape(ctx, a, 1, &ne0);
}

struct ggml_tensor *ggml_reshape_2d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1) {
    return reshape(ctx, a, 2, (int64_t[]){ne0, ne1});
}

struct ggml_tensor *ggml_reshape_3d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1, int64_t ne2) {
    return reshape(ctx, a, 3, (int64_t[]){ne0, ne1, ne2});
}

struct ggml_tensor *ggml_reshape_4d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1, int64_t ne2,
                                    int64_t ne3) {
    return reshape(ctx, a, 4, (int64_t[]){ne0, ne1, ne2, ne3});
}

static enum err backward(struct backward *b, struct ggml_tensor *t) {
    return backward_add(b, t->src[0], ggml_reshape(b->ctx, backward_grad(b, t), t->src[0]));
}

const struct op op_reshape = {.id = GGML_OP_RESHAPE,
                              .name = "RESHAPE",
                              .symbol = "reshape(x)",
                              .n_src = 1,
                              .flags = OP_VIEW,
                              .infer = infer,
                              .backward = backward};
