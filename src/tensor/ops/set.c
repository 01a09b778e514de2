// SET and ACC: a copy of a in which a window is replaced by b, or has b added; in place, a itself.
// op_params: the window's strides nb1, nb2, nb3 and offset in bytes (two words each), then [8] in place.
#include "ops/backward.h"
#include "ops/copy.h"
#include "ops/row.h"
#include "kern/binary.h"

struct window {
    uint64_t nb1, nb2, nb3, offset;
};

static struct window window_of(const struct ggml_tensor *t) {
    struct window w;
    memcpy(&w, t->op_params, sizeof w);
    return w;
}

// The window as a tensor of b's shape over the memory of t.
static struct ggml_tensor window_view(const struct ggml_tensor *t, const struct ggml_tensor *b) {
    const struct window w = window_of(t);
    struct ggml_tensor v = *t;
    for (int d = 0; d < 4; d++) v.ne[d] = b->ne[d];
    v.nb[1] = (size_t) w.nb1, v.nb[2] = (size_t) w.nb2, v.nb[3] = (size_t) w.nb3;
    v.data = (char *) v.data + (size_t) w.offset;
    return v;
}

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *a = t->src[0], *b = t->src[1];
    const struct window w = window_of(t);
    const struct type *ty = type_get(a->type);
    if (!ty || ty->block > 1) return err_set(ERR_UNSUPPORTED, "%s: no windows into %s", op_what(t), ggml_type_name(a->type));
    if (tensor_param_i32(t, 8) && a->nb[0] != ty->size)
        return err_set(ERR_UNSUPPORTED, "%s in place: rows of the first tensor must be unbroken", op_what(t));
    const uint64_t nb[4] = {ty->size, w.nb1, w.nb2, w.nb3};
    const uint64_t have = tensor_param_i32(t, 8) ? ggml_nbytes(a) : (uint64_t) ggml_nelements(a) * ty->size;
    uint64_t end = w.offset, step;
    bool fits = w.offset % ty->size == 0;
    for (int d = 0; d < 4; d++) {
        fits = fits && nb[d] % ty->size == 0 && b->ne[d] > 0 &&
               !__builtin_mul_overflow(nb[d], (uint64_t) b->ne[d] - 1, &step) && !__builtin_add_overflow(end, step, &end);
    }
    if (!fits || end > have - ty->size || have < ty->size)
        return err_set(ERR_INVALID,
                       "%s: a window " SHAPE_FMT " with strides %llu, %llu, %llu at byte %llu does not lie in %llu bytes",
                       op_what(t), SHAPE_ARG(b), (unsigned long long) w.nb1, (unsigned long long) w.nb2,
                       (unsigned long long) w.nb3, (unsigned long long) w.offset, (unsigned long long) have);
    return shape_like(a, a->type, shape);
}

static enum err infer_set(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check_type(t, 1, t->src[0]->type));
    return infer(t, shape);
}

static enum err infer_acc(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check_float(t, 0));
    TRY(check_float(t, 1));
    return infer(t, shape);
}

static void copy_first(struct task *k, struct ggml_tensor *t) {
    if (tensor_param_i32(t, 8)) return;
    copy_run(k, t->src[0], t);
    task_barrier(k);
}

static void run_set(struct task *k, struct ggml_tensor *t) {
    copy_first(k, t);
    const struct ggml_tensor v = window_view(t, t->src[1]);
    copy_run(k, t->src[1], &v);
}

static void add(int64_t n, float *y, const float *const *x, const void *ctx) {
    (void) ctx;
    kern_binary()->add(n, y, x[0], x[1]);
}

static void run_acc(struct task *k, struct ggml_tensor *t) {
    copy_first(k, t);
    const struct ggml_tensor v = window_view(t, t->src[1]);
    row_map(k, &v, (const struct ggml_tensor *const[]){&v, t->src[1]}, 2, add, NULL);
}

static struct ggml_tensor *build(struct ggml_context *ctx, enum ggml_op id, bool inplace, struct ggml_tensor *a,
                                 struct ggml_tensor *b, size_t nb1, size_t nb2, size_t nb3, size_t offset) {
    const struct window w = {nb1, nb2, nb3, offset};
    int32_t params[9];
    memcpy(params, &w, sizeof w);
    params[8] = inplace;
    return op_build(ctx, id, inplace, params, 9, (struct ggml_tensor *[]){a, b}, 2);
}

#define BUILD(name, ID, inplace)                                                                                            \
    struct ggml_tensor *ggml_##name(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, size_t nb1,     \
                                    size_t nb2, size_t nb3, size_t offset) {                                                \
        return build(ctx, ID, inplace, a, b, nb1, nb2, nb3, offset);                                                        \
    }
BUILD(set, GGML_OP_SET, false)
BUILD(set_inplace, GGML_OP_SET, true)
BUILD(acc, GGML_OP_ACC, false)
BUILD(acc_inplace, GGML_OP_ACC, true)

// Strides that the shorter forms do not state are a's.
static struct ggml_tensor *set_nd(struct ggml_context *ctx, bool inplace, struct ggml_tensor *a, struct ggml_tensor *b,
                                  const size_t *nb1, size_t offset) {
    if (!a) return build(ctx, GGML_OP_SET, inplace, a, b, 0, 0, 0, offset);
    return build(ctx, GGML_OP_SET, inplace, a, b, nb1 ? *nb1 : a->nb[1], a->nb[2], a->nb[3], offset);
}
struct ggml_tensor *ggml_set_1d(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, size_t offset) {
    return set_nd(ctx, false, a, b, NULL, offset);
}
struct ggml_tensor *ggml_set_1d_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                        size_t offset) {
    return set_nd(ctx, true, a, b, NULL, offset);
}
struct ggml_tensor *ggml_set_2d(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, size_t nb1,
                                size_t offset) {
    return set_nd(ctx, false, a, b, &nb1, offset);
}
struct ggml_tensor *ggml_set_2d_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, size_t nb1,
                                        size_t offset) {
    return set_nd(ctx, true, a, b, &nb1, offset);
}

// ---- gradients: b's is the window of the result's; a's is the result's, for SET without the window ----------------------------

static struct ggml_tensor *window_grad(struct backward *bw, struct ggml_tensor *t) {
    const struct window w = window_of(t);
    const struct ggml_tensor *b = t->src[1];
    return ggml_cont(bw->ctx, ggml_view_4d(bw->ctx, backward_grad(bw, t), b->ne[0], b->ne[1], b->ne[2], b->ne[3],
                                           (size_t) w.nb1, (size_t) w.nb2, (size_t) w.nb3, (size_t) w.offset));
}

static enum err back_acc(struct backward *bw, struct ggml_tensor *t) {
    TRY(backward_add(bw, t->src[0], backward_grad(bw, t)));
    return backward_wants(bw, t->src[1]) ? backward_add(bw, t->src[1], window_grad(bw, t)) : ERR_OK;
}

static enum err back_set(struct backward *bw, struct ggml_tensor *t) {
    struct ggml_tensor *part = window_grad(bw, t);
    const struct window w = window_of(t);
    if (backward_wants(bw, t->src[0])) {
        TRY(backward_add(bw, t->src[0],
                         ggml_acc(bw->ctx, backward_grad(bw, t), ggml_neg(bw->ctx, part), (size_t) w.nb1, (size_t) w.nb2,
                                  (size_t) w.nb3, (size_t) w.offset)));
    }
    return backward_add(bw, t->src[1], part);
}

const struct op op_set = {.id = GGML_OP_SET,
                          .name = "SET",
                          .symbol = "y-\\>view(x)",
                          .n_src = 2,
                          .infer = infer_set,
                          .run = run_set,
                          .threads = copy_threads,
                          .backward = back_set};
const struct op op_acc = {.id = GGML_OP_ACC,
                          .name = "ACC",
                          .symbol = "view(x,nb,offset)+=y->x",
                          .n_src = 2,
                          .infer = infer_acc,
                          .run = run_acc,
                          .threads = copy_threads,
                          .backward = back_acc};
