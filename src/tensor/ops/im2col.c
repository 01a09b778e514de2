// IM2COL, IM2COL_3D: the patches under a convolution's kernel as rows of a matrix; IM2COL_BACK: the gradient, patches summed back.
//   kernel [KW, KH, IC, OC], data [W, H, IC, N] -> [IC KH KW, OW, OH, N];  one-dimensional: [K, IC, OC], [L, IC, N] -> [IC K, OL, N]
//   3d: kernel [KW, KH, KD, IC OC], data [W, H, D, IC N] -> [IC KD KH KW, OW, OH, OD N]
// op_params: s0 s1 p0 p1 d0 d1 is_2D; 3d: s0 s1 s2 p0 p1 p2 d0 d1 d2 IC.
#include "ops/conv_int.h"
#include "ops/backward.h"

int64_t conv_size(int64_t in, int64_t k, int32_t s, int32_t p, int32_t d) {
    const int64_t room = in + 2 * (int64_t) p - (int64_t) d * (k - 1) - 1;
    return room < 0 || s < 1 ? 0 : room / s + 1;
}

enum err conv_check(const char *what, const struct conv *c) {
    for (int i = 0; i < 3; i++) {
        if (c->s[i] < 1 || c->p[i] < 0 || c->d[i] < 1)
            return err_set(ERR_INVALID, "%s: stride %d, padding %d, dilation %d in dimension %d", what, (int) c->s[i],
                           (int) c->p[i], (int) c->d[i], i);
        if (conv_size(c->in[i], c->k[i], c->s[i], c->p[i], c->d[i]) < 1)
            return err_set(ERR_INVALID, "%s: a kernel of %lld (dilation %d) does not fit %lld elements with padding %d",
                           what, (long long) c->k[i], (int) c->d[i], (long long) c->in[i], (int) c->p[i]);
    }
    return ERR_OK;
}

void conv_finish(struct conv *c) {
    for (int i = 0; i < 3; i++) c->out[i] = conv_size(c->in[i], c->k[i], c->s[i], c->p[i], c->d[i]);
    c->len = c->ic * c->k[0] * c->k[1] * c->k[2];
}

// One row of the kernel's width.
static float *patch_row(const struct conv *c, const char *row, int64_t x0, float *out) {
    const enum ggml_type type = c->x->type;
    const size_t step = (size_t) c->d[0] * c->nb[0];
    if (type == GGML_TYPE_F32 && x0 >= 0 && x0 + (c->k[0] - 1) * c->d[0] < c->in[0]) {  // no edge in sight
        const char *p = row + (size_t) x0 * c->nb[0];
        for (int64_t i = 0; i < c->k[0]; i++) memcpy(out + i, p + (size_t) i * step, sizeof *out);
        return out + c->k[0];
    }
    for (int64_t i = 0, x = x0; i < c->k[0]; i++, x += c->d[0])
        *out++ = x >= 0 && x < c->in[0] ? conv_load(type, row + (size_t) x * c->nb[0]) : 0.0f;
    return out;
}

void conv_patch(const struct conv *c, int64_t n, const int64_t o[3], float *patch) {
    const int64_t x0 = o[0] * c->s[0] - c->p[0];
    if (c->k[0] == 0) return;
    for (int64_t ch = 0; ch < c->ic; ch++) {
        const char *image = (const char *) c->x->data + (size_t) n * c->nb_image + (size_t) ch * c->nb_channel;
        for (int64_t kz = 0; kz < c->k[2]; kz++) {
            const int64_t z = o[2] * c->s[2] + kz * c->d[2] - c->p[2];
            for (int64_t ky = 0; ky < c->k[1]; ky++) {
                const int64_t y = o[1] * c->s[1] + ky * c->d[1] - c->p[1];
                if (z >= 0 && z < c->in[2] && y >= 0 && y < c->in[1]) {
                    patch = patch_row(c, image + (size_t) z * c->nb[2] + (size_t) y * c->nb[1], x0, patch);
                } else {
                    memset(patch, 0, (size_t) c->k[0] * sizeof(float));
                    patch += c->k[0];
                }
            }
        }
    }
}

// ---- IM2COL ---------------------------------------------------------------------------------------------------------------

static struct conv geometry(const struct ggml_tensor *t, const struct ggml_tensor *k, const struct ggml_tensor *x) {
    const bool is_2d = tensor_param_i32(t, 6) != 0;
    struct conv c = {.x = x,
                     .in = {x->ne[0], is_2d ? x->ne[1] : 1, 1},
                     .k = {k->ne[0], is_2d ? k->ne[1] : 1, 1},
                     .s = {tensor_param_i32(t, 0), is_2d ? tensor_param_i32(t, 1) : 1, 1},
                     .p = {tensor_param_i32(t, 2), is_2d ? tensor_param_i32(t, 3) : 0, 0},
                     .d = {tensor_param_i32(t, 4), is_2d ? tensor_param_i32(t, 5) : 1, 1}};
    c.ic = is_2d ? x->ne[2] : x->ne[1];
    c.n = is_2d ? x->ne[3] : x->ne[2];
    c.nb[0] = x->nb[0], c.nb[1] = is_2d ? x->nb[1] : 0;
    c.nb_channel = is_2d ? x->nb[2] : x->nb[1];
    c.nb_image = is_2d ? x->nb[3] : x->nb[2];
    conv_finish(&c);
    return c;
}

static enum err check_target(const struct ggml_tensor *t, enum ggml_type type) {
    if (type != GGML_TYPE_F32 && type != GGML_TYPE_F16 && type != GGML_TYPE_BF16)
        return err_set(ERR_UNSUPPORTED, "%s: the result can be F32, F16 or BF16, not %s", op_what(t), ggml_type_name(type));
    return ERR_OK;
}

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *k = t->src[0], *x = t->src[1];
    const bool is_2d = tensor_param_i32(t, 6) != 0;
    TRY(check_float(t, 1));
    TRY(check_target(t, t->type));
    if (is_2d ? k->ne[2] != x->ne[2] : k->ne[1] != x->ne[1] || x->ne[3] != 1)
        return err_set(ERR_INVALID, "IM2COL: kernel " SHAPE_FMT " and data " SHAPE_FMT " differ in channels", SHAPE_ARG(k),
                       SHAPE_ARG(x));
    const struct conv c = geometry(t, k, x);
    TRY(conv_check("IM2COL", &c));
    return is_2d ? shape_4d(shape, t->type, c.len, c.out[0], c.out[1], c.n)
                 : shape_4d(shape, t->type, c.len, c.out[0], c.n, 1);
}

static size_t scratch(const struct ggml_tensor *t, int n_threads) { return row_scratch_bytes(t->ne[0], 1, n_threads); }

// All rows of t: patch (i1, i2, i3), where `depth` results in z share dimension 3 with the images.
static void patches(struct task *k, struct ggml_tensor *t, const struct conv *c, bool flat) {
    float *buf = row_scratch(k, t->ne[0], 1, 0);
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        int64_t i1, i2, i3;
        row_split(t, r, &i1, &i2, &i3);
        char *row = row_at(t, i1, i2, i3);
        float *y = row_target(t, row, 0, buf);
        conv_patch(c, flat ? i2 : i3 / c->out[2], (int64_t[3]){i1, flat ? 0 : i2, flat ? 0 : i3 % c->out[2]}, y);
        row_write(t, row, 0, t->ne[0], y);
    }
}

static void run(struct task *k, struct ggml_tensor *t) {
    const struct conv c = geometry(t, t->src[0], t->src[1]);
    patches(k, t, &c, tensor_param_i32(t, 6) == 0);
}

// ---- IM2COL_3D --------------------------------------------------------------------------------------------------------------

static struct conv geometry_3d(const struct ggml_tensor *t) {
    const struct ggml_tensor *k = t->src[0], *x = t->src[1];
    struct conv c = {.x = x, .ic = tensor_param_i32(t, 9)};
    for (int i = 0; i < 3; i++) {
        c.in[i] = x->ne[i], c.k[i] = k->ne[i], c.nb[i] = x->nb[i];
        c.s[i] = tensor_param_i32(t, i), c.p[i] = tensor_param_i32(t, 3 + i), c.d[i] = tensor_param_i32(t, 6 + i);
    }
    c.n = c.ic > 0 ? x->ne[3] / c.ic : 0;
    c.nb_channel = x->nb[3];
    c.nb_image = x->nb[3] * (size_t) c.ic;
    conv_finish(&c);
    return c;
}

static enum err infer_3d(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *k = t->src[0], *x = t->src[1];
    const int32_t ic = tensor_param_i32(t, 9);
    TRY(check_float(t, 1));
    TRY(check_target(t, t->type));
    if (ic < 1 || x->ne[3] < ic || k->ne[3] % ic != 0 || x->ne[3] % ic != 0)
        return err_set(ERR_INVALID, "IM2COL_3D: %d channels do not divide kernel " SHAPE_FMT " and data " SHAPE_FMT,
                       (int) ic, SHAPE_ARG(k), SHAPE_ARG(x));
    const struct conv c = geometry_3d(t);
    TRY(conv_check("IM2COL_3D", &c));
    return shape_4d(shape, t->type, c.len, c.out[0], c.out[1], c.out[2] * c.n);
}

static void run_3d(struct task *k, struct ggml_tensor *t) {
    const struct conv c = geometry_3d(t);
    patches(k, t, &c, false);
}

// ---- IM2COL_BACK: src[0] the gradient of the patches, src[1] the kernel; the result has the data's shape --------------------------

// The data's geometry, from the shape of the result.
static struct conv geometry_back(const struct ggml_tensor *t) {
    struct ggml_tensor x = {.ne = {t->ne[0], t->ne[1], t->ne[2], t->ne[3]}};
    struct conv c = geometry(t, t->src[1], &x);
    c.x = NULL;
    return c;
}

static enum err infer_back(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *g = t->src[0];
    TRY(check_float(t, 0));
    const bool is_2d = tensor_param_i32(t, 6) != 0;
    const struct conv c = geometry_back(t);
    TRY(conv_check("IM2COL_BACK", &c));
    const int64_t want[4] = {c.len, c.out[0], is_2d ? c.out[1] : c.n, is_2d ? c.n : 1};
    if (memcmp(want, g->ne, sizeof want) != 0)
        return err_set(ERR_INVALID, "IM2COL_BACK: the gradient " SHAPE_FMT " does not belong to data " SHAPE_FMT,
                       SHAPE_ARG(g), SHAPE_ARG(t));
    return shape_4d(shape, GGML_TYPE_F32, t->ne[0], t->ne[1], t->ne[2], t->ne[3]);
}

// Sum of what the patches hold of data element (x, y) of channel ch, image n.
static float gathered(const struct ggml_tensor *g, const struct conv *c, bool is_2d, int64_t n, int64_t ch, int64_t y,
                      int64_t x) {
    float sum = 0.0f;
    for (int64_t ky = 0; ky < c->k[1]; ky++) {
        const int64_t oy = y + c->p[1] - ky * c->d[1];
        if (oy < 0 || oy % c->s[1] != 0 || oy / c->s[1] >= c->out[1]) continue;
        for (int64_t kx = 0; kx < c->k[0]; kx++) {
            const int64_t ox = x + c->p[0] - kx * c->d[0];
            if (ox < 0 || ox % c->s[0] != 0 || ox / c->s[0] >= c->out[0]) continue;
            const char *row = is_2d ? row_at(g, ox / c->s[0], oy / c->s[1], n) : row_at(g, ox / c->s[0], n, 0);
            sum += conv_load(g->type, row + (size_t) ((ch * c->k[1] + ky) * c->k[0] + kx) * g->nb[0]);
        }
    }
    return sum;
}

static void run_back(struct task *k, struct ggml_tensor *t) {
    const struct conv c = geometry_back(t);
    const bool is_2d = tensor_param_i32(t, 6) != 0;
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        int64_t i1, i2, i3;
        row_split(t, r, &i1, &i2, &i3);
        char *row = row_at(t, i1, i2, i3);
        for (int64_t x = 0; x < t->ne[0]; x++) {
            const float v =
                is_2d ? gathered(t->src[0], &c, true, i3, i2, i1, x) : gathered(t->src[0], &c, false, i2, i1, 0, x);
            memcpy(row + (size_t) x * t->nb[0], &v, sizeof v);
        }
    }
}

// ---- gradients --------------------------------------------------------------------------------------------------------------------

static enum err backward(struct backward *b, struct ggml_tensor *t) {
    const int32_t *p = t->op_params;
    return backward_add(b, t->src[1],
                        ggml_im2col_back(b->ctx, backward_grad(b, t), t->src[0], t->src[1]->ne, p[0], p[1], p[2], p[3], p[4],
                                         p[5], p[6] != 0));
}

static enum err backward_of_back(struct backward *b, struct ggml_tensor *t) {
    const int32_t *p = t->op_params;
    return backward_add(
        b, t->src[0],
        ggml_im2col(b->ctx, t->src[1], backward_grad(b, t), p[0], p[1], p[2], p[3], p[4], p[5], p[6] != 0, GGML_TYPE_F32));
}

// ---- builders ---------------------------------------------------------------------------------------------------------------------

struct ggml_tensor *ggml_im2col(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int s0, int s1,
                                int p0, int p1, int d0, int d1, bool is_2D, enum ggml_type dst_type) {
    const struct op_shape want = {.type = dst_type};
    return op_build_as(ctx, GGML_OP_IM2COL, &want, NULL, (int32_t[]){s0, s1, p0, p1, d0, d1, is_2D}, 7,
                       (struct ggml_tensor *[]){a, b}, 2);
}

struct ggml_tensor *ggml_im2col_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int64_t *ne,
                                     int s0, int s1, int p0, int p1, int d0, int d1, bool is_2D) {
    if (!ne) {
        (void) err_set(ERR_INVALID, "ggml_im2col_back: the data's sizes are missing (NULL)");
        return tensor_error();
    }
    const struct op_shape want = {GGML_TYPE_F32, {ne[0], ne[1], ne[2], ne[3]}};
    return op_build_as(ctx, GGML_OP_IM2COL_BACK, &want, NULL, (int32_t[]){s0, s1, p0, p1, d0, d1, is_2D}, 7,
                       (struct ggml_tensor *[]){a, b}, 2);
}

struct ggml_tensor *ggml_im2col_3d(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int64_t IC,
                                   int s0, int s1, int s2, int p0, int p1, int p2, int d0, int d1, int d2,
                                   enum ggml_type dst_type) {
    const struct op_shape want = {.type = dst_type};
    const int32_t ic = IC > 0 && IC <= INT32_MAX ? (int32_t) IC : 0;
    return op_build_as(ctx, GGML_OP_IM2COL_3D, &want, NULL, (int32_t[]){s0, s1, s2, p0, p1, p2, d0, d1, d2, ic}, 10,
                       (struct ggml_tensor *[]){a, b}, 2);
}

const struct op op_im2col = {.id = GGML_OP_IM2COL,
                             .name = "IM2COL",
                             .symbol = "im2col(x)",
                             .n_src = 2,
                             .infer = infer,
                             .scratch = scratch,
                             .run = run,
                             .threads = row_threads_map,
                             .backward = backward};
const struct op op_im2col_3d = {.id = GGML_OP_IM2COL_3D,
                                .name = "IM2COL_3D",
                                .symbol = "im2col_3d(x)",
                                .n_src = 2,
                                .infer = infer_3d,
                                .scratch = scratch,
                                .run = run_3d,
                                .threads = row_threads_map};
const struct op op_im2col_back = {.id = GGML_OP_IM2COL_BACK,
                                  .name = "IM2COL_BACK",
                                  .symbol = "im2col_back(x)",
                                  .n_src = 2,
                                  .infer = infer_back,
                                  .run = run_back,
                                  .threads = row_threads_func,
                                  .backward = backward_of_back};
