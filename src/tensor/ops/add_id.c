// ADD_ID: to each of the used experts' outputs, the row of b that its id names.
#include "ops/backward.h"
#include "ops/row.h"
#include "kern/binary.h"

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *a = t->src[0], *b = t->src[1], *ids = t->src[2];
    TRY(check_real(t, 0));
    TRY(check_real(t, 1));
    TRY(check_type(t, 2, GGML_TYPE_I32));
    if (a->ne[0] != b->ne[0] || a->ne[1] != ids->ne[0] || a->ne[2] != ids->ne[1] || a->ne[3] != 1 || ids->ne[2] != 1 ||
        ids->ne[3] != 1 || b->ne[2] != 1 || b->ne[3] != 1)
        return err_set(ERR_INVALID,
                       "ADD_ID: a " SHAPE_FMT ", b " SHAPE_FMT " and ids " SHAPE_FMT
                       " do not fit; wanted [n, used, tokens], [n, experts], [used, tokens]",
                       SHAPE_ARG(a), SHAPE_ARG(b), SHAPE_ARG(ids));
    return shape_like(a, a->type, shape);
}

static void add_row(const struct ggml_tensor *t, int64_t i1, int64_t i2, int32_t id) {
    const struct ggml_tensor *a = t->src[0], *b = t->src[1];
    alignas(64) float bx[ROW_CHUNK], by[ROW_CHUNK], out[ROW_CHUNK];
    char *row = row_at(t, i1, i2, 0);
    for (int64_t e = 0; e < t->ne[0]; e += ROW_CHUNK) {
        const int64_t n = t->ne[0] - e < ROW_CHUNK ? t->ne[0] - e : ROW_CHUNK;
        float *y = row_target(t, row, e, out);
        kern_binary()->add(n, y, row_read(a, row_at(a, i1, i2, 0), e, n, bx), row_read(b, row_at(b, id, 0, 0), e, n, by));
        row_write(t, row, e, n, y);
    }
}

static void run(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *b = t->src[1], *ids = t->src[2];
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        const int64_t i1 = r % t->ne[1], i2 = r / t->ne[1];
        int32_t id;
        memcpy(&id, (const char *) ids->data + (size_t) i1 * ids->nb[0] + (size_t) i2 * ids->nb[1], sizeof id);
        if (id < 0 || id >= b->ne[1]) {
            task_fail(k, t, "id %d at [%lld, %lld] is outside the %lld rows", (int) id, (long long) i1, (long long) i2,
                      (long long) b->ne[1]);
            return;
        }
        add_row(t, i1, i2, id);
    }
}

static enum err backward(struct backward *b, struct ggml_tensor *t) {
    struct ggml_tensor *g = backward_grad(b, t), *ids = t->src[2];
    TRY(backward_add(b, t->src[0], g));
    if (!backward_wants(b, t->src[1])) return ERR_OK;
    const int64_t n = t->ne[1] * t->ne[2];
    struct ggml_tensor *rows = ggml_reshape_2d(b->ctx, g, t->ne[0], n);
    struct ggml_tensor *flat = ggml_cont_1d(b->ctx, ids, n);
    return backward_add(b, t->src[1], ggml_get_rows_back(b->ctx, rows, flat, t->src[1]));
}

struct ggml_tensor *ggml_add_id(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                struct ggml_tensor *ids) {
    return op_build(ctx, GGML_OP_ADD_ID, false, NULL, 0, (struct ggml_tensor *[]){a, b, ids}, 3);
}

const struct op op_add_id = {.id = GGML_OP_ADD_ID,
                             .name = "ADD_ID",
                             .symbol = "x[i]+y",
                             .n_src = 3,
                             .flags = OP_INPLACE,
                             .infer = infer,
                             .run = run,
                             .threads = row_threads_map,
                             .backward = backward};
