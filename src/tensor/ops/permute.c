// PERMUTE: the same memory with dimension i of the source at position axis_i of the result.
#include "ops/backward.h"

#include <string.h>

static enum err check(const int32_t *axis) {
    unsigned seen = 0;
    for (int i = 0; i < GGML_MAX_DIMS; i++) {
        if (axis[i] >= 0 && axis[i] < GGML_MAX_DIMS) seen |= 1u << axis[i];
    }
    if (seen == 0xf) return ERR_OK;
    return err_set(ERR_INVALID, "permute: axes (%d, %d, %d, %d) are not the numbers 0 to 3 in some order", (int) axis[0],
                   (int) axis[1], (int) axis[2], (int) axis[3]);
}

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check(t->op_params));
    shape->type = t->src[0]->type;
    for (int i = 0; i < GGML_MAX_DIMS; i++) shape->ne[t->op_params[i]] = t->src[0]->ne[i];
    return ERR_OK;
}

struct ggml_tensor *ggml_permute(struct ggml_context *ctx, struct ggml_tensor *a, int axis0, int axis1, int axis2,
                                 int axis3) {
    const int32_t axis[GGML_MAX_DIMS] = {axis0, axis1, axis2, axis3};
    struct ggml_tensor *before = a ? tensor_before(ctx) : NULL;
    if (before && before->op == GGML_OP_PERMUTE && before->src[0] == a && memcmp(before->op_params, axis, sizeof axis) == 0)
        return tensor_keep(ctx, before);
    if (check(axis) != ERR_OK) return tensor_error();
    struct ggml_tensor *t = ggml_view_tensor(ctx, a);
    if (ggml_is_error(t)) return t;
    tensor_name_suffix(t, a->name, " (permuted)", sizeof " (permuted)");
    for (int i = 0; i < GGML_MAX_DIMS; i++) {
        t->ne[axis[i]] = a->ne[i];
        t->nb[axis[i]] = a->nb[i];
    }
    t->op = GGML_OP_PERMUTE;
    memcpy(t->op_params, axis, sizeof axis);
    t->src[0] = a;
    return t;
}

// Back to where the dimensions came from.
static enum err backward(struct backward *b, struct ggml_tensor *t) {
    int from[GGML_MAX_DIMS];
    for (int i = 0; i < GGML_MAX_DIMS; i++) from[t->op_params[i]] = i;
    return backward_add(b, t->src[0], ggml_permute(b->ctx, backward_grad(b, t), from[0], from[1], from[2], from[3]));
}

const struct op op_permute = {.id = GGML_OP_PERMUTE,
                              .name = "PERMUTE",
                              .symbol = "permute(x)",
                              .n_src = 1,
                              .flags = OP_VIEW,
                              .infer = infer,
                              .backward = backward};
