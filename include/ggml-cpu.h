// The CPU device: graph plans, thread pools, processor features, scalar access.
#pragma once

#include "ggml.h"
#include "ggml-backend.h"

#ifdef __cplusplus
extern "C" {
#endif

// What to do about several memory nodes. Weights are mapped, so pages lie where the thread runs that touches them first.
enum ggml_numa_strategy {
    GGML_NUMA_STRATEGY_DISABLED = 0,
    GGML_NUMA_STRATEGY_DISTRIBUTE = 1,
    GGML_NUMA_STRATEGY_ISOLATE = 2,
    GGML_NUMA_STRATEGY_NUMACTL = 3,
    GGML_NUMA_STRATEGY_MIRROR = 4,
    GGML_NUMA_STRATEGY_COUNT = 5,
};

// s[0] = sum over n of x_i * y_i. x: n elements of the type, y: n of its vec_dot_type; bs, bx, by: unused here; nrc: 1.
typedef void (*ggml_vec_dot_t)(int, float *GGML_RESTRICT, size_t, const void *GGML_RESTRICT, size_t,
                               const void *GGML_RESTRICT, size_t, int);

// How a graph is to be computed.
struct ggml_cplan {
    size_t work_size;                    // bytes of scratch memory needed
    uint8_t *work_data;                  // the caller's, of that size; any alignment; may be NULL if the size is 0
    int n_threads;                       // 1 .. GGML_MAX_N_THREADS
    struct ggml_threadpool *threadpool;  // NULL: a team that the library keeps
    ggml_abort_callback abort_callback;  // called after each node on the computing thread; true stops the graph
    void *abort_callback_data;
    bool use_ref;  // compute with the scalar kernels, the reference
};

struct ggml_type_traits_cpu {
    ggml_from_float_t from_float;  // NULL: this type is not written by operations
    ggml_vec_dot_t vec_dot;        // NULL: no matrix products with this type
    enum ggml_type vec_dot_type;   // what the other operand is converted to
    int64_t nrows;                 // rows that one call of vec_dot multiplies: 1
};

// Chooses a strategy; without effect where there is one node only. Thread: call before others use the library.
GGML_API void ggml_numa_init(enum ggml_numa_strategy numa);
// Whether there are several memory nodes and a strategy was chosen.
GGML_API bool ggml_is_numa(void);

// ---- single elements -----------------------------------------------------------------------------------------------------
// For programs and tests; slow. Host memory and types without blocks only. Errors: reads give 0, writes do nothing.

// A tensor of one element with that value.
GGML_API struct ggml_tensor *ggml_new_i32(struct ggml_context *ctx, int32_t value);
GGML_API struct ggml_tensor *ggml_new_f32(struct ggml_context *ctx, float value);
// All elements to one value.
GGML_API struct ggml_tensor *ggml_set_i32(struct ggml_tensor *tensor, int32_t value);
GGML_API struct ggml_tensor *ggml_set_f32(struct ggml_tensor *tensor, float value);
// Element number i, counted along dimension 0 first; element (i0, i1, i2, i3).
GGML_API int32_t ggml_get_i32_1d(const struct ggml_tensor *tensor, int i);
GGML_API void ggml_set_i32_1d(const struct ggml_tensor *tensor, int i, int32_t value);
GGML_API int32_t ggml_get_i32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2, int i3);
GGML_API void ggml_set_i32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2, int i3, int32_t value);
GGML_API float ggml_get_f32_1d(const struct ggml_tensor *tensor, int i);
GGML_API void ggml_set_f32_1d(const struct ggml_tensor *tensor, int i, float value);
GGML_API float ggml_get_f32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2, int i3);
GGML_API void ggml_set_f32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2, int i3, float value);

// ---- thread pools --------------------------------------------------------------------------------------------------------

// Threads that sleep when idle. NULL: n_threads out of range, or a thread cannot be made. Owner: the caller.
// Thread: a pool works on one graph at a time.
GGML_API struct ggml_threadpool *ggml_threadpool_new(struct ggml_threadpool_params *params);
// Not while a graph runs on it. NULL is fine.
GGML_API void ggml_threadpool_free(struct ggml_threadpool *threadpool);
GGML_API int ggml_threadpool_get_n_threads(struct ggml_threadpool *threadpool);
// Idle threads sleep without spinning until the pool is resumed or computes a graph.
GGML_API void ggml_threadpool_pause(struct ggml_threadpool *threadpool);
GGML_API void ggml_threadpool_resume(struct ggml_threadpool *threadpool);

// ---- computing -----------------------------------------------------------------------------------------------------------

// Settles threads (n_threads <= 0: as many as suit the machine; never more than nodes can use, or than the pool has) and
// scratch memory. The plan can be used for the graph, and for others of the same shapes, any number of times.
GGML_API struct ggml_cplan ggml_graph_plan(const struct ggml_cgraph *cgraph, int n_threads,
                                           struct ggml_threadpool *threadpool);
// Computes the nodes in order. Tensors must have memory. The result does not depend on the number of threads.
// GGML_STATUS_ABORTED: the callback asked for it. GGML_STATUS_FAILED: the graph has failed when it was built, something has
// no memory, or a row index lies outside its table; ggml_last_error() says which.
// Thread: several graphs may be computed at once, each with a pool of its own or none.
GGML_API enum ggml_status ggml_graph_compute(struct ggml_cgraph *cgraph, struct ggml_cplan *cplan);
// The same with scratch memory from ctx, which it stays in; where ctx is full, from the heap, freed at the end.
GGML_API enum ggml_status ggml_graph_compute_with_ctx(struct ggml_context *ctx, struct ggml_cgraph *cgraph, int n_threads);

// ---- processor -----------------------------------------------------------------------------------------------------------

// 1 if the processor and the operating system have it, else 0; also 0 for what no kernel of this build uses.
GGML_API int ggml_cpu_has_sse3(void);
GGML_API int ggml_cpu_has_ssse3(void);
GGML_API int ggml_cpu_has_avx(void);
GGML_API int ggml_cpu_has_avx_vnni(void);
GGML_API int ggml_cpu_has_avx2(void);
GGML_API int ggml_cpu_has_bmi2(void);
GGML_API int ggml_cpu_has_f16c(void);
GGML_API int ggml_cpu_has_fma(void);
GGML_API int ggml_cpu_has_avx512(void);
GGML_API int ggml_cpu_has_avx512_vbmi(void);
GGML_API int ggml_cpu_has_avx512_vnni(void);
GGML_API int ggml_cpu_has_avx512_bf16(void);
GGML_API int ggml_cpu_has_amx_int8(void);
GGML_API int ggml_cpu_has_neon(void);
GGML_API int ggml_cpu_has_arm_fma(void);
GGML_API int ggml_cpu_has_fp16_va(void);
GGML_API int ggml_cpu_has_dotprod(void);
GGML_API int ggml_cpu_has_matmul_int8(void);
GGML_API int ggml_cpu_has_sve(void);
GGML_API int ggml_cpu_get_sve_cnt(void);
GGML_API int ggml_cpu_has_sme(void);
GGML_API int ggml_cpu_has_sme2(void);
GGML_API int ggml_cpu_has_riscv_v(void);
GGML_API int ggml_cpu_get_rvv_vlen(void);
GGML_API int ggml_cpu_has_vsx(void);
GGML_API int ggml_cpu_has_vxe(void);
GGML_API int ggml_cpu_has_wasm_simd(void);
GGML_API int ggml_cpu_has_llamafile(void);

// ---- the CPU device ------------------------------------------------------------------------------------------------------

// NULL for types that the device cannot compute with. Owner: library, static.
GGML_API const struct ggml_type_traits_cpu *ggml_get_type_traits_cpu(enum ggml_type type);
// Makes everything ready now that is otherwise made ready at first use.
GGML_API void ggml_cpu_init(void);
// A stream of the CPU device. Owner: the caller (ggml_backend_free).
GGML_API ggml_backend_t ggml_backend_cpu_init(void);
GGML_API bool ggml_backend_is_cpu(ggml_backend_t backend);
// For the graphs to come: threads (used up to the pool's size), pool (not owned; NULL: the library's team), abort callback,
// and whether to compute with the scalar kernels.
GGML_API void ggml_backend_cpu_set_n_threads(ggml_backend_t backend_cpu, int n_threads);
GGML_API void ggml_backend_cpu_set_threadpool(ggml_backend_t backend_cpu, ggml_threadpool_t threadpool);
GGML_API void ggml_backend_cpu_set_abort_callback(ggml_backend_t backend_cpu, ggml_abort_callback abort_callback,
                                                  void *abort_callback_data);
GGML_API void ggml_backend_cpu_set_use_ref(ggml_backend_t backend_cpu, bool use_ref);
GGML_API ggml_backend_reg_t ggml_backend_cpu_reg(void);

// Rows of n numbers from one type to another. To i32: towards zero, saturating, NaN gives 0. Source and result may be the
// same memory only where the types are.
GGML_API void ggml_cpu_fp32_to_fp32(const float *, float *, int64_t);
GGML_API void ggml_cpu_fp32_to_i32(const float *, int32_t *, int64_t);
GGML_API void ggml_cpu_fp32_to_fp16(const float *, ggml_fp16_t *, int64_t);
GGML_API void ggml_cpu_fp16_to_fp32(const ggml_fp16_t *, float *, int64_t);
GGML_API void ggml_cpu_fp32_to_bf16(const float *, ggml_bf16_t *, int64_t);
GGML_API void ggml_cpu_bf16_to_fp32(const ggml_bf16_t *, float *, int64_t);

#ifdef __cplusplus
}
#endif
