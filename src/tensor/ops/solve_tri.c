// SOLVE_TRI: triangular systems A X = B (left) or X A = B, A lower or upper, its diagonal as it is or taken as ones. Only
// the triangle of A is read.
#include <string.h>

#include "kern/recur.h"
#include "ops/recur_int.h"

enum { LEFT, LOWER, UNIT };

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *a = t->src[0], *b = t->src[1];
    TRY(recur_check_rows("solve_tri", "a", a));
    TRY(recur_check_rows("solve_tri", "b", b));
    if (a->ne[0] != a->ne[1])
        return err_set(ERR_INVALID, "solve_tri: a must be square; it is %lld x %lld", (long long) a->ne[0],
                       (long long) a->ne[1]);
    const int side = tensor_param_i32(t, LEFT) ? 1 : 0;
    if (b->ne[side] != a->ne[0])
        return err_set(ERR_INVALID, "solve_tri: a is %lld x %lld, so b needs ne[%d] = %lld; it has %lld",
                       (long long) a->ne[0], (long long) a->ne[0], side, (long long) a->ne[0], (long long) b->ne[side]);
    if (a->ne[2] != b->ne[2] || a->ne[3] != b->ne[3])
        return err_set(ERR_INVALID, "solve_tri: a holds %lld x %lld systems, b %lld x %lld right sides",
                       (long long) a->ne[2], (long long) a->ne[3], (long long) b->ne[2], (long long) b->ne[3]);
    *shape = (struct op_shape){.type = GGML_TYPE_F32, .ne = {b->ne[0], b->ne[1], b->ne[2], b->ne[3]}};
    return ERR_OK;
}

enum { COLUMNS = 64 };  // of the right side that are one piece of work

static void copy_part(const struct ggml_tensor *b, struct ggml_tensor *t, int64_t row0, int64_t row1, int64_t col, int64_t n,
                      int64_t i2, int64_t i3) {
    for (int64_t row = row0; row < row1; row++)
        memcpy(recur_at(t, row, i2, i3) + col, recur_at(b, row, i2, i3) + col, (size_t) n * sizeof(float));
}

static void run(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0], *b = t->src[1];
    const bool left = tensor_param_i32(t, LEFT) != 0;
    // The independent parts of a system: columns of the right side, or its rows.
    const int64_t n_part = left ? (b->ne[0] + COLUMNS - 1) / COLUMNS : b->ne[1];
    int64_t i0, i1;
    task_range(k, n_part * b->ne[2] * b->ne[3], &i0, &i1);
    for (int64_t i = i0; i < i1; i++) {
        const int64_t part = i % n_part, i2 = i / n_part % b->ne[2], i3 = i / n_part / b->ne[2];
        struct recur_solve x = {.a = recur_at(a, 0, i2, i3),
                                .n = a->ne[0],
                                .a_step = recur_step(a, 1),
                                .x_step = recur_step(t, 1),
                                .lower = tensor_param_i32(t, LOWER) != 0,
                                .unit = tensor_param_i32(t, UNIT) != 0};
        if (left) {
            const int64_t col = part * COLUMNS;
            x.n_column = b->ne[0] - col < COLUMNS ? b->ne[0] - col : COLUMNS;
            x.x = recur_at(t, 0, i2, i3) + col;
            copy_part(b, t, 0, b->ne[1], col, x.n_column, i2, i3);
            kern_recur()->solve_left(&x);
        } else {
            x.x = recur_at(t, part, i2, i3);
            copy_part(b, t, part, part + 1, 0, b->ne[0], i2, i3);
            kern_recur()->solve_right(&x);
        }
    }
}

struct ggml_tensor *ggml_solve_tri(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, bool left,
                                   bool lower, bool uni) {
    struct ggml_tensor *src[] = {a, b};
    const int32_t params[] = {[LEFT] = left, [LOWER] = lower, [UNIT] = uni};
    return op_build(ctx, GGML_OP_SOLVE_TRI, false, params, 3, src, 2);
}

const struct op op_solve_tri = {.id = GGML_OP_SOLVE_TRI,
                                .name = "SOLVE_TRI",
                                .symbol = "A X = B, A triangular, solve X",
                                .n_src = 2,
                                .infer = infer,
                                .run = run};
