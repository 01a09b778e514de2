// Which adapters and control vectors a context uses. Graphs built before a change are not used after it.
#include <stdlib.h>
#include <string.h>

#include "run/context.h"

// The place of an adapter among those of the model that are still loaded, -1: it is of another one, or freed.
static int place_of(const struct llama_model *m, const struct lora *lora) {
    for (int i = 0; i < m->n_adapters; i++)
        if (&m->adapters[i]->lora == lora) return i;
    return -1;
}

enum err adapters_check(const struct llama_context *ctx) {
    const struct lora_set *s = &ctx->adapters.loras;
    for (int i = 0; i < s->n; i++) {
        const int k = place_of(ctx->model, s->lora[i]);
        if (k < 0 || ctx->model->adapters[k]->lora.number != s->number[i])
            return err_set(ERR_INVALID, "an adapter that the context uses was freed; set others first");
    }
    return ERR_OK;
}

int32_t llama_set_adapters_lora(struct llama_context *ctx, struct llama_adapter_lora **adapters, size_t n_adapters,
                                float *scales) {
    if (!ctx || (n_adapters && (!adapters || !scales))) {
        (void) err_set(ERR_INVALID, "set_adapters_lora: a NULL argument");
        return -1;
    }
    if (n_adapters > GRAPH_MAX_LORAS) {
        (void) err_set(ERR_INVALID, "%zu adapters at once; %d are possible", n_adapters, GRAPH_MAX_LORAS);
        return -1;
    }
    for (size_t i = 0; i < n_adapters; i++)
        if (!adapters[i] || place_of(ctx->model, &adapters[i]->lora) < 0) {
            (void) err_set(ERR_INVALID, "adapter %zu was loaded for another model, or freed", i);
            return -1;
        }
    struct lora_set s = {0};
    for (size_t i = 0; i < n_adapters; i++) {
        int same = 0;  // one that is named twice counts once, as in the field
        while (same < s.n && s.lora[same] != &adapters[i]->lora) same++;
        if (scales[i] == 0 || same < s.n) continue;
        s.lora[s.n] = &adapters[i]->lora;
        s.number[s.n] = adapters[i]->lora.number;
        s.scale[s.n++] = scales[i];
    }
    const struct lora_set old = ctx->adapters.loras;
    bool same = old.n == s.n;
    for (int i = 0; i < s.n && same; i++)
        same = old.lora[i] == s.lora[i] && old.number[i] == s.number[i] && old.scale[i] == s.scale[i];
    if (same) return 0;
    ctx->adapters.loras = s;
    ctx->version++;
    if (graph_reserve(ctx) == ERR_OK) return 0;
    ctx->adapters.loras = old;
    ctx->version++;
    return -1;
}

static enum err make_cvec(struct llama_context *ctx) {
    struct adapter_state *s = &ctx->adapters;
    const struct llama_model *m = ctx->model;
    const int n = m->hp.n_layer;
    s->cvec = calloc((size_t) n + 1, sizeof(struct ggml_tensor *));
    s->cvec_all = calloc((size_t) n + 1, sizeof(struct ggml_tensor *));
    if (!s->cvec || !s->cvec_all) return err_set(ERR_NOMEM, "no memory for control vectors");
    for (int il = 1; il < n; il++) {
        struct ggml_context *c = home_ctx(&s->cvec_home, ggml_backend_dev_buffer_type(m->layer_dev[il]), n + 1);
        if (!c) return err_set(ERR_NOMEM, "no memory for control vectors");
        s->cvec_all[il] = ggml_new_tensor_1d(c, GGML_TYPE_F32, m->hp.n_embd);
    }
    return home_alloc(&s->cvec_home, "the control vectors", false);
}

// data: a row of n_embd values for each layer from 1 on.
int32_t llama_set_adapter_cvec(struct llama_context *ctx, const float *data, size_t len, int32_t n_embd, int32_t il_start,
                               int32_t il_end) {
    if (!ctx) return -1;
    struct adapter_state *s = &ctx->adapters;
    if (!data) {
        if (s->cvec_active) ctx->version++;
        s->cvec_active = false;
        return 0;
    }
    const int n_layer = ctx->model->hp.n_layer;
    if (n_embd != ctx->model->hp.n_embd) {
        (void) err_set(ERR_INVALID, "control vectors of %d values; the model has %d", n_embd, ctx->model->hp.n_embd);
        return -1;
    }
    if (!s->cvec_all && make_cvec(ctx) != ERR_OK) {
        home_free(&s->cvec_home);
        free(s->cvec);
        free(s->cvec_all);
        s->cvec = s->cvec_all = NULL;
        return -1;
    }
    for (int il = 1; il < n_layer; il++) {
        const size_t off = (size_t) n_embd * (size_t) (il - 1);
        s->cvec[il] = il >= il_start && il <= il_end && off + (size_t) n_embd <= len ? s->cvec_all[il] : NULL;
        if (s->cvec[il]) ggml_backend_tensor_set(s->cvec[il], data + off, 0, (size_t) n_embd * sizeof(float));
    }
    s->cvec_active = true;
    ctx->version++;
    return 0;
}
