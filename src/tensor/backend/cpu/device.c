// The processor as a device: host memory, one stream that computes at once. Running graphs is the executor's work
// (compute.c); this file gives it threads, a work buffer that only grows, and the faces that ggml-backend.h and ggml-cpu.h
// ask for.
#include "backend/cpu/step.h"
#include "backend/cpu/cpu.h"
#include "device/device.h"
#include "ggml/ext.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_LISTS = 4 };

struct stream {
    int n_threads;                 // <= 0: the default, which takes reading what the machine allows
    ggml_threadpool_t threadpool;  // NULL: the process's default team
    ggml_abort_callback abort;
    void *abort_data;
    bool use_ref;
    uint8_t *work;  // 64-byte aligned, grows
    size_t work_bytes;
    // Of the last graphs, so that one that is computed again is not planned again, although others came in between.
    struct step_list lists[N_LISTS];
    uint64_t n_uses;
    struct cpu_asked asked;
    const struct ggml_stream_needs *asked_for;
};

struct plan {
    struct ggml_cplan cplan;
    struct ggml_cgraph graph;
};

// ---- memory -------------------------------------------------------------------------------------------------------

static struct ggml_backend_device cpu_device;
static struct ggml_backend_reg cpu_reg;

static char cpu_buft_name[] = "CPU", mapped_buft_name[] = "CPU_Mapped";
static struct ggml_backend_buffer_type cpu_buft = {&device_host_buft_iface, &cpu_device, cpu_buft_name};
static struct ggml_backend_buffer_type mapped_buft = {&device_host_buft_iface, &cpu_device, mapped_buft_name};

ggml_backend_buffer_type_t ggml_backend_cpu_buffer_type(void) { return &cpu_buft; }

ggml_backend_buffer_t ggml_backend_cpu_buffer_from_ptr(void *ptr, size_t size) {
    return device_host_buffer_from_ptr(&mapped_buft, ptr, size);
}

// ---- the stream ---------------------------------------------------------------------------------------------------

static const char *name(ggml_backend_t backend) {
    (void) backend;
    return "CPU";
}

static void stream_free(ggml_backend_t backend) {
    struct stream *s = backend->context;
    free(s->work);
    for (int i = 0; i < N_LISTS; i++) step_list_free(&s->lists[i]);
    free(s);
    free(backend);
}

static int n_threads_of(const struct stream *s) { return s->n_threads > 0 ? s->n_threads : ggml_cpu_default_threads(); }

static bool work_reserve(struct stream *s, size_t bytes) {
    if (bytes <= s->work_bytes) return true;
    void *p = NULL;
    if (posix_memalign(&p, 64, bytes) != 0)
        return (void) err_set(ERR_NOMEM, "no memory for %zu bytes of scratch", bytes), false;
    free(s->work);
    s->work = p;
    s->work_bytes = bytes;
    return true;
}

// The steps of a graph that comes again; NULL: no memory.
static struct step_list *list_for(struct stream *s, const struct ggml_cgraph *graph) {
    const int nth = cpu_members(n_threads_of(s), s->threadpool);
    struct step_list *oldest = &s->lists[0];
    for (int i = 0; i < N_LISTS; i++) {
        struct step_list *l = &s->lists[i];
        if (l->used < oldest->used) oldest = l;
        if (!step_list_is_for(l, graph, nth)) continue;
        l->used = ++s->n_uses;
        return l;
    }
    if (step_list_reserve(oldest, graph->n_nodes) != ERR_OK || !step_list_make(oldest, graph, nth)) return NULL;
    oldest->used = ++s->n_uses;
    return oldest;
}

static struct ggml_cplan cplan_for(const struct stream *s, const struct ggml_cgraph *graph, const struct step_list *l) {
    struct ggml_cplan p = {.n_threads = 1, .threadpool = s->threadpool};
    if (!l) {
        p = ggml_graph_plan(graph, n_threads_of(s), s->threadpool);
    } else {
        if (l->most > 1) p.n_threads = l->most;
        if (l->work > 0) p.work_size = l->work + 64;
    }
    p.abort_callback = s->abort;
    p.abort_callback_data = s->abort_data;
    p.use_ref = s->use_ref;
    return p;
}

// needs grows from graph to graph: what one of them has had in common with an earlier one is in it.
static void graph_needs(ggml_backend_t backend, const struct ggml_cgraph *graph, struct ggml_stream_needs *needs) {
    struct stream *s = backend->context;
    if (s->asked_for != needs || needs->n_nodes == 0) s->asked = (struct cpu_asked){0};
    s->asked_for = needs;
    const size_t work = cpu_work_most(graph, n_threads_of(s), &s->asked);
    if (work > needs->work) needs->work = work;
    if (graph->n_nodes > needs->n_nodes) needs->n_nodes = graph->n_nodes;
}

static bool reserve(ggml_backend_t backend, const struct ggml_stream_needs *needs) {
    struct stream *s = backend->context;
    if (!s->threadpool) cpu_team_reserve(n_threads_of(s));
    for (int i = 0; i < N_LISTS; i++) {
        if (step_list_reserve(&s->lists[i], needs->n_nodes) != ERR_OK) return false;
    }
    return work_reserve(s, needs->work);
}

static size_t table_size(ggml_backend_t backend, const struct ggml_stream_needs *needs) {
    const struct stream *s = backend->context;
    return sizeof(*backend) + sizeof(*s) + N_LISTS * (size_t) needs->n_nodes * sizeof(struct step) +
           (s->threadpool ? 0 : cpu_team_bytes(n_threads_of(s)));
}

static size_t work_size(ggml_backend_t backend) { return ((struct stream *) backend->context)->work_bytes; }

static enum ggml_status graph_compute(ggml_backend_t backend, struct ggml_cgraph *graph, int flags) {
    struct stream *s = backend->context;
    const bool singly = (flags & GGML_COMPUTE_NO_FUSE) != 0, comes_again = graph->uid != 0 && !singly;
    if (graph->failure && graph->failure[0]) DEVICE_FAIL(GGML_STATUS_FAILED, ERR_INVALID, "%s", graph->failure);
    struct step_list *list = comes_again ? list_for(s, graph) : NULL;
    if (comes_again && !list) return GGML_STATUS_ALLOC_FAILED;
    struct ggml_cplan p = cplan_for(s, graph, list);
    if (!work_reserve(s, p.work_size)) return GGML_STATUS_ALLOC_FAILED;
    p.work_data = s->work;
    return cpu_graph_compute(graph, &p, list, singly);
}

static void graph_plan_free(ggml_backend_t backend, ggml_backend_graph_plan_t plan) {
    (void) backend;
    struct plan *p = plan;
    free(p->cplan.work_data);
    free(p);
}

static ggml_backend_graph_plan_t graph_plan_create(ggml_backend_t backend, struct ggml_cgraph *graph) {
    struct plan *p = malloc(sizeof(*p));
    if (!p) DEVICE_FAIL(NULL, ERR_NOMEM, "no memory for a graph plan");
    p->graph = *graph;
    p->cplan = cplan_for(backend->context, graph, NULL);
    void *work = NULL;
    if (p->cplan.work_size > 0 && posix_memalign(&work, 64, p->cplan.work_size) != 0) {
        free(p);
        DEVICE_FAIL(NULL, ERR_NOMEM, "no memory for a graph plan's scratch");
    }
    p->cplan.work_data = work;
    return p;
}

static enum ggml_status graph_plan_compute(ggml_backend_t backend, ggml_backend_graph_plan_t plan) {
    (void) backend;
    struct plan *p = plan;
    return ggml_graph_compute(&p->graph, &p->cplan);
}

static const struct ggml_stream_iface stream_iface = {.get_name = name,
                                                      .free = stream_free,
                                                      .graph_plan_create = graph_plan_create,
                                                      .graph_plan_free = graph_plan_free,
                                                      .graph_plan_compute = graph_plan_compute,
                                                      .graph_compute = graph_compute,
                                                      .graph_needs = graph_needs,
                                                      .reserve = reserve,
                                                      .table_size = table_size,
                                                      .work_size = work_size};

static ggml_guid cpu_guid = {0x4c, 0x61, 0x6d, 0x69, 0x6e, 0x61, 0x20, 0x43, 0x50, 0x55, 0x20, 0x64, 0x65, 0x76, 0x20, 0x31};

ggml_backend_t ggml_backend_cpu_init(void) {
    ggml_cpu_init();
    struct stream *s = calloc(1, sizeof(*s));
    ggml_backend_t backend = s ? malloc(sizeof(*backend)) : NULL;
    if (!backend) {
        free(s);
        DEVICE_FAIL(NULL, ERR_NOMEM, "no memory for a CPU backend");
    }
    backend->iface = &stream_iface;
    backend->device = &cpu_device;
    backend->context = s;
    backend->guid = &cpu_guid;
    return backend;
}

bool ggml_backend_is_cpu(ggml_backend_t backend) { return backend && backend->iface == &stream_iface; }

static struct stream *stream_of(ggml_backend_t backend, const char *what) {
    if (ggml_backend_is_cpu(backend)) return backend->context;
    DEVICE_FAIL(NULL, ERR_INVALID, "%s: backend %s is not the processor", what, ggml_backend_name(backend));
}

void ggml_backend_cpu_set_n_threads(ggml_backend_t backend, int n_threads) {
    struct stream *s = stream_of(backend, "ggml_backend_cpu_set_n_threads");
    if (s) s->n_threads = n_threads;
}

void ggml_backend_cpu_set_threadpool(ggml_backend_t backend, ggml_threadpool_t threadpool) {
    struct stream *s = stream_of(backend, "ggml_backend_cpu_set_threadpool");
    if (!s) return;
    if (s->threadpool && s->threadpool != threadpool) ggml_threadpool_pause(s->threadpool);
    s->threadpool = threadpool;
}

void ggml_backend_cpu_set_abort_callback(ggml_backend_t backend, ggml_abort_callback callback, void *data) {
    struct stream *s = stream_of(backend, "ggml_backend_cpu_set_abort_callback");
    if (!s) return;
    s->abort = callback;
    s->abort_data = data;
}

void ggml_backend_cpu_set_use_ref(ggml_backend_t backend, bool use_ref) {
    struct stream *s = stream_of(backend, "ggml_backend_cpu_set_use_ref");
    if (s) s->use_ref = use_ref;
}

// ---- the device ---------------------------------------------------------------------------------------------------

static const char *device_name(ggml_backend_dev_t dev) {
    (void) dev;
    return "CPU";
}

static char cpu_model[128];

static void read_model(void) {
    strcpy(cpu_model, "CPU");
    FILE *f = fopen("/proc/cpuinfo", "re");
    if (!f) return;
    char line[256];
    while (fgets(line, sizeof(line), f)) {
        if (strncmp(line, "model name", 10) != 0) continue;
        const char *at = strchr(line, ':');
        if (!at) continue;
        at += strspn(at, ": \t");
        const size_t n = strcspn(at, "\n");
        const size_t room = n < sizeof(cpu_model) ? n : sizeof(cpu_model) - 1;
        memcpy(cpu_model, at, room);
        cpu_model[room] = '\0';
        break;
    }
    fclose(f);
}

static const char *description(ggml_backend_dev_t dev) {
    (void) dev;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_model);
    return cpu_model;
}

// A number that stands alone in a file or after a key; `none` if there is none ("max" in a cgroup's limit).
static size_t number_in(const char *path, const char *key, size_t none) {
    FILE *f = fopen(path, "re");
    if (!f) return none;
    char line[256];
    size_t value = none;
    while (fgets(line, sizeof(line), f)) {
        if (strncmp(line, key, strlen(key)) != 0) continue;
        const char *at = line + strlen(key);
        char *end;
        const unsigned long long v = strtoull(at, &end, 10);
        if (end != at) value = (size_t) v;
        break;
    }
    fclose(f);
    return value;
}

// What this process may still use: the machine's available memory, within the control group's limit.
static void memory(ggml_backend_dev_t dev, size_t *free, size_t *total) {
    (void) dev;
    const size_t page = (size_t) sysconf(_SC_PAGESIZE);
    *total = (size_t) sysconf(_SC_PHYS_PAGES) * page;
    const size_t kib = number_in("/proc/meminfo", "MemAvailable:", 0);
    *free = kib ? kib * 1024 : (size_t) sysconf(_SC_AVPHYS_PAGES) * page;
    const size_t limit = number_in("/sys/fs/cgroup/memory.max", "", SIZE_MAX);
    if (limit < *total) {
        const size_t used = number_in("/sys/fs/cgroup/memory.current", "", 0);
        *total = limit;
        if (*free > limit - (used < limit ? used : limit)) *free = limit - (used < limit ? used : limit);
    }
}

static enum ggml_backend_dev_type type(ggml_backend_dev_t dev) {
    (void) dev;
    return GGML_BACKEND_DEVICE_TYPE_CPU;
}

static void props(ggml_backend_dev_t dev, struct ggml_backend_dev_props *p) {
    p->name = device_name(dev);
    p->description = description(dev);
    memory(dev, &p->memory_free, &p->memory_total);
    p->type = type(dev);
    p->device_id = NULL;
    p->caps = (struct ggml_backend_dev_caps){.buffer_from_host_ptr = true, .mmap_support = true};
}

static ggml_backend_t init_backend(ggml_backend_dev_t dev, const char *params) {
    (void) dev, (void) params;
    return ggml_backend_cpu_init();
}

static ggml_backend_buffer_type_t buffer_type(ggml_backend_dev_t dev) {
    (void) dev;
    return &cpu_buft;
}

static ggml_backend_buffer_t from_host_ptr(ggml_backend_dev_t dev, void *ptr, size_t size, size_t max_tensor_size) {
    (void) dev, (void) max_tensor_size;
    return ggml_backend_cpu_buffer_from_ptr(ptr, size);
}

static bool supports_op(ggml_backend_dev_t dev, const struct ggml_tensor *t) {
    (void) dev;
    const struct op *op = op_get(t->op);
    return t->op == GGML_OP_NONE || (op && (op->run || (op->flags & OP_VIEW)));
}

static bool supports_buft(ggml_backend_dev_t dev, ggml_backend_buffer_type_t buft) {
    (void) dev;
    return buft == &cpu_buft || ggml_backend_buft_is_host(buft);
}

static bool may_overwrite(ggml_backend_dev_t dev, const struct ggml_tensor *t, int i_src) {
    (void) dev;
    const struct op *op = op_get(t->op);
    return op && (op->flags & (OP_INPLACE | OP_INPLACE_WIDE)) && (i_src == 0 || (op->flags & OP_ELEMENTWISE));
}

static int fuse(ggml_backend_dev_t dev, const struct ggml_cgraph *graph, int i) {
    (void) dev;
    return fuse_span(graph, i);
}

static const struct ggml_device_iface device_iface = {.get_name = device_name,
                                                      .get_description = description,
                                                      .get_memory = memory,
                                                      .get_type = type,
                                                      .get_props = props,
                                                      .init_backend = init_backend,
                                                      .get_buffer_type = buffer_type,
                                                      .buffer_from_host_ptr = from_host_ptr,
                                                      .supports_op = supports_op,
                                                      .supports_buft = supports_buft,
                                                      .may_overwrite = may_overwrite,
                                                      .fuse = fuse};

static struct ggml_backend_device cpu_device = {&device_iface, &cpu_reg, NULL};

// ---- the registry -------------------------------------------------------------------------------------------------

static const char *reg_name(ggml_backend_reg_t reg) {
    (void) reg;
    return "CPU";
}

static size_t device_count(ggml_backend_reg_t reg) {
    (void) reg;
    return 1;
}

static ggml_backend_dev_t get_device(ggml_backend_reg_t reg, size_t index) {
    (void) reg;
    return index == 0 ? &cpu_device : NULL;
}

static ggml_backend_buffer_type_t *no_extra_bufts(ggml_backend_dev_t dev) {
    (void) dev;
    static ggml_backend_buffer_type_t none[] = {NULL};
    return none;
}

static struct ggml_backend_feature *features(ggml_backend_reg_t reg);

struct proc {
    const char *name;
    void (*f)(void);
};

// Names that programs look up instead of linking the function.
static const struct proc procs[] = {
    {"ggml_backend_set_n_threads", (void (*)(void)) ggml_backend_cpu_set_n_threads},
    {"ggml_backend_dev_get_extra_bufts", (void (*)(void)) no_extra_bufts},
    {"ggml_backend_get_features", (void (*)(void)) features},
    {"ggml_backend_set_abort_callback", (void (*)(void)) ggml_backend_cpu_set_abort_callback},
    {"ggml_backend_cpu_set_use_ref", (void (*)(void)) ggml_backend_cpu_set_use_ref},
    {"ggml_backend_cpu_numa_init", (void (*)(void)) ggml_numa_init},
    {"ggml_backend_cpu_is_numa", (void (*)(void)) ggml_is_numa},
    {"ggml_threadpool_new", (void (*)(void)) ggml_threadpool_new},
    {"ggml_threadpool_free", (void (*)(void)) ggml_threadpool_free},
    {"ggml_backend_cpu_set_threadpool", (void (*)(void)) ggml_backend_cpu_set_threadpool},
};

static void *proc_address(ggml_backend_reg_t reg, const char *proc_name) {
    (void) reg;
    for (size_t i = 0; i < sizeof(procs) / sizeof(procs[0]); i++) {
        void *p;
        if (strcmp(procs[i].name, proc_name) != 0) continue;
        memcpy(&p, &procs[i].f, sizeof(p));  // POSIX: function pointers fit void *
        return p;
    }
    return NULL;
}

static struct ggml_backend_feature feature_list[24];

static void list_features(void) {
    const struct {
        const char *feature;
        int (*has)(void);
    } all[] = {
        {"SSE3", ggml_cpu_has_sse3},
        {"SSSE3", ggml_cpu_has_ssse3},
        {"AVX", ggml_cpu_has_avx},
        {"AVX_VNNI", ggml_cpu_has_avx_vnni},
        {"AVX2", ggml_cpu_has_avx2},
        {"F16C", ggml_cpu_has_f16c},
        {"FMA", ggml_cpu_has_fma},
        {"BMI2", ggml_cpu_has_bmi2},
        {"AVX512", ggml_cpu_has_avx512},
        {"AVX512_VBMI", ggml_cpu_has_avx512_vbmi},
        {"AVX512_VNNI", ggml_cpu_has_avx512_vnni},
        {"AVX512_BF16", ggml_cpu_has_avx512_bf16},
        {"AMX_INT8", ggml_cpu_has_amx_int8},
        {"NEON", ggml_cpu_has_neon},
        {"DOTPROD", ggml_cpu_has_dotprod},
        {"MATMUL_INT8", ggml_cpu_has_matmul_int8},
        {"SVE", ggml_cpu_has_sve},
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (all[i].has()) feature_list[n++] = (struct ggml_backend_feature){all[i].feature, "1"};
    }
    feature_list[n] = (struct ggml_backend_feature){NULL, NULL};
}

static struct ggml_backend_feature *features(ggml_backend_reg_t reg) {
    (void) reg;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, list_features);
    return feature_list;
}

static const struct ggml_reg_iface reg_iface = {
    .get_name = reg_name, .get_device_count = device_count, .get_device = get_device, .get_proc_address = proc_address};

static struct ggml_backend_reg cpu_reg = {GGML_DEVICE_API_VERSION, &reg_iface, NULL};

ggml_backend_reg_t ggml_backend_cpu_reg(void) { return &cpu_reg; }
