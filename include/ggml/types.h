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

// IEEE 754 binary16 as bits; bfloat16 (the upper half of a float) as bits.
typedef uint16_t ggml_fp16_t;
typedef struct ggml_bf16_t {
    uint16_t bits;
} ggml_bf16_t;
// 16 bytes that name a kind of device for good.
typedef uint8_t ggml_guid[16];
typedef ggml_guid *ggml_guid_t;
// Told the message before the process ends. Asked between nodes: true stops the graph. Told each line of the log.
typedef void (*ggml_abort_callback_t)(const char *);
typedef bool (*ggml_abort_callback)(void *);
typedef void (*ggml_log_callback)(enum ggml_log_level, const char *, void *);
// k elements (a multiple of the type's block) to floats and back.
typedef void (*ggml_to_float_t)(const void *GGML_RESTRICT, float *GGML_RESTRICT, int64_t);
typedef void (*ggml_from_float_t)(const float *GGML_RESTRICT, void *GGML_RESTRICT, int64_t);
typedef struct ggml_threadpool *ggml_threadpool_t;

// How to make a context.
struct ggml_init_params {
    size_t mem_size;   // bytes
    void *mem_buffer;  // the caller's memory of that size, or NULL: allocated
    bool no_alloc;     // tensors get no memory for their data
};

struct ggml_tensor {
    enum ggml_type type;
    struct ggml_backend_buffer *buffer;  // where data lies, NULL: in a context or not allocated
    int64_t ne[4];                       // elements per dimension, ne[0] innermost
    size_t nb[4];                        // bytes between neighbours per dimension; nb[0]: between blocks
    enum ggml_op op;                     // what it is the result of
    int32_t op_params[16];               // parameters of op
    int32_t flags;                       // enum ggml_tensor_flag
    struct ggml_tensor *src[10];         // operands of op
    struct ggml_tensor *view_src;        // the tensor whose memory this is a view of (never a view itself), or NULL
    size_t view_offs;                    // bytes from its start
    void *data;                          // address; on a device's buffer not to be followed
    char name[64];
    void *extra;  // for devices
    char padding[8];
};

struct ggml_type_traits {
    const char *type_name;
    int64_t blck_size;             // elements per block
    int64_t blck_size_interleave;  // elements that are interleaved in a block, 0: none
    size_t type_size;              // bytes per block
    bool is_quantized;
    ggml_to_float_t to_float;          // NULL where there is none
    ggml_from_float_t from_float_ref;  // round to nearest, NULL where a search is needed
};

static const size_t GGML_TENSOR_SIZE = sizeof(struct ggml_tensor);

#ifdef __cplusplus
}
#endif
