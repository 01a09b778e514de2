// CONV_TRANSPOSE_1D, CONV_TRANSPOSE_2D, COL2IM_1D: each element of the data spreads a kernel over the result.
//   1d: kernel [K, OC, IC], data [L, IC, N] -> [(L - 1) s + K, OC, N];  2d: kernel [KW, KH, OC, IC], data [W, H, IC, N], one stride
//   COL2IM_1D: columns [K OC, L] -> [(L - 1) s + K - 2 p, OC]: the second half of a transposed convolution
// Kernel and data are turned so that channels lie together, once; each result then is a sum of dot products in a fixed order.
// op_params: [0] stride; COL2IM_1D: [1] OC, [2] p.
#include "ops/conv_int.h"
#include "kern/norm.h"

struct plan {
    const struct ggml_tensor *w, *x;
    int64_t kw, kh, width, height, ic, oc, n;
    int64_t s;
    size_t w_y, w_out, w_in, x_y, x_channel, x_image;  // strides beside nb[0]
};

static struct plan plan_of(const struct ggml_tensor *t) {
    const struct ggml_tensor *w = t->src[0], *x = t->src[1];
    const bool flat = t->op == GGML_OP_CONV_TRANSPOSE_1D;
    return (struct plan){.w = w,
                         .x = x,
                         .kw = w->ne[0],
                         .kh = flat ? 1 : w->ne[1],
                         .width = x->ne[0],
                         .height = flat ? 1 : x->ne[1],
                         .ic = flat ? w->ne[2] : w->ne[3],
                         .oc = flat ? w->ne[1] : w->ne[2],
                         .n = flat ? x->ne[2] : x->ne[3],
                         .s = tensor_param_i32(t, 0),
                         .w_y = flat ? 0 : w->nb[1],
                         .w_out = flat ? w->nb[1] : w->nb[2],
                         .w_in = flat ? w->nb[2] : w->nb[3],
                         .x_y = flat ? 0 : x->nb[1],
                         .x_channel = flat ? x->nb[1] : x->nb[2],
                         .x_image = flat ? x->nb[2] : x->nb[3]};
}

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct plan p = plan_of(t);
    const bool flat = t->op == GGML_OP_CONV_TRANSPOSE_1D;
    TRY(check_float(t, 0));
    TRY(check_float(t, 1));
    if (p.s < 1) return err_set(ERR_INVALID, "%s: stride %lld", op_what(t), (long long) p.s);
    if (p.ic != (flat ? p.x->ne[1] : p.x->ne[2]) || (flat && (p.w->ne[3] != 1 || p.x->ne[3] != 1)) || p.width < 1 ||
        p.height < 1)
        return err_set(ERR_INVALID, "%s: kernel " SHAPE_FMT " and data " SHAPE_FMT " do not fit", op_what(t), SHAPE_ARG(p.w),
                       SHAPE_ARG(p.x));
    const int64_t ow = (p.width - 1) * p.s + p.kw, oh = (p.height - 1) * p.s + p.kh;
    return flat ? shape_4d(shape, GGML_TYPE_F32, ow, p.oc, p.n, 1) : shape_4d(shape, GGML_TYPE_F32, ow, oh, p.oc, p.n);
}

static int64_t n_weights(const struct plan *p) { return GGML_PAD(p->oc * p->kh * p->kw * p->ic, 16); }

static size_t scratch(const struct ggml_tensor *t, int n_threads) {
    (void) n_threads;
    const struct plan p = plan_of(t);
    return (size_t) (n_weights(&p) + p.n * p.height * p.width * p.ic) * sizeof(float);
}

// [oc][ky][kx][ic] of the kernel, [n][y][x][ic] of the data
static void gather_kernel(struct task *k, const struct plan *p, float *y) {
    int64_t i0, i1;
    task_range(k, p->oc * p->kh, &i0, &i1);
    for (int64_t i = i0; i < i1; i++) {
        const char *base = (const char *) p->w->data + (size_t) (i / p->kh) * p->w_out + (size_t) (i % p->kh) * p->w_y;
        for (int64_t x = 0; x < p->kw; x++)
            for (int64_t c = 0; c < p->ic; c++)
                y[(i * p->kw + x) * p->ic + c] =
                    conv_load(p->w->type, base + (size_t) x * p->w->nb[0] + (size_t) c * p->w_in);
    }
}
static void gather_data(struct task *k, const struct plan *p, float *y) {
    int64_t i0, i1;
    task_range(k, p->n * p->height, &i0, &i1);
    for (int64_t i = i0; i < i1; i++) {
        const char *base =
            (const char *) p->x->data + (size_t) (i / p->height) * p->x_image + (size_t) (i % p->height) * p->x_y;
        for (int64_t c = 0; c < p->ic; c++)
            for (int64_t x = 0; x < p->width; x++)
                y[(i * p->width + x) * p->ic + c] =
                    conv_load(p->x->type, base + (size_t) x * p->x->nb[0] + (size_t) c * p->x_channel);
    }
}

// Row oy of output channel oc, image n.
static void spread(const struct plan *p, const float *weights, const float *data, int64_t n, int64_t oc, int64_t oy,
                   float *y, int64_t ow) {
    memset(y, 0, (size_t) ow * sizeof(float));
    for (int64_t ky = oy % p->s; ky < p->kh; ky += p->s) {
        const int64_t iy = (oy - ky) / p->s;
        if (oy < ky || iy >= p->height) continue;
        const float *w = weights + (oc * p->kh + ky) * p->kw * p->ic;
        const float *x = data + (n * p->height + iy) * p->width * p->ic;
        for (int64_t ix = 0; ix < p->width; ix++)
            for (int64_t kx = 0; kx < p->kw; kx++)
                y[ix * p->s + kx] += kern_norm()->dot(p->ic, w + kx * p->ic, x + ix * p->ic);
    }
}

static void run(struct task *k, struct ggml_tensor *t) {
    const struct plan p = plan_of(t);
    float *weights = k->work, *data = weights + n_weights(&p);
    gather_kernel(k, &p, weights);
    gather_data(k, &p, data);
    task_barrier(k);
    const bool flat = t->op == GGML_OP_CONV_TRANSPOSE_1D;
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        int64_t i1, i2, i3;
        row_split(t, r, &i1, &i2, &i3);
        spread(&p, weights, data, flat ? i2 : i3, flat ? i1 : i2, flat ? 0 : i1, (float *) (void *) row_at(t, i1, i2, i3),
               t->ne[0]);
    }
}

static int threads(const struct ggml_tensor *t, int n_threads) {
    const struct plan p = plan_of(t);
    return row_threads(ggml_nelements(t) * p.ic, 16384, n_threads);
}

// ---- COL2IM_1D --------------------------------------------------------------------------------------------------------------

static enum err infer_col2im(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *a = t->src[0];
    const int64_t s = tensor_param_i32(t, 0), oc = tensor_param_i32(t, 1), p = tensor_param_i32(t, 2);
    TRY(check_float(t, 0));
    if (s < 1 || oc < 1 || p < 0 || a->ne[0] % oc != 0 || a->ne[1] < 1 || !ggml_is_matrix(a))
        return err_set(ERR_INVALID, "COL2IM_1D: columns " SHAPE_FMT ", stride %lld, %lld channels, crop %lld", SHAPE_ARG(a),
                       (long long) s, (long long) oc, (long long) p);
    const int64_t out = (a->ne[1] - 1) * s + a->ne[0] / oc - 2 * p;
    if (out < 1) return err_set(ERR_INVALID, "COL2IM_1D: nothing is left after cropping %lld at both ends", (long long) p);
    return shape_4d(shape, a->type, out, oc, 1, 1);
}

static void run_col2im(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0];
    const int64_t s = tensor_param_i32(t, 0), p = tensor_param_i32(t, 2), kw = a->ne[0] / t->ne[1];
    int64_t e0, e1;
    task_range(k, t->ne[0] * t->ne[1], &e0, &e1);
    for (int64_t e = e0; e < e1; e++) {
        const int64_t at = e % t->ne[0] + p, oc = e / t->ne[0];
        float sum = 0.0f;
        for (int64_t kx = at % s; kx < kw && kx <= at; kx += s) {
            const int64_t x = (at - kx) / s;
            if (x < a->ne[1]) sum += conv_load(a->type, row_at(a, x, 0, 0) + (size_t) (oc * kw + kx) * a->nb[0]);
        }
        row_write(t, row_at(t, oc, 0, 0), e % t->ne[0], 1, &sum);
    }
}

// ---- builders ---------------------------------------------------------------------------------------------------------------

struct ggml_tensor *ggml_conv_transpose_1d(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int s0,
                                           int p0, int d0) {
    if (p0 != 0 || d0 != 1) {
        (void) err_set(ERR_UNSUPPORTED, "ggml_conv_transpose_1d: padding %d and dilation %d; only 0 and 1 are supported", p0,
                       d0);
        return tensor_error();
    }
    return op_build(ctx, GGML_OP_CONV_TRANSPOSE_1D, false, (int32_t[]){s0, p0, d0}, 3, (struct ggml_tensor *[]){a, b}, 2);
}
struct ggml_tensor *ggml_conv_transpose_2d_p0(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                              int stride) {
    return op_build(ctx, GGML_OP_CONV_TRANSPOSE_2D, false, &(int32_t){stride}, 1, (struct ggml_tensor *[]){a, b}, 2);
}
struct ggml_tensor *ggml_col2im_1d(struct ggml_context *ctx, struct ggml_tensor *a, int s0, int oc, int p0) {
    return op_build(ctx, GGML_OP_COL2IM_1D, false, (int32_t[]){s0, oc, p0}, 3, &a, 1);
}

const struct op op_conv_transpose_1d = {.id = GGML_OP_CONV_TRANSPOSE_1D,
                                        .name = "CONV_TRANSPOSE_1D",
                                        .symbol = "conv_transpose_1d(x)",
                                        .n_src = 2,
                                        .infer = infer,
                                        .scratch = scratch,
                                        .run = run,
                                        .threads = threads};
const struct op op_conv_transpose_2d = {.id = GGML_OP_CONV_TRANSPOSE_2D,
                                        .name = "CONV_TRANSPOSE_2D",
                                        .symbol = "conv_transpose_2d(x)",
                                        .n_src = 2,
                                        .infer = infer,
                                        .scratch = scratch,
                                        .run = run,
                                        .threads = threads};
const struct op op_col2im_1d = {.id = GGML_OP_COL2IM_1D,
                                .name = "COL2IM_1D",
                                .symbol = "col2im_1d(x)",
                                .n_src = 1,
                                .infer = infer_col2im,
                                .run = run_col2im,
                                .threads = row_threads_map};
