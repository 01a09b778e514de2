// Builders: convolutions, pooling, padding, sorting and sequences.
//
// What holds for every builder: the result is a new tensor of ctx (owner: the context), nothing is computed yet. A builder
// that is misused, or given the error tensor, records a sentence (ggml_last_error) and returns the error tensor. Shapes are
// written [ne0, ne1, ne2, ne3], trailing 1s left out. "float" means F32, F16 or BF16: values are computed in F32 and rounded
// once to the result's type. Sources may have any strides unless a line says otherwise. The _inplace forms write over a and
// return a view of it. Results do not depend on the number of threads. Thread: a context belongs to one thread at a time.
#pragma once

#include "ggml/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Patches under a convolution's kernel, for ggml_mul_mat. is_2D: a [KW, KH, IC, OC] (only its shape counts), b [W, H, IC, N]
// float -> [IC KH KW, OW, OH, N]; else a [K, IC, OC], b [L, IC, N] -> [IC K, OL, N]. s stride >= 1, p padding >= 0, d
// dilation >= 1, 0 in x and 1 in y. dst_type: a float type. OW = (W + 2 p0 - d0 (KW - 1) - 1) / s0 + 1.
GGML_API struct ggml_tensor *ggml_im2col(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int s0,
                                         int s1, int p0, int p1, int d0, int d1, bool is_2D, enum ggml_type dst_type);

// Gradient of ggml_im2col: a the gradient of the patches, b the kernel, ne[4] the data's shape, which the result (F32) has.
GGML_API struct ggml_tensor *ggml_im2col_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                              int64_t *ne, int s0, int s1, int p0, int p1, int d0, int d1, bool is_2D);

// Second half of a transposed convolution: columns a [K oc, T] float -> [(T - 1) s0 + K - 2 p0, oc], p0 elements cropped at
// either end.
GGML_API struct ggml_tensor *ggml_col2im_1d(struct ggml_context *ctx, struct ggml_tensor *a, int s0, int oc, int p0);

// Convolution: a [K, IC, OC] float, contiguous; b [L, IC, N] -> [OL, OC, N]. Stride, padding, dilation.
GGML_API struct ggml_tensor *ggml_conv_1d(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int s0,
                                          int p0, int d0);

// The same with padding K / 2.
GGML_API struct ggml_tensor *ggml_conv_1d_ph(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int s,
                                             int d);

// Depthwise: a [K, 1, C], b [L, C] -> [OL, C].
GGML_API struct ggml_tensor *ggml_conv_1d_dw(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int s0,
                                             int p0, int d0);

// The same with padding K / 2.
GGML_API struct ggml_tensor *ggml_conv_1d_dw_ph(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                                int s0, int d0);

// Transposed convolution: a [K, OC, IC], b [L, IC, N] float -> [(L - 1) s0 + K, OC, N] F32. p0 must be 0 and d0 1.
GGML_API struct ggml_tensor *ggml_conv_transpose_1d(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                                    int s0, int p0, int d0);

// Convolution through patches: a [KW, KH, IC, OC] float, contiguous; b [W, H, IC, N] -> [OW, OH, OC, N].
GGML_API struct ggml_tensor *ggml_conv_2d(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int s0,
                                          int s1, int p0, int p1, int d0, int d1);

// Patches in three dimensions: a [KW, KH, KD, IC OC] (its shape), b [W, H, D, IC N] float -> [IC KD KH KW, OW, OH, OD N].
GGML_API struct ggml_tensor *ggml_im2col_3d(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                            int64_t IC, int s0, int s1, int s2, int p0, int p1, int p2, int d0, int d1,
                                            int d2, enum ggml_type dst_type);

// Convolution through patches: a [KW, KH, KD, IC OC] float, contiguous; b [W, H, D, IC N] -> [OW, OH, OD, OC N].
GGML_API struct ggml_tensor *ggml_conv_3d(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int64_t IC,
                                          int s0, int s1, int s2, int p0, int p1, int p2, int d0, int d1, int d2);

// ggml_conv_2d whose stride is the kernel's size (patch embedding), without padding.
GGML_API struct ggml_tensor *ggml_conv_2d_sk_p0(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

// ggml_conv_2d with stride 1 and half the kernel's size as padding.
GGML_API struct ggml_tensor *ggml_conv_2d_s1_ph(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

// Depthwise through patches: a [KW, KH, 1, C], contiguous; b [W, H, C, N] -> [OW, OH, C, N].
GGML_API struct ggml_tensor *ggml_conv_2d_dw(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int s0,
                                             int s1, int p0, int p1, int d0, int d1);

// Depthwise without patches: a [KW, KH, 1, C], b [W, H, C, N] float -> [OW, OH, C, N] of b's type, laid out as b is:
// channels first in memory stay first.
GGML_API struct ggml_tensor *ggml_conv_2d_dw_direct(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                                    int stride0, int stride1, int pad0, int pad1, int dilation0,
                                                    int dilation1);

// Transposed convolution: a [KW, KH, OC, IC], b [W, H, IC, N] float -> [(W - 1) stride + KW, (H - 1) stride + KH, OC, N]
// F32.
GGML_API struct ggml_tensor *ggml_conv_transpose_2d_p0(struct ggml_context *ctx, struct ggml_tensor *a,
                                                       struct ggml_tensor *b, int stride);

// Convolution without patches in memory: a [KW, KH, IC, OC], b [W, H, IC, N] float -> [OW, OH, OC, N] of b's type.
GGML_API struct ggml_tensor *ggml_conv_2d_direct(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                                 int s0, int s1, int p0, int p1, int d0, int d1);

// The same in three dimensions: a [KW, KH, KD, n_channels n_channels_out], b [W, H, D, n_channels n_batch] ->
// [OW, OH, OD, n_channels_out n_batch].
GGML_API struct ggml_tensor *ggml_conv_3d_direct(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                                 int s0, int s1, int s2, int p0, int p1, int p2, int d0, int d1, int d2,
                                                 int n_channels, int n_batch, int n_channels_out);

// Largest or mean of windows of k0 along dimension 0, stride s0, padding p0 < k0: a float -> [OL, ne1, ne2, ne3] F32,
// OL = (ne0 + 2 p0 - k0) / s0 + 1. The mean is of the elements inside a.
GGML_API struct ggml_tensor *ggml_pool_1d(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_op_pool op, int k0,
                                          int s0, int p0);

// Largest or mean of windows [k0, k1]: a [W, H, C, N] float -> [OW, OH, C, N] F32, OW = (W + 2 p0 - k0) / s0 + 1. The mean divides by
// k0 k1. Paddings lie below the window's size; half a place is one at the far end alone.
GGML_API struct ggml_tensor *ggml_pool_2d(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_op_pool op, int k0,
                                          int k1, int s0, int s1, float p0, float p1);

// Gradient of ggml_pool_2d: a the gradient, af the forward input; result as af, F32. A largest value's gradient goes to the
// first of equals.
GGML_API struct ggml_tensor *ggml_pool_2d_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *af,
                                               enum ggml_op_pool op, int k0, int k1, int s0, int s1, float p0, float p1);

// Images a [W, H, C, N] enlarged scale_factor times in x and y; as ggml_interpolate.
GGML_API struct ggml_tensor *ggml_upscale(struct ggml_context *ctx, struct ggml_tensor *a, int scale_factor,
                                          enum ggml_scale_mode mode);

// Use ggml_interpolate.
GGML_DEPRECATED(GGML_API struct ggml_tensor *ggml_upscale_ext(struct ggml_context *ctx, struct ggml_tensor *a, int ne0,
                                                              int ne1, int ne2, int ne3, enum ggml_scale_mode mode),
                "use the newer call");

// Images a [W, H, C, N] float resized to the given shape; result of a's type. mode: GGML_SCALE_MODE_* in the low byte, with
// GGML_SCALE_FLAG_ALIGN_CORNERS (corner pixels' centres coincide) or, bilinear only, GGML_SCALE_FLAG_ANTIALIAS. Dimensions 2
// and 3 take the nearest. Bicubic: Keys 1981, a = -0.75.
GGML_API struct ggml_tensor *ggml_interpolate(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1,
                                              int64_t ne2, int64_t ne3, uint32_t mode);

// a with p zeros behind it in each dimension. Any unquantized type.
GGML_API struct ggml_tensor *ggml_pad(struct ggml_context *ctx, struct ggml_tensor *a, int p0, int p1, int p2, int p3);

// a continued by its own beginning instead of zeros.
GGML_API struct ggml_tensor *ggml_pad_circular(struct ggml_context *ctx, struct ggml_tensor *a, int p0, int p1, int p2,
                                               int p3);

// a with lp zeros before and rp behind it in each dimension.
GGML_API struct ggml_tensor *ggml_pad_ext(struct ggml_context *ctx, struct ggml_tensor *a, int lp0, int rp0, int lp1,
                                          int rp1, int lp2, int rp2, int lp3, int rp3);

// The same, going around.
GGML_API struct ggml_tensor *ggml_pad_ext_circular(struct ggml_context *ctx, struct ggml_tensor *a, int lp0, int rp0,
                                                   int lp1, int rp1, int lp2, int rp2, int lp3, int rp3);

// Rows mirrored at both ends, the end itself not repeated: p0, p1 < ne0 elements. Any unquantized type.
GGML_API struct ggml_tensor *ggml_pad_reflect_1d(struct ggml_context *ctx, struct ggml_tensor *a, int p0, int p1);

// Element i goes to place (i + shift) mod ne in each dimension; shifts may be negative. Any unquantized type.
GGML_API struct ggml_tensor *ggml_roll(struct ggml_context *ctx, struct ggml_tensor *a, int shift0, int shift1, int shift2,
                                       int shift3);

// A triangle of square matrices, 0 elsewhere: kept are i0 > i1 (upper), i0 < i1 (lower), i0 == i1 with _DIAG. a float.
GGML_API struct ggml_tensor *ggml_tri(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_tri_type type);

// c everywhere, in a's shape and (unquantized) type.
GGML_API struct ggml_tensor *ggml_fill(struct ggml_context *ctx, struct ggml_tensor *a, float c);
GGML_API struct ggml_tensor *ggml_fill_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float c);

// cos, then sin of step * max_period^(-j / half), half = dim / 2: timesteps [N] float -> [dim, N] F32; an odd dim ends in 0
// (Ho et al. 2020).
GGML_API struct ggml_tensor *ggml_timestep_embedding(struct ggml_context *ctx, struct ggml_tensor *timesteps, int dim,
                                                     int max_period);

// Indices that sort each row: a float -> I32 of a's shape. Equal values (0 and -0 are equal) by ascending index, NaN last in
// either order.
GGML_API struct ggml_tensor *ggml_argsort(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_sort_order order);

// The first k of a descending argsort, as a view: [k, ne1, ne2, ne3] I32.
GGML_API struct ggml_tensor *ggml_argsort_top_k(struct ggml_context *ctx, struct ggml_tensor *a, int k);

// Indices of each row's k largest, larger values first, equal ones by ascending index: [k, ne1, ne2, ne3] I32. Which of
// equal values at the k-th place are taken is as in C++ libraries' partial_sort: a heap of the first k, whose root gives way
// to strictly larger values. NaN is below everything.
GGML_API struct ggml_tensor *ggml_top_k(struct ggml_context *ctx, struct ggml_tensor *a, int k);

// start, start + step, ... below stop: [ceil((stop - start) / step)] F32, at least one.
GGML_API struct ggml_tensor *ggml_arange(struct ggml_context *ctx, float start, float stop, float step);

// Windows of w by w: a [C, W, H] -> [C, w, w, windows], zeros where a window reaches outside. Any unquantized type.
GGML_API struct ggml_tensor *ggml_win_part(struct ggml_context *ctx, struct ggml_tensor *a, int w);

// The opposite: a [C, w, w, windows] -> [C, w0, h0].
GGML_API struct ggml_tensor *ggml_win_unpart(struct ggml_context *ctx, struct ggml_tensor *a, int w0, int h0, int w);

// The element-wise function op on a (float); result as a. ggml_xielu has parameters and a builder of its own.
GGML_API struct ggml_tensor *ggml_unary(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_unary_op op);
GGML_API struct ggml_tensor *ggml_unary_inplace(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_unary_op op);

// Relative positions from a table a [C, 2 n - 1]: [C, kh, qh], row n - 1 - k + q for key k and query q; qh = kh = n.
GGML_API struct ggml_tensor *ggml_get_rel_pos(struct ggml_context *ctx, struct ggml_tensor *a, int qh, int kh);

// a [kw kh, qw qh, heads] + pw [kw, qw, qh, heads] + ph [kh, qw, qh, heads], all float, kw = kh. Result as a.
GGML_API struct ggml_tensor *ggml_add_rel_pos(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *pw,
                                              struct ggml_tensor *ph);
GGML_API struct ggml_tensor *ggml_add_rel_pos_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                                      struct ggml_tensor *pw, struct ggml_tensor *ph);

#ifdef __cplusplus
}
#endif
