// lamina lora: writes a model with an adapter merged into its weights: W + scale * alpha / rank * B A.
#include "cli/console.h"
#include "ggml-cpu.h"
#include "ggml/ext.h"
#include "tools/shards.h"
#include "tools/tool.h"

#include <stdlib.h>
#include <string.h>

struct adapter {
    char path[4096];
    struct gguf_context *gguf;
    struct ggml_context *data;  // tensors with their values
    float alpha;
    float scale;
};

struct adapters {
    struct adapter v[8];
    int n;
};

// PATH or PATH:SCALE, as long as n says.
static int adapter_open(struct adapter *a, const char *text, int n) {
    char *path = a->path;
    snprintf(path, sizeof(a->path), "%.*s", n, text);
    a->scale = 1.0f;
    char *colon = strrchr(path, ':');
    if (colon && colon[1] && strspn(colon + 1, "0123456789.-") == strlen(colon + 1)) {
        a->scale = strtof(colon + 1, NULL);
        *colon = '\0';
    }
    a->gguf = gguf_init_from_file(path, (struct gguf_init_params){.no_alloc = false, .ctx = &a->data});
    if (!a->gguf) return console_library_error();
    const int64_t id = gguf_find_key(a->gguf, "adapter.lora.alpha");
    if (id < 0 || gguf_get_kv_type(a->gguf, id) != GGUF_TYPE_FLOAT32)
        return console_error("%s is no LoRA adapter: it has no adapter.lora.alpha", path);
    a->alpha = gguf_get_val_f32(a->gguf, id);
    return 0;
}

static int adapters_open(struct adapters *all, const char *list) {
    int status = 0;
    for (const char *at = list; at && !status;) {
        const char *comma = strchr(at, ',');
        if (all->n == (int) (sizeof(all->v) / sizeof(all->v[0])))
            return console_error("--lora: more than %d adapters", all->n);
        status = adapter_open(&all->v[all->n++], at, comma ? (int) (comma - at) : (int) strlen(at));
        at = comma ? comma + 1 : NULL;
    }
    return status;
}

static void adapters_close(struct adapters *all) {
    for (int i = 0; i < all->n; i++) {
        if (all->v[i].gguf) gguf_free(all->v[i].gguf);
        if (all->v[i].data) ggml_free(all->v[i].data);
    }
}

static struct ggml_tensor *part(const struct adapter *a, const char *weight, const char *suffix) {
    char name[2 * GGML_MAX_NAME];
    snprintf(name, sizeof(name), "%s%s", weight, suffix);
    return ggml_get_tensor(a->data, name);
}

// w [n] += scale * B A, all of it in F32.
static int add_delta(const struct adapter *a, const struct ggml_tensor *t, struct ggml_tensor *la, struct ggml_tensor *lb,
                     float *w, int n_threads) {
    const int64_t rank = la->ne[1];
    if (la->ne[0] != t->ne[0] || lb->ne[1] != t->ne[1] || lb->ne[0] != rank || la->ne[2] != t->ne[2] ||
        lb->ne[2] != t->ne[2])
        return console_error("the adapter's parts for '%s' do not fit: {%d, %d} and {%d, %d} for a weight of {%d, %d}",
                             t->name, (int) la->ne[0], (int) rank, (int) lb->ne[0], (int) lb->ne[1], (int) t->ne[0],
                             (int) t->ne[1]);
    const size_t n = (size_t) ggml_nelements(t);
    struct ggml_context *ctx = ggml_init((struct ggml_init_params){
        .mem_size = 12 * n + 16 * (size_t) (ggml_nelements(la) + ggml_nelements(lb)) + (64 << 20)});
    if (!ctx) return console_library_error();
    struct ggml_tensor *at = ggml_cont(ctx, ggml_transpose(ctx, ggml_cast(ctx, la, GGML_TYPE_F32)));
    struct ggml_tensor *delta =
        ggml_scale(ctx, ggml_mul_mat(ctx, at, ggml_cast(ctx, lb, GGML_TYPE_F32)), a->scale * a->alpha / (float) rank);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, delta);
    int status = ggml_graph_compute_with_ctx(ctx, graph, n_threads) == GGML_STATUS_SUCCESS ? 0 : console_library_error();
    for (size_t i = 0; i < n && !status; i++) w[i] += ((const float *) delta->data)[i];
    ggml_free(ctx);
    return status;
}

// Tensor i of a part, with what every adapter adds to it.
static int merge_tensor(struct shard *out, const struct source *base, const struct adapters *all, int64_t i, int n_threads) {
    const struct ggml_tensor *t = ggml_get_tensor(base->tensors, gguf_get_tensor_name(base->gguf, i));
    const size_t bytes = ggml_nbytes(t), n = (size_t) ggml_nelements(t), align = gguf_get_alignment(base->gguf);
    const struct ggml_type_traits *traits = ggml_get_type_traits(t->type);
    bool changed = false;
    for (int k = 0; k < all->n; k++) changed |= part(&all->v[k], t->name, ".lora_a") && part(&all->v[k], t->name, ".lora_b");
    if (!changed) return shard_copy(out, base, i, align);
    char *raw = malloc(bytes);
    float *w = malloc(n * sizeof(float));
    int status = raw && w ? 0 : console_error("no memory for '%s' (%zu values)", t->name, n);
    if (!status && t->type != GGML_TYPE_F32 && !traits->to_float)
        status = console_error("'%s' is of type %s: no weights that an adapter can change", t->name, traits->type_name);
    if (!status &&
        (fseeko(base->file, (off_t) (gguf_get_data_offset(base->gguf) + gguf_get_tensor_offset(base->gguf, i)), SEEK_SET) ||
         fread(raw, 1, bytes, base->file) != bytes))
        status = console_error("%s ends inside the tensor '%s'", base->path, t->name);
    if (!status && t->type == GGML_TYPE_F32)
        memcpy(w, raw, bytes);
    else if (!status)
        traits->to_float(raw, w, (int64_t) n);
    for (int k = 0; k < all->n && !status; k++) {
        struct ggml_tensor *la = part(&all->v[k], t->name, ".lora_a"), *lb = part(&all->v[k], t->name, ".lora_b");
        if (la && lb) status = add_delta(&all->v[k], t, la, lb, w, n_threads);
    }
    if (!status && ggml_quantize_chunk(t->type, w, raw, 0, (int64_t) n / t->ne[0], t->ne[0], NULL) != bytes)
        status = console_library_error();
    if (!status && fwrite(raw, 1, bytes, out->file) != bytes) status = console_error("writing %s failed", out->tmp);
    for (size_t pad = (align - bytes % align) % align; pad && !status; pad--) fputc(0, out->file);
    free(raw);
    free(w);
    return status;
}

static int check_all_used(const struct gguf_context *model, const struct adapter *a) {
    for (const struct ggml_tensor *t = ggml_get_first_tensor(a->data); t;
         t = ggml_get_next_tensor(a->data, (struct ggml_tensor *) (uintptr_t) t)) {
        char name[GGML_MAX_NAME];
        const char *end = strstr(t->name, ".lora_");
        if (!end) continue;
        snprintf(name, sizeof(name), "%.*s", (int) (end - t->name), t->name);
        if (gguf_find_tensor(model, name) < 0)
            return console_error("the adapter changes '%s', which the model does not have", name);
    }
    return 0;
}

static int write_merged(const struct parts *m, const struct adapters *all, const char *path, int n_threads) {
    struct gguf_context *meta = gguf_init_empty();
    struct shard out = {0};
    int status = meta ? parts_describe(m, meta) : console_library_error();
    for (int k = 0; k < all->n && !status; k++) status = check_all_used(meta, &all->v[k]);
    if (!status) status = shard_begin(&out, path, meta);
    const int64_t n = meta ? gguf_get_n_tensors(meta) : 0;
    for (int64_t k = 0, i = 0, done = 0; k < m->n && !status; k++)
        for (i = 0; i < gguf_get_n_tensors(m->v[k].gguf) && !status; i++) {
            status = merge_tensor(&out, &m->v[k], all, i, n_threads);
            console_progress("merging", (float) ++done / (float) n);
        }
    console_progress_end();
    if (!status) status = shard_finish(&out);
    if (!status) status = shard_commit(&out);
    shard_discard(&out);
    if (meta) gguf_free(meta);
    return status;
}

// Three names, or the options of the field.
static int take_names(struct params *p) {
    if (p->n_args == 0) {
        p->args[0] = p->model;
        p->args[1] = p->lora;
        p->args[2] = p->output ? p->output : "ggml-lora-merged-f16.gguf";
        if (p->model && p->lora) return 0;
    } else if (p->n_args == 3 && !p->model && !p->lora && !p->output) {
        return 0;
    }
    console_error("`lamina lora` needs MODEL ADAPTER[:SCALE] OUTPUT, or -m MODEL --lora ADAPTER[:SCALE] -o OUTPUT");
    return 2;
}

static int run(struct params *p) {
    static struct adapters all;
    struct parts m = {0};
    int status = take_names(p);
    if (!status) status = parts_open(&m, p->args[0]);
    if (!status) status = adapters_open(&all, p->args[1]);
    if (!status && parts_have(&m, p->args[2])) status = 1;
    if (!status) status = write_merged(&m, &all, p->args[2], p->n_threads > 0 ? p->n_threads : ggml_cpu_default_threads());
    adapters_close(&all);
    parts_close(&m);
    return status;
}

const struct tool tool_lora = {
    .name = "lora",
    .alias = "llama-export-lora",
    .summary = "Merges a LoRA adapter into a model's weights",
    .args = "MODEL ADAPTER[:SCALE] OUTPUT",
    .max_args = 3,
    .groups = G_LORA | G_THREADS,
    .run = run,
};
