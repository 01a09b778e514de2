// CONV_2D, CONV_3D, CONV_2D_DW: convolutions without a matrix of patches in memory: a few patches at a time in cache.
//   CONV_2D: kernel [KW, KH, IC, OC], data [W, H, IC, N] -> [OW, OH, OC, N]
//   CONV_3D: kernel [KW, KH, KD, IC OC], data [W, H, D, IC N] -> [OW, OH, OD, OC N]
//   CONV_2D_DW: kernel [KW, KH, 1, C], data [W, H, C, N] -> [OW, OH, C, N], laid out as the data is
// F32, F16 and BF16 of any layout; sums run over a patch in 32 lanes (depthwise: over the kernel in its order).
// op_params: s p d, each in x and y (and z); CONV_3D then IC, N, OC.
#include "ops/conv_int.h"
#include "kern/binary.h"
#include "kern/norm.h"

// ---- CONV_2D, CONV_3D -----------------------------------------------------------------------------------------------------

struct plan {
    struct conv c;
    const struct ggml_tensor *w;
    int64_t oc;
    size_t w_channel, w_out;  // strides of the kernel's channels
    bool depth;               // three dimensions: channels share ne[3] with images
};

static struct plan plan_of(const struct ggml_tensor *t) {
    const struct ggml_tensor *w = t->src[0], *x = t->src[1];
    struct plan p = {.w = w, .depth = t->op == GGML_OP_CONV_3D, .c = {.x = x}};
    const int dims = p.depth ? 3 : 2;
    for (int i = 0; i < 3; i++) {
        const bool used = i < dims;
        p.c.in[i] = used ? x->ne[i] : 1, p.c.k[i] = used ? w->ne[i] : 1, p.c.nb[i] = used ? x->nb[i] : 0;
        p.c.s[i] = used ? tensor_param_i32(t, i) : 1;
        p.c.p[i] = used ? tensor_param_i32(t, dims + i) : 0;
        p.c.d[i] = used ? tensor_param_i32(t, 2 * dims + i) : 1;
    }
    p.c.ic = p.depth ? tensor_param_i32(t, 9) : x->ne[2];
    p.c.n = p.depth ? tensor_param_i32(t, 10) : x->ne[3];
    p.oc = p.depth ? tensor_param_i32(t, 11) : w->ne[3];
    p.c.nb_channel = p.depth ? x->nb[3] : x->nb[2];
    p.c.nb_image = p.depth ? x->nb[3] * (size_t) p.c.ic : x->nb[3];
    p.w_channel = p.depth ? w->nb[3] : w->nb[2];
    p.w_out = p.depth ? w->nb[3] * (size_t) p.c.ic : w->nb[3];
    conv_finish(&p.c);
    return p;
}

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *w = t->src[0], *x = t->src[1];
    TRY(check_float(t, 0));
    TRY(check_float(t, 1));
    const struct plan p = plan_of(t);
    const bool fits = p.depth
                          ? p.c.ic > 0 && p.c.n > 0 && p.oc > 0 && w->ne[3] == p.c.ic * p.oc && x->ne[3] == p.c.ic * p.c.n
                          : w->ne[2] == x->ne[2];
    if (!fits)
        return err_set(ERR_INVALID, "%s: kernel " SHAPE_FMT " and data " SHAPE_FMT " differ in channels", op_what(t),
                       SHAPE_ARG(w), SHAPE_ARG(x));
    TRY(conv_check(op_what(t), &p.c));
    const enum ggml_type type = x->type;
    return p.depth ? shape_4d(shape, type, p.c.out[0], p.c.out[1], p.c.out[2], p.oc * p.c.n)
                   : shape_4d(shape, type, p.c.out[0], p.c.out[1], p.oc, p.c.n);
}

#define PATCHES 16  // at a time, so that a kernel's row read from memory serves as many results

static size_t weights_bytes(const struct plan *p) { return GGML_PAD((size_t) (p->oc * p->c.len) * sizeof(float), 64); }

static size_t scratch(const struct ggml_tensor *t, int n_threads) {
    const struct plan p = plan_of(t);
    return weights_bytes(&p) + row_scratch_bytes(p.c.len, PATCHES, n_threads);
}

// The kernel of one output channel as a row of floats in the order of a patch.
static void decode_kernel(const struct plan *p, int64_t oc, float *y) {
    const struct ggml_tensor *w = p->w;
    for (int64_t ic = 0; ic < p->c.ic; ic++) {
        const char *base = (const char *) w->data + (size_t) oc * p->w_out + (size_t) ic * p->w_channel;
        for (int64_t z = 0; z < p->c.k[2]; z++)
            for (int64_t k = 0; k < p->c.k[1]; k++, y += p->c.k[0]) {
                const char *row = base + (p->depth ? (size_t) z * w->nb[2] : 0) + (size_t) k * w->nb[1];
                const float *x = row_read(w, row, 0, p->c.k[0], y);
                if (x != y) memcpy(y, x, (size_t) p->c.k[0] * sizeof(float));
            }
    }
}

static char *result_row(const struct ggml_tensor *t, const struct plan *p, int64_t oc, int64_t n, int64_t oy, int64_t oz) {
    return p->depth ? row_at(t, oy, oz, n * p->oc + oc) : row_at(t, oy, oc, n);
}

// Results ox .. ox + m of one row of every output channel.
static void piece(const struct ggml_tensor *t, const struct plan *p, const float *weights, float *patches, int64_t n,
                  int64_t oz, int64_t oy, int64_t ox, int64_t m) {
    const size_t step = row_scratch_bytes(p->c.len, 1, 1) / sizeof(float);
    float out[PATCHES];
    for (int64_t i = 0; i < m; i++) conv_patch(&p->c, n, (int64_t[3]){ox + i, oy, oz}, patches + (size_t) i * step);
    for (int64_t oc = 0; oc < p->oc; oc++) {
        const float *w = weights + oc * p->c.len;
        for (int64_t i = 0; i < m; i++) out[i] = kern_norm()->dot(p->c.len, w, patches + (size_t) i * step);
        row_write(t, result_row(t, p, oc, n, oy, oz), ox, m, out);
    }
}

static void run(struct task *k, struct ggml_tensor *t) {
    const struct plan p = plan_of(t);
    float *weights = k->work;
    float *patches = (float *) (void *) ((char *) k->work + weights_bytes(&p) + row_scratch_bytes(p.c.len, PATCHES, k->ith));
    int64_t i0, i1;
    task_range(k, p.oc, &i0, &i1);
    for (int64_t oc = i0; oc < i1; oc++) decode_kernel(&p, oc, weights + oc * p.c.len);
    task_barrier(k);
    const int64_t per_row = (p.c.out[0] + PATCHES - 1) / PATCHES;
    task_range(k, per_row * p.c.out[1] * p.c.out[2] * p.c.n, &i0, &i1);
    for (int64_t u = i0; u < i1; u++) {
        const int64_t ox = u % per_row * PATCHES, left = p.c.out[0] - ox, r = u / per_row;
        const int64_t oy = r % p.c.out[1], oz = r / p.c.out[1] % p.c.out[2], n = r / p.c.out[1] / p.c.out[2];
        piece(t, &p, weights, patches, n, oz, oy, ox, left < PATCHES ? left : PATCHES);
    }
}

static int threads(const struct ggml_tensor *t, int n_threads) {
    const struct plan p = plan_of(t);
    return row_threads(ggml_nelements(t) * p.c.len, 65536, n_threads);
}

// ---- CONV_2D_DW -----------------------------------------------------------------------------------------------------------

static struct conv geometry_dw(const struct ggml_tensor *t) {
    const struct ggml_tensor *w = t->src[0], *x = t->src[1];
    struct conv c = {.x = x,
                     .in = {x->ne[0], x->ne[1], 1},
                     .k = {w->ne[0], w->ne[1], 1},
                     .s = {tensor_param_i32(t, 0), tensor_param_i32(t, 1), 1},
                     .p = {tensor_param_i32(t, 2), tensor_param_i32(t, 3), 0},
                     .d = {tensor_param_i32(t, 4), tensor_param_i32(t, 5), 1},
                     .ic = 1,
                     .n = x->ne[3]};
    conv_finish(&c);
    return c;
}

static enum err infer_dw(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *w = t->src[0], *x = t->src[1];
    TRY(check_float(t, 0));
    TRY(check_float(t, 1));
    if (w->ne[2] != 1 || w->ne[3] != x->ne[2])
        return err_set(ERR_INVALID, "CONV_2D_DW: kernel " SHAPE_FMT " and data " SHAPE_FMT " differ in channels",
                       SHAPE_ARG(w), SHAPE_ARG(x));
    const struct conv c = geometry_dw(t);
    TRY(conv_check("CONV_2D_DW", &c));
    return shape_4d(shape, x->type, c.out[0], c.out[1], x->ne[2], x->ne[3]);
}

static size_t scratch_dw(const struct ggml_tensor *t, int n_threads) {
    const int64_t n = t->ne[0] > t->src[1]->ne[0] ? t->ne[0] : t->src[1]->ne[0];
    return row_scratch_bytes(n, 2, n_threads);
}

// y[o] += w x[o s + from] for all o where that lies in the data's row.
static void add_row(const struct conv *c, float *y, float w, const float *x, int64_t from) {
    const int64_t s = c->s[0];
    int64_t o0 = from < 0 ? (-from + s - 1) / s : 0;
    int64_t o1 = c->in[0] - from <= 0 ? 0 : (c->in[0] - from + s - 1) / s;
    if (o1 > c->out[0]) o1 = c->out[0];
    if (o0 >= o1) return;
    if (s == 1) {
        kern_binary()->axpy(o1 - o0, y + o0, w, x + o0 + from);
        return;
    }
    for (int64_t o = o0; o < o1; o++) y[o] = __builtin_fmaf(x[o * s + from], w, y[o]);
}

static void run_dw(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *w = t->src[0], *x = t->src[1];
    const struct conv c = geometry_dw(t);
    const int64_t n = t->ne[0] > x->ne[0] ? t->ne[0] : x->ne[0];
    float *in = row_scratch(k, n, 2, 0), *out = row_scratch(k, n, 2, 1);
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        int64_t oy, ch, image;
        row_split(t, r, &oy, &ch, &image);
        char *row = row_at(t, oy, ch, image);
        float *y = row_target(t, row, 0, out);
        memset(y, 0, (size_t) t->ne[0] * sizeof(float));
        for (int64_t ky = 0; ky < c.k[1]; ky++) {
            const int64_t iy = oy * c.s[1] + ky * c.d[1] - c.p[1];
            if (iy < 0 || iy >= c.in[1]) continue;
            const float *data = row_read(x, row_at(x, iy, ch, image), 0, x->ne[0], in);
            for (int64_t kx = 0; kx < c.k[0]; kx++)
                add_row(&c, y, conv_load(w->type, row_at(w, ky, 0, ch) + (size_t) kx * w->nb[0]), data,
                        kx * c.d[0] - c.p[0]);
        }
        row_write(t, row, 0, t->ne[0], y);
    }
}

static int threads_dw(const struct ggml_tensor *t, int n_threads) {
    const struct ggml_tensor *w = t->src[0];
    return row_threads(ggml_nelements(t) * w->ne[0] * w->ne[1], 16384, n_threads);
}

// ---- builders ---------------------------------------------------------------------------------------------------------------

struct ggml_tensor *ggml_conv_2d_direct(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int s0,
                                        int s1, int p0, int p1, int d0, int d1) {
    return op_build(ctx, GGML_OP_CONV_2D, false, (int32_t[]){s0, s1, p0, p1, d0, d1}, 6, (struct ggml_tensor *[]){a, b}, 2);
}

struct ggml_tensor *ggml_conv_3d_direct(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int s0,
                                        int s1, int s2, int p0, int p1, int p2, int d0, int d1, int d2, int n_channels,
                                        int n_batch, int n_channels_out) {
    const int32_t params[12] = {s0, s1, s2, p0, p1, p2, d0, d1, d2, n_channels, n_batch, n_channels_out};
    return op_build(ctx, GGML_OP_CONV_3D, false, params, 12, (struct ggml_tensor *[]){a, b}, 2);
}

struct ggml_tensor *ggml_conv_2d_dw_direct(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                           int stride0, int stride1, int pad0, int pad1, int dilation0, int dilation1) {
    struct ggml_tensor *t =
        op_build(ctx, GGML_OP_CONV_2D_DW, false, (int32_t[]){stride0, stride1, pad0, pad1, dilation0, dilation1}, 6,
                 (struct ggml_tensor *[]){a, b}, 2);
    if (ggml_is_error(t) || !ggml_is_contiguous_channels(b)) return t;
    t->nb[2] = ggml_type_size(t->type);  // channels first in memory, like the data
    t->nb[0] = t->nb[2] * (size_t) t->ne[2];
    t->nb[1] = t->nb[0] * (size_t) t->ne[0];
    t->nb[3] = t->nb[1] * (size_t) t->ne[1];
    return t;
}

const struct op op_conv_2d = {.id = GGML_OP_CONV_2D,
                              .name = "CONV_2D",
                              .symbol = "conv_2d(x)",
                              .n_src = 2,
                              .infer = infer,
                              .scratch = scratch,
                              .run = run,
                              .threads = threads};
const struct op op_conv_3d = {.id = GGML_OP_CONV_3D,
                              .name = "CONV_3D",
                              .symbol = "conv_3d(x)",
                              .n_src = 2,
                              .infer = infer,
                              .scratch = scratch,
                              .run = run,
                              .threads = threads};
const struct op op_conv_2d_dw = {.id = GGML_OP_CONV_2D_DW,
                                 .name = "CONV_2D_DW",
                                 .symbol = "conv_2d_dw(x)",
                                 .n_src = 2,
                                 .infer = infer_dw,
                                 .scratch = scratch_dw,
                                 .run = run_dw,
                                 .threads = threads_dw};
