// Devices, buffers, events, the registry and the scheduler. What a device implements is in ggml/device.h.
//
// Everywhere: a NULL handle is accepted and gives an empty answer; failures record a sentence (ggml_last_error). Buffer
// types, devices and registries are static; buffers, backends, events and schedulers belong to the caller.
#pragma once

#include "ggml.h"
#include "ggml-alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

// What a buffer is for. WEIGHTS: the scheduler runs nodes where their weights are. COMPUTE: results of graphs.
enum ggml_backend_buffer_usage {
    GGML_BACKEND_BUFFER_USAGE_ANY = 0,
    GGML_BACKEND_BUFFER_USAGE_WEIGHTS = 1,
    GGML_BACKEND_BUFFER_USAGE_COMPUTE = 2,
};

// CPU: the processor. GPU: memory of its own. IGPU: shares the host's memory. ACCEL: works beside the processor. META: over
// others.
enum ggml_backend_dev_type {
    GGML_BACKEND_DEVICE_TYPE_CPU = 0,
    GGML_BACKEND_DEVICE_TYPE_GPU = 1,
    GGML_BACKEND_DEVICE_TYPE_IGPU = 2,
    GGML_BACKEND_DEVICE_TYPE_ACCEL = 3,
    GGML_BACKEND_DEVICE_TYPE_META = 4,
};

// How a tensor is spread over the devices of a META device: cut along a dimension; whole on each; a summand on each; not at
// all.
enum ggml_backend_meta_split_axis {
    GGML_BACKEND_SPLIT_AXIS_0 = 0,
    GGML_BACKEND_SPLIT_AXIS_1 = 1,
    GGML_BACKEND_SPLIT_AXIS_2 = 2,
    GGML_BACKEND_SPLIT_AXIS_3 = 3,
    GGML_BACKEND_SPLIT_AXIS_MIRRORED = 10,
    GGML_BACKEND_SPLIT_AXIS_PARTIAL = 11,
    GGML_BACKEND_SPLIT_AXIS_NONE = 98,
    GGML_BACKEND_SPLIT_AXIS_UNKNOWN = 99,
};

typedef struct ggml_backend_event *ggml_backend_event_t;
typedef struct ggml_backend_reg *ggml_backend_reg_t;
typedef struct ggml_backend_device *ggml_backend_dev_t;
typedef struct ggml_backend_sched *ggml_backend_sched_t;

typedef void *ggml_backend_graph_plan_t;
// async: streams that run on their own. host_buffer: pinned host memory for fast transfers. buffer_from_host_ptr: takes
// host memory as it lies. events: streams can wait for each other. mmap_support: that host memory may be a mapped file.
struct ggml_backend_dev_caps {
    bool async;
    bool host_buffer;
    bool buffer_from_host_ptr;
    bool events;
    bool mmap_support;
};

// Strings are the device's, static. Memory in bytes; device_id NULL if there is none.
struct ggml_backend_dev_props {
    const char *name;
    const char *description;
    size_t memory_free;
    size_t memory_total;
    enum ggml_backend_dev_type type;
    const char *device_id;
    struct ggml_backend_dev_caps caps;
};

// Of a list that ends with a NULL name.
struct ggml_backend_feature {
    const char *name;
    const char *value;
};

#define GGML_BACKEND_META_MAX_DEVICES 16

// The parts of one tensor. ne: elements along the axis, per segment and device; nr [n_segments]: how often a segment repeats.
struct ggml_backend_meta_split_state {
    enum ggml_backend_meta_split_axis axis;
    int64_t ne[16 * GGML_BACKEND_META_MAX_DEVICES];
    uint32_t nr[16];
    uint32_t n_segments;
};

typedef struct ggml_backend_meta_split_state (*ggml_backend_meta_get_split_state_t)(const struct ggml_tensor *, void *);

// Functions that registries may offer under their names without the _t (ggml_backend_reg_get_proc_address).
typedef void *(*ggml_backend_comm_init_t)(ggml_backend_t *, size_t);
typedef void (*ggml_backend_comm_free_t)(void *);
typedef bool (*ggml_backend_comm_allreduce_tensor_t)(void *, struct ggml_tensor **);
typedef ggml_backend_buffer_type_t (*ggml_backend_split_buffer_type_t)(int, const float *);
typedef void (*ggml_backend_set_n_threads_t)(ggml_backend_t, int);
typedef ggml_backend_buffer_type_t *(*ggml_backend_dev_get_extra_bufts_t)(ggml_backend_dev_t);
typedef void (*ggml_backend_set_abort_callback_t)(ggml_backend_t, ggml_abort_callback, void *);
typedef struct ggml_backend_feature *(*ggml_backend_get_features_t)(ggml_backend_reg_t);
// (node, ask, user data). ask true, before it runs: do you want to see this node? ask false, after it has run, its data
// there: go on? false stops the computation (which still counts as a success).
typedef bool (*ggml_backend_sched_eval_callback)(struct ggml_tensor *, bool, void *);
// (index of the node, node on backend 1, node on backend 2, user data): false stops the comparison.
typedef bool (*ggml_backend_eval_callback)(int, struct ggml_tensor *, struct ggml_tensor *, void *);

// A graph copied to another backend; graph is NULL when that failed. Owner: caller (ggml_backend_graph_copy_free).
struct ggml_backend_graph_copy {
    ggml_backend_buffer_t buffer;
    struct ggml_context *ctx_allocated;
    struct ggml_context *ctx_unallocated;
    struct ggml_cgraph *graph;
};

// ---- buffer types --------------------------------------------------------------------------------------------------

// Name of a kind of memory ("CPU"). Static.
GGML_API const char *ggml_backend_buft_name(ggml_backend_buffer_type_t buft);
// A buffer of at least size bytes, content undefined; size 0 gives a buffer of no bytes. Owner: caller
// (ggml_backend_buffer_free).
// Errors: NULL, sentence recorded with what was free.
GGML_API ggml_backend_buffer_t ggml_backend_buft_alloc_buffer(ggml_backend_buffer_type_t buft, size_t size);
// A buffer that holds all of tensors [n_tensors] one after the other; the tensors are not placed (use a tallocr). Views
// need none.
GGML_API ggml_backend_buffer_t ggml_backend_buft_alloc_buffer_n(ggml_backend_buffer_type_t buft,
                                                                struct ggml_tensor **tensors, int n_tensors);
// Bytes, a power of two: tensors are placed at multiples of it.
GGML_API size_t ggml_backend_buft_get_alignment(ggml_backend_buffer_type_t buft);
// Bytes of the largest buffer; SIZE_MAX: no limit.
GGML_API size_t ggml_backend_buft_get_max_size(ggml_backend_buffer_type_t buft);
// Bytes a tensor takes, the device's padding included (not the alignment of the next one): at least ggml_nbytes.
GGML_API size_t ggml_backend_buft_get_alloc_size(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor);
// Bytes for all of them, each padded to the alignment. SIZE_MAX if that overflows.
GGML_API size_t ggml_backend_buft_get_alloc_size_n(ggml_backend_buffer_type_t buft, struct ggml_tensor **tensors,
                                                   int n_tensors);
// Whether the host may read and write the bytes behind tensor->data.
GGML_API bool ggml_backend_buft_is_host(ggml_backend_buffer_type_t buft);
// NULL for host memory that belongs to no device.
GGML_API ggml_backend_dev_t ggml_backend_buft_get_device(ggml_backend_buffer_type_t buft);

// ---- buffers -------------------------------------------------------------------------------------------------------

// Name of its type.
GGML_API const char *ggml_backend_buffer_name(ggml_backend_buffer_t buffer);
// NULL is fine. Tensors in it keep addresses that mean nothing any more.
GGML_API void ggml_backend_buffer_free(ggml_backend_buffer_t buffer);
// Address of byte 0: for a buffer that is not host memory, a number to add offsets to, not to follow.
GGML_API void *ggml_backend_buffer_get_base(ggml_backend_buffer_t buffer);
// Bytes asked for; of a handle over several buffers, their sum.
GGML_API size_t ggml_backend_buffer_get_size(ggml_backend_buffer_t buffer);
// Tells the device that a tensor was placed; ggml_backend_tensor_alloc and _view_init do it.
GGML_API enum ggml_status ggml_backend_buffer_init_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor);
// These four: as for its type.
GGML_API size_t ggml_backend_buffer_get_alignment(ggml_backend_buffer_t buffer);
GGML_API size_t ggml_backend_buffer_get_max_size(ggml_backend_buffer_t buffer);
GGML_API size_t ggml_backend_buffer_get_alloc_size(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor);
// Sets all bytes.
GGML_API void ggml_backend_buffer_clear(ggml_backend_buffer_t buffer, uint8_t value);
GGML_API bool ggml_backend_buffer_is_host(ggml_backend_buffer_t buffer);
// For the scheduler; a handle over several buffers passes it on.
GGML_API void ggml_backend_buffer_set_usage(ggml_backend_buffer_t buffer, enum ggml_backend_buffer_usage usage);
GGML_API enum ggml_backend_buffer_usage ggml_backend_buffer_get_usage(ggml_backend_buffer_t buffer);
GGML_API ggml_backend_buffer_type_t ggml_backend_buffer_get_type(ggml_backend_buffer_t buffer);
// Forgets whatever the device noted at init_tensor.
GGML_API void ggml_backend_buffer_reset(ggml_backend_buffer_t buffer);

// ---- copies --------------------------------------------------------------------------------------------------------

// dst gets the bytes of src: same type, shape and strides, on any two devices. Blocking; the caller has seen to it that src
// is computed. Errors: sentence recorded, dst unchanged.
GGML_API void ggml_backend_tensor_copy(const struct ggml_tensor *src, struct ggml_tensor *dst);

// ---- backends: streams of work on a device -------------------------------------------------------------------------

// One per kind of backend. Owner: library.
GGML_API ggml_guid_t ggml_backend_guid(ggml_backend_t backend);
// Static. "NULL" for NULL.
GGML_API const char *ggml_backend_name(ggml_backend_t backend);
// Waits for its work first. NULL is fine. Buffers made through it stay.
GGML_API void ggml_backend_free(ggml_backend_t backend);
// These four: of its device.
GGML_API ggml_backend_buffer_type_t ggml_backend_get_default_buffer_type(ggml_backend_t backend);
GGML_API ggml_backend_buffer_t ggml_backend_alloc_buffer(ggml_backend_t backend, size_t size);
GGML_API size_t ggml_backend_get_alignment(ggml_backend_t backend);
GGML_API size_t ggml_backend_get_max_size(ggml_backend_t backend);

// ---- bytes in and out ----------------------------------------------------------------------------------------------

// Bytes into or out of a tensor, in the order of the backend's stream. data must stay as it is until
// ggml_backend_synchronize.
// offset, size: bytes within ggml_nbytes(tensor). Backends that are not asynchronous do it at once.
// The 2d forms move n_copies runs of size bytes, the k-th at offset + k * stride_tensor and data + k * stride_data.
// Errors: sentence recorded, nothing moved.
GGML_API void ggml_backend_tensor_set_async(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data,
                                            size_t offset, size_t size);
GGML_API void ggml_backend_tensor_get_async(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data,
                                            size_t offset, size_t size);
GGML_API void ggml_backend_tensor_set_2d_async(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data,
                                               size_t offset, size_t size, size_t n_copies, size_t stride_tensor,
                                               size_t stride_data);
GGML_API void ggml_backend_tensor_get_2d_async(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data,
                                               size_t offset, size_t size, size_t n_copies, size_t stride_tensor,
                                               size_t stride_data);
// The same, blocking; done when the call returns. The caller sees to it that no stream is using these bytes (synchronize).
// A tensor in a context's own memory is accessed there.
GGML_API void ggml_backend_tensor_set(struct ggml_tensor *tensor, const void *data, size_t offset, size_t size);
GGML_API void ggml_backend_tensor_get(const struct ggml_tensor *tensor, void *data, size_t offset, size_t size);
GGML_API void ggml_backend_tensor_set_2d(struct ggml_tensor *tensor, const void *data, size_t offset, size_t size,
                                         size_t n_copies, size_t stride_tensor, size_t stride_data);
GGML_API void ggml_backend_tensor_get_2d(const struct ggml_tensor *tensor, void *data, size_t offset, size_t size,
                                         size_t n_copies, size_t stride_tensor, size_t stride_data);
// Sets size bytes from offset. Blocking.
GGML_API void ggml_backend_tensor_memset(struct ggml_tensor *tensor, uint8_t value, size_t offset, size_t size);

// ---- computing -----------------------------------------------------------------------------------------------------

// Returns when everything given to the backend is done.
GGML_API void ggml_backend_synchronize(ggml_backend_t backend);
// A graph prepared for being computed many times. The graph and its memory must stay. Owner: caller. NULL: error.
GGML_API ggml_backend_graph_plan_t ggml_backend_graph_plan_create(ggml_backend_t backend, struct ggml_cgraph *cgraph);
GGML_API void ggml_backend_graph_plan_free(ggml_backend_t backend, ggml_backend_graph_plan_t plan);
GGML_API enum ggml_status ggml_backend_graph_plan_compute(ggml_backend_t backend, ggml_backend_graph_plan_t plan);
// Runs the nodes in order and waits. Tensors must have memory that the backend can use.
// SUCCESS; ABORTED: its abort callback said so; FAILED or ALLOC_FAILED: see ggml_last_error.
GGML_API enum ggml_status ggml_backend_graph_compute(ggml_backend_t backend, struct ggml_cgraph *cgraph);
// The same without waiting, where the backend is asynchronous; a failure then shows when it is waited for. The graph may be
// changed or freed as soon as the call returns, its tensors' memory not before ggml_backend_synchronize.
GGML_API enum ggml_status ggml_backend_graph_compute_async(ggml_backend_t backend, struct ggml_cgraph *cgraph);
// Whether it can compute this node; whether it can use memory of that type; whether a node is worth computing on it
// although its weights lie on the host.
GGML_API bool ggml_backend_supports_op(ggml_backend_t backend, const struct ggml_tensor *op);
GGML_API bool ggml_backend_supports_buft(ggml_backend_t backend, ggml_backend_buffer_type_t buft);
GGML_API bool ggml_backend_offload_op(ggml_backend_t backend, const struct ggml_tensor *op);
// The same as ggml_backend_tensor_copy, after all that both streams were given so far and before all that follows on
// either. Falls back to waiting for both.
GGML_API void ggml_backend_tensor_copy_async(ggml_backend_t backend_src, ggml_backend_t backend_dst,
                                             const struct ggml_tensor *src, struct ggml_tensor *dst);
GGML_API ggml_backend_dev_t ggml_backend_get_device(ggml_backend_t backend);

// ---- events --------------------------------------------------------------------------------------------------------

// A mark in a stream. NULL: the device has no events (no failure; all calls accept NULL and do nothing). Owner: caller.
GGML_API ggml_backend_event_t ggml_backend_event_new(ggml_backend_dev_t device);
GGML_API void ggml_backend_event_free(ggml_backend_event_t event);
// The event now stands for everything the backend was given so far.
GGML_API void ggml_backend_event_record(ggml_backend_event_t event, ggml_backend_t backend);
// The caller waits for that; not at all if the event was never recorded.
GGML_API void ggml_backend_event_synchronize(ggml_backend_event_t event);
// What the backend is given from now on waits for it; the caller does not.
GGML_API void ggml_backend_event_wait(ggml_backend_t backend, ggml_backend_event_t event);

// ---- devices -------------------------------------------------------------------------------------------------------

// Unique among devices ("CPU", "SIM0"). Static.
GGML_API const char *ggml_backend_dev_name(ggml_backend_dev_t device);
GGML_API const char *ggml_backend_dev_description(ggml_backend_dev_t device);
// Bytes; both 0 if the device cannot tell. free of the CPU: what this process may still use, control group included.
GGML_API void ggml_backend_dev_memory(ggml_backend_dev_t device, size_t *free, size_t *total);
// CPU: the processor. GPU: memory of its own. IGPU: shares the host's memory. ACCEL: works beside the processor. META: over
// others.
GGML_API enum ggml_backend_dev_type ggml_backend_dev_type(ggml_backend_dev_t device);
GGML_API void ggml_backend_dev_get_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *props);
GGML_API ggml_backend_reg_t ggml_backend_dev_backend_reg(ggml_backend_dev_t device);
// A new stream of the device. params: the device's own, NULL is fine. Owner: caller (ggml_backend_free).
GGML_API ggml_backend_t ggml_backend_dev_init(ggml_backend_dev_t device, const char *params);
GGML_API ggml_backend_buffer_type_t ggml_backend_dev_buffer_type(ggml_backend_dev_t device);
// Host memory that transfers to this device are fast from; NULL if there is no special one.
GGML_API ggml_backend_buffer_type_t ggml_backend_dev_host_buffer_type(ggml_backend_dev_t device);
// The caller's memory [size] as a buffer, in place; it must outlive the buffer and start at a multiple of 32.
// max_tensor_size: bytes of the largest tensor in it. NULL: the device cannot (see caps), sentence recorded.
GGML_API ggml_backend_buffer_t ggml_backend_dev_buffer_from_host_ptr(ggml_backend_dev_t device, void *ptr, size_t size,
                                                                     size_t max_tensor_size);
GGML_API bool ggml_backend_dev_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op);
GGML_API bool ggml_backend_dev_supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t buft);
GGML_API bool ggml_backend_dev_offload_op(ggml_backend_dev_t device, const struct ggml_tensor *op);
// "0" to "3", "MIRRORED", "PARTIAL", "NONE"; "UNKNOWN" for all else. Static.
GGML_API const char *ggml_backend_meta_split_axis_name(enum ggml_backend_meta_split_axis split_axis);
// One device over devs [n_devs], among which it would divide tensors. No device of this version computes parts of a tensor, as
// with LLAMA_SPLIT_MODE_TENSOR: NULL, sentence recorded.
GGML_API ggml_backend_dev_t ggml_backend_meta_device(ggml_backend_dev_t *devs, size_t n_devs,
                                                     ggml_backend_meta_get_split_state_t get_split_state,
                                                     void *get_split_state_ud);

// ---- registries ----------------------------------------------------------------------------------------------------

// A registry is a kind of devices: the processor, one GPU interface. Static.
GGML_API const char *ggml_backend_reg_name(ggml_backend_reg_t reg);
GGML_API size_t ggml_backend_reg_dev_count(ggml_backend_reg_t reg);
GGML_API ggml_backend_dev_t ggml_backend_reg_dev_get(ggml_backend_reg_t reg, size_t index);
// A function of the registry by name (such as "ggml_backend_set_n_threads"); NULL if it has none of that name.
GGML_API void *ggml_backend_reg_get_proc_address(ggml_backend_reg_t reg, const char *name);
// Adds a registry and its devices, or one device, to the lists; does nothing if it is there. Thread: these lists may be
// used by any number of threads.
GGML_API void ggml_backend_register(ggml_backend_reg_t reg);
GGML_API void ggml_backend_device_register(ggml_backend_dev_t device);
// Built-in ones are there from the first call on. Preferred devices first, the processor after the other built-in ones.
GGML_API size_t ggml_backend_reg_count(void);
GGML_API ggml_backend_reg_t ggml_backend_reg_get(size_t index);
// Upper and lower case are the same. NULL: there is none, no failure; so for the next three.
GGML_API ggml_backend_reg_t ggml_backend_reg_by_name(const char *name);
GGML_API size_t ggml_backend_dev_count(void);
GGML_API ggml_backend_dev_t ggml_backend_dev_get(size_t index);
GGML_API ggml_backend_dev_t ggml_backend_dev_by_name(const char *name);
GGML_API ggml_backend_dev_t ggml_backend_dev_by_type(enum ggml_backend_dev_type type);
// The device of that name or type, and a stream of it. NULL: no such device, sentence recorded.
GGML_API ggml_backend_t ggml_backend_init_by_name(const char *name, const char *params);
GGML_API ggml_backend_t ggml_backend_init_by_type(enum ggml_backend_dev_type type, const char *params);
// GPU, else IGPU, else the processor.
GGML_API ggml_backend_t ggml_backend_init_best(void);
// A device from a shared library (ggml/device.h says what it exports). Loading it twice gives the same registry.
// Errors: NULL, sentence recorded.
GGML_API ggml_backend_reg_t ggml_backend_load(const char *path);
// Takes the registry from the lists and closes its library. Nothing of its devices may be in use.
GGML_API void ggml_backend_unload(ggml_backend_reg_t reg);
// Every libggml-device-*.so beside this library and in the folders of GGML_BACKEND_PATH (separated by colons).
GGML_API void ggml_backend_load_all(void);
GGML_API void ggml_backend_load_all_from_path(const char *dir_path);

// ---- the scheduler -------------------------------------------------------------------------------------------------

// A scheduler: runs graphs over several backends, each node where its weights are or where its neighbours run, with copies
// between.
// How it decides: docs/scheduler.md. backends [n_backends, 1 .. 16]: preferred first, the processor last; they must outlive
// it.
// bufts [n_backends]: where each computes, NULL or a NULL entry: its default. graph_size: nodes of the largest graph (grows
// if need be). parallel: several sets of inputs, so that graphs can overlap. op_offload: large operations may run on a
// device although their weights are on the host. Owner: caller. Thread: one at a time. GGML_SCHED_DEBUG=1 (2) logs splits
// (and nodes).
GGML_API ggml_backend_sched_t ggml_backend_sched_new(ggml_backend_t *backends, ggml_backend_buffer_type_t *bufts,
                                                     int n_backends, size_t graph_size, bool parallel, bool op_offload);
GGML_API void ggml_backend_sched_free(ggml_backend_sched_t sched);
// Bytes per backend [n_backends] that reserve would have allocated, without allocating. Resets the scheduler.
GGML_API void ggml_backend_sched_reserve_size(ggml_backend_sched_t sched, struct ggml_cgraph *measure_graph, size_t *sizes);
// Gets all memory that a graph needs: compute buffers, scratch of the backends, the scheduler's own lists. Give it the
// largest graphs to come, and computing allocates nothing. Resets the scheduler; the graph is not changed. Errors: false,
// sentence recorded.
GGML_API bool ggml_backend_sched_reserve(ggml_backend_sched_t sched, struct ggml_cgraph *measure_graph);
GGML_API int ggml_backend_sched_get_n_backends(ggml_backend_sched_t sched);
GGML_API ggml_backend_t ggml_backend_sched_get_backend(ggml_backend_sched_t sched, int i);
// Of the last graph: stretches of nodes on one backend. n_copies: sets of inputs (1, or 4 with parallel).
GGML_API int ggml_backend_sched_get_n_splits(ggml_backend_sched_t sched);
GGML_API int ggml_backend_sched_get_n_copies(ggml_backend_sched_t sched);
// Where it computes on that backend, and how many bytes it has there.
GGML_API ggml_backend_buffer_type_t ggml_backend_sched_get_buffer_type(ggml_backend_sched_t sched, ggml_backend_t backend);
GGML_API size_t ggml_backend_sched_get_buffer_size(ggml_backend_sched_t sched, ggml_backend_t backend);
// Decides for a tensor of the next graph, before split or alloc; holds until reset.
GGML_API void ggml_backend_sched_set_tensor_backend(ggml_backend_sched_t sched, struct ggml_tensor *node,
                                                    ggml_backend_t backend);
// What was decided for a tensor of the last graph; NULL if it was not part of it.
GGML_API ggml_backend_t ggml_backend_sched_get_tensor_backend(ggml_backend_sched_t sched, struct ggml_tensor *node);
// Decides without allocating, to be asked about afterwards. The graph is not changed.
GGML_API void ggml_backend_sched_split_graph(ggml_backend_sched_t sched, struct ggml_cgraph *graph);
// Decides, and gives every tensor memory; afterwards inputs can be written. Plans or allocates only if the graph does not
// fit what was reserved. Computing then runs this graph until reset. Errors: false, sentence recorded.
GGML_API bool ggml_backend_sched_alloc_graph(ggml_backend_sched_t sched, struct ggml_cgraph *graph);
// Runs the graph that was allocated, or allocates it first. A graph that was computed can be computed again with other
// inputs.
// GGML_STATUS_ALLOC_FAILED: no memory, or no backend for a node.
GGML_API enum ggml_status ggml_backend_sched_graph_compute(ggml_backend_sched_t sched, struct ggml_cgraph *graph);
GGML_API enum ggml_status ggml_backend_sched_graph_compute_async(ggml_backend_sched_t sched, struct ggml_cgraph *graph);
// Waits for all backends.
GGML_API void ggml_backend_sched_synchronize(ggml_backend_sched_t sched);
// Forgets the graph and all decisions; keeps the memory. Call it before another graph is allocated.
GGML_API void ggml_backend_sched_reset(ggml_backend_sched_t sched);
// NULL: none. While one is set, nodes are computed one stretch at a time and nothing is fused. Set it before the graph is
// allocated: one that comes later is not asked about nodes that were planned to be computed together with others.
GGML_API void ggml_backend_sched_set_eval_callback(ggml_backend_sched_t sched, ggml_backend_sched_eval_callback callback,
                                                   void *user_data);
// A graph copied to another backend; graph is NULL when that failed. Owner: caller (ggml_backend_graph_copy_free).
GGML_API struct ggml_backend_graph_copy ggml_backend_graph_copy(ggml_backend_t backend, struct ggml_cgraph *graph);
GGML_API void ggml_backend_graph_copy_free(struct ggml_backend_graph_copy copy);
// Computes an allocated graph on both backends from the same data and shows each node's two results to callback; with
// test_nodes [num_test_nodes], computes the whole graph first and shows those alone. False: it could not be computed.
GGML_API bool ggml_backend_compare_graph_backend(ggml_backend_t backend1, ggml_backend_t backend2, struct ggml_cgraph *graph,
                                                 ggml_backend_eval_callback callback, void *user_data,
                                                 const struct ggml_tensor *const *test_nodes, size_t num_test_nodes);

// ---- placing tensors -----------------------------------------------------------------------------------------------

// Places a tensor without memory at addr within the buffer. FAILED: it has some, is a view, or does not fit.
GGML_API enum ggml_status ggml_backend_tensor_alloc(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, void *addr);
// Places a view of a placed tensor. FAILED: it is none, or its source has no memory.
GGML_API enum ggml_status ggml_backend_view_init(struct ggml_tensor *tensor);
// The caller's host memory [size] as a buffer of the processor; see ggml_backend_dev_buffer_from_host_ptr.
GGML_API ggml_backend_buffer_t ggml_backend_cpu_buffer_from_ptr(void *ptr, size_t size);
// Host memory; tensors at multiples of 32 bytes, buffers at multiples of 64. A new buffer is all zero.
GGML_API ggml_backend_buffer_type_t ggml_backend_cpu_buffer_type(void);

#ifdef __cplusplus
}
#endif
