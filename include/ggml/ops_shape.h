// Builders: scale, set, copies, views, permutations, rows, masks.
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

// a * s. a float; result as a.
GGML_API struct ggml_tensor *ggml_scale(struct ggml_context *ctx, struct ggml_tensor *a, float s);
GGML_API struct ggml_tensor *ggml_scale_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float s);

// a * s + b, rounded once.
GGML_API struct ggml_tensor *ggml_scale_bias(struct ggml_context *ctx, struct ggml_tensor *a, float s, float b);
GGML_API struct ggml_tensor *ggml_scale_bias_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float s, float b);

// A copy of a in which the window that begins `offset` bytes in and has strides nb1, nb2, nb3 (bytes, of a packed a; in
// place: of a) holds b. a, b of one unquantized type; the window lies inside a.
GGML_API struct ggml_tensor *ggml_set(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, size_t nb1,
                                      size_t nb2, size_t nb3, size_t offset);
GGML_API struct ggml_tensor *ggml_set_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                              size_t nb1, size_t nb2, size_t nb3, size_t offset);

// ggml_set with a's own strides.
GGML_API struct ggml_tensor *ggml_set_1d(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                         size_t offset);
GGML_API struct ggml_tensor *ggml_set_1d_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                                 size_t offset);

// ggml_set with a's own nb2 and nb3.
GGML_API struct ggml_tensor *ggml_set_2d(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, size_t nb1,
                                         size_t offset);
GGML_API struct ggml_tensor *ggml_set_2d_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                                 size_t nb1, size_t offset);

// Copies a into b, converting to its type; element i in logical order goes to element i, shapes may differ but not the
// number of elements. Returns a view of b. Any types: floats round to nearest even, to integers they truncate and saturate;
// integers and F64 among each other are exact. Rows of a quantized tensor must be unbroken.
GGML_API struct ggml_tensor *ggml_cpy(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

// A copy of a in the given type.
GGML_API struct ggml_tensor *ggml_cast(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_type type);

// A packed copy of a, always a new tensor. Any type; rows of a quantized a must be unbroken.
GGML_API struct ggml_tensor *ggml_cont(struct ggml_context *ctx, struct ggml_tensor *a);

// A packed copy of a under another shape of as many elements.
GGML_API struct ggml_tensor *ggml_cont_1d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0);
GGML_API struct ggml_tensor *ggml_cont_2d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1);
GGML_API struct ggml_tensor *ggml_cont_3d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1,
                                          int64_t ne2);
GGML_API struct ggml_tensor *ggml_cont_4d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1,
                                          int64_t ne2, int64_t ne3);
// The same elements in the same order under another shape (that of b, or the numbers). No copy: a view.
//   a: contiguous, with as many elements
GGML_API struct ggml_tensor *ggml_reshape(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_reshape_1d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0);
GGML_API struct ggml_tensor *ggml_reshape_2d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1);
GGML_API struct ggml_tensor *ggml_reshape_3d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1,
                                             int64_t ne2);
GGML_API struct ggml_tensor *ggml_reshape_4d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1,
                                             int64_t ne2, int64_t ne3);
// A window into a's memory: offset bytes from where a begins, nb1 .. nb3 bytes from one step to the next along dimensions 1
// .. 3 (dimension 0 is packed, strides not given follow the ones given). No copy. Windows may overlap; offset and strides
// are whole elements, and the window must lie inside the tensor that owns the memory.
GGML_API struct ggml_tensor *ggml_view_1d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, size_t offset);
GGML_API struct ggml_tensor *ggml_view_2d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1,
                                          size_t nb1, size_t offset);
GGML_API struct ggml_tensor *ggml_view_3d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1,
                                          int64_t ne2, size_t nb1, size_t nb2, size_t offset);
GGML_API struct ggml_tensor *ggml_view_4d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1,
                                          int64_t ne2, int64_t ne3, size_t nb1, size_t nb2, size_t nb3, size_t offset);
// Dimension i of a becomes dimension axis_i of the result. No copy: a view.
//   axis0 .. axis3: the numbers 0 to 3 in some order
GGML_API struct ggml_tensor *ggml_permute(struct ggml_context *ctx, struct ggml_tensor *a, int axis0, int axis1, int axis2,
                                          int axis3);
// Dimensions 0 and 1 exchanged. No copy: a view.
GGML_API struct ggml_tensor *ggml_transpose(struct ggml_context *ctx, struct ggml_tensor *a);

// Rows a[:, b[i, j, k], j, k]: a [n, rows, j, k] of any type, b [i, j, k] I32 or I64 -> [n, i, j, k] F32 (I32 from I32).
// An index outside 0 .. rows - 1 fails when computed; nothing is read there.
GGML_API struct ggml_tensor *ggml_get_rows(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

// Gradient of ggml_get_rows: row b[i] of the result is the sum of the rows a[:, i]: a [n, i] float, b [i], c [n, rows] gives
// its shape; result [n, rows] F32.
GGML_API struct ggml_tensor *ggml_get_rows_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                                struct ggml_tensor *c);

// Writes row b[:, i, j, k] over row c[i, j % c1, k % c2] of a[:, :, j, k], converting to a's type: a [n, rows, j, k] any
// type, b float or of a's type, c I64 or I32. Returns a view of a. Of two rows for one place the later wins. An index
// outside 0 .. rows - 1 fails when computed; nothing is written there.
GGML_API struct ggml_tensor *ggml_set_rows(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                           struct ggml_tensor *c);

// Matrices with the vectors a [n, 1, b2, b3] on their diagonals, 0 elsewhere: [n, n, b2, b3]. Any unquantized type.
GGML_API struct ggml_tensor *ggml_diag(struct ggml_context *ctx, struct ggml_tensor *a);

// a with -infinity where column i0 > row i1 + n_past. a float; result as a.
GGML_API struct ggml_tensor *ggml_diag_mask_inf(struct ggml_context *ctx, struct ggml_tensor *a, int n_past);
GGML_API struct ggml_tensor *ggml_diag_mask_inf_inplace(struct ggml_context *ctx, struct ggml_tensor *a, int n_past);

// a with 0 where column i0 > row i1 + n_past. a float; result as a.
GGML_API struct ggml_tensor *ggml_diag_mask_zero(struct ggml_context *ctx, struct ggml_tensor *a, int n_past);
GGML_API struct ggml_tensor *ggml_diag_mask_zero_inplace(struct ggml_context *ctx, struct ggml_tensor *a, int n_past);

#ifdef __cplusplus
}
#endif
