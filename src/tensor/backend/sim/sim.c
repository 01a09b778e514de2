// The simulated devices as the registry sees them.
#include "backend/sim/sim.h"
#include "base/env.h"
#include "base/log.h"
#include "ops/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sim_device devices[SIM_MAX_DEVICES];
static size_t n_devices;
static char without[256];  // ",OP,OP,": operations to lack on request

static struct sim_device *of(ggml_backend_dev_t dev) { return dev->context; }

static const char *name(ggml_backend_dev_t dev) { return of(dev)->name; }

static const char *description(ggml_backend_dev_t dev) {
    (void) dev;
    return "simulated device: memory out of the host's reach, a thread of its own";
}

static void memory(ggml_backend_dev_t dev, size_t *free, size_t *total) {
    *total = of(dev)->memory;
    *free = of(dev)->memory - atomic_load(&of(dev)->used);
}

static enum ggml_backend_dev_type type(ggml_backend_dev_t dev) {
    (void) dev;
    return GGML_BACKEND_DEVICE_TYPE_GPU;
}

static void props(ggml_backend_dev_t dev, struct ggml_backend_dev_props *p) {
    p->name = name(dev);
    p->description = description(dev);
    memory(dev, &p->memory_free, &p->memory_total);
    p->type = type(dev);
    p->device_id = name(dev);
    p->caps = (struct ggml_backend_dev_caps){.async = true,
                                             .host_buffer = true,
                                             .buffer_from_host_ptr = of(dev)->takes_host_ptr,
                                             .events = true,
                                             .mmap_support = true};
}

static ggml_backend_t init_backend(ggml_backend_dev_t dev, const char *params) {
    (void) params;
    return sim_stream_new(of(dev));
}

static ggml_backend_buffer_type_t buffer_type(ggml_backend_dev_t dev) { return &of(dev)->buft; }

static ggml_backend_buffer_type_t host_buffer_type(ggml_backend_dev_t dev) { return &of(dev)->host_buft; }

static ggml_backend_buffer_t from_host_ptr(ggml_backend_dev_t dev, void *ptr, size_t size, size_t max_tensor_size) {
    (void) max_tensor_size;
    if (!of(dev)->takes_host_ptr) {
        DEVICE_FAIL(NULL, ERR_UNSUPPORTED,
                    "%s cannot use host memory in place (LAMINA_SIM=n,hostptr makes devices that can)", name(dev));
    }
    return sim_buffer_from_ptr(of(dev), ptr, size);
}

// Operations it always lacks: those that call back into the program, training steps, and a few that real devices often lack.
static bool lacks(const struct ggml_tensor *t) {
    static const char always[] =
        ",MAP_CUSTOM1,MAP_CUSTOM2,MAP_CUSTOM3,CUSTOM,OPT_STEP_ADAMW,OPT_STEP_SGD,CROSS_ENTROPY_LOSS,"
        "CROSS_ENTROPY_LOSS_BACK,ARGSORT,SOLVE_TRI,CONV_3D,";
    char key[64];
    const int n = snprintf(key, sizeof(key), ",%s,", ggml_op_name(t->op));
    if (n < 0 || n >= (int) sizeof(key)) return true;
    return strstr(always, key) || strstr(without, key);
}

static bool supports_op(ggml_backend_dev_t dev, const struct ggml_tensor *t) {
    (void) dev;
    const struct op *op = op_get(t->op);
    if (t->op == GGML_OP_NONE) return true;
    return op && ((op->flags & OP_VIEW) || (op->run && !lacks(t)));
}

static bool supports_buft(ggml_backend_dev_t dev, ggml_backend_buffer_type_t buft) {
    return buft == &of(dev)->buft || buft == &of(dev)->mapped_buft;
}

// Large products are worth the transfer of a weight.
static bool offload_op(ggml_backend_dev_t dev, const struct ggml_tensor *t) {
    (void) dev;
    return (t->op == GGML_OP_MUL_MAT || t->op == GGML_OP_MUL_MAT_ID) && t->ne[1] >= 32;
}

// The processor's kernels, so what they allow.
static bool may_overwrite(ggml_backend_dev_t dev, const struct ggml_tensor *t, int i_src) {
    (void) dev;
    const struct op *op = op_get(t->op);
    return op && (op->flags & (OP_INPLACE | OP_INPLACE_WIDE)) && (i_src == 0 || (op->flags & OP_ELEMENTWISE));
}

// And what they compute as one; an operation that the device lacks is no part of anything.
static int fuse(ggml_backend_dev_t dev, const struct ggml_cgraph *graph, int i) {
    const ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    const int n = cpu ? cpu->iface->fuse(cpu, graph, i) : 1;
    for (int k = i; k < i + n; k++) {
        if (!supports_op(dev, graph->nodes[k])) return 1;
    }
    return n;
}

static const struct ggml_device_iface device_iface = {.get_name = name,
                                                      .get_description = description,
                                                      .get_memory = memory,
                                                      .get_type = type,
                                                      .get_props = props,
                                                      .init_backend = init_backend,
                                                      .get_buffer_type = buffer_type,
                                                      .get_host_buffer_type = host_buffer_type,
                                                      .buffer_from_host_ptr = from_host_ptr,
                                                      .supports_op = supports_op,
                                                      .supports_buft = supports_buft,
                                                      .offload_op = offload_op,
                                                      .event_new = sim_event_new,
                                                      .event_free = sim_event_free,
                                                      .event_synchronize = sim_event_synchronize,
                                                      .may_overwrite = may_overwrite,
                                                      .fuse = fuse};

// ---- the registry ---------------------------------------------------------------------------------------------------

static const char *reg_name(ggml_backend_reg_t reg) {
    (void) reg;
    return "SIM";
}

static size_t device_count(ggml_backend_reg_t reg) {
    (void) reg;
    return n_devices;
}

static ggml_backend_dev_t get_device(ggml_backend_reg_t reg, size_t index) {
    (void) reg;
    return index < n_devices ? &devices[index].base : NULL;
}

static void *proc_address(ggml_backend_reg_t reg, const char *proc) {
    (void) reg;
    if (strcmp(proc, "ggml_backend_set_n_threads") != 0) return NULL;
    void (*f)(ggml_backend_t, int) = sim_stream_set_n_threads;
    void *p;
    memcpy(&p, &f, sizeof(p));
    return p;
}

static const struct ggml_reg_iface reg_iface = {
    .get_name = reg_name, .get_device_count = device_count, .get_device = get_device, .get_proc_address = proc_address};

static struct ggml_backend_reg reg = {GGML_DEVICE_API_VERSION, &reg_iface, NULL};

// A number of MiB from the environment, as bytes.
static size_t mib(const char *variable, size_t otherwise) {
    const char *text = env_get(variable);
    if (!text) return otherwise;
    char *end;
    const double v = strtod(text, &end);
    if (end == text || *end || v <= 0 || v > 1e9) {
        log_warn("%s=%s is not a number of MiB: ignored\n", variable, text);
        return otherwise;
    }
    return (size_t) (v * 1048576.0);
}

static void make_device(size_t i, bool takes_host_ptr) {
    struct sim_device *d = &devices[i];
    snprintf(d->name, sizeof(d->name), "SIM%zu", i);
    snprintf(d->mapped_name, sizeof(d->mapped_name), "SIM%zu_Mapped", i);
    snprintf(d->host_name, sizeof(d->host_name), "SIM%zu_Host", i);
    d->memory = mib("LAMINA_SIM_MEM", (size_t) 4096 << 20);
    d->max_buffer = mib("LAMINA_SIM_MAX", d->memory);
    d->takes_host_ptr = takes_host_ptr;
    d->base = (struct ggml_backend_device){&device_iface, &reg, d};
    d->buft = (struct ggml_backend_buffer_type){&sim_buft_iface, &d->base, d};
    d->mapped_buft = (struct ggml_backend_buffer_type){&sim_mapped_iface, &d->base, d};
    d->host_buft = (struct ggml_backend_buffer_type){&device_host_buft_iface, &d->base, d->host_name};
}

// Made once, by the registry, under its lock.
ggml_backend_reg_t sim_reg(void);
ggml_backend_reg_t sim_reg(void) {
    const char *text = env_get("LAMINA_SIM");
    if (!text) return NULL;
    char *end;
    const long n = strtol(text, &end, 10);
    const bool takes_host_ptr = strcmp(end, ",hostptr") == 0;
    if (n < 0 || n > SIM_MAX_DEVICES || (*end && !takes_host_ptr)) {
        log_warn("LAMINA_SIM=%s: expected a number up to %d, and perhaps \",hostptr\": ignored\n", text, SIM_MAX_DEVICES);
        return NULL;
    }
    const char *lacking = env_get("LAMINA_SIM_WITHOUT");
    if (lacking && snprintf(without, sizeof(without), ",%s,", lacking) >= (int) sizeof(without)) {
        log_warn("LAMINA_SIM_WITHOUT is longer than %zu characters: cut off\n", sizeof(without) - 3);
    }
    for (long i = 0; i < n; i++) make_device((size_t) i, takes_host_ptr);
    n_devices = (size_t) n;
    return n > 0 ? &reg : NULL;
}
