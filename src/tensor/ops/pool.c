// POOL_1D, POOL_2D: the largest or the mean of each window; POOL_2D_BACK: the gradient. The mean divides by the window's size, places
// outside counted as zeros (in one dimension: by the places inside). F32, F16 and BF16 of any layout.
// op_params: [0] which, then kernel, stride, padding (2d: each in x and y; [7] and [8] add that many places at the far ends alone).
#include "ops/conv_int.h"
#include "ops/backward.h"

#include <math.h>

struct window {
    int64_t k[2], s[2], p[2], more[2];
};

static struct window window_of(const struct ggml_tensor *t, bool flat) {
    const int32_t *q = t->op_params;
    if (flat) return (struct window){{q[1], 1}, {q[2], 1}, {q[3], 0}, {0, 0}};
    return (struct window){{q[1], q[2]}, {q[3], q[4]}, {q[5], q[6]}, {q[7], q[8]}};
}

static int64_t pooled(int64_t in, int64_t k, int64_t s) { return in < k ? 0 : (in - k) / s + 1; }

static enum err check(const struct ggml_tensor *t, const struct ggml_tensor *a, const struct window *w, int64_t out[2]) {
    const int32_t which = tensor_param_i32(t, 0);
    if (which != GGML_OP_POOL_MAX && which != GGML_OP_POOL_AVG)
        return err_set(ERR_INVALID, "%s: there is no pooling %d", op_what(t), (int) which);
    for (int i = 0; i < 2; i++) {
        if (w->k[i] < 1 || w->s[i] < 1 || w->p[i] < 0 || w->more[i] < 0 || w->p[i] + w->more[i] >= w->k[i])
            return err_set(ERR_INVALID, "%s: window %lld, stride %lld, padding %lld in dimension %d", op_what(t),
                           (long long) w->k[i], (long long) w->s[i], (long long) w->p[i], i);
        out[i] = pooled(a->ne[i] + 2 * w->p[i] + w->more[i], w->k[i], w->s[i]);
        if ((i == 0 || t->op != GGML_OP_POOL_1D) && out[i] < 1)
            return err_set(ERR_INVALID, "%s: a window of %lld does not fit " SHAPE_FMT, op_what(t), (long long) w->k[i],
                           SHAPE_ARG(a));
    }
    return ERR_OK;
}

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *a = t->src[0];
    const bool flat = t->op == GGML_OP_POOL_1D;
    const struct window w = window_of(t, flat);
    int64_t out[2] = {0};
    TRY(check_float(t, 0));
    TRY(check(t, a, &w, out));
    return shape_4d(shape, GGML_TYPE_F32, out[0], flat ? a->ne[1] : out[1], a->ne[2], a->ne[3]);
}

// The part of window o that lies inside, [b[0], e[0]) x [b[1], e[1]).
static void clip(const struct window *w, const struct ggml_tensor *a, const int64_t o[2], int64_t b[2], int64_t e[2]) {
    for (int i = 0; i < 2; i++) {
        const int64_t from = o[i] * w->s[i] - w->p[i], to = from + w->k[i];
        b[i] = from > 0 ? from : 0;
        e[i] = to < a->ne[i] ? to : a->ne[i];
    }
}

static float value(const struct ggml_tensor *a, int64_t x, int64_t y, int64_t i2, int64_t i3) {
    return conv_load(a->type, row_at(a, y, i2, i3) + (size_t) x * a->nb[0]);
}

// b[1], e[1] are rows of a.
static float pool(const struct ggml_tensor *a, int which, const int64_t b[2], const int64_t e[2], int64_t i2, int64_t i3,
                  int64_t count) {
    float best = -INFINITY, sum = 0.0f;
    for (int64_t y = b[1]; y < e[1]; y++) {
        for (int64_t x = b[0]; x < e[0]; x++) {
            const float v = value(a, x, y, i2, i3);
            if (v > best || v != v) best = v;
            sum += v;
        }
    }
    return which == GGML_OP_POOL_MAX ? best : sum / (float) count;
}

static void run(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0];
    const bool flat = t->op == GGML_OP_POOL_1D;
    const struct window w = window_of(t, flat);
    const int which = tensor_param_i32(t, 0);
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        int64_t i1, i2, i3, b[2], e[2];
        row_split(t, r, &i1, &i2, &i3);
        char *row = row_at(t, i1, i2, i3);
        for (int64_t x = 0; x < t->ne[0]; x++) {
            clip(&w, a, (int64_t[2]){x, flat ? 0 : i1}, b, e);
            if (flat) b[1] = i1, e[1] = i1 + 1;
            const float v = pool(a, which, b, e, i2, i3, flat ? e[0] - b[0] : w.k[0] * w.k[1]);
            memcpy(row + (size_t) x * t->nb[0], &v, sizeof v);
        }
    }
}

// ---- POOL_2D_BACK: src[0] the gradient, src[1] the input --------------------------------------------------------------------------

static enum err infer_back(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *g = t->src[0], *x = t->src[1];
    const struct window w = window_of(t, false);
    int64_t out[2] = {0};
    TRY(check_float(t, 0));
    TRY(check_float(t, 1));
    TRY(check(t, x, &w, out));
    if (g->ne[0] != out[0] || g->ne[1] != out[1] || g->ne[2] != x->ne[2] || g->ne[3] != x->ne[3])
        return err_set(ERR_INVALID, "POOL_2D_BACK: the gradient " SHAPE_FMT " does not belong to input " SHAPE_FMT,
                       SHAPE_ARG(g), SHAPE_ARG(x));
    return shape_like(x, GGML_TYPE_F32, shape);
}

static void add_at(const struct ggml_tensor *t, int64_t x, int64_t y, int64_t i2, int64_t i3, float g) {
    char *p = row_at(t, y, i2, i3) + (size_t) x * t->nb[0];
    float v;
    memcpy(&v, p, sizeof v);
    v += g;
    memcpy(p, &v, sizeof v);
}

// Where the largest of a window lies: the first of equals.
static void spread_max(const struct ggml_tensor *t, const int64_t b[2], const int64_t e[2], int64_t i2, int64_t i3,
                       float g) {
    const struct ggml_tensor *x = t->src[1];
    int64_t bx = b[0], by = b[1];
    float best = -INFINITY;
    for (int64_t y = b[1]; y < e[1]; y++) {
        for (int64_t c = b[0]; c < e[0]; c++) {
            const float v = value(x, c, y, i2, i3);
            if (v > best) best = v, bx = c, by = y;
        }
    }
    add_at(t, bx, by, i2, i3, g);
}

// One image plane belongs to one thread; windows are taken in their order.
static void plane_back(const struct ggml_tensor *t, const struct window *w, int64_t i2, int64_t i3) {
    const struct ggml_tensor *g = t->src[0];
    const bool max = tensor_param_i32(t, 0) == GGML_OP_POOL_MAX;
    static const char zero[4];
    for (int64_t y = 0; y < t->ne[1]; y++)
        for (int64_t x = 0; x < t->ne[0]; x++) memcpy(row_at(t, y, i2, i3) + (size_t) x * t->nb[0], zero, sizeof zero);
    for (int64_t oy = 0; oy < g->ne[1]; oy++) {
        for (int64_t ox = 0; ox < g->ne[0]; ox++) {
            int64_t b[2], e[2];
            clip(w, t, (int64_t[2]){ox, oy}, b, e);
            const float d = value(g, ox, oy, i2, i3);
            if (max) spread_max(t, b, e, i2, i3, d);
            for (int64_t y = b[1]; !max && y < e[1]; y++)
                for (int64_t x = b[0]; x < e[0]; x++) add_at(t, x, y, i2, i3, d / (float) (w->k[0] * w->k[1]));
        }
    }
}

static void run_back(struct task *k, struct ggml_tensor *t) {
    const struct window w = window_of(t, false);
    int64_t p0, p1;
    task_range(k, t->ne[2] * t->ne[3], &p0, &p1);
    for (int64_t p = p0; p < p1; p++) plane_back(t, &w, p % t->ne[2], p / t->ne[2]);
}

static enum err backward(struct backward *b, struct ggml_tensor *t) {
    const int32_t *p = t->op_params;
    return backward_add(b, t->src[0],
                        ggml_pool_2d_back(b->ctx, backward_grad(b, t), t->src[0], (enum ggml_op_pool) p[0], p[1], p[2], p[3],
                                          p[4], (float) p[5] + 0.5f * (float) p[7], (float) p[6] + 0.5f * (float) p[8]));
}

// ---- builders -------------------------------------------------------------------------------------------------------------------

struct ggml_tensor *ggml_pool_1d(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_op_pool op, int k0, int s0,
                                 int p0) {
    return op_build(ctx, GGML_OP_POOL_1D, false, (int32_t[]){(int32_t) op, k0, s0, p0}, 4, &a, 1);
}
// Places of padding; -1, which is refused, for what is no number of them. Half a place is a whole one at the far end (networks with
// windows of 2 and steps of 1 keep their size so).
static int32_t whole(float p) { return p >= 0 && p < 1 << 24 ? (int32_t) p : -1; }
static int32_t odd(float p) { return whole(p) < 0 ? 0 : (int32_t) (2 * p) - 2 * whole(p); }

struct ggml_tensor *ggml_pool_2d(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_op_pool op, int k0, int k1,
                                 int s0, int s1, float p0, float p1) {
    const int32_t params[9] = {(int32_t) op, k0, k1, s0, s1, whole(p0), whole(p1), odd(p0), odd(p1)};
    return op_build(ctx, GGML_OP_POOL_2D, false, params, 9, &a, 1);
}
struct ggml_tensor *ggml_pool_2d_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *af,
                                      enum ggml_op_pool op, int k0, int k1, int s0, int s1, float p0, float p1) {
    const int32_t params[9] = {(int32_t) op, k0, k1, s0, s1, whole(p0), whole(p1), odd(p0), odd(p1)};
    return op_build(ctx, GGML_OP_POOL_2D_BACK, false, params, 9, (struct ggml_tensor *[]){a, af}, 2);
}

const struct op op_pool_1d = {.id = GGML_OP_POOL_1D,
                              .name = "POOL_1D",
                              .symbol = "pool_1d(x)",
                              .n_src = 1,
                              .infer = infer,
                              .run = run,
                              .threads = row_threads_func};
const struct op op_pool_2d = {.id = GGML_OP_POOL_2D,
                              .name = "POOL_2D",
                              .symbol = "pool_2d(x)",
                              .n_src = 1,
                              .infer = infer,
                              .run = run,
                              .threads = row_threads_func,
                              .backward = backward};
const struct op op_pool_2d_back = {.id = GGML_OP_POOL_2D_BACK,
                                   .name = "POOL_2D_BACK",
                                   .symbol = "pool_2d_back(x)",
                                   .n_src = 2,
                                   .infer = infer_back,
                                   .run = run_back,
                                   .threads = row_threads_func};
