// REPEAT: a tensor tiled to a larger shape, each size a multiple. REPEAT_BACK: its gradient, the sum over the tiles.
#include "ops/backward.h"
#include "ops/copy.h"
#include "ops/row.h"
#include "kern/binary.h"
#include "kern/norm.h"

// Sizes of the result: the caller's.
static enum err infer_sizes(const struct ggml_tensor *t, struct op_shape *shape, bool back) {
    const struct ggml_tensor *a = t->src[0];
    for (int d = 0; d < 4; d++) {
        const int64_t small = back ? t->ne[d] : a->ne[d], big = back ? a->ne[d] : t->ne[d];
        if (small == 0 ? big != 0 : big % small != 0)
            return err_set(ERR_INVALID, "%s: " SHAPE_FMT " to " SHAPE_FMT ": no whole number of tiles in dimension %d",
                           op_what(t), SHAPE_ARG(a), SHAPE_ARG(t), d);
    }
    return shape_4d(shape, a->type, t->ne[0], t->ne[1], t->ne[2], t->ne[3]);
}

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check_rows(t, 0));
    return infer_sizes(t, shape, false);
}

static void run(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0];
    const struct type *ty = type_get(t->type);
    const int64_t n = t->ne[0] / ty->block, tile = a->ne[0] / ty->block;
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        int64_t i1, i2, i3;
        row_split(t, r, &i1, &i2, &i3);
        char *d = row_at(t, i1, i2, i3);
        const char *s = row_at(a, i1 % a->ne[1], i2 % a->ne[2], i3 % a->ne[3]);
        if (tile == 1) copy_elements(d, t->nb[0], s, 0, ty->size, n);
        for (int64_t i = 0; tile > 1 && i < n; i += tile)
            copy_elements(d + (size_t) i * t->nb[0], t->nb[0], s, a->nb[0], ty->size, tile);
    }
}

// ---- REPEAT_BACK ----------------------------------------------------------------------------------------------------------

static enum err infer_back(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check_float(t, 0));
    return infer_sizes(t, shape, true);
}

// Adds the tiles of one row of the large tensor to y [n], from element e of each tile on.
static void add_row(const struct ggml_tensor *a, const char *row, int64_t tile, int64_t e, int64_t n, float *y) {
    alignas(64) float buf[ROW_CHUNK];
    if (tile == 1) {  // a plain sum
        for (int64_t i = 0; i < a->ne[0]; i += ROW_CHUNK) {
            const int64_t m = a->ne[0] - i < ROW_CHUNK ? a->ne[0] - i : ROW_CHUNK;
            y[0] += kern_norm()->sum(m, row_read(a, row, i, m, buf));
        }
        return;
    }
    for (int64_t i = e; i < a->ne[0]; i += tile) kern_binary()->add(n, y, y, row_read(a, row, i, n, buf));
}

static void run_back(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0];
    const int64_t per_row = (t->ne[0] + ROW_CHUNK - 1) / ROW_CHUNK;
    int64_t u0, u1;
    task_range(k, ggml_nrows(t) * per_row, &u0, &u1);
    alignas(64) float sum[ROW_CHUNK];
    for (int64_t u = u0; u < u1; u++) {
        const int64_t e = u % per_row * ROW_CHUNK, n = t->ne[0] - e < ROW_CHUNK ? t->ne[0] - e : ROW_CHUNK;
        int64_t i1, i2, i3;
        row_split(t, u / per_row, &i1, &i2, &i3);
        memset(sum, 0, sizeof sum);
        for (int64_t a3 = i3; a3 < a->ne[3]; a3 += t->ne[3])
            for (int64_t a2 = i2; a2 < a->ne[2]; a2 += t->ne[2])
                for (int64_t a1 = i1; a1 < a->ne[1]; a1 += t->ne[1]) add_row(a, row_at(a, a1, a2, a3), t->ne[0], e, n, sum);
        row_write(t, row_at(t, i1, i2, i3), e, n, sum);
    }
}

static int threads_back(const struct ggml_tensor *t, int n_threads) { return row_threads_map(t->src[0], n_threads); }

// ---- builders -------------------------------------------------------------------------------------------------------------

static struct ggml_tensor *build(struct ggml_context *ctx, enum ggml_op id, struct ggml_tensor *a,
                                 const struct ggml_tensor *b) {
    if (!a || !b) {
        (void) err_set(ERR_INVALID, "%s: a tensor is missing (NULL)", ggml_op_name(id));
        return tensor_error();
    }
    if (ggml_is_error(b)) return tensor_error();
    const struct op_shape want = {a->type, {b->ne[0], b->ne[1], b->ne[2], b->ne[3]}};
    return op_build_as(ctx, id, &want, NULL, NULL, 0, &a, 1);
}

struct ggml_tensor *ggml_repeat(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b) {
    return build(ctx, GGML_OP_REPEAT, a, b);
}
struct ggml_tensor *ggml_repeat_4d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1, int64_t ne2,
                                   int64_t ne3) {
    return build(ctx, GGML_OP_REPEAT, a, &(struct ggml_tensor){.ne = {ne0, ne1, ne2, ne3}});
}
struct ggml_tensor *ggml_repeat_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b) {
    return build(ctx, GGML_OP_REPEAT_BACK, a, b);
}

static enum err backward(struct backward *b, struct ggml_tensor *t) {
    return backward_add(b, t->src[0], ggml_repeat_back(b->ctx, backward_grad(b, t), t->src[0]));
}
static enum err backward_of_back(struct backward *b, struct ggml_tensor *t) {
    return backward_add(b, t->src[0], ggml_repeat(b->ctx, backward_grad(b, t), t->src[0]));
}

const struct op op_repeat = {.id = GGML_OP_REPEAT,
                             .name = "REPEAT",
                             .symbol = "repeat(x)",
                             .n_src = 1,
                             .infer = infer,
                             .run = run,
                             .threads = copy_threads,
                             .backward = backward};
const struct op op_repeat_back = {.id = GGML_OP_REPEAT_BACK,
                                  .name = "REPEAT_BACK",
                                  .symbol = "repeat_back(x)",
                                  .n_src = 1,
                                  .infer = infer_back,
                                  .run = run_back,
                                  .threads = threads_back,
                                  .backward = backward_of_back};
