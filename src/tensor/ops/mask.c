// Operations that keep some elements by their place and set the rest: DIAG_MASK_INF, DIAG_MASK_ZERO, TRI; FILL sets all;
// DIAG puts a vector on the diagonal of a matrix.
#include "ops/backward.h"
#include "ops/copy.h"
#include "ops/row.h"

#include <math.h>

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check_float(t, 0));
    return shape_like(t->src[0], t->src[0]->type, shape);
}

// Row by row: elements [k0, k1) of row i1 are kept, all others become value.
typedef void (*keep_fn)(const struct ggml_tensor *t, int64_t i1, int64_t *k0, int64_t *k1);

static void mask_piece(const struct ggml_tensor *t, char *d, const char *s, int64_t e, int64_t n, int64_t k0, int64_t k1,
                       float value) {
    alignas(64) float in[ROW_CHUNK], out[ROW_CHUNK];
    const float *x = row_read(t->src[0], s, e, n, in);
    float *y = row_target(t, d, e, out);
    for (int64_t i = 0; i < n; i++) y[i] = e + i >= k0 && e + i < k1 ? x[i] : value;
    row_write(t, d, e, n, y);
}

static void mask_rows(struct task *k, const struct ggml_tensor *t, keep_fn keep, float value) {
    const struct ggml_tensor *a = t->src[0];
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        int64_t i1, i2, i3, k0, k1;
        row_split(t, r, &i1, &i2, &i3);
        keep(t, i1, &k0, &k1);
        for (int64_t e = 0; e < t->ne[0]; e += ROW_CHUNK)
            mask_piece(t, row_at(t, i1, i2, i3), row_at(a, i1, i2, i3), e,
                       t->ne[0] - e < ROW_CHUNK ? t->ne[0] - e : ROW_CHUNK, k0, k1, value);
    }
}

// ---- DIAG_MASK_*: op_params [0] n_past ----------------------------------------------------------------------------------

static void keep_past(const struct ggml_tensor *t, int64_t i1, int64_t *k0, int64_t *k1) {
    *k0 = 0;
    *k1 = (int64_t) tensor_param_i32(t, 0) + i1 + 1;
}
static void run_inf(struct task *k, struct ggml_tensor *t) { mask_rows(k, t, keep_past, -INFINITY); }
static void run_zero(struct task *k, struct ggml_tensor *t) { mask_rows(k, t, keep_past, 0.0f); }

// ---- TRI: op_params [0] which triangle ------------------------------------------------------------------------------------

static enum err infer_tri(const struct ggml_tensor *t, struct op_shape *shape) {
    const int32_t kind = tensor_param_i32(t, 0);
    if (kind < GGML_TRI_TYPE_UPPER_DIAG || kind > GGML_TRI_TYPE_LOWER)
        return err_set(ERR_INVALID, "TRI: there is no triangle %d", (int) kind);
    if (t->src[0]->ne[0] != t->src[0]->ne[1])
        return err_set(ERR_INVALID, "TRI: " SHAPE_FMT " is not square", SHAPE_ARG(t->src[0]));
    return infer(t, shape);
}

static void keep_triangle(const struct ggml_tensor *t, int64_t i1, int64_t *k0, int64_t *k1) {
    const int32_t kind = tensor_param_i32(t, 0);
    *k0 = kind == GGML_TRI_TYPE_UPPER_DIAG ? i1 : kind == GGML_TRI_TYPE_UPPER ? i1 + 1 : 0;
    *k1 = kind == GGML_TRI_TYPE_LOWER_DIAG ? i1 + 1 : kind == GGML_TRI_TYPE_LOWER ? i1 : t->ne[0];
}
static void run_tri(struct task *k, struct ggml_tensor *t) { mask_rows(k, t, keep_triangle, 0.0f); }

// ---- FILL: op_params [0] the value ------------------------------------------------------------------------------------------

static enum err infer_fill(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct type *ty = type_get(t->src[0]->type);
    if (!ty || ty->block > 1)
        return err_set(ERR_UNSUPPORTED, "FILL: tensors of type %s cannot be filled", ggml_type_name(t->src[0]->type));
    return shape_like(t->src[0], t->src[0]->type, shape);
}

static void run_fill(struct task *k, struct ggml_tensor *t) {
    const struct type *ty = type_get(t->type);
    const float value = tensor_param_f32(t, 0);
    char one[8];
    ty->encode(&value, one, 1);
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) copy_elements(row_of(t, r), t->nb[0], one, 0, ty->size, t->ne[0]);
}

// ---- DIAG: a [n, 1, b2, b3] -> [n, n, b2, b3] ---------------------------------------------------------------------------------

static enum err infer_diag(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *a = t->src[0];
    const struct type *ty = type_get(a->type);
    if (!ty || ty->block > 1) return err_set(ERR_UNSUPPORTED, "DIAG: not for type %s", ggml_type_name(a->type));
    if (a->ne[1] != 1) return err_set(ERR_INVALID, "DIAG: " SHAPE_FMT " is not a row vector", SHAPE_ARG(a));
    return shape_4d(shape, a->type, a->ne[0], a->ne[0], a->ne[2], a->ne[3]);
}

static void run_diag(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0];
    const size_t size = ggml_type_size(t->type);
    static const char zero[8];
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        int64_t i1, i2, i3;
        row_split(t, r, &i1, &i2, &i3);
        char *d = row_at(t, i1, i2, i3);
        copy_elements(d, t->nb[0], zero, 0, size, t->ne[0]);
        memcpy(d + (size_t) i1 * t->nb[0], row_at(a, 0, i2, i3) + (size_t) i1 * a->nb[0], size);
    }
}

// ---- builders -----------------------------------------------------------------------------------------------------------------

struct ggml_tensor *ggml_diag_mask_inf(struct ggml_context *ctx, struct ggml_tensor *a, int n_past) {
    return op_build(ctx, GGML_OP_DIAG_MASK_INF, false, &(int32_t){n_past}, 1, &a, 1);
}
struct ggml_tensor *ggml_diag_mask_inf_inplace(struct ggml_context *ctx, struct ggml_tensor *a, int n_past) {
    return op_build(ctx, GGML_OP_DIAG_MASK_INF, true, &(int32_t){n_past}, 1, &a, 1);
}
struct ggml_tensor *ggml_diag_mask_zero(struct ggml_context *ctx, struct ggml_tensor *a, int n_past) {
    return op_build(ctx, GGML_OP_DIAG_MASK_ZERO, false, &(int32_t){n_past}, 1, &a, 1);
}
struct ggml_tensor *ggml_diag_mask_zero_inplace(struct ggml_context *ctx, struct ggml_tensor *a, int n_past) {
    return op_build(ctx, GGML_OP_DIAG_MASK_ZERO, true, &(int32_t){n_past}, 1, &a, 1);
}
struct ggml_tensor *ggml_tri(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_tri_type type) {
    return op_build(ctx, GGML_OP_TRI, false, &(int32_t){(int32_t) type}, 1, &a, 1);
}
struct ggml_tensor *ggml_diag(struct ggml_context *ctx, struct ggml_tensor *a) {
    return op_build(ctx, GGML_OP_DIAG, false, NULL, 0, &a, 1);
}

static struct ggml_tensor *fill(struct ggml_context *ctx, bool inplace, struct ggml_tensor *a, float c) {
    int32_t param;
    memcpy(&param, &c, sizeof param);
    return op_build(ctx, GGML_OP_FILL, inplace, &param, 1, &a, 1);
}
struct ggml_tensor *ggml_fill(struct ggml_context *ctx, struct ggml_tensor *a, float c) {
    return fill(ctx, false, a, c);
}
struct ggml_tensor *ggml_fill_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float c) {
    return fill(ctx, true, a, c);
}

// What was masked away gets no gradient.
static enum err back_mask(struct backward *b, struct ggml_tensor *t) {
    return backward_add(b, t->src[0], ggml_diag_mask_zero(b->ctx, backward_grad(b, t), tensor_param_i32(t, 0)));
}
static enum err back_tri(struct backward *b, struct ggml_tensor *t) {
    return backward_add(b, t->src[0], ggml_tri(b->ctx, backward_grad(b, t), (enum ggml_tri_type) tensor_param_i32(t, 0)));
}
static enum err back_diag(struct backward *b, struct ggml_tensor *t) {
    struct ggml_tensor *g = backward_grad(b, t);
    g = ggml_view_4d(b->ctx, g, 1, t->ne[0], t->ne[2], t->ne[3], g->nb[1] + g->nb[0], g->nb[2], g->nb[3], 0);
    return backward_add(b, t->src[0], ggml_cont_4d(b->ctx, g, t->ne[0], 1, t->ne[2], t->ne[3]));
}

const struct op op_diag_mask_inf = {.id = GGML_OP_DIAG_MASK_INF,
                                    .name = "DIAG_MASK_INF",
                                    .symbol = "diag_mask_inf(x)",
                                    .n_src = 1,
                                    .flags = OP_INPLACE,
                                    .infer = infer,
                                    .run = run_inf,
                                    .threads = row_threads_map,
                                    .backward = back_mask};
const struct op op_diag_mask_zero = {.id = GGML_OP_DIAG_MASK_ZERO,
                                     .name = "DIAG_MASK_ZERO",
                                     .symbol = "diag_mask_zero(x)",
                                     .n_src = 1,
                                     .flags = OP_INPLACE,
                                     .infer = infer,
                                     .run = run_zero,
                                     .threads = row_threads_map,
                                     .backward = back_mask};
const struct op op_tri = {.id = GGML_OP_TRI,
                          .name = "TRI",
                          .symbol = "tri(x)",
                          .n_src = 1,
                          .infer = infer_tri,
                          .run = run_tri,
                          .threads = row_threads_map,
                          .backward = back_tri};
const struct op op_fill = {.id = GGML_OP_FILL,
                           .name = "FILL",
                           .symbol = "fill(x, c)",
                           .n_src = 1,
                           .flags = OP_INPLACE,
                           .infer = infer_fill,
                           .run = run_fill,
                           .threads = copy_threads};
const struct op op_diag = {.id = GGML_OP_DIAG,
                           .name = "DIAG",
                           .symbol = "diag(x)",
                           .n_src = 1,
                           .infer = infer_diag,
                           .run = run_diag,
                           .threads = copy_threads,
                           .backward = back_diag};
