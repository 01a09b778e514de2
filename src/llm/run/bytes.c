// What a context costs, by device and purpose: of one that exists, or planned from a file's header.
#include "ggml/ext.h"
#include "ggml/plan.h"
#include "llama/ext.h"
#include "run/context.h"
#include "vocab/vocab.h"

#include <stdio.h>
#include <string.h>

static size_t kv_bytes(const struct llama_memory_i *m, ggml_backend_buffer_type_t buft) {
    if (!m) return 0;
    return (m->full ? home_bytes(&m->full->home, buft) : 0) + (m->swa ? home_bytes(&m->swa->home, buft) : 0);
}

// An encoder's result, which its decoder reads.
static size_t cross_bytes(const struct llama_context *ctx) {
    return ctx->cross_buf ? ggml_backend_buffer_get_size(ctx->cross_buf) : 0;
}

static size_t cross_overhead(const struct llama_context *ctx) {
    if (!ctx->cross_buf) return 0;
    return (size_t) ctx->cross.n_max * sizeof *ctx->cross_seq + ggml_context_overhead(ctx->cross_ctx) +
           ggml_backend_buft_overhead(ggml_backend_cpu_buffer_type());
}

// What is neither a weight nor a value, on the host.
static size_t table_bytes(const struct llama_context *ctx) {
    return sizeof *ctx + graph_memory(ctx) + ggml_backend_sched_overhead(ctx->sched) + plan_memory(ctx) +
           outputs_overhead(ctx) + model_overhead(ctx->model) + memory_overhead(ctx->mem) + cross_overhead(ctx) +
           ctx->fill_bytes;
}

static size_t vocabulary_bytes(const struct llama_model *m) {
    size_t n = vocab_memory(m->meta);
    for (int i = 0; i < m->n_sources; i++) {
        size_t mapped = 0;
        n += gguf_memory_size(m->sources[i].gguf);
        (void) gguf_get_mapping(m->sources[i].gguf, &mapped);
        n += mapped;
    }
    return m->n_sources && m->meta == m->sources[0].gguf ? n : n + gguf_memory_size(m->meta);
}

int32_t llama_context_bytes(const struct llama_context *ctx, struct llama_device_bytes *out, int32_t n_max) {
    if (!ctx) return -1;
    if (!out) n_max = 0;
    const struct llama_model *m = ctx->model;
    for (int i = 0; i < ctx->n_backends && i < n_max; i++) {
        struct llama_device_bytes *d = &out[i];
        memset(d, 0, sizeof *d);
        ggml_backend_dev_t dev = ggml_backend_get_device(ctx->backends[i]);
        const ggml_backend_buffer_type_t buft = ggml_backend_dev_buffer_type(dev);
        d->name = ggml_backend_dev_name(dev);
        int n_maps;
        d->weights_mapped = data_mapped_bytes(m, buft, &n_maps);
        d->weights_copied = home_bytes(&m->home, buft);
        d->kv = kv_bytes(ctx->mem, buft);
        d->recurrent = ctx->mem && ctx->mem->rs ? home_bytes(&ctx->mem->rs->home, buft) : 0;
        d->compute = m->params.no_alloc ? ggml_backend_sched_planned_size(ctx->sched, ctx->backends[i])
                                        : ggml_backend_sched_get_buffer_size(ctx->sched, ctx->backends[i]);
        d->work = ggml_backend_sched_work_size(ctx->sched, ctx->backends[i]);
        d->graph = ggml_backend_sched_table_size(ctx->sched, ctx->backends[i]);
        if (ctx->backends[i] != ctx->cpu) continue;
        d->compute += cross_bytes(ctx);
        d->outputs = ctx->out.bytes;
        d->graph += table_bytes(ctx);
        d->vocabulary = vocabulary_bytes(m);
    }
    return ctx->n_backends;
}

int32_t llama_plan_bytes(const char *path_model, struct llama_model_params mparams, struct llama_context_params cparams,
                         struct llama_device_bytes *out, int32_t n_max) {
    struct llama_model *m = model_load_plan(path_model, mparams);
    if (!m) return -1;
    cparams.samplers = NULL;
    cparams.n_samplers = 0;
    struct llama_context *ctx = llama_init_from_model(m, cparams);
    const int32_t n = ctx ? llama_context_bytes(ctx, out, n_max) : -1;
    llama_free(ctx);
    llama_model_free(m);
    return n;
}

// ---- the map ------------------------------------------------------------------------------------------------------------------

// Layer that a tensor's name speaks of ("blk.3.ffn_up.weight", "cache_k_l3"), -1: none.
static int layer_in(const char *name) {
    int il;
    char kind;
    if (sscanf(name, "blk.%d.", &il) == 1) return il;
    return sscanf(name, "cache_%c_l%d", &kind, &il) == 2 ? il : -1;
}

static int layer_of(const struct ggml_tensor *t) {
    for (int k = 0; k < GGML_MAX_SRC; k++) {
        const struct ggml_tensor *s = t->src[k];
        if (!s) continue;
        while (s->view_src) s = s->view_src;
        const int il = s->op == GGML_OP_NONE ? layer_in(s->name) : -1;
        if (il >= 0) return il;
    }
    return -1;
}

// A result gets the name of the weight that it is made with.
static bool name_by_weight(struct ggml_tensor *t) {
    for (int k = 0; k < GGML_MAX_SRC; k++) {
        const struct ggml_tensor *s = t->src[k];
        if (!s) continue;
        const size_t n = strlen(s->name), tail = strlen(".weight");
        if (s->op != GGML_OP_NONE || n <= tail || strcmp(s->name + n - tail, ".weight") != 0) continue;
        ggml_format_name(t, "%.*s", (int) (n - tail), s->name);
        return true;
    }
    return false;
}

// ggml_build_forward_expand has given numbers to what had no name; copies of such begin with a bracket.
static bool is_unnamed(const struct ggml_tensor *t) {
    return t->name[0] == 0 || t->name[0] == ' ' || t->name[0] == '(' || !strncmp(t->name, "node_", 5) ||
           !strncmp(t->name, "leaf_", 5);
}

// Inputs get the name of the operation that reads them first.
static void name_inputs(struct ggml_tensor *t) {
    for (int k = 0; k < GGML_MAX_SRC; k++) {
        struct ggml_tensor *s = t->src[k];
        if (!s) continue;
        while (s->view_src) s = s->view_src;
        if (!(s->flags & GGML_TENSOR_FLAG_INPUT) || !is_unnamed(s) || t->view_src == s) continue;
        char op[32];
        snprintf(op, sizeof op, "%s", ggml_op_name(t->op));
        for (char *c = op; *c; c++) *c = *c >= 'A' && *c <= 'Z' ? (char) (*c + 32) : *c;
        ggml_format_name(s, "inp_%s", op);
    }
}

static void name_nodes(struct ggml_cgraph *g) {
    const int n = ggml_graph_n_nodes(g);
    int il = -1;
    for (int i = 0; i < n; i++) {
        struct ggml_tensor *t = ggml_graph_node(g, i);
        int at = layer_of(t);
        // norms begin a layer, before its first weight
        for (int k = i + 1; at < 0 && k < n && k < i + 3 && (t->op == GGML_OP_RMS_NORM || t->op == GGML_OP_NORM); k++)
            at = layer_of(ggml_graph_node(g, k));
        if (at >= 0) il = at;
        name_inputs(t);
        if (!is_unnamed(t) || name_by_weight(t)) continue;
        if (il >= 0)
            ggml_format_name(t, "blk.%d.node_%d", il, i);
        else
            ggml_format_name(t, "node_%d", i);
    }
}

struct ggml_plan_report *llama_context_plan_report(struct llama_context *ctx) {
    if (!ctx) {
        (void) err_set(ERR_INVALID, "the context is NULL");
        return NULL;
    }
    if (graph_build_prompt(ctx) != ERR_OK) return NULL;
    name_nodes(ctx->at->g.gf);
    return ggml_backend_sched_plan_report(ctx->sched, ctx->at->g.gf);
}
