// WIN_PART, WIN_UNPART, GET_REL_POS, ADD_REL_POS: windows and relative positions of image transformers (Kirillov et al. 2023).
//   WIN_PART: [C, W, H] -> [C, w, w, windows], zeros where a window reaches outside;  WIN_UNPART: back to [C, w0, h0]
//   GET_REL_POS: table [C, 2 n - 1] -> [C, n, n]: row n - 1 - k + q for key k and query q
//   ADD_REL_POS: a [kw kh, qw qh, heads] + pw [kw, qw, qh, heads] + ph [kh, qw, qh, heads], all sizes n
// WIN_*: op_params [0] windows in x, [1] in y, [2] w.
#include "ops/backward.h"
#include "ops/copy.h"
#include "ops/row.h"

static enum err check_plain(const struct ggml_tensor *t) {
    const struct type *ty = type_get(t->src[0]->type);
    if (!ty || ty->block > 1)
        return err_set(ERR_UNSUPPORTED, "%s: not for type %s", op_what(t), ggml_type_name(t->src[0]->type));
    return ERR_OK;
}

static int64_t windows(int64_t n, int64_t w) { return (n + w - 1) / w; }

static enum err infer_part(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *a = t->src[0];
    const int64_t w = tensor_param_i32(t, 2);
    TRY(check_plain(t));
    if (w < 1 || a->ne[3] != 1)
        return err_set(ERR_INVALID, "WIN_PART: windows of %lld on " SHAPE_FMT, (long long) w, SHAPE_ARG(a));
    return shape_4d(shape, a->type, a->ne[0], w, w, windows(a->ne[1], w) * windows(a->ne[2], w));
}

static void run_part(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0];
    const int64_t w = tensor_param_i32(t, 2), nx = windows(a->ne[1], w);
    const size_t size = ggml_type_size(t->type);
    static const char zero[8];
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        int64_t i1, i2, i3;
        row_split(t, r, &i1, &i2, &i3);
        const int64_t x = i3 % nx * w + i1, y = i3 / nx * w + i2;
        const bool inside = x < a->ne[1] && y < a->ne[2];
        copy_elements(row_at(t, i1, i2, i3), t->nb[0], inside ? row_at(a, x, y, 0) : zero, inside ? a->nb[0] : 0, size,
                      t->ne[0]);
    }
}

static enum err infer_unpart(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *a = t->src[0];
    const int64_t w = tensor_param_i32(t, 0);
    TRY(check_plain(t));
    if (w < 1 || t->ne[1] < 1 || t->ne[2] < 1 || t->ne[3] != 1 || a->ne[1] != w || a->ne[2] != w ||
        a->ne[3] != windows(t->ne[1], w) * windows(t->ne[2], w))
        return err_set(ERR_INVALID, "WIN_UNPART: windows " SHAPE_FMT " of %lld do not give %lld by %lld", SHAPE_ARG(a),
                       (long long) w, (long long) t->ne[1], (long long) t->ne[2]);
    return shape_4d(shape, a->type, a->ne[0], t->ne[1], t->ne[2], 1);
}

static void run_unpart(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0];
    const int64_t w = tensor_param_i32(t, 0), nx = windows(t->ne[1], w);
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        const int64_t x = r % t->ne[1], y = r / t->ne[1];
        copy_elements(row_at(t, x, y, 0), t->nb[0], row_at(a, x % w, y % w, y / w * nx + x / w), a->nb[0],
                      ggml_type_size(t->type), t->ne[0]);
    }
}

static enum err back_part(struct backward *b, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0];
    return backward_add(b, t->src[0],
                        ggml_win_unpart(b->ctx, backward_grad(b, t), (int) a->ne[1], (int) a->ne[2], (int) t->ne[1]));
}
static enum err back_unpart(struct backward *b, struct ggml_tensor *t) {
    return backward_add(b, t->src[0], ggml_win_part(b->ctx, backward_grad(b, t), (int) t->src[0]->ne[1]));
}

// ---- relative positions -----------------------------------------------------------------------------------------------------

static enum err infer_get(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *a = t->src[0];
    const int64_t q = tensor_param_i32(t, 0), k = tensor_param_i32(t, 1);
    TRY(check_plain(t));
    if (q < 1 || q != k || a->ne[1] != 2 * q - 1 || a->ne[2] != 1 || a->ne[3] != 1)
        return err_set(ERR_INVALID, "GET_REL_POS: a table " SHAPE_FMT " for %lld queries and %lld keys", SHAPE_ARG(a),
                       (long long) q, (long long) k);
    return shape_4d(shape, a->type, a->ne[0], k, q, 1);
}

static void run_get(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0];
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        const int64_t i1 = r % t->ne[1], i2 = r / t->ne[1];
        copy_elements(row_at(t, i1, i2, 0), t->nb[0], row_at(a, t->ne[1] - 1 - i1 + i2, 0, 0), a->nb[0],
                      ggml_type_size(t->type), t->ne[0]);
    }
}

static enum err infer_add(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *a = t->src[0], *pw = t->src[1];
    for (int i = 0; i < 3; i++) TRY(check_float(t, i));
    TRY(check_same_shape(t, 1, 2));
    if (pw->ne[0] * pw->ne[0] != a->ne[0] || pw->ne[1] * pw->ne[2] != a->ne[1] || pw->ne[3] != a->ne[2] || a->ne[3] != 1)
        return err_set(ERR_INVALID, "ADD_REL_POS: positions " SHAPE_FMT " do not fit " SHAPE_FMT, SHAPE_ARG(pw),
                       SHAPE_ARG(a));
    return shape_like(a, a->type, shape);
}

static size_t scratch_add(const struct ggml_tensor *t, int n_threads) { return row_scratch_bytes(t->ne[0], 3, n_threads); }

static void run_add(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0], *pw = t->src[1], *ph = t->src[2];
    const int64_t n = pw->ne[0];
    float *ab = row_scratch(k, t->ne[0], 3, 0), *wb = row_scratch(k, t->ne[0], 3, 1), *hb = row_scratch(k, t->ne[0], 3, 2);
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        const int64_t q = r % t->ne[1], head = r / t->ne[1], qx = q % pw->ne[1], qy = q / pw->ne[1];
        char *row = row_at(t, q, head, 0);
        const float *x = row_read(a, row_at(a, q, head, 0), 0, t->ne[0], ab);
        const float *w = row_read(pw, row_at(pw, qx, qy, head), 0, n, wb),
                    *h = row_read(ph, row_at(ph, qx, qy, head), 0, n, hb);
        float *y = row_target(t, row, 0, ab);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) y[i * n + j] = x[i * n + j] + h[i] + w[j];
        row_write(t, row, 0, t->ne[0], y);
    }
}

// ---- builders -----------------------------------------------------------------------------------------------------------------

struct ggml_tensor *ggml_win_part(struct ggml_context *ctx, struct ggml_tensor *a, int w) {
    const int nx = a && w > 0 ? (int) windows(a->ne[1], w) : 0, ny = a && w > 0 ? (int) windows(a->ne[2], w) : 0;
    return op_build(ctx, GGML_OP_WIN_PART, false, (int32_t[]){nx, ny, w}, 3, &a, 1);
}
struct ggml_tensor *ggml_win_unpart(struct ggml_context *ctx, struct ggml_tensor *a, int w0, int h0, int w) {
    const struct op_shape want = {GGML_TYPE_F32, {0, w0, h0, 1}};
    return op_build_as(ctx, GGML_OP_WIN_UNPART, &want, NULL, &(int32_t){w}, 1, &a, 1);
}
struct ggml_tensor *ggml_get_rel_pos(struct ggml_context *ctx, struct ggml_tensor *a, int qh, int kh) {
    return op_build(ctx, GGML_OP_GET_REL_POS, false, (int32_t[]){qh, kh}, 2, &a, 1);
}
struct ggml_tensor *ggml_add_rel_pos(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *pw,
                                     struct ggml_tensor *ph) {
    return op_build(ctx, GGML_OP_ADD_REL_POS, false, NULL, 0, (struct ggml_tensor *[]){a, pw, ph}, 3);
}
struct ggml_tensor *ggml_add_rel_pos_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *pw,
                                             struct ggml_tensor *ph) {
    return op_build(ctx, GGML_OP_ADD_REL_POS, true, NULL, 0, (struct ggml_tensor *[]){a, pw, ph}, 3);
}

const struct op op_win_part = {.id = GGML_OP_WIN_PART,
                               .name = "WIN_PART",
                               .symbol = "win_part(x)",
                               .n_src = 1,
                               .infer = infer_part,
                               .run = run_part,
                               .threads = copy_threads,
                               .backward = back_part};
const struct op op_win_unpart = {.id = GGML_OP_WIN_UNPART,
                                 .name = "WIN_UNPART",
                                 .symbol = "win_unpart(x)",
                                 .n_src = 1,
                                 .infer = infer_unpart,
                                 .run = run_unpart,
                                 .threads = copy_threads,
                                 .backward = back_unpart};
const struct op op_get_rel_pos = {.id = GGML_OP_GET_REL_POS,
                                  .name = "GET_REL_POS",
                                  .symbol = "get_rel_pos(x)",
                                  .n_src = 1,
                                  .infer = infer_get,
                                  .run = run_get,
                                  .threads = copy_threads};
const struct op op_add_rel_pos = {.id = GGML_OP_ADD_REL_POS,
                                  .name = "ADD_REL_POS",
                                  .symbol = "add_rel_pos(x)",
                                  .n_src = 3,
                                  .infer = infer_add,
                                  .scratch = scratch_add,
                                  .run = run_add,
                                  .threads = row_threads_map};
