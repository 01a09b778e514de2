// lamina lora: writes a model with an adapter merged into its weights: W + scale * alpha / rank * B A.
#include "cli/console.h"
#include "ggml-cpu.h"
#include "ggml/ext.h"
#include "tools/shards.h"
#include "tools/tool.h"

#include <stdlib.h>
#include <string.h>

struct adapter {
    struct source src;
    struct ggml_context *data;  // tensors with their values
    float alpha;
    float scale;
};

// PATH or PATH:SCALE
static int adapter_open(struct adapter *a, const char *text) {
    static char path[4096];
    snprintf(path, sizeof(path), "%s", text);
    a->scale = 1.0f;
    char *colon = strrchr(path, ':');
    if (colon && colon[1] && strspn(colon + 1, "0123456789.-") == strlen(colon + 1)) {
        a->scale = strtof(colon + 1, NULL);
        *colon = '\0';
    }
    a->src.path = path;
    a->src.gguf = gguf_init_from_file(path, (struct gguf_init_params){.no_alloc = false, .ctx = &a->data});
    if (!a->src.gguf) return console_library_error();
    const int64_t id = gguf_find_key(a->src.gguf, "adapter.lora.alpha");
    if (id < 0 || gguf_get_kv_type(a->src.gguf, id) != GGUF_TYPE_FLOAT32)
        return console_error("%s is no LoRA adapter: it has no adapter.lora.alpha", path);
    a->alpha = gguf_get_val_f32(a->src.gguf, id);
    return 0;
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

static int merge_tensor(struct shard *out, const struct source *base, const struct adapter *a, int64_t i,
                        const struct ggml_tensor *t, int n_threads) {
    struct ggml_tensor *la = part(a, t->name, ".lora_a"), *lb = part(a, t->name, ".lora_b");
    if (!la || !lb) return shard_copy(out, base, i, gguf_get_alignment(base->gguf));
    const size_t bytes = ggml_nbytes(t), n = (size_t) ggml_nelements(t), align = gguf_get_alignment(base->gguf);
    const struct ggml_type_traits *traits = ggml_get_type_traits(t->type);
    char *raw = malloc(bytes);
    float *w = malloc(n * sizeof(float));
    int status = raw && w ? 0 : console_error("no memory for '%s' (%zu values)", t->name, n);
    if (!status && !traits->to_float)
        status = console_error("'%s' is of type %s: no weights that an adapter can change", t->name, traits->type_name);
    if (!status &&
        (fseeko(base->file, (off_t) (gguf_get_data_offset(base->gguf) + gguf_get_tensor_offset(base->gguf, i)), SEEK_SET) ||
         fread(raw, 1, bytes, base->file) != bytes))
        status = console_error("%s ends inside the tensor '%s'", base->path, t->name);
    if (!status) {
        if (t->type == GGML_TYPE_F32)
            memcpy(w, raw, bytes);
        else
            traits->to_float(raw, w, (int64_t) n);
        status = add_delta(a, t, la, lb, w, n_threads);
    }
    if (!status && ggml_quantize_chunk(t->type, w, raw, 0, (int64_t) n / t->ne[0], t->ne[0], NULL) != bytes)
        status = console_library_error();
    if (!status && fwrite(raw, 1, bytes, out->file) != bytes) status = console_error("writing %s failed", out->tmp);
    for (size_t pad = (align - bytes % align) % align; pad && !status; pad--) fputc(0, out->file);
    free(raw);
    free(w);
    return status;
}

static int check_all_used(const struct source *base, const struct adapter *a) {
    for (const struct ggml_tensor *t = ggml_get_first_tensor(a->data); t;
         t = ggml_get_next_tensor(a->data, (struct ggml_tensor *) (uintptr_t) t)) {
        char name[GGML_MAX_NAME];
        const char *end = strstr(t->name, ".lora_");
        if (!end) continue;
        snprintf(name, sizeof(name), "%.*s", (int) (end - t->name), t->name);
        if (gguf_find_tensor(base->gguf, name) < 0)
            return console_error("the adapter changes '%s', which the model does not have", name);
    }
    return 0;
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
    struct source base = {0};
    struct adapter a = {0};
    struct shard out = {0};
    int status = take_names(p);
    if (!status) status = source_open(&base, p->args[0]);
    if (!status) status = adapter_open(&a, p->args[1]);
    if (!status) status = check_all_used(&base, &a);
    struct gguf_context *meta = status ? NULL : gguf_init_empty();
    const int n_threads = p->n_threads > 0 ? p->n_threads : ggml_cpu_default_threads();
    if (!status && !meta) status = console_library_error();
    const int64_t n = status ? 0 : gguf_get_n_tensors(base.gguf);
    if (!status) {
        gguf_set_kv(meta, base.gguf);
        for (int64_t i = 0; i < n; i++)
            gguf_add_tensor(meta, ggml_get_tensor(base.tensors, gguf_get_tensor_name(base.gguf, i)));
        status = shard_begin(&out, p->args[2], meta);
    }
    for (int64_t i = 0; i < n && !status; i++) {
        status =
            merge_tensor(&out, &base, &a, i, ggml_get_tensor(base.tensors, gguf_get_tensor_name(base.gguf, i)), n_threads);
        console_progress("merging", (float) (i + 1) / (float) n);
    }
    console_progress_end();
    if (!status) status = shard_finish(&out);
    if (!status) status = shard_commit(&out);
    shard_discard(&out);
    if (meta) gguf_free(meta);
    if (a.src.gguf) gguf_free(a.src.gguf);
    if (a.data) ggml_free(a.data);
    source_close(&base);
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
