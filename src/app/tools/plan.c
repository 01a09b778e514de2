// lamina plan: what a model will take, from its file's header alone, and whether that is there. The plan is made by the code that
// would allocate: a context of a model without data.
#include "cli/console.h"
#include "cli/session.h"
#include "ggml/plan.h"
#include "llama/ext.h"
#include "tools/plan_map.h"
#include "tools/tool.h"

#include <jansson.h>
#include <link.h>
#include <string.h>

#define MAX_DEVICES 17
#define WORK_PER_THREAD ((size_t) 2 << 20)  // more is an intermediate result in all but name

struct planned {
    struct llama_device_bytes d[MAX_DEVICES];
    size_t program[MAX_DEVICES];
    size_t free[MAX_DEVICES];
    int n;
    uint32_t n_ctx, n_ubatch;
    int32_t n_layer, n_ctx_train;
};

// ---- numbers -------------------------------------------------------------------------------------------------------

static int add_image(struct dl_phdr_info *image, size_t size, void *sum) {
    (void) size;
    for (int i = 0; i < image->dlpi_phnum; i++)
        if (image->dlpi_phdr[i].p_type == PT_LOAD) *(size_t *) sum += image->dlpi_phdr[i].p_memsz;
    return 0;
}

// Code and data of the program and its libraries.
static size_t program_bytes(void) {
    size_t n = 0;
    dl_iterate_phdr(add_image, &n);
    return n;
}

static size_t total(const struct planned *p, int i) {
    const struct llama_device_bytes *d = &p->d[i];
    return d->weights_mapped + d->weights_copied + d->kv + d->recurrent + d->compute + d->outputs + d->work + d->graph +
           d->vocabulary + p->program[i];
}

// Bytes of the device's own memory. A device's mapped weights, scratch and tables lie in the host's, the last in the list; the program is
// there already.
static size_t needed(const struct planned *p, int i) {
    if (i < p->n - 1) return total(p, i) - p->d[i].weights_mapped - p->d[i].work - p->d[i].graph;
    size_t n = total(p, i) - p->program[i];
    for (int k = 0; k < p->n - 1; k++) n += p->d[k].weights_mapped + p->d[k].work + p->d[k].graph;
    return n;
}

static bool fits_on(const struct planned *p, int i) { return needed(p, i) <= p->free[i]; }

static bool fits(const struct planned *p) {
    for (int i = 0; i < p->n; i++)
        if (!fits_on(p, i)) return false;
    return true;
}

static void measure(struct planned *out, const struct llama_model *model, struct llama_context *ctx) {
    out->n = llama_context_bytes(ctx, out->d, MAX_DEVICES);
    out->n_ctx = llama_n_ctx(ctx);
    out->n_ubatch = llama_n_ubatch(ctx);
    out->n_layer = llama_model_n_layer(model);
    out->n_ctx_train = llama_model_n_ctx_train(model);
    for (int i = 0; i < out->n; i++) {
        size_t all;
        const size_t work = WORK_PER_THREAD * (size_t) llama_n_threads_batch(ctx);
        if (out->d[i].work > work) {
            out->d[i].compute += out->d[i].work - work;
            out->d[i].work = work;
        }
        ggml_backend_dev_t dev = ggml_backend_dev_by_name(out->d[i].name);
        ggml_backend_dev_memory(dev, &out->free[i], &all);
        out->program[i] = i == out->n - 1 ? program_bytes() : 0;
    }
}

// Plans p; *model is made unless it is there. 0, or the exit status after a sentence.
static int plan(struct planned *out, struct llama_model **model, const struct params *p, const char *map) {
    if (!*model) {
        struct model_options o;
        const int status = session_model_options(&o, p);
        if (status) return status;
        *model = llama_model_plan_from_file(session_model_path(p), o.params);
        if (!*model) return console_library_error();
    }
    struct llama_context *ctx = llama_init_from_model(*model, session_context_options(p, llama_model_n_ctx_train(*model)));
    if (!ctx) return console_library_error();
    measure(out, *model, ctx);
    int status = 0;
    if (map) status = plan_map_write(map, ctx, out->d, out->n, session_model_path(p));
    llama_free(ctx);
    return status;
}

// ---- --fit -----------------------------------------------------------------------------------------------------------

struct fit {
    int32_t n_ctx, n_ubatch, n_gpu_layers;  // -1: nothing fits, whatever it is
};

struct search {
    struct llama_model **model;
    struct params p;
    int which;  // 0 context, 1 micro-batch, 2 layers on devices
    int64_t unit;
};

static bool try_value(struct search *s, int64_t value) {
    struct llama_model *own = NULL;
    struct planned got;
    if (s->which == 0)
        s->p.n_ctx = (uint32_t) value;
    else if (s->which == 1)
        s->p.n_ubatch = (uint32_t) value;
    else
        s->p.n_gpu_layers = (int32_t) value;
    const bool ok = plan(&got, s->which == 2 ? &own : s->model, &s->p, NULL) == 0 && fits(&got);
    llama_model_free(own);
    return ok;
}

// Largest multiple of unit in [unit * lo, most] that fits, -1 if none does. What fits is taken to fit with less, too.
static int64_t largest(struct search *s, int64_t lo, int64_t most) {
    int64_t hi = most / s->unit + 1;
    if (!try_value(s, lo * s->unit)) return -1;
    while (hi - lo > 1) {
        const int64_t mid = lo + (hi - lo) / 2;
        if (try_value(s, mid * s->unit))
            lo = mid;
        else
            hi = mid;
    }
    return lo * s->unit;
}

// More layers on a device take from one memory and give to the other, so all counts are tried, the largest first.
static int64_t most_layers(struct search *s, int n_layer) {
    for (int64_t n = n_layer + 1; n >= 0; n--)
        if (try_value(s, n)) return n;
    return -1;
}

// Layers first; context and micro-batch are then found with as many, each with the other as asked for.
static struct fit find_fit(struct params *p, struct llama_model **model, const struct planned *now) {
    struct fit f = {.n_gpu_layers = 0};
    if (now->n > 1) {
        struct search layers = {.model = model, .p = *p, .which = 2, .unit = 1};
        f.n_gpu_layers = (int32_t) most_layers(&layers, now->n_layer);
        p->n_gpu_layers = f.n_gpu_layers < 0 ? p->n_gpu_layers : f.n_gpu_layers;
        llama_model_free(*model);
        *model = NULL;
    }
    const int64_t trained = now->n_ctx_train > 256 ? now->n_ctx_train : 256;
    struct search context = {.model = model, .p = *p, .which = 0, .unit = 256};
    f.n_ctx = (int32_t) largest(&context, 1, trained);
    struct search batch = {.model = model, .p = *p, .which = 1, .unit = 1};
    f.n_ubatch = (int32_t) largest(&batch, 1, p->n_batch < now->n_ctx ? p->n_batch : now->n_ctx);
    return f;
}

// ---- printing -------------------------------------------------------------------------------------------------------

static void print_json(const struct planned *p, const struct fit *f) {
    json_t *devices = json_array();
    for (int i = 0; i < p->n; i++) {
        const struct llama_device_bytes *d = &p->d[i];
        json_t *o = json_pack(
            "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "name", d->name, "weights_mapped",
            (json_int_t) d->weights_mapped, "weights_copied", (json_int_t) d->weights_copied, "kv", (json_int_t) d->kv,
            "recurrent", (json_int_t) d->recurrent, "compute", (json_int_t) d->compute, "outputs", (json_int_t) d->outputs,
            "work", (json_int_t) d->work, "graph", (json_int_t) d->graph, "vocabulary", (json_int_t) d->vocabulary,
            "program", (json_int_t) p->program[i], "total", (json_int_t) total(p, i));
        json_array_append_new(devices, o);
    }
    json_t *root = json_pack("{s:o, s:b}", "devices", devices, "fits", (int) fits(p));
    if (f)
        json_object_set_new(
            root, "fit",
            json_pack("{s:i, s:i, s:i}", "ctx", f->n_ctx, "ubatch", f->n_ubatch, "gpu_layers", f->n_gpu_layers));
    json_dumpf(root, stdout, JSON_INDENT(1));
    fputc('\n', stdout);
    json_decref(root);
}

static const struct row {
    const char *what;
    size_t at;
} rows[] = {
    {"weights, mapped", offsetof(struct llama_device_bytes, weights_mapped)},
    {"weights, copied", offsetof(struct llama_device_bytes, weights_copied)},
    {"keys and values", offsetof(struct llama_device_bytes, kv)},
    {"recurrent state", offsetof(struct llama_device_bytes, recurrent)},
    {"compute", offsetof(struct llama_device_bytes, compute)},
    {"outputs", offsetof(struct llama_device_bytes, outputs)},
    {"work", offsetof(struct llama_device_bytes, work)},
    {"graph, scheduler", offsetof(struct llama_device_bytes, graph)},
    {"vocabulary", offsetof(struct llama_device_bytes, vocabulary)},
};

static void print_row(const struct planned *p, const char *what, const size_t bytes[]) {
    char b[32];
    printf("%-18s", what);
    for (int i = 0; i < p->n; i++) printf(" %14s", bytes[i] ? console_bytes(b, (double) bytes[i]) : "-");
    fputc('\n', stdout);
}

static void print_table(const struct planned *p) {
    size_t v[MAX_DEVICES];
    printf("%u positions of context, %u tokens computed at once\n\n%-18s", p->n_ctx, p->n_ubatch, "");
    for (int i = 0; i < p->n; i++) printf(" %14s", p->d[i].name);
    fputc('\n', stdout);
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        for (int i = 0; i < p->n; i++) memcpy(&v[i], (const char *) &p->d[i] + rows[r].at, sizeof(v[i]));
        print_row(p, rows[r].what, v);
    }
    print_row(p, "program", p->program);
    for (int i = 0; i < p->n; i++) v[i] = total(p, i);
    print_row(p, "total", v);
    print_row(p, "free", p->free);
    fputc('\n', stdout);
    for (int i = 0; i < p->n; i++) {
        char a[32], b[32];
        if (fits_on(p, i)) continue;
        printf("does not fit: %s would need %s and has %s\n", p->d[i].name, console_bytes(a, (double) needed(p, i)),
               console_bytes(b, (double) p->free[i]));
    }
    if (fits(p)) puts("fits");
}

static void print_largest(const char *option, int32_t n, const char *of) {
    if (n < 0)
        printf("%-5s no value fits\n", option);
    else
        printf("%-5s %d fits at most%s\n", option, n, of);
}

static void print_fit(const struct fit *f, int n_devices) {
    if (n_devices > 1) print_largest("-ngl", f->n_gpu_layers, " (counting the output as a layer)");
    print_largest("-c", f->n_ctx, ", up to what the model was trained for");
    print_largest("-ub", f->n_ubatch, ", up to the batch");
}

static int run(struct params *p) {
    if (p->n_args) p->model = p->args[0];
    if (!session_model_path(p)) return 2;
    struct llama_model *model = NULL;
    struct planned now;
    int status = plan(&now, &model, p, p->map);
    if (!status) {
        struct fit f;
        const bool searched = p->fit;
        if (searched) f = find_fit(p, &model, &now);
        if (p->json)
            print_json(&now, searched ? &f : NULL);
        else
            print_table(&now);
        if (searched && !p->json) print_fit(&f, now.n);
    }
    llama_model_free(model);
    return status;
}

const struct tool tool_plan = {
    .name = "plan",
    .alias = "llama-fit-params",
    .summary = "Shows what a model will need in memory, from the file's header alone",
    .args = "MODEL",
    .max_args = 1,
    .groups = G_MODEL | G_LOAD | G_CTX | G_PLAN | G_JSON,
    .run = run,
};
