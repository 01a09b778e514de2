// A second device made of this machine's own parts, but real to everything above it: its memory cannot be touched by the
// host, is limited and aligned its own way; it works asynchronously on a thread of its own; it lacks some operations.
// Results are bit-identical to the processor's, because its kernels are the processor's. It exists so that every path that
// a GPU needs is proved on any machine.
//
// Off unless asked for by the environment:
//   LAMINA_SIM=n[,hostptr]    n devices named SIM0, SIM1, ...; with hostptr they take buffers over host memory
//   LAMINA_SIM_MEM=MiB        memory of each device (default 4096)
//   LAMINA_SIM_MAX=MiB        largest buffer (default: all memory)
//   LAMINA_SIM_WITHOUT=OP,OP  operations to lack beyond those it always lacks
#pragma once

#include "device/device.h"
#include "graph/graph.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SIM_MAX_DEVICES = 8, SIM_ALIGN = 256, SIM_MAX_STREAMS = 64, SIM_QUEUE = 256, SIM_JOBS = 4 };

struct sim_device {
    struct ggml_backend_device base;
    struct ggml_backend_buffer_type buft, mapped_buft, host_buft;
    char name[16], mapped_name[24], host_name[24];
    size_t memory, max_buffer;
    _Atomic size_t used;
    bool takes_host_ptr;
};

// memory.c: two mappings of the same pages. Tensors hold addresses in the one that nobody may touch.
extern const struct ggml_buffer_type_iface sim_buft_iface, sim_mapped_iface;
ggml_backend_buffer_t sim_buffer_from_ptr(struct sim_device *d, void *ptr, size_t size);
// Where the device's kernels find a tensor's bytes.
void *sim_address(const struct ggml_tensor *t);
bool sim_owns(ggml_backend_buffer_t buffer);

// stream.c
ggml_backend_t sim_stream_new(struct sim_device *d);
bool sim_is_stream(ggml_backend_t backend);
void sim_stream_set_n_threads(ggml_backend_t backend, int n_threads);
ggml_backend_event_t sim_event_new(ggml_backend_dev_t dev);
void sim_event_free(ggml_backend_dev_t dev, ggml_backend_event_t event);
void sim_event_synchronize(ggml_backend_dev_t dev, ggml_backend_event_t event);

// job.c: a graph as the device sees it, a snapshot with every address translated. Memory is kept from job to job.
struct sim_job {
    struct ggml_cgraph graph;
    struct ggml_tensor *tensors;  // [room]
    struct ggml_tensor **nodes;
    const struct ggml_tensor **keys;  // open addressing: tensor of the caller's graph
    int32_t *values;                  // its index in tensors
    size_t map_size;
    int n_tensors, room, node_room;
};
bool sim_job_has_room(const struct sim_job *j, const struct ggml_cgraph *graph);
// Tensors of a graph there can be at most: nodes and their sources.
int sim_job_count(const struct ggml_cgraph *graph);
MUST_USE enum err sim_job_reserve(struct sim_job *j, int n_nodes, int n_tensors);
// Bytes that a job holds when so much is reserved.
size_t sim_job_bytes(int n_nodes, int n_tensors);
MUST_USE enum err sim_job_take(struct sim_job *j, const struct ggml_cgraph *graph);
void sim_job_free(struct sim_job *j);
