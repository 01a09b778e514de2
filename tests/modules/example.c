// The smallest device library: one device in host memory that hands graphs to the processor. It sees the public headers
// alone, as a device outside this repository would; test_load.c loads it.
#include "ggml-cpu.h"
#include "ggml/device.h"

#include <stdlib.h>

static struct ggml_backend_device device;
static struct ggml_backend_reg reg;

static const char *stream_name(ggml_backend_t b) { return (void) b, "EXAMPLE"; }

static void stream_free(ggml_backend_t b) {
    ggml_backend_free(b->context);
    free(b);
}

static enum ggml_status compute(ggml_backend_t b, struct ggml_cgraph *graph, int flags) {
    (void) flags;
    return ggml_backend_graph_compute(b->context, graph);
}

static const struct ggml_stream_iface stream = {.get_name = stream_name, .free = stream_free, .graph_compute = compute};
static ggml_guid guid = {1, 2, 3};

static const char *name(ggml_backend_dev_t d) { return (void) d, "EXAMPLE0"; }
static const char *description(ggml_backend_dev_t d) { return (void) d, "device from a shared library"; }
static void memory(ggml_backend_dev_t d, size_t *free_bytes, size_t *total) { (void) d, *free_bytes = 0, *total = 0; }
static enum ggml_backend_dev_type type(ggml_backend_dev_t d) { return (void) d, GGML_BACKEND_DEVICE_TYPE_ACCEL; }

static void props(ggml_backend_dev_t d, struct ggml_backend_dev_props *p) {
    p->name = name(d);
    p->description = description(d);
    p->type = type(d);
}

static ggml_backend_t init(ggml_backend_dev_t d, const char *params) {
    (void) params;
    ggml_backend_t b = malloc(sizeof(*b));
    if (b) *b = (struct ggml_backend){&stream, d, ggml_backend_cpu_init(), &guid};
    return b;
}

static ggml_backend_buffer_type_t buffer_type(ggml_backend_dev_t d) { return (void) d, ggml_backend_cpu_buffer_type(); }
static bool supports_op(ggml_backend_dev_t d, const struct ggml_tensor *op) { return (void) d, op->op != GGML_OP_CUSTOM; }
static bool supports_buft(ggml_backend_dev_t d, ggml_backend_buffer_type_t t) {
    return (void) d, ggml_backend_buft_is_host(t);
}

static const struct ggml_device_iface device_iface = {.get_name = name,
                                                      .get_description = description,
                                                      .get_memory = memory,
                                                      .get_type = type,
                                                      .get_props = props,
                                                      .init_backend = init,
                                                      .get_buffer_type = buffer_type,
                                                      .supports_op = supports_op,
                                                      .supports_buft = supports_buft};

static const char *reg_name(ggml_backend_reg_t r) { return (void) r, "EXAMPLE"; }
static size_t count(ggml_backend_reg_t r) { return (void) r, 1; }
static ggml_backend_dev_t get(ggml_backend_reg_t r, size_t i) { return (void) r, i == 0 ? &device : NULL; }

static const struct ggml_reg_iface reg_iface = {.get_name = reg_name, .get_device_count = count, .get_device = get};
static struct ggml_backend_reg reg = {GGML_DEVICE_API_VERSION, &reg_iface, NULL};
static struct ggml_backend_device device = {&device_iface, &reg, NULL};

GGML_API ggml_backend_reg_t ggml_device_entry(int api_version);
ggml_backend_reg_t ggml_device_entry(int api_version) { return api_version == GGML_DEVICE_API_VERSION ? &reg : NULL; }
