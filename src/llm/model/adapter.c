// Low-rank adapters: GGUF files with pairs NAME.lora_a, NAME.lora_b for tensors of the model.
#include "model/adapter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *str_key(const struct gguf_context *g, const char *key) {
    const int64_t id = gguf_find_key(g, key);
    return id >= 0 && gguf_get_kv_type(g, id) == GGUF_TYPE_STRING ? gguf_get_val_str(g, id) : "";
}

static enum err check_kind(const struct llama_model *m, const struct gguf_context *g) {
    if (strcmp(str_key(g, "general.type"), "adapter") != 0)
        return err_set(ERR_FORMAT, "the file is no adapter: general.type is '%.32s'", str_key(g, "general.type"));
    if (strcmp(str_key(g, "adapter.type"), "lora") != 0)
        return err_set(ERR_FORMAT, "adapter.type is '%.32s'; lora is known", str_key(g, "adapter.type"));
    if (strcmp(str_key(g, "general.architecture"), m->arch->name) != 0)
        return err_set(ERR_FORMAT, "the adapter is for architecture '%.32s', the model is %s",
                       str_key(g, "general.architecture"), m->arch->name);
    return ERR_OK;
}

static struct ggml_tensor *find_weight(const struct llama_model *m, const char *name, size_t n) {
    for (int i = 0; i < m->n_tensors; i++) {
        const char *have = m->tensors[i].t->name;
        if (!m->tensors[i].copy && strlen(have) == n && !memcmp(have, name, n)) return m->tensors[i].t;
    }
    return NULL;
}

static void insert_pair(struct lora *lo, struct lora_pair p) {
    const uint32_t mask = lo->n_slots - 1;
    uint32_t i = (uint32_t) ((uintptr_t) p.w >> 5) & mask;
    while (lo->pairs[i].w) i = (i + 1) & mask;
    lo->pairs[i] = p;
}

static bool ends_with(const char *s, const char *tail, size_t *stem) {
    const size_t n = strlen(s), k = strlen(tail);
    *stem = n - k;
    return n > k && !strcmp(s + n - k, tail);
}

static enum err make_pair(struct llama_adapter_lora *a, struct ggml_context *file, struct ggml_tensor *fa, size_t stem,
                          float alpha) {
    char name[GGML_MAX_NAME + 16];
    snprintf(name, sizeof name, "%.*s.lora_b", (int) stem, fa->name);
    struct ggml_tensor *fb = ggml_get_tensor(file, name), *w = find_weight(a->model, fa->name, stem);
    if (!fb) return err_set(ERR_FORMAT, "the adapter has %s but not %s", fa->name, name);
    if (!w) return err_set(ERR_FORMAT, "the adapter changes %.*s, which the model doesn't have", (int) stem, fa->name);
    const bool embd = w == a->model->w.token_embd.w;  // looked up by row, not multiplied: no place for a pair
    if (embd && a->model->w.output.w)
        return err_set(ERR_UNSUPPORTED, "the adapter changes token_embd, which is looked up and not multiplied");
    if (fa->ne[0] != w->ne[0] || fb->ne[1] != w->ne[1] || fa->ne[1] != fb->ne[0])
        return err_set(ERR_FORMAT,
                       "adapter tensors for %s: [%lld, %lld] and [%lld, %lld] don't fit the weight's [%lld, %lld]", w->name,
                       (long long) fa->ne[0], (long long) fa->ne[1], (long long) fb->ne[0], (long long) fb->ne[1],
                       (long long) w->ne[0], (long long) w->ne[1]);
    const ggml_backend_buffer_type_t buft = ggml_backend_buffer_get_type(w->buffer);
    struct ggml_context *ctx = home_ctx(&a->home, buft, (int) (2 * a->lora.n_slots));
    if (!ctx) return err_set(ERR_NOMEM, "no memory for the adapter's tensors");
    struct lora_pair p = {.w = w, .a = ggml_dup_tensor(ctx, fa), .b = ggml_dup_tensor(ctx, fb)};
    if (!p.a || !p.b || ggml_is_error(p.a) || ggml_is_error(p.b))
        return err_set(ERR_NOMEM, "no memory for the adapter's tensors");
    ggml_set_name(p.a, fa->name);
    ggml_set_name(p.b, fb->name);
    const float rank = (float) fb->ne[0];
    p.scale = alpha != 0 ? alpha / rank : 1.0f;
    insert_pair(&a->lora, p);
    return ERR_OK;
}

static enum err fill_tensors(struct llama_adapter_lora *a, struct ggml_context *file) {
    for (uint32_t i = 0; i < a->lora.n_slots; i++) {
        const struct lora_pair *p = &a->lora.pairs[i];
        if (!p->w) continue;
        struct ggml_tensor *t[2] = {p->a, p->b};
        for (int k = 0; k < 2; k++) {
            const struct ggml_tensor *src = ggml_get_tensor(file, t[k]->name);
            ggml_backend_tensor_set(t[k], src->data, 0, ggml_nbytes(t[k]));
        }
    }
    return ERR_OK;
}

static enum err read_invocation(struct llama_adapter_lora *a) {
    const int64_t id = gguf_find_key(a->meta, "adapter.alora.invocation_tokens");
    if (id < 0) return ERR_OK;
    if (gguf_get_kv_type(a->meta, id) != GGUF_TYPE_ARRAY ||
        (gguf_get_arr_type(a->meta, id) != GGUF_TYPE_UINT32 && gguf_get_arr_type(a->meta, id) != GGUF_TYPE_INT32))
        return err_set(ERR_FORMAT, "key adapter.alora.invocation_tokens is no array of 32-bit integers");
    const size_t n = gguf_get_arr_n(a->meta, id);
    a->invocation = malloc((n + 1) * sizeof *a->invocation);
    if (!a->invocation) return err_set(ERR_NOMEM, "no memory for %zu invocation tokens", n);
    memcpy(a->invocation, gguf_get_arr_data(a->meta, id), n * sizeof *a->invocation);
    a->n_invocation = n;
    return ERR_OK;
}

static enum err fill(struct llama_adapter_lora *a, struct ggml_context *file) {
    TRY(check_kind(a->model, a->meta));
    TRY(read_invocation(a));
    float alpha = 0;
    const int64_t id = gguf_find_key(a->meta, "adapter.lora.alpha");
    if (id >= 0 && gguf_get_kv_type(a->meta, id) == GGUF_TYPE_FLOAT32) alpha = gguf_get_val_f32(a->meta, id);
    const int64_t n = gguf_get_n_tensors(a->meta);
    uint32_t slots = 16;
    if (n > 1 << 20) return err_set(ERR_FORMAT, "the adapter lists %lld tensors", (long long) n);
    while (slots < n + 1) slots *= 2;
    a->lora.pairs = calloc(slots, sizeof *a->lora.pairs);
    if (!a->lora.pairs) return err_set(ERR_NOMEM, "no memory for the adapter");
    a->lora.n_slots = slots;
    for (int64_t i = 0; i < n; i++) {
        struct ggml_tensor *t = ggml_get_tensor(file, gguf_get_tensor_name(a->meta, i));
        size_t stem;
        if (!t) return err_set(ERR_FORMAT, "tensor %s of the adapter can't be read", gguf_get_tensor_name(a->meta, i));
        if (ends_with(t->name, ".lora_a", &stem))
            TRY(make_pair(a, file, t, stem, alpha));
        else if (!ends_with(t->name, ".lora_b", &stem))
            return err_set(ERR_FORMAT, "tensor %s of the adapter is no lora_a and no lora_b", t->name);
    }
    TRY(home_alloc(&a->home, "the adapter", false));
    return fill_tensors(a, file);
}

static struct llama_adapter_lora *init(struct llama_model *model, const char *path, FILE *stream) {
    ggml_clear_error();
    if (!model || (!path && !stream)) {
        (void) err_set(ERR_INVALID, "the model or the adapter's file is NULL");
        return NULL;
    }
    struct llama_adapter_lora *a = calloc(1, sizeof *a);
    struct llama_adapter_lora **list = realloc(model->adapters, (size_t) (model->n_adapters + 1) * sizeof *list);
    if (list) model->adapters = list;
    if (!a || !list) {
        free(a);
        (void) err_set(ERR_NOMEM, "no memory for an adapter");
        return NULL;
    }
    model->adapters[model->n_adapters++] = a;
    a->model = model;
    a->lora.number = model->n_adapters_ever++;
    // Adapters are small: their data is read whole, by the reader that checks every length.
    struct ggml_context *file = NULL;
    const struct gguf_init_params p = {.no_alloc = false, .ctx = &file};
    a->meta = stream ? gguf_init_from_file_ptr(stream, p) : gguf_init_from_file(path, p);
    const enum err e = a->meta && file ? fill(a, file) : ERR_FORMAT;
    ggml_free(file);
    if (e == ERR_OK) return a;
    llama_adapter_lora_free(a);
    return NULL;
}

struct llama_adapter_lora *llama_adapter_lora_init(struct llama_model *model, const char *path_lora) {
    return init(model, path_lora, NULL);
}

struct llama_adapter_lora *llama_adapter_lora_init_from_file_ptr(struct llama_model *model, FILE *file) {
    return init(model, NULL, file);
}

void llama_adapter_lora_free(struct llama_adapter_lora *a) {
    if (!a) return;
    struct llama_model *m = a->model;
    for (int i = 0; m && i < m->n_adapters; i++)
        if (m->adapters[i] == a) {
            m->adapters[i] = m->adapters[--m->n_adapters];
            break;
        }
    home_free(&a->home);
    free(a->lora.pairs);
    free(a->invocation);
    if (a->meta) gguf_free(a->meta);
    free(a);
}

int32_t llama_adapter_meta_count(const struct llama_adapter_lora *adapter) {
    return meta_count(adapter ? adapter->meta : NULL);
}

int32_t llama_adapter_meta_val_str(const struct llama_adapter_lora *adapter, const char *key, char *buf, size_t buf_size) {
    return meta_value(adapter ? adapter->meta : NULL, key, buf, buf_size);
}

int32_t llama_adapter_meta_key_by_index(const struct llama_adapter_lora *adapter, int32_t i, char *buf, size_t buf_size) {
    return meta_key_at(adapter ? adapter->meta : NULL, i, buf, buf_size);
}

int32_t llama_adapter_meta_val_str_by_index(const struct llama_adapter_lora *adapter, int32_t i, char *buf,
                                            size_t buf_size) {
    return meta_value_at(adapter ? adapter->meta : NULL, i, buf, buf_size);
}

uint64_t llama_adapter_get_alora_n_invocation_tokens(const struct llama_adapter_lora *adapter) {
    return adapter ? adapter->n_invocation : 0;
}

const llama_token *llama_adapter_get_alora_invocation_tokens(const struct llama_adapter_lora *adapter) {
    return adapter ? adapter->invocation : NULL;
}

void adapter_state_free(struct adapter_state *s) {
    home_free(&s->cvec_home);
    free(s->cvec);
    free(s->cvec_all);
    memset(s, 0, sizeof *s);
}
