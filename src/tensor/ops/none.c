// NONE: a tensor that no operation writes (weight, input, constant).
#include "ops/op.h"

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    shape->type = t->type;
    for (int i = 0; i < GGML_MAX_DIMS; i++) shape->ne[i] = t->ne[i];
    return ERR_OK;
}

const struct op op_none = {.id = GGML_OP_NONE, .name = "NONE", .symbol = "none", .flags = OP_VIEW, .infer = infer};
