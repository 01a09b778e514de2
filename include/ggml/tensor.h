// Contexts and tensors: creation, shape predicates, names and flags.
#pragma once

#include "ggml/types.h"

#ifdef __cplusplus
extern "C" {
#endif

GGML_API void ggml_print_object(const struct ggml_object *obj);
GGML_API void ggml_print_objects(const struct ggml_context *ctx);
GGML_API int64_t ggml_nelements(const struct ggml_tensor *tensor);
GGML_API int64_t ggml_nrows(const struct ggml_tensor *tensor);
GGML_API size_t ggml_nbytes(const struct ggml_tensor *tensor);
GGML_API size_t ggml_nbytes_pad(const struct ggml_tensor *tensor);
GGML_API const char *ggml_op_name(enum ggml_op op);
GGML_API const char *ggml_op_symbol(enum ggml_op op);
GGML_API const char *ggml_unary_op_name(enum ggml_unary_op op);
GGML_API const char *ggml_glu_op_name(enum ggml_glu_op op);
GGML_API const char *ggml_op_desc(const struct ggml_tensor *t);
GGML_API size_t ggml_element_size(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_transposed(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_permuted(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_empty(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_view(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_scalar(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_vector(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_matrix(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_3d(const struct ggml_tensor *tensor);
GGML_API int ggml_n_dims(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_0(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_1(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_2(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_to_1(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_to_2(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_to_3(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguously_allocated(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_channels(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_rows(const struct ggml_tensor *tensor);
GGML_API bool ggml_are_same_shape(const struct ggml_tensor *t0, const struct ggml_tensor *t1);
GGML_API bool ggml_are_same_stride(const struct ggml_tensor *t0, const struct ggml_tensor *t1);
GGML_API bool ggml_can_repeat(const struct ggml_tensor *t0, const struct ggml_tensor *t1);
GGML_API size_t ggml_tensor_overhead(void);
GGML_API struct ggml_context *ggml_init(struct ggml_init_params params);
GGML_API void ggml_reset(struct ggml_context *ctx);
GGML_API void ggml_free(struct ggml_context *ctx);
GGML_API size_t ggml_used_mem(const struct ggml_context *ctx);
GGML_API bool ggml_get_no_alloc(struct ggml_context *ctx);
GGML_API void ggml_set_no_alloc(struct ggml_context *ctx, bool no_alloc);
GGML_API void *ggml_get_mem_buffer(const struct ggml_context *ctx);
GGML_API size_t ggml_get_mem_size(const struct ggml_context *ctx);
GGML_API size_t ggml_get_max_tensor_size(const struct ggml_context *ctx);
GGML_API struct ggml_tensor *ggml_new_tensor(struct ggml_context *ctx, enum ggml_type type, int n_dims, const int64_t *ne);
GGML_API struct ggml_tensor *ggml_new_tensor_1d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0);
GGML_API struct ggml_tensor *ggml_new_tensor_2d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0, int64_t ne1);
GGML_API struct ggml_tensor *ggml_new_tensor_3d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0, int64_t ne1, int64_t ne2);
GGML_API struct ggml_tensor *ggml_new_tensor_4d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3);
GGML_API void *ggml_new_buffer(struct ggml_context *ctx, size_t nbytes);
GGML_API struct ggml_tensor *ggml_dup_tensor(struct ggml_context *ctx, const struct ggml_tensor *src);
GGML_API struct ggml_tensor *ggml_view_tensor(struct ggml_context *ctx, struct ggml_tensor *src);
GGML_API struct ggml_tensor *ggml_get_first_tensor(const struct ggml_context *ctx);
GGML_API struct ggml_tensor *ggml_get_next_tensor(const struct ggml_context *ctx, struct ggml_tensor *tensor);
GGML_API struct ggml_tensor *ggml_get_tensor(struct ggml_context *ctx, const char *name);
GGML_API void ggml_unravel_index(const struct ggml_tensor *tensor, int64_t i, int64_t *i0, int64_t *i1, int64_t *i2, int64_t *i3);
GGML_API enum ggml_unary_op ggml_get_unary_op(const struct ggml_tensor *tensor);
GGML_API enum ggml_glu_op ggml_get_glu_op(const struct ggml_tensor *tensor);
GGML_API void *ggml_get_data(const struct ggml_tensor *tensor);
GGML_API float *ggml_get_data_f32(const struct ggml_tensor *tensor);
GGML_API const char *ggml_get_name(const struct ggml_tensor *tensor);
GGML_API struct ggml_tensor *ggml_set_name(struct ggml_tensor *tensor, const char *name);
GGML_API struct ggml_tensor *ggml_format_name(struct ggml_tensor *tensor, const char *fmt, ...) GGML_ATTRIBUTE_FORMAT(2, 3);
GGML_API void ggml_set_input(struct ggml_tensor *tensor);
GGML_API void ggml_set_output(struct ggml_tensor *tensor);
GGML_API void ggml_set_param(struct ggml_tensor *tensor);
GGML_API void ggml_set_loss(struct ggml_tensor *tensor);
GGML_API struct ggml_tensor *ggml_set_zero(struct ggml_tensor *tensor);

#ifdef __cplusplus
}
#endif
