// Element types: sizes, half-precision conversion, quantization.
#pragma once

#include "ggml/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Everything here may be called from any thread.

// ---- half precision: IEEE binary16 and bfloat16, round to nearest even, NaN stays NaN ---------------------------------
GGML_API float ggml_fp16_to_fp32(ggml_fp16_t);
GGML_API ggml_fp16_t ggml_fp32_to_fp16(float);
// Rows: x [n], y [n], in this order; they may not overlap.
GGML_API void ggml_fp16_to_fp32_row(const ggml_fp16_t *, float *, int64_t);
GGML_API void ggml_fp32_to_fp16_row(const float *, ggml_fp16_t *, int64_t);
GGML_API ggml_bf16_t ggml_fp32_to_bf16(float);
GGML_API float ggml_bf16_to_fp32(ggml_bf16_t);
GGML_API void ggml_bf16_to_fp32_row(const ggml_bf16_t *, float *, int64_t);
// The row converter at the scalar level; the other one gives the same bits.
GGML_API void ggml_fp32_to_bf16_row_ref(const float *, ggml_bf16_t *, int64_t);
GGML_API void ggml_fp32_to_bf16_row(const float *, ggml_bf16_t *, int64_t);

// ---- facts. An id that is no type gives 0, false or "NONE", and an error is recorded where a size was asked for -------
// Elements per block (1 for plain types), bytes per block.
GGML_API int64_t ggml_blck_size(enum ggml_type type);
GGML_API size_t ggml_type_size(enum ggml_type type);
// Bytes of ne elements. Errors: ne negative or no multiple of the block, or too many bytes: 0.
GGML_API size_t ggml_row_size(enum ggml_type type, int64_t ne);
GGML_DEPRECATED(GGML_API double ggml_type_sizef(enum ggml_type type), "use ggml_row_size");
GGML_API const char *ggml_type_name(enum ggml_type type);
GGML_API bool ggml_is_quantized(enum ggml_type type);
// The type that a file type's matrices have; GGML_TYPE_COUNT, and an error, for mixtures and unknown ones.
GGML_API enum ggml_type ggml_ftype_to_ggml_type(enum ggml_ftype ftype);
// Whether nbytes of data are whole blocks without NaN or infinity (in a float, or in a block's scale). Errors: false, with
// a sentence.
GGML_API bool ggml_validate_row_data(enum ggml_type type, const void *data, size_t nbytes);
// Name, sizes and row functions: to_float, and from_float_ref where converting is no slow search (else NULL). Ids in range
// that are no type have the name "NONE" and no functions, integers have none either; NULL out of range. Owner: library, forever.
GGML_API const struct ggml_type_traits *ggml_get_type_traits(enum ggml_type type);

// ---- quantization -------------------------------------------------------------------------------------------------------
// Nothing needs to be prepared or freed; kept for programs that do.
GGML_API void ggml_quantize_init(enum ggml_type type);
GGML_API void ggml_quantize_free(void);
// Whether ggml_quantize_chunk refuses the type without importance weights.
GGML_API bool ggml_quantize_requires_imatrix(enum ggml_type type);
// Quantizes nrows rows of n_per_row elements of src, from element `start` (a multiple of n_per_row), into the same rows of
// dst: both pointers are those of row 0. imatrix [n_per_row]: importance of the elements of every row, finite and not
// negative, all zero meaning the same for all; or NULL. Minimises sum imatrix_i (x_i - decoded_i)^2; plain formats without imatrix
// round to nearest. Values beyond the range of a format's scale are clamped. Float types take infinities and NaN.
// Returns the bytes written. Errors: 0, with a sentence that names row and element, for NaN, infinity, bad importance or shape.
// Thread: any number may work on different rows; results do not depend on how rows are divided.
GGML_API size_t ggml_quantize_chunk(enum ggml_type type, const float *src, void *dst, int64_t start, int64_t nrows,
                                    int64_t n_per_row, const float *imatrix);

#ifdef __cplusplus
}
#endif
