// DUP, CONT, CPY: a copy as it is, in one piece (perhaps of another shape), and into a given tensor (or of another type).
#include "ops/copy.h"
#include "ops/backward.h"
#include "ops/row.h"

static enum err infer_dup(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(shape_like(t->src[0], t->src[0]->type, shape));
    return copy_check("DUP", t->src[0], t->src[0]);
}

// The shape is the caller's choice as long as the elements fill it.
static enum err infer_cont(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *a = t->src[0];
    const int64_t block = ggml_blck_size(a->type);
    *shape = (struct op_shape){a->type, {t->ne[0], t->ne[1], t->ne[2], t->ne[3]}};
    TRY(check_size(shape->ne));
    if (block > 1 && t->ne[0] % block != 0)
        return err_set(ERR_INVALID, "CONT: rows of %lld elements are not whole blocks of %s (%lld)", (long long) t->ne[0],
                       ggml_type_name(a->type), (long long) block);
    const struct ggml_tensor dst = {
        .type = a->type, .ne = {t->ne[0], t->ne[1], t->ne[2], t->ne[3]}, .nb = {ggml_type_size(a->type)}};
    return copy_check("CONT", a, &dst);
}

// CPY with src[1]: over that tensor. Without: a new tensor of a's shape and the caller's type (a cast).
static enum err infer_cpy(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *a = t->src[0], *b = t->src[1];
    if (b) {
        TRY(copy_check("CPY", a, b));
        return shape_like(b, b->type, shape);
    }
    struct ggml_tensor dst = {.type = t->type, .ne = {a->ne[0], a->ne[1], a->ne[2], a->ne[3]}};
    const struct type *ty = type_get(t->type);
    if (!ty) return err_set(ERR_INVALID, "ggml_cast: unknown type %d", (int) t->type);
    dst.nb[0] = ty->size;
    if (a->ne[0] % ty->block != 0)
        return err_set(ERR_INVALID, "ggml_cast: rows of %lld elements are not whole blocks of %s (%lld)",
                       (long long) a->ne[0], ty->name, (long long) ty->block);
    TRY(copy_check("ggml_cast", a, &dst));
    return shape_like(a, t->type, shape);
}

static void run(struct task *k, struct ggml_tensor *t) { copy_run(k, t->src[0], t); }

struct ggml_tensor *ggml_dup(struct ggml_context *ctx, struct ggml_tensor *a) {
    return op_build(ctx, GGML_OP_DUP, false, NULL, 0, &a, 1);
}
struct ggml_tensor *ggml_dup_inplace(struct ggml_context *ctx, struct ggml_tensor *a) {
    return op_build(ctx, GGML_OP_DUP, true, NULL, 0, &a, 1);
}

static struct ggml_tensor *named(struct ggml_tensor *t, const char *a, const char *b, const char *c) {
    if (!ggml_is_error(t)) tensor_name_from(t, a, b, c);
    return t;
}

struct ggml_tensor *ggml_cpy(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b) {
    if (!b) {
        (void) err_set(ERR_INVALID, "ggml_cpy: there is no tensor to copy to (NULL)");
        return tensor_error();
    }
    struct ggml_tensor *t =
        ggml_is_error(b) ? b : op_build_as(ctx, GGML_OP_CPY, NULL, b, NULL, 0, (struct ggml_tensor *[]){a, b}, 2);
    if (ggml_is_error(t)) return t;
    if (!b->name[0]) return named(t, a->name, " (copy)", NULL);
    char tail[GGML_MAX_NAME + 16];
    tail[0] = 0;
    strncat(strcpy(tail, " (copy of "), a->name, GGML_MAX_NAME);
    return named(t, b->name, tail, ")");
}

struct ggml_tensor *ggml_cast(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_type type) {
    const struct op_shape want = {.type = type};
    return named(op_build_as(ctx, GGML_OP_CPY, &want, NULL, NULL, 0, &a, 1), a ? a->name : "", " (copy)", NULL);
}

struct ggml_tensor *ggml_cont_4d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1, int64_t ne2,
                                 int64_t ne3) {
    const struct op_shape want = {a ? a->type : GGML_TYPE_F32, {ne0, ne1, ne2, ne3}};
    return named(op_build_as(ctx, GGML_OP_CONT, &want, NULL, NULL, 0, &a, 1), a ? a->name : "", " (cont)", NULL);
}
struct ggml_tensor *ggml_cont(struct ggml_context *ctx, struct ggml_tensor *a) {
    return a ? ggml_cont_4d(ctx, a, a->ne[0], a->ne[1], a->ne[2], a->ne[3]) : ggml_cont_4d(ctx, a, 0, 0, 0, 0);
}
struct ggml_tensor *ggml_cont_1d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0) {
    return ggml_cont_4d(ctx, a, ne0, 1, 1, 1);
}
struct ggml_tensor *ggml_cont_2d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1) {
    return ggml_cont_4d(ctx, a, ne0, ne1, 1, 1);
}
struct ggml_tensor *ggml_cont_3d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1, int64_t ne2) {
    return ggml_cont_4d(ctx, a, ne0, ne1, ne2, 1);
}

// The elements keep their order: the gradient is the same numbers in the source's shape.
static enum err backward(struct backward *b, struct ggml_tensor *t) {
    if (!backward_wants(b, t->src[0])) return ERR_OK;
    return backward_add(b, t->src[0], ggml_reshape(b->ctx, backward_grad(b, t), t->src[0]));
}

const struct op op_dup = {.id = GGML_OP_DUP,
                          .name = "DUP",
                          .symbol = "x",
                          .n_src = 1,
                          .flags = OP_INPLACE_WIDE,
                          .infer = infer_dup,
                          .run = run,
                          .threads = copy_threads,
                          .backward = backward};
const struct op op_cont = {.id = GGML_OP_CONT,
                           .name = "CONT",
                           .symbol = "cont(x)",
                           .n_src = 1,
                           .flags = OP_INPLACE_WIDE,
                           .infer = infer_cont,
                           .run = run,
                           .threads = copy_threads,
                           .backward = backward};
const struct op op_cpy = {.id = GGML_OP_CPY,
                          .name = "CPY",
                          .symbol = "x-\\>y",
                          .n_src = 1,
                          .flags = OP_INPLACE_WIDE,
                          .infer = infer_cpy,
                          .run = run,
                          .threads = copy_threads,
                          .backward = backward};
