// TRANSPOSE: the same memory with dimensions 0 and 1 exchanged.
#include "ops/backward.h"

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *a = t->src[0];
    shape->type = a->type;
    shape->ne[0] = a->ne[1];
    shape->ne[1] = a->ne[0];
    shape->ne[2] = a->ne[2];
    shape->ne[3] = a->ne[3];
    return ERR_OK;
}

struct ggml_tensor *ggml_transpose(struct ggml_context *ctx, struct ggml_tensor *a) {
    struct ggml_tensor *t = ggml_view_tensor(ctx, a);
    if (ggml_is_error(t)) return t;
    tensor_name_suffix(t, a->name, " (transposed)", sizeof " (transposed)");
    t->ne[0] = a->ne[1];
    t->ne[1] = a->ne[0];
    t->nb[0] = a->nb[1];
    t->nb[1] = a->nb[0];
    t->op = GGML_OP_TRANSPOSE;
    t->src[0] = a;
    return t;
}

static enum err backward(struct backward *b, struct ggml_tensor *t) {
    return backward_add(b, t->src[0], ggml_transpose(b->ctx, backward_grad(b, t)));
}

const struct op op_transpose = {.id = GGML_OP_TRANSPOSE,
                                .name = "TRANSPOSE",
                                .symbol = "transpose(x)",
                                .n_src = 1,
                                .flags = OP_VIEW,
                                .infer = infer,
                                .backward = backward};
