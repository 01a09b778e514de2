// The tensor and the small structures around it.
#pragma once

#include "ggml/enums.h"
#include "ggml/op_enums.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ggml_object;
struct ggml_context;
struct ggml_cgraph;
struct ggml_threadpool;
struct ggml_backend_buffer;

typedef uint16_t ggml_fp16_t;
typedef struct ggml_bf16_t {
    uint16_t bits;
} ggml_bf16_t;
typedef uint8_t ggml_guid[16];
typedef ggml_guid *ggml_guid_t;
typedef void (*ggml_abort_callback_t)(const char *);
typedef bool (*ggml_abort_callback)(void *);
typedef void (*ggml_log_callback)(enum ggml_log_level, const char *, void *);
typedef void (*ggml_to_float_t)(const void *GGML_RESTRICT, float *GGML_RESTRICT, int64_t);
typedef void (*ggml_from_float_t)(const float *GGML_RESTRICT, void *GGML_RESTRICT, int64_t);
typedef struct ggml_threadpool *ggml_threadpool_t;

struct ggml_init_params {
    size_t mem_size;
    void *mem_buffer;
    bool no_alloc;
};

struct ggml_tensor {
    enum ggml_type type;
    struct ggml_backend_buffer *buffer;
    int64_t ne[4];
    size_t nb[4];
    enum ggml_op op;
    int32_t op_params[16];
    int32_t flags;
    struct ggml_tensor * src[10];
    struct ggml_tensor *view_src;
    size_t view_offs;
    void *data;
    char name[64];
    void *extra;
    char padding[8];
};

struct ggml_type_traits {
    const char *type_name;
    int64_t blck_size;
    int64_t blck_size_interleave;
    size_t type_size;
    bool is_quantized;
    ggml_to_float_t to_float;
    ggml_from_float_t from_float_ref;
};

static const size_t GGML_TENSOR_SIZE = sizeof(struct ggml_tensor);

#ifdef __cplusplus
}
#endif
