// PAD: zeros (or the other end, circular) around a tensor. PAD_REFLECT_1D: its rows mirrored at both ends. ROLL: shifted, what falls
// out comes in at the other end. For every type with single elements and every layout: elements move as bytes.
#include "ops/backward.h"
#include "ops/copy.h"
#include "ops/row.h"

static enum err check_elements(const struct ggml_tensor *t) {
    const struct type *ty = type_get(t->src[0]->type);
    if (!ty || ty->block > 1)
        return err_set(ERR_UNSUPPORTED, "%s: %s has no single elements; cast it first", op_what(t),
                       ggml_type_name(t->src[0]->type));
    return ERR_OK;
}

// n elements from place e of the row s on, and around its end.
static void copy_around(const struct ggml_tensor *a, const char *s, int64_t e, char *d, size_t ds, int64_t n) {
    const size_t size = ggml_type_size(a->type);
    for (int64_t i = 0, m; i < n; i += m, e = 0) {
        m = a->ne[0] - e < n - i ? a->ne[0] - e : n - i;
        copy_elements(d + (size_t) i * ds, ds, s + (size_t) e * a->nb[0], a->nb[0], size, m);
    }
}

static const char zero[8];

// ---- PAD: op_params lp0 rp0 lp1 rp1 lp2 rp2 lp3 rp3 circular --------------------------------------------------------------------

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *a = t->src[0];
    TRY(check_elements(t));
    TRY(shape_like(a, a->type, shape));
    for (int d = 0; d < 4; d++) {
        const int32_t l = tensor_param_i32(t, 2 * d), r = tensor_param_i32(t, 2 * d + 1);
        if (l < 0 || r < 0) return err_set(ERR_INVALID, "PAD: %d before and %d behind in dimension %d", (int) l, (int) r, d);
        if ((l > 0 || r > 0) && a->ne[d] == 0 && tensor_param_i32(t, 8))
            return err_set(ERR_INVALID, "PAD: dimension %d is empty, there is nothing to go around to", d);
        shape->ne[d] += (int64_t) l + r;
    }
    return check_size(shape->ne);
}

static void run(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0];
    const bool circular = tensor_param_i32(t, 8) != 0;
    const int64_t left = tensor_param_i32(t, 0);
    const size_t size = ggml_type_size(t->type);
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        int64_t i[4];
        bool inside = true;
        row_split(t, r, &i[1], &i[2], &i[3]);
        char *d = row_at(t, i[1], i[2], i[3]);
        for (int x = 1; x < 4; x++) {
            i[x] -= tensor_param_i32(t, 2 * x);
            if (circular) i[x] = (i[x] % a->ne[x] + a->ne[x]) % a->ne[x];
            inside = inside && i[x] >= 0 && i[x] < a->ne[x];
        }
        if (!inside) {
            copy_elements(d, t->nb[0], zero, 0, size, t->ne[0]);
        } else if (circular) {
            copy_around(a, row_at(a, i[1], i[2], i[3]), (a->ne[0] - left % a->ne[0]) % a->ne[0], d, t->nb[0], t->ne[0]);
        } else {
            const int64_t end = left + a->ne[0];
            copy_elements(d, t->nb[0], zero, 0, size, left);
            copy_elements(d + (size_t) left * t->nb[0], t->nb[0], row_at(a, i[1], i[2], i[3]), a->nb[0], size, a->ne[0]);
            copy_elements(d + (size_t) end * t->nb[0], t->nb[0], zero, 0, size, t->ne[0] - end);
        }
    }
}

static enum err backward(struct backward *b, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0];
    struct ggml_tensor *g = backward_grad(b, t);
    size_t offset = 0;
    if (tensor_param_i32(t, 8)) return err_set(ERR_UNSUPPORTED, "gradient of PAD: none for circular padding");
    for (int d = 0; d < 4; d++) offset += (size_t) tensor_param_i32(t, 2 * d) * g->nb[d];
    struct ggml_tensor *v =
        ggml_view_4d(b->ctx, g, a->ne[0], a->ne[1], a->ne[2], a->ne[3], g->nb[1], g->nb[2], g->nb[3], offset);
    return backward_add(b, t->src[0], ggml_cont(b->ctx, v));
}

// ---- PAD_REFLECT_1D: op_params p0 p1 ------------------------------------------------------------------------------------------------

static enum err infer_reflect(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *a = t->src[0];
    const int32_t p0 = tensor_param_i32(t, 0), p1 = tensor_param_i32(t, 1);
    TRY(check_elements(t));
    if (p0 < 0 || p1 < 0 || p0 >= a->ne[0] || p1 >= a->ne[0])
        return err_set(ERR_INVALID, "PAD_REFLECT_1D: rows of %lld elements cannot be mirrored by %d and %d",
                       (long long) a->ne[0], (int) p0, (int) p1);
    return shape_4d(shape, a->type, a->ne[0] + p0 + p1, a->ne[1], a->ne[2], a->ne[3]);
}

static void run_reflect(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0];
    const int64_t p0 = tensor_param_i32(t, 0), p1 = tensor_param_i32(t, 1), n = a->ne[0];
    const size_t size = ggml_type_size(t->type);
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        char *d = row_of(t, r);
        const char *s = row_of(a, r);
        for (int64_t i = 0; i < p0; i++) memcpy(d + (size_t) i * t->nb[0], s + (size_t) (p0 - i) * a->nb[0], size);
        copy_elements(d + (size_t) p0 * t->nb[0], t->nb[0], s, a->nb[0], size, n);
        for (int64_t i = 0; i < p1; i++)
            memcpy(d + (size_t) (p0 + n + i) * t->nb[0], s + (size_t) (n - 2 - i) * a->nb[0], size);
    }
}

// ---- ROLL: op_params shifts ---------------------------------------------------------------------------------------------------------

static enum err infer_roll(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check_elements(t));
    return shape_like(t->src[0], t->src[0]->type, shape);
}

static void run_roll(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0];
    int64_t by[4], r0, r1;
    for (int d = 0; d < 4; d++) by[d] = ((-(int64_t) tensor_param_i32(t, d)) % a->ne[d] + a->ne[d]) % a->ne[d];
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        int64_t i1, i2, i3;
        row_split(t, r, &i1, &i2, &i3);
        const char *s = row_at(a, (i1 + by[1]) % a->ne[1], (i2 + by[2]) % a->ne[2], (i3 + by[3]) % a->ne[3]);
        copy_around(a, s, by[0], row_at(t, i1, i2, i3), t->nb[0], t->ne[0]);
    }
}

static enum err backward_roll(struct backward *b, struct ggml_tensor *t) {
    const int32_t *p = t->op_params;
    return backward_add(b, t->src[0], ggml_roll(b->ctx, backward_grad(b, t), -p[0], -p[1], -p[2], -p[3]));
}

// ---- builders -----------------------------------------------------------------------------------------------------------------------

static struct ggml_tensor *pad(struct ggml_context *ctx, struct ggml_tensor *a, const int32_t p[9]) {
    return op_build(ctx, GGML_OP_PAD, false, p, 9, &a, 1);
}
struct ggml_tensor *ggml_pad(struct ggml_context *ctx, struct ggml_tensor *a, int p0, int p1, int p2, int p3) {
    return pad(ctx, a, (int32_t[9]){0, p0, 0, p1, 0, p2, 0, p3, 0});
}
struct ggml_tensor *ggml_pad_circular(struct ggml_context *ctx, struct ggml_tensor *a, int p0, int p1, int p2, int p3) {
    return pad(ctx, a, (int32_t[9]){0, p0, 0, p1, 0, p2, 0, p3, 1});
}
struct ggml_tensor *ggml_pad_ext(struct ggml_context *ctx, struct ggml_tensor *a, int lp0, int rp0, int lp1, int rp1,
                                 int lp2, int rp2, int lp3, int rp3) {
    return pad(ctx, a, (int32_t[9]){lp0, rp0, lp1, rp1, lp2, rp2, lp3, rp3, 0});
}
struct ggml_tensor *ggml_pad_ext_circular(struct ggml_context *ctx, struct ggml_tensor *a, int lp0, int rp0, int lp1,
                                          int rp1, int lp2, int rp2, int lp3, int rp3) {
    return pad(ctx, a, (int32_t[9]){lp0, rp0, lp1, rp1, lp2, rp2, lp3, rp3, 1});
}
struct ggml_tensor *ggml_pad_reflect_1d(struct ggml_context *ctx, struct ggml_tensor *a, int p0, int p1) {
    return op_build(ctx, GGML_OP_PAD_REFLECT_1D, false, (int32_t[]){p0, p1}, 2, &a, 1);
}
struct ggml_tensor *ggml_roll(struct ggml_context *ctx, struct ggml_tensor *a, int shift0, int shift1, int shift2,
                              int shift3) {
    return op_build(ctx, GGML_OP_ROLL, false, (int32_t[]){shift0, shift1, shift2, shift3}, 4, &a, 1);
}

const struct op op_pad = {.id = GGML_OP_PAD,
                          .name = "PAD",
                          .symbol = "pad(x)",
                          .n_src = 1,
                          .infer = infer,
                          .run = run,
                          .threads = copy_threads,
                          .backward = backward};
const struct op op_pad_reflect_1d = {.id = GGML_OP_PAD_REFLECT_1D,
                                     .name = "PAD_REFLECT_1D",
                                     .symbol = "pad_reflect_1d(x)",
                                     .n_src = 1,
                                     .infer = infer_reflect,
                                     .run = run_reflect,
                                     .threads = copy_threads};
const struct op op_roll = {.id = GGML_OP_ROLL,
                           .name = "ROLL",
                           .symbol = "roll(x)",
                           .n_src = 1,
                           .infer = infer_roll,
                           .run = run_roll,
                           .threads = copy_threads,
                           .backward = backward_roll};
