// Element types: sizes, half-precision conversion, quantization.
#pragma once

#include "ggml/types.h"

#ifdef __cplusplus
extern "C" {
#endif

GGML_API float ggml_fp16_to_fp32(ggml_fp16_t);
GGML_API ggml_fp16_t ggml_fp32_to_fp16(float);
GGML_API void ggml_fp16_to_fp32_row(const ggml_fp16_t *, float *, int64_t);
GGML_API void ggml_fp32_to_fp16_row(const float *, ggml_fp16_t *, int64_t);
GGML_API ggml_bf16_t ggml_fp32_to_bf16(float);
GGML_API float ggml_bf16_to_fp32(ggml_bf16_t);
GGML_API void ggml_bf16_to_fp32_row(const ggml_bf16_t *, float *, int64_t);
GGML_API void ggml_fp32_to_bf16_row_ref(const float *, ggml_bf16_t *, int64_t);
GGML_API void ggml_fp32_to_bf16_row(const float *, ggml_bf16_t *, int64_t);
GGML_API int64_t ggml_blck_size(enum ggml_type type);
GGML_API size_t ggml_type_size(enum ggml_type type);
GGML_API size_t ggml_row_size(enum ggml_type type, int64_t ne);
GGML_DEPRECATED(GGML_API double ggml_type_sizef(enum ggml_type type), "use the newer call");
GGML_API const char *ggml_type_name(enum ggml_type type);
GGML_API bool ggml_is_quantized(enum ggml_type type);
GGML_API enum ggml_type ggml_ftype_to_ggml_type(enum ggml_ftype ftype);
GGML_API bool ggml_validate_row_data(enum ggml_type type, const void *data, size_t nbytes);
GGML_API const struct ggml_type_traits *ggml_get_type_traits(enum ggml_type type);
GGML_API void ggml_quantize_init(enum ggml_type type);
GGML_API void ggml_quantize_free(void);
GGML_API bool ggml_quantize_requires_imatrix(enum ggml_type type);
GGML_API size_t ggml_quantize_chunk(enum ggml_type type, const float *src, void *dst, int64_t start, int64_t nrows, int64_t n_per_row, const float *imatrix);

#ifdef __cplusplus
}
#endif
