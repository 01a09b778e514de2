// What a device implements: the tables of functions behind ggml-backend.h, for devices inside this library and for those
// that are loaded from a shared library at run time.
//
// A device library exports one function, GGML_DEVICE_ENTRY, and is loaded with ggml_backend_load(path). It may use every
// public function of this library. All structs here are filled in by the device, live as long as the device says below, and
// are only read by the library. A function pointer marked "optional" may be NULL; the comment says what happens then.
//
// Rules that every device keeps:
// - A buffer type, a device and a registry live until the registry is unloaded (in practice: statics).
// - tensor->data of a tensor in a buffer that is not host memory is an address that only the device can use. The library
//   computes with it (base + offset) but never reads or writes through it.
// - Functions fail by their return value (NULL, false, a status) and leave a sentence with ggml_error_set().
// - One backend (stream) is used by one thread at a time; devices and buffer types by any number of threads.
// - Alignment is a power of two; get_base() is aligned to it.
#pragma once

#include "ggml-backend.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GGML_DEVICE_API_VERSION 2

// ---- buffer types and buffers ------------------------------------------------------------------------------------

struct ggml_buffer_type_iface {
    const char *(*get_name)(ggml_backend_buffer_type_t buft);
    // A buffer of at least size bytes (size > 0); NULL with a sentence when there is no memory.
    ggml_backend_buffer_t (*alloc_buffer)(ggml_backend_buffer_type_t buft, size_t size);
    size_t (*get_alignment)(ggml_backend_buffer_type_t buft);
    size_t (*get_max_size)(ggml_backend_buffer_type_t buft);  // optional: no limit
    // Bytes a tensor takes, padding of the device included. Optional: ggml_nbytes.
    size_t (*get_alloc_size)(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor);
    bool (*is_host)(ggml_backend_buffer_type_t buft);  // optional: false. true: the host may touch the bytes
    // Bytes of the host's heap that a buffer takes beside its own and its handle: what the device keeps of it. Optional: 0
    size_t (*get_overhead)(ggml_backend_buffer_type_t buft);
};

struct ggml_backend_buffer_type {
    const struct ggml_buffer_type_iface *iface;
    ggml_backend_dev_t device;  // NULL only for host memory that belongs to no device
    void *context;              // the device's own
};

struct ggml_buffer_iface {
    void (*free_buffer)(ggml_backend_buffer_t buffer);  // optional; frees context, never the buffer struct itself
    void *(*get_base)(ggml_backend_buffer_t buffer);
    // Called when a tensor (or a view) is placed in the buffer. Optional.
    enum ggml_status (*init_tensor)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor);
    // Blocking access from the host; offset and size are within ggml_nbytes(tensor).
    void (*memset_tensor)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, uint8_t value, size_t offset,
                          size_t size);
    void (*set_tensor)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, const void *data, size_t offset,
                       size_t size);
    void (*get_tensor)(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor, void *data, size_t offset,
                       size_t size);
    // n_copies runs of size bytes, stride apart. Optional: one call of set_tensor / get_tensor per run.
    void (*set_tensor_2d)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, const void *data, size_t offset,
                          size_t size, size_t n_copies, size_t stride_tensor, size_t stride_data);
    void (*get_tensor_2d)(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor, void *data, size_t offset,
                          size_t size, size_t n_copies, size_t stride_tensor, size_t stride_data);
    // Copy src (in any buffer) to dst (in this one), blocking. False: cannot do it directly, the library stages it.
    // Optional.
    bool (*cpy_tensor)(ggml_backend_buffer_t buffer, const struct ggml_tensor *src, struct ggml_tensor *dst);
    void (*clear)(ggml_backend_buffer_t buffer, uint8_t value);
    void (*reset)(ggml_backend_buffer_t buffer);  // forget what init_tensor made. Optional
};

struct ggml_backend_buffer {
    const struct ggml_buffer_iface *iface;
    ggml_backend_buffer_type_t buft;
    void *context;
    size_t size;
    enum ggml_backend_buffer_usage usage;
};

// A new buffer struct of that kind, for alloc_buffer functions. Owner: caller, until ggml_backend_buffer_free, which calls
// iface->free_buffer and then frees the struct. NULL when there is no memory (context is then still the caller's).
GGML_API ggml_backend_buffer_t ggml_device_buffer_new(ggml_backend_buffer_type_t buft, const struct ggml_buffer_iface *iface,
                                                      void *context, size_t size);

// Several buffers behind one handle, for whole contexts that exceed one buffer's maximum size: freed, cleared and marked
// together.
// Owner: takes over the buffers (not the array), also when it fails (NULL with a sentence; they are freed then). n_buffers
// > 0.
GGML_API ggml_backend_buffer_t ggml_device_multi_buffer_new(ggml_backend_buffer_t *buffers, size_t n_buffers);
// Bytes of the heap that such a handle takes; 0 for one buffer, which needs none.
GGML_API size_t ggml_device_multi_buffer_overhead(size_t n_buffers);

// ---- backends: streams of work on a device -----------------------------------------------------------------------

enum ggml_compute_flag {
    GGML_COMPUTE_NO_FUSE = 1,  // every node's result must exist in memory: somebody looks at them
};

// What computing takes of the host's heap beside tensors, for the neediest of several graphs: known before any of it is allocated.
struct ggml_stream_needs {
    size_t work;             // bytes of scratch
    int n_nodes, n_tensors;  // of tables: nodes, and tensors that nodes are or read, a tensor as often as it is read
};

struct ggml_stream_iface {
    const char *(*get_name)(ggml_backend_t backend);
    void (*free)(ggml_backend_t backend);  // waits for work under way; frees the struct too
    // Asynchronous access, in the order of the stream. Optional: the blocking functions of the buffer, after synchronize.
    void (*set_tensor_async)(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data, size_t offset,
                             size_t size);
    void (*get_tensor_async)(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data, size_t offset,
                             size_t size);
    // Called on the destination's stream, ordered after everything queued so far on both streams. False: cannot. Optional.
    bool (*cpy_tensor_async)(ggml_backend_t backend_src, ggml_backend_t backend_dst, const struct ggml_tensor *src,
                             struct ggml_tensor *dst);
    void (*synchronize)(ggml_backend_t backend);  // optional for streams that compute at once
    // A prepared graph. Optional: plans then remember the graph and compute it with graph_compute.
    ggml_backend_graph_plan_t (*graph_plan_create)(ggml_backend_t backend, struct ggml_cgraph *graph);
    void (*graph_plan_free)(ggml_backend_t backend, ggml_backend_graph_plan_t plan);
    enum ggml_status (*graph_plan_compute)(ggml_backend_t backend, ggml_backend_graph_plan_t plan);
    // Run the nodes in order, or queue them. flags: ggml_compute_flag. A stream that queues reports a failure of queued work
    // from its next graph_compute or from status().
    enum ggml_status (*graph_compute)(ggml_backend_t backend, struct ggml_cgraph *graph, int flags);
    // Status of the work queued since the last call, after synchronize. Optional: success.
    enum ggml_status (*status)(ggml_backend_t backend);
    // Raises *needs to what computing this graph, or one of the same form with fewer tokens, will take. Optional: nothing.
    void (*graph_needs)(ggml_backend_t backend, const struct ggml_cgraph *graph, struct ggml_stream_needs *needs);
    // Gets that memory, so that computing allocates nothing. Optional.
    bool (*reserve)(ggml_backend_t backend, const struct ggml_stream_needs *needs);
    // Bytes of the heap that the stream holds when so much is reserved: itself and its tables, not the scratch. Optional: 0
    size_t (*table_size)(ggml_backend_t backend, const struct ggml_stream_needs *needs);
    size_t (*work_size)(ggml_backend_t backend);                               // bytes of scratch held. Optional: 0
    void (*event_record)(ggml_backend_t backend, ggml_backend_event_t event);  // both optional, together
    void (*event_wait)(ggml_backend_t backend, ggml_backend_event_t event);
};

struct ggml_backend {
    const struct ggml_stream_iface *iface;
    ggml_backend_dev_t device;
    void *context;
    ggml_guid_t guid;  // one per kind of backend
};

struct ggml_backend_event {
    ggml_backend_dev_t device;
    void *context;
};

// ---- devices ------------------------------------------------------------------------------------------------------

struct ggml_device_iface {
    const char *(*get_name)(ggml_backend_dev_t dev);
    const char *(*get_description)(ggml_backend_dev_t dev);
    void (*get_memory)(ggml_backend_dev_t dev, size_t *free, size_t *total);
    enum ggml_backend_dev_type (*get_type)(ggml_backend_dev_t dev);
    void (*get_props)(ggml_backend_dev_t dev, struct ggml_backend_dev_props *props);
    ggml_backend_t (*init_backend)(ggml_backend_dev_t dev, const char *params);
    ggml_backend_buffer_type_t (*get_buffer_type)(ggml_backend_dev_t dev);
    ggml_backend_buffer_type_t (*get_host_buffer_type)(ggml_backend_dev_t dev);  // pinned host memory. Optional: none
    // A buffer over the caller's memory, which must outlive it. Optional: the device cannot. max_tensor_size: of the tensors
    // that will lie in it.
    ggml_backend_buffer_t (*buffer_from_host_ptr)(ggml_backend_dev_t dev, void *ptr, size_t size, size_t max_tensor_size);
    bool (*supports_op)(ggml_backend_dev_t dev, const struct ggml_tensor *op);
    bool (*supports_buft)(ggml_backend_dev_t dev, ggml_backend_buffer_type_t buft);
    // Worth computing here even though the weight lies in host memory and must be copied over first. Optional: no.
    bool (*offload_op)(ggml_backend_dev_t dev, const struct ggml_tensor *op);
    // Events, all four (with event_record and event_wait) or none.
    ggml_backend_event_t (*event_new)(ggml_backend_dev_t dev);
    void (*event_free)(ggml_backend_dev_t dev, ggml_backend_event_t event);
    void (*event_synchronize)(ggml_backend_dev_t dev, ggml_backend_event_t event);
    // True when this device's kernel for op may write its result over source i_src, beyond the operations for which every
    // device must allow it (see ops/op.h, OP_INPLACE). Optional: no.
    bool (*may_overwrite)(ggml_backend_dev_t dev, const struct ggml_tensor *op, int i_src);
    // How many of the graph's nodes this device computes as one, from node i on (views among them included); 1: node i by
    // itself. Asked when memory is planned; the answer must depend on the nodes alone. What of their results only these nodes
    // read gets no memory then: its data is NULL when the graph is computed. Results that have memory must be written. All
    // that the nodes read from outside stays until the last of them is done, but a result may be written over a source that
    // no other of the nodes reads, where the node by itself may be. All of them are then in one graph_compute without
    // GGML_COMPUTE_NO_FUSE. A graph whose results all have memory was planned without this question. Optional: 1.
    int (*fuse)(ggml_backend_dev_t dev, const struct ggml_cgraph *graph, int i);
};

struct ggml_backend_device {
    const struct ggml_device_iface *iface;
    ggml_backend_reg_t reg;
    void *context;
};

struct ggml_reg_iface {
    const char *(*get_name)(ggml_backend_reg_t reg);
    size_t (*get_device_count)(ggml_backend_reg_t reg);
    ggml_backend_dev_t (*get_device)(ggml_backend_reg_t reg, size_t index);
    void *(*get_proc_address)(ggml_backend_reg_t reg, const char *name);  // optional
    void (*unload)(ggml_backend_reg_t reg);                               // before its library is closed. Optional
};

struct ggml_backend_reg {
    int api_version;  // GGML_DEVICE_API_VERSION
    const struct ggml_reg_iface *iface;
    void *context;
};

// ---- loading ------------------------------------------------------------------------------------------------------

// The function a device library exports, under this very name:
//     GGML_API ggml_backend_reg_t ggml_device_entry(int api_version) { return api_version == 1 ? &my_reg : NULL; }
// It gets the library's GGML_DEVICE_API_VERSION and returns its registry, or NULL when it cannot work (wrong version, no
// hardware), leaving a sentence. ggml_backend_load_all() tries the files named libggml-device-*.so beside libggml and in the
// folders of the environment variable GGML_BACKEND_PATH.
#define GGML_DEVICE_ENTRY "ggml_device_entry"
typedef ggml_backend_reg_t (*ggml_device_entry_t)(int api_version);

#ifdef __cplusplus
}
#endif
