// Contexts and tensors: creation, shape predicates, names and flags.
//
// A context is one block of memory that is handed out front to back; tensors and graphs lie in it and are freed with it. A
// tensor has up to 4 dimensions: ne[i] elements along dimension i, ne[0] innermost, further ones 1; nb[i] bytes from one
// element to the next along dimension i (for i = 0 of a type with blocks: from block to block). A view shares the memory of
// another tensor.
//
// Errors: what makes a tensor returns the error tensor (ggml_is_error in ggml/ext.h) and records a sentence. Questions
// expect a tensor that is not NULL.
// Thread: one thread at a time per context; questions about tensors from any.
#pragma once

#include "ggml/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- contexts ------------------------------------------------------------------------------------------------------------

// A context of params.mem_size bytes: in params.mem_buffer (the caller's, must outlive it), or allocated if that is NULL.
// no_alloc: tensors get no memory for data, only their description. NULL: no memory.
GGML_API struct ggml_context *ggml_init(struct ggml_init_params params);
// Forgets all tensors and graphs; the memory is used anew.
GGML_API void ggml_reset(struct ggml_context *ctx);
// Frees the context and what lies in it. NULL is fine.
GGML_API void ggml_free(struct ggml_context *ctx);
// Bytes handed out; size and start of the block; whether tensors get memory.
GGML_API size_t ggml_used_mem(const struct ggml_context *ctx);
GGML_API size_t ggml_get_mem_size(const struct ggml_context *ctx);
GGML_API void *ggml_get_mem_buffer(const struct ggml_context *ctx);
GGML_API bool ggml_get_no_alloc(struct ggml_context *ctx);
GGML_API void ggml_set_no_alloc(struct ggml_context *ctx, bool no_alloc);
// Bytes of the largest tensor of the context, views included.
GGML_API size_t ggml_get_max_tensor_size(const struct ggml_context *ctx);
// Bytes of a context that a tensor takes beside its data, which is padded to GGML_MEM_ALIGN.
GGML_API size_t ggml_tensor_overhead(void);

// ---- tensors -------------------------------------------------------------------------------------------------------------

// A packed tensor. n_dims 1 .. 4; ne[i] >= 0; ne[0] a multiple of the type's block.
GGML_API struct ggml_tensor *ggml_new_tensor(struct ggml_context *ctx, enum ggml_type type, int n_dims, const int64_t *ne);
GGML_API struct ggml_tensor *ggml_new_tensor_1d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0);
GGML_API struct ggml_tensor *ggml_new_tensor_2d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0, int64_t ne1);
GGML_API struct ggml_tensor *ggml_new_tensor_3d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0, int64_t ne1,
                                                int64_t ne2);
GGML_API struct ggml_tensor *ggml_new_tensor_4d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0, int64_t ne1,
                                                int64_t ne2, int64_t ne3);
// nbytes of the context's memory, aligned to GGML_MEM_ALIGN; NULL if it is full.
GGML_API void *ggml_new_buffer(struct ggml_context *ctx, size_t nbytes);
// A packed tensor of src's type and shape with memory of its own; a view of the whole of src with its strides.
GGML_API struct ggml_tensor *ggml_dup_tensor(struct ggml_context *ctx, const struct ggml_tensor *src);
GGML_API struct ggml_tensor *ggml_view_tensor(struct ggml_context *ctx, struct ggml_tensor *src);
// The tensors of a context in the order of their making; the first one of a name. NULL: none (more).
GGML_API struct ggml_tensor *ggml_get_first_tensor(const struct ggml_context *ctx);
GGML_API struct ggml_tensor *ggml_get_next_tensor(const struct ggml_context *ctx, struct ggml_tensor *tensor);
GGML_API struct ggml_tensor *ggml_get_tensor(struct ggml_context *ctx, const char *name);

// ---- size ----------------------------------------------------------------------------------------------------------------

GGML_API int64_t ggml_nelements(const struct ggml_tensor *tensor);
// Product of dimensions 1 to 3.
GGML_API int64_t ggml_nrows(const struct ggml_tensor *tensor);
// Bytes from the first to the last element, gaps included; the same rounded up to GGML_MEM_ALIGN.
GGML_API size_t ggml_nbytes(const struct ggml_tensor *tensor);
GGML_API size_t ggml_nbytes_pad(const struct ggml_tensor *tensor);
// Bytes of an element, or of a block where the type has blocks.
GGML_API size_t ggml_element_size(const struct ggml_tensor *tensor);
// Number of dimensions without trailing ones; at least 1.
GGML_API int ggml_n_dims(const struct ggml_tensor *tensor);

// ---- layout --------------------------------------------------------------------------------------------------------------

// nb[0] > nb[1]; strides not rising; no elements; shares another tensor's memory.
GGML_API bool ggml_is_transposed(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_permuted(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_empty(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_view(const struct ggml_tensor *tensor);
// At most 0, 1, 2, 3 dimensions are larger than 1.
GGML_API bool ggml_is_scalar(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_vector(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_matrix(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_3d(const struct ggml_tensor *tensor);
// Packed: each dimension follows the one before it without a gap (dimensions of one element apart). The form _n lets the
// strides of dimensions 1 .. n be larger; the form to_n asks only about the first n dimensions.
GGML_API bool ggml_is_contiguous(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_0(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_1(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_2(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_to_1(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_to_2(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_to_3(const struct ggml_tensor *tensor);
// The elements fill one block of memory, in whatever order.
GGML_API bool ggml_is_contiguously_allocated(const struct ggml_tensor *tensor);
// Stored as [channel, width, height] although dimension 2 is the channel.
GGML_API bool ggml_is_contiguous_channels(const struct ggml_tensor *tensor);
// Elements of a row follow each other.
GGML_API bool ggml_is_contiguous_rows(const struct ggml_tensor *tensor);
// Equal ne; equal nb; t0 repeated a whole number of times along each dimension gives t1's shape.
GGML_API bool ggml_are_same_shape(const struct ggml_tensor *t0, const struct ggml_tensor *t1);
GGML_API bool ggml_are_same_stride(const struct ggml_tensor *t0, const struct ggml_tensor *t1);
GGML_API bool ggml_can_repeat(const struct ggml_tensor *t0, const struct ggml_tensor *t1);
// Indices of the element with number i, counted along dimension 0 first. Results may be NULL.
GGML_API void ggml_unravel_index(const struct ggml_tensor *tensor, int64_t i, int64_t *i0, int64_t *i1, int64_t *i2,
                                 int64_t *i3);

// ---- operation, data, name, flags ----------------------------------------------------------------------------------------

// Names of operations: "MUL_MAT", "X*Y"; of functions: "GELU"; of what a tensor is the result of. "unknown" where there is
// none.
GGML_API const char *ggml_op_name(enum ggml_op op);
GGML_API const char *ggml_op_symbol(enum ggml_op op);
GGML_API const char *ggml_unary_op_name(enum ggml_unary_op op);
GGML_API const char *ggml_glu_op_name(enum ggml_glu_op op);
GGML_API const char *ggml_op_desc(const struct ggml_tensor *t);
// The function of a tensor made by ggml_unary or ggml_glu; the COUNT value, and an error, for others.
GGML_API enum ggml_unary_op ggml_get_unary_op(const struct ggml_tensor *tensor);
GGML_API enum ggml_glu_op ggml_get_glu_op(const struct ggml_tensor *tensor);
// Address of the data, NULL if there is none; the second form only for F32.
GGML_API void *ggml_get_data(const struct ggml_tensor *tensor);
GGML_API float *ggml_get_data_f32(const struct ggml_tensor *tensor);
// Name, "" if none; at most 63 bytes are kept. Setters return the tensor.
GGML_API const char *ggml_get_name(const struct ggml_tensor *tensor);
GGML_API struct ggml_tensor *ggml_set_name(struct ggml_tensor *tensor, const char *name);
GGML_API struct ggml_tensor *ggml_format_name(struct ggml_tensor *tensor, const char *fmt, ...) GGML_ATTRIBUTE_FORMAT(2, 3);
// Input: keeps its memory until its last reader; output: until the end of the graph. Param: to be trained, no result of an
// operation. Loss: what gradients are taken of, one F32 value.
GGML_API void ggml_set_input(struct ggml_tensor *tensor);
GGML_API void ggml_set_output(struct ggml_tensor *tensor);
GGML_API void ggml_set_param(struct ggml_tensor *tensor);
GGML_API void ggml_set_loss(struct ggml_tensor *tensor);
// Sets all bytes to zero, in host memory or on a device. Returns the tensor.
GGML_API struct ggml_tensor *ggml_set_zero(struct ggml_tensor *tensor);

// Prints what a context holds through the log sink.
GGML_API void ggml_print_object(const struct ggml_object *obj);
GGML_API void ggml_print_objects(const struct ggml_context *ctx);

#ifdef __cplusplus
}
#endif
