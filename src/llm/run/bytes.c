// What a context costs, by device and purpose: of one that exists, or planned from a file's header.
#include "llama/ext.h"
#include "run/context.h"

#include <string.h>

static size_t kv_bytes(const struct llama_memory_i *m, ggml_backend_buffer_type_t buft) {
    if (!m) return 0;
    return (m->full ? home_bytes(&m->full->home, buft) : 0) + (m->swa ? home_bytes(&m->swa->home, buft) : 0);
}

static void add_weights(const struct llama_model *m, ggml_backend_buffer_type_t buft, struct llama_device_bytes *d) {
    bool any_copied = false;
    for (int i = 0; i < m->n_tensors; i++) {
        const struct model_tensor *t = &m->tensors[i];
        if (t->buft != buft) continue;
        if (data_is_mapped(m, t))
            d->weights_mapped += ggml_nbytes(t->t);
        else
            any_copied = true;
    }
    if (!any_copied) return;
    // copied tensors share buffers, with each one's place rounded up
    const size_t align = ggml_backend_buft_get_alignment(buft);
    for (int i = 0; i < m->n_tensors; i++) {
        const struct model_tensor *t = &m->tensors[i];
        if (t->buft == buft && !data_is_mapped(m, t))
            d->weights_copied += GGML_PAD(ggml_backend_buft_get_alloc_size(buft, t->t), align);
    }
}

int32_t llama_context_bytes(const struct llama_context *ctx, struct llama_device_bytes *out, int32_t n_max) {
    if (!ctx) return -1;
    const struct llama_model *m = ctx->model;
    for (int i = 0; i < ctx->n_backends && i < n_max; i++) {
        struct llama_device_bytes *d = &out[i];
        memset(d, 0, sizeof *d);
        ggml_backend_dev_t dev = ggml_backend_get_device(ctx->backends[i]);
        const ggml_backend_buffer_type_t buft = ggml_backend_dev_buffer_type(dev);
        d->name = ggml_backend_dev_name(dev);
        add_weights(m, buft, d);
        d->kv = kv_bytes(ctx->mem, buft);
        d->recurrent = ctx->mem && ctx->mem->rs ? home_bytes(&ctx->mem->rs->home, buft) : 0;
        d->compute = m->params.no_alloc ? ctx->planned[i] : ggml_backend_sched_get_buffer_size(ctx->sched, ctx->backends[i]);
        if (ctx->backends[i] != ctx->cpu) continue;
        d->outputs = ctx->out.bytes;
        d->graph = ggml_get_mem_size(ctx->gctx);
        if (ctx->g.gf) d->work = ggml_graph_plan(ctx->g.gf, ctx->cp.n_threads_batch, NULL).work_size;
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
