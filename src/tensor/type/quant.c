// The public functions of ggml/quant.h: what element types are, conversions of rows, quantization with its checks.
// Compiled once.
#include "ggml-cpu.h"
#include "base/half.h"
#include "type/type.h"

#include <inttypes.h>
#include <math.h>

// ---- half precision -------------------------------------------------------------------------------------------------
float ggml_fp16_to_fp32(ggml_fp16_t h) { return f16_to_f32(h); }
ggml_fp16_t ggml_fp32_to_fp16(float f) { return f32_to_f16(f); }
float ggml_bf16_to_fp32(ggml_bf16_t h) { return bf16_to_f32(h.bits); }
ggml_bf16_t ggml_fp32_to_bf16(float f) { return (ggml_bf16_t){f32_to_bf16(f)}; }

// A row of n elements to convert: none is no row, and no row without both ends.
static bool row(const void *x, const void *y, int64_t n) {
    if (n > 0 && (!x || !y)) (void) err_set(ERR_INVALID, "%" PRId64 " elements can't be converted: a NULL row", n);
    return n > 0 && x && y;
}
static void decode(enum ggml_type id, const void *x, float *y, int64_t n) {
    if (row(x, y, n)) type_get(id)->decode(x, y, n);
}
static void encode(enum ggml_type id, const float *x, void *y, int64_t n) {
    if (row(x, y, n)) type_get(id)->encode(x, y, n);
}

void ggml_fp16_to_fp32_row(const ggml_fp16_t *x, float *y, int64_t n) { decode(GGML_TYPE_F16, x, y, n); }
void ggml_fp32_to_fp16_row(const float *x, ggml_fp16_t *y, int64_t n) { encode(GGML_TYPE_F16, x, y, n); }
void ggml_bf16_to_fp32_row(const ggml_bf16_t *x, float *y, int64_t n) { decode(GGML_TYPE_BF16, x, y, n); }
void ggml_fp32_to_bf16_row(const float *x, ggml_bf16_t *y, int64_t n) { encode(GGML_TYPE_BF16, x, y, n); }
void ggml_fp32_to_bf16_row_ref(const float *x, ggml_bf16_t *y, int64_t n) {
    if (row(x, y, n)) type_get_at(GGML_TYPE_BF16, ISA_scalar)->encode(x, y, n);
}

void ggml_cpu_fp32_to_fp32(const float *x, float *y, int64_t n) { encode(GGML_TYPE_F32, x, y, n); }
void ggml_cpu_fp32_to_i32(const float *x, int32_t *y, int64_t n) { encode(GGML_TYPE_I32, x, y, n); }
void ggml_cpu_fp32_to_fp16(const float *x, ggml_fp16_t *y, int64_t n) { ggml_fp32_to_fp16_row(x, y, n); }
void ggml_cpu_fp16_to_fp32(const ggml_fp16_t *x, float *y, int64_t n) { ggml_fp16_to_fp32_row(x, y, n); }
void ggml_cpu_fp32_to_bf16(const float *x, ggml_bf16_t *y, int64_t n) { ggml_fp32_to_bf16_row(x, y, n); }
void ggml_cpu_bf16_to_fp32(const ggml_bf16_t *x, float *y, int64_t n) { ggml_bf16_to_fp32_row(x, y, n); }

// ---- facts ------------------------------------------------------------------------------------------------------------
static const struct type *known(enum ggml_type id) {
    const struct type *t = type_facts(id);
    if (!t) (void) err_set(ERR_INVALID, "%d is not an element type", (int) id);
    return t;
}

// The same with the functions of the active ISA level.
static const struct type *working(enum ggml_type id) { return known(id) ? type_get(id) : NULL; }

int64_t ggml_blck_size(enum ggml_type type) {
    const struct type *t = known(type);
    return t ? t->block : 0;
}

size_t ggml_type_size(enum ggml_type type) {
    const struct type *t = known(type);
    return t ? t->size : 0;
}

double ggml_type_sizef(enum ggml_type type) {
    const struct type *t = known(type);
    return t ? (double) t->size / (double) t->block : 0.0;
}

size_t ggml_row_size(enum ggml_type type, int64_t ne) {
    const struct type *t = known(type);
    if (!t) return 0;
    if (ne < 0 || ne % t->block != 0) {
        (void) err_set(ERR_INVALID, "a row of %" PRId64 " elements can't be of type %s: it has to be a multiple of %" PRId64,
                       ne, t->name, t->block);
        return 0;
    }
    size_t bytes;
    if (__builtin_mul_overflow((size_t) (ne / t->block), t->size, &bytes)) {
        (void) err_set(ERR_INVALID, "a row of %" PRId64 " elements of type %s has more bytes than can be addressed", ne,
                       t->name);
        return 0;
    }
    return bytes;
}

const char *ggml_type_name(enum ggml_type type) {
    const struct type *t = type_get(type);
    return t ? t->name : "NONE";
}

bool ggml_is_quantized(enum ggml_type type) {
    const struct type *t = known(type);
    return t && t->quantized;
}

// Most names of ggml_ftype are those of a type; a few mean a mixture or share their type.
enum ggml_type ggml_ftype_to_ggml_type(enum ggml_ftype ftype) {
    static const int8_t types[] = {
        [GGML_FTYPE_ALL_F32] = 1 + GGML_TYPE_F32,
        [GGML_FTYPE_MOSTLY_F16] = 1 + GGML_TYPE_F16,
        [GGML_FTYPE_MOSTLY_Q4_0] = 1 + GGML_TYPE_Q4_0,
        [GGML_FTYPE_MOSTLY_Q4_1] = 1 + GGML_TYPE_Q4_1,
        [GGML_FTYPE_MOSTLY_Q8_0] = 1 + GGML_TYPE_Q8_0,
        [GGML_FTYPE_MOSTLY_Q5_0] = 1 + GGML_TYPE_Q5_0,
        [GGML_FTYPE_MOSTLY_Q5_1] = 1 + GGML_TYPE_Q5_1,
        [GGML_FTYPE_MOSTLY_Q2_K] = 1 + GGML_TYPE_Q2_K,
        [GGML_FTYPE_MOSTLY_Q3_K] = 1 + GGML_TYPE_Q3_K,
        [GGML_FTYPE_MOSTLY_Q4_K] = 1 + GGML_TYPE_Q4_K,
        [GGML_FTYPE_MOSTLY_Q5_K] = 1 + GGML_TYPE_Q5_K,
        [GGML_FTYPE_MOSTLY_Q6_K] = 1 + GGML_TYPE_Q6_K,
        [GGML_FTYPE_MOSTLY_IQ2_XXS] = 1 + GGML_TYPE_IQ2_XXS,
        [GGML_FTYPE_MOSTLY_IQ2_XS] = 1 + GGML_TYPE_IQ2_XS,
        [GGML_FTYPE_MOSTLY_IQ3_XXS] = 1 + GGML_TYPE_IQ3_XXS,
        [GGML_FTYPE_MOSTLY_IQ1_S] = 1 + GGML_TYPE_IQ1_S,
        [GGML_FTYPE_MOSTLY_IQ4_NL] = 1 + GGML_TYPE_IQ4_NL,
        [GGML_FTYPE_MOSTLY_IQ3_S] = 1 + GGML_TYPE_IQ3_S,
        [GGML_FTYPE_MOSTLY_IQ2_S] = 1 + GGML_TYPE_IQ2_S,
        [GGML_FTYPE_MOSTLY_IQ4_XS] = 1 + GGML_TYPE_IQ4_XS,
        [GGML_FTYPE_MOSTLY_IQ1_M] = 1 + GGML_TYPE_IQ1_M,
        [GGML_FTYPE_MOSTLY_BF16] = 1 + GGML_TYPE_BF16,
        [GGML_FTYPE_MOSTLY_MXFP4] = 1 + GGML_TYPE_MXFP4,
        [GGML_FTYPE_MOSTLY_NVFP4] = 1 + GGML_TYPE_NVFP4,
        [GGML_FTYPE_MOSTLY_Q1_0] = 1 + GGML_TYPE_Q1_0,
        [GGML_FTYPE_MOSTLY_Q2_0] = 1 + GGML_TYPE_Q2_0,
    };
    const size_t i = (size_t) ftype;
    if (ftype >= 0 && i < sizeof(types) && types[i]) return (enum ggml_type)(types[i] - 1);
    (void) err_set(ERR_INVALID, "file type %d stands for no single element type", (int) ftype);
    return GGML_TYPE_COUNT;
}

bool ggml_validate_row_data(enum ggml_type type, const void *data, size_t nbytes) {
    const struct type *t = working(type);
    if (!t) return false;
    if (nbytes % t->size != 0) {
        (void) err_set(ERR_FORMAT, "%zu bytes are no whole number of %s blocks of %zu bytes", nbytes, t->name, t->size);
        return false;
    }
    if (nbytes == 0 || t->check(data, nbytes)) return true;
    (void) err_set(ERR_FORMAT, "%s data of %zu bytes holds a value that is not a finite number", t->name, nbytes);
    return false;
}

// ---- quantization -------------------------------------------------------------------------------------------------------
// The searches keep their tables in constant memory, so there is nothing to make or to free.
void ggml_quantize_init(enum ggml_type type) { (void) known(type); }
void ggml_quantize_free(void) {}

bool ggml_quantize_requires_imatrix(enum ggml_type type) {
    const struct type *t = type_get(type);
    return t && t->needs_imatrix;
}

// Index of the first element that is NaN or infinite; n if there is none.
static int64_t first_bad(const float *x, int64_t n) {
    const struct type *f32 = type_get(GGML_TYPE_F32);
    if (f32->check(x, (size_t) n * sizeof(float))) return n;
    int64_t i = 0;
    while (isfinite(x[i])) i++;
    return i;
}

static enum err chunk_check(const struct type *t, int64_t start, int64_t nrows, int64_t n_per_row, const float *imatrix) {
    if (!t->quantized && t->tolerance == INFINITY)
        return err_set(ERR_INVALID, "floats can't be quantized to the integer type %s", t->name);
    if (nrows < 0 || n_per_row <= 0 || n_per_row % t->block != 0)
        return err_set(ERR_INVALID,
                       "%" PRId64 " rows of %" PRId64
                       " elements can't be quantized to %s: rows have to be a multiple of %" PRId64,
                       nrows, n_per_row, t->name, t->block);
    if (start < 0 || start % n_per_row != 0)
        return err_set(ERR_INVALID, "quantization to %s can't start at element %" PRId64 ": rows have %" PRId64 " elements",
                       t->name, start, n_per_row);
    if (!imatrix && t->needs_imatrix)
        return err_set(ERR_INVALID, "quantization to %s needs importance weights: give an imatrix", t->name);
    for (int64_t i = 0; imatrix && i < n_per_row; i++)
        if (!(imatrix[i] >= 0.0f && isfinite(imatrix[i])))
            return err_set(ERR_INVALID,
                           "importance weight %" PRId64 " of %" PRId64 " is %g: it has to be finite and not negative", i,
                           n_per_row, (double) imatrix[i]);
    return ERR_OK;
}

size_t ggml_quantize_chunk(enum ggml_type type, const float *src, void *dst, int64_t start, int64_t nrows, int64_t n_per_row,
                           const float *imatrix) {
    const struct type *t = working(type);
    if (!t || chunk_check(t, start, nrows, n_per_row, imatrix) != ERR_OK) return 0;
    if (nrows > 0 && (!src || !dst)) {
        (void) err_set(ERR_INVALID, "can't quantize %" PRId64 " rows to %s: no %s", nrows, t->name,
                       src ? "destination" : "source");
        return 0;
    }
    const size_t row_bytes = (size_t) (n_per_row / t->block) * t->size;
    const int64_t first_row = start / n_per_row;
    char *out = (char *) dst + (size_t) first_row * row_bytes;
    for (int64_t r = 0; r < nrows; r++, out += row_bytes) {
        const float *x = src + start + r * n_per_row;
        const int64_t bad = first_bad(x, n_per_row);
        if (t->quantized && bad < n_per_row) {  // floats hold infinities and NaN: masks are made that way
            (void) err_set(ERR_INVALID, "can't quantize to %s: element %" PRId64 " of row %" PRId64 " is %g", t->name, bad,
                           first_row + r, (double) x[bad]);
            return 0;
        }
        if (t->quantize)
            t->quantize(x, out, 1, n_per_row, imatrix);
        else
            t->encode(x, out, n_per_row);
    }
    return (size_t) nrows * row_bytes;
}
