// CONCAT: two tensors of one type behind each other along a dimension. op_params: [0] the dimension.
#include "ops/backward.h"
#include "ops/copy.h"
#include "ops/row.h"

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *a = t->src[0], *b = t->src[1];
    const int32_t dim = tensor_param_i32(t, 0);
    if (dim < 0 || dim > 3) return err_set(ERR_INVALID, "CONCAT: there is no dimension %d", (int) dim);
    TRY(check_rows(t, 0));
    TRY(check_rows(t, 1));
    TRY(check_type(t, 1, a->type));
    for (int d = 0; d < 4; d++) {
        if (d != dim && a->ne[d] != b->ne[d])
            return err_set(ERR_INVALID, "CONCAT: " SHAPE_FMT " and " SHAPE_FMT " differ in dimension %d, not only in %d",
                           SHAPE_ARG(a), SHAPE_ARG(b), d, (int) dim);
    }
    TRY(shape_like(a, a->type, shape));
    shape->ne[dim] += b->ne[dim];
    return check_size(shape->ne);
}

static void run(struct task *k, struct ggml_tensor *t) {
    const int dim = tensor_param_i32(t, 0);
    struct ggml_tensor part = *t;
    for (int i = 0; i < 2; i++) {
        part.ne[dim] = t->src[i]->ne[dim];
        copy_run(k, t->src[i], &part);
        part.data =
            (char *) part.data + (size_t) (dim == 0 ? part.ne[0] / ggml_blck_size(t->type) : part.ne[dim]) * part.nb[dim];
    }
}

struct ggml_tensor *ggml_concat(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int dim) {
    return op_build(ctx, GGML_OP_CONCAT, false, &(int32_t){dim}, 1, (struct ggml_tensor *[]){a, b}, 2);
}

static enum err backward(struct backward *b, struct ggml_tensor *t) {
    const int dim = tensor_param_i32(t, 0);
    struct ggml_tensor *g = backward_grad(b, t);
    size_t offset = 0;
    for (int i = 0; i < 2; i++) {
        const int64_t *ne = t->src[i]->ne;
        TRY(backward_add(b, t->src[i],
                         ggml_view_4d(b->ctx, g, ne[0], ne[1], ne[2], ne[3], g->nb[1], g->nb[2], g->nb[3], offset)));
        offset += (size_t) ne[dim] * g->nb[dim];
    }
    return ERR_OK;
}

const struct op op_concat = {.id = GGML_OP_CONCAT,
                             .name = "CONCAT",
                             .symbol = "concat(x, y)",
                             .n_src = 2,
                             .infer = infer,
                             .run = run,
                             .threads = copy_threads,
                             .backward = backward};
