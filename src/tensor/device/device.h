// Devices, buffers, streams, the registry and the scheduler: the half of ggml-backend.h that is about where things lie and
// run.
// What a device implements is public (ggml/device.h), so that devices can come from shared libraries; this header holds what
// the rest of the library needs beyond the public calls.
#pragma once

#include "base/err.h"
#include "ggml-backend.h"
#include "ggml/device.h"

// Gives up with a sentence in functions that return something other than enum err.
#define DEVICE_FAIL(value, code, ...) return (void) err_set(code, __VA_ARGS__), (value)

// A buffer type over plain host memory, for the processor and as pinned memory of devices. Its context is the name.
extern const struct ggml_buffer_type_iface device_host_buft_iface;
// Host allocations start on a cache line; tensors inside are placed at multiples of DEVICE_HOST_ALIGN, which is also the
// alignment inside GGUF files, so no kernel may expect more.
#define DEVICE_HOST_BASE_ALIGN 64
#define DEVICE_HOST_ALIGN 32

// Host memory that somebody else owns, as a buffer of the given type. NULL with a sentence if ptr is not aligned.
ggml_backend_buffer_t device_host_buffer_from_ptr(ggml_backend_buffer_type_t buft, void *ptr, size_t size);

// Like ggml_backend_graph_compute_async, with flags (ggml_compute_flag).
enum ggml_status device_graph_compute(ggml_backend_t backend, struct ggml_cgraph *graph, int flags);

// Takes a registry and its devices out of the list; false if it was not there.
bool device_registry_remove(ggml_backend_reg_t reg);
