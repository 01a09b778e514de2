// Convolutions that are built from other operations: patches (IM2COL), a matrix product, and a change of shape.
// Kernels F32, F16 or BF16; the patches take the kernel's type.
#include "ops/row.h"

static struct ggml_tensor *refuse(enum err code, const char *what, const char *why) {
    (void) err_set(code, "%s: %s", what, why);
    return tensor_error();
}

// Whether both tensors can be used; if not, the sentence is recorded.
static bool usable(const char *what, const struct ggml_tensor *a, const struct ggml_tensor *b) {
    if (!a || !b) {
        refuse(ERR_INVALID, what, "a tensor is missing (NULL)");
        return false;
    }
    if (ggml_is_error(a) || ggml_is_error(b)) return false;
    if (ggml_is_contiguous(a)) return true;
    refuse(ERR_UNSUPPORTED, what, "the kernel is not contiguous; use ggml_cont on it");
    return false;
}

// ---- one dimension: kernel [K, IC, OC], data [L, IC, N] -> [OL, OC, N] -----------------------------------------------------------

struct ggml_tensor *ggml_conv_1d(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int s0, int p0,
                                 int d0) {
    if (!usable("ggml_conv_1d", a, b)) return tensor_error();
    struct ggml_tensor *cols = ggml_im2col(ctx, a, b, s0, 0, p0, 0, d0, 0, false, a->type);
    if (ggml_is_error(cols)) return cols;
    const int64_t ol = cols->ne[1], n = cols->ne[2], oc = a->ne[2];
    struct ggml_tensor *y =
        ggml_mul_mat(ctx, ggml_reshape_2d(ctx, cols, cols->ne[0], ol * n), ggml_reshape_2d(ctx, a, a->ne[0] * a->ne[1], oc));
    if (n == 1) return ggml_reshape_3d(ctx, y, ol, oc, 1);
    return ggml_cont(ctx, ggml_permute(ctx, ggml_reshape_3d(ctx, y, ol, n, oc), 0, 2, 1, 3));
}

struct ggml_tensor *ggml_conv_1d_ph(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int s, int d) {
    return ggml_conv_1d(ctx, a, b, s, a ? (int) (a->ne[0] / 2) : 0, d);
}

// Depthwise: kernel [K, 1, C], data [L, C] -> [OL, C].
struct ggml_tensor *ggml_conv_1d_dw(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int s0, int p0,
                                    int d0) {
    if (!usable("ggml_conv_1d_dw", a, b)) return tensor_error();
    if (b->ne[2] != 1 || b->ne[3] != 1)
        return refuse(ERR_UNSUPPORTED, "ggml_conv_1d_dw", "the data has more than one image");
    if (a->ne[1] != 1 || a->ne[2] != b->ne[1])
        return refuse(ERR_INVALID, "ggml_conv_1d_dw", "wanted a kernel [K, 1, C], data [L, C]");
    struct ggml_tensor *x = ggml_reshape_4d(ctx, ggml_is_contiguous(b) ? b : ggml_cont(ctx, b), b->ne[0], 1, b->ne[1], 1);
    struct ggml_tensor *cols = ggml_im2col(ctx, a, x, s0, 0, p0, 0, d0, 0, false, a->type);  // [K, OL, C]
    struct ggml_tensor *y = ggml_mul_mat(ctx, cols, a);                                      // [OL, 1, C]
    return ggml_is_error(y) ? y : ggml_reshape_3d(ctx, y, y->ne[0], y->ne[2], 1);
}

struct ggml_tensor *ggml_conv_1d_dw_ph(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int s0,
                                       int d0) {
    return ggml_conv_1d_dw(ctx, a, b, s0, a ? (int) (a->ne[0] / 2) : 0, d0);
}

// ---- two dimensions: kernel [KW, KH, IC, OC], data [W, H, IC, N] -> [OW, OH, OC, N] ----------------------------------------------

struct ggml_tensor *ggml_conv_2d(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int s0, int s1,
                                 int p0, int p1, int d0, int d1) {
    if (!usable("ggml_conv_2d", a, b)) return tensor_error();
    struct ggml_tensor *cols = ggml_im2col(ctx, a, b, s0, s1, p0, p1, d0, d1, true, a->type);
    if (ggml_is_error(cols)) return cols;
    const int64_t *o = cols->ne;
    struct ggml_tensor *y =
        ggml_mul_mat(ctx, ggml_reshape_2d(ctx, cols, o[0], o[1] * o[2] * o[3]), ggml_reshape_2d(ctx, a, o[0], a->ne[3]));
    return ggml_cont(ctx, ggml_permute(ctx, ggml_reshape_4d(ctx, y, o[1], o[2], o[3], a->ne[3]), 0, 1, 3, 2));
}

struct ggml_tensor *ggml_conv_2d_sk_p0(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b) {
    return ggml_conv_2d(ctx, a, b, a ? (int) a->ne[0] : 1, a ? (int) a->ne[1] : 1, 0, 0, 1, 1);
}
struct ggml_tensor *ggml_conv_2d_s1_ph(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b) {
    return ggml_conv_2d(ctx, a, b, 1, 1, a ? (int) (a->ne[0] / 2) : 0, a ? (int) (a->ne[1] / 2) : 0, 1, 1);
}

// Depthwise: kernel [KW, KH, 1, C], data [W, H, C, N] -> [OW, OH, C, N].
struct ggml_tensor *ggml_conv_2d_dw(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int s0, int s1,
                                    int p0, int p1, int d0, int d1) {
    if (!usable("ggml_conv_2d_dw", a, b)) return tensor_error();
    if (a->ne[2] * a->ne[3] != b->ne[2]) return refuse(ERR_INVALID, "ggml_conv_2d_dw", "kernel and data differ in channels");
    struct ggml_tensor *k = ggml_reshape_4d(ctx, a, a->ne[0], a->ne[1], 1, b->ne[2]);
    struct ggml_tensor *x =
        ggml_reshape_4d(ctx, ggml_is_contiguous(b) ? b : ggml_cont(ctx, b), b->ne[0], b->ne[1], 1, b->ne[2] * b->ne[3]);
    struct ggml_tensor *cols = ggml_im2col(ctx, k, x, s0, s1, p0, p1, d0, d1, true, a->type);  // [KH KW, OW, OH, C N]
    if (ggml_is_error(cols)) return cols;
    const int64_t ow = cols->ne[1], oh = cols->ne[2];
    struct ggml_tensor *y = ggml_mul_mat(ctx, ggml_reshape_4d(ctx, k, cols->ne[0], 1, b->ne[2], 1),
                                         ggml_reshape_4d(ctx, cols, cols->ne[0], ow * oh, b->ne[2], b->ne[3]));
    return ggml_reshape_4d(ctx, y, ow, oh, b->ne[2], b->ne[3]);
}

// ---- three dimensions: kernel [KW, KH, KD, IC OC], data [W, H, D, IC N] -> [OW, OH, OD, OC N] --------------------------------------

struct ggml_tensor *ggml_conv_3d(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int64_t IC, int s0,
                                 int s1, int s2, int p0, int p1, int p2, int d0, int d1, int d2) {
    if (!usable("ggml_conv_3d", a, b)) return tensor_error();
    struct ggml_tensor *cols = ggml_im2col_3d(ctx, a, b, IC, s0, s1, s2, p0, p1, p2, d0, d1, d2, a->type);
    if (ggml_is_error(cols)) return cols;
    const int64_t oc = a->ne[3] / IC, n = b->ne[3] / IC, *o = cols->ne, od = o[3] / n;
    struct ggml_tensor *y =
        ggml_mul_mat(ctx, ggml_reshape_2d(ctx, cols, o[0], o[1] * o[2] * o[3]), ggml_reshape_2d(ctx, a, o[0], oc));
    y = ggml_cont(ctx, ggml_permute(ctx, ggml_reshape_4d(ctx, y, o[1] * o[2], od, n, oc), 0, 1, 3, 2));
    return ggml_reshape_4d(ctx, y, o[1], o[2], od, oc * n);
}
