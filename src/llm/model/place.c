// Which device takes which layer, and which kind of buffer a tensor goes to.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "base/log.h"
#include "model/model.h"

static bool is_accelerator(ggml_backend_dev_t d) {
    const enum ggml_backend_dev_type t = ggml_backend_dev_type(d);
    return t == GGML_BACKEND_DEVICE_TYPE_GPU || t == GGML_BACKEND_DEVICE_TYPE_IGPU;
}

static enum err no_memory(const char *pattern) {
    return err_set(ERR_NOMEM, "tensor override: no memory to match the pattern '%s'", pattern);
}

static enum err compile(const char *pattern, pcre2_code **re) {
    int code;
    PCRE2_SIZE at;
    *re = pcre2_compile((PCRE2_SPTR) pattern, PCRE2_ZERO_TERMINATED, 0, &code, &at, NULL);
    if (*re) return ERR_OK;
    if (code == PCRE2_ERROR_HEAP_FAILED) return no_memory(pattern);
    return err_set(ERR_INVALID, "tensor override: the pattern '%s' is no regular expression (offset %zu)", pattern,
                   (size_t) at);
}

static enum err matches(const char *pattern, const char *name, bool *yes) {
    pcre2_code *re;
    *yes = false;
    TRY(compile(pattern, &re));
    pcre2_match_data *md = pcre2_match_data_create_from_pattern(re, NULL);
    const int r = md ? pcre2_match(re, (PCRE2_SPTR) name, strlen(name), 0, 0, md, NULL) : PCRE2_ERROR_NOMEMORY;
    pcre2_match_data_free(md);
    pcre2_code_free(re);
    *yes = r >= 0;
    return r == PCRE2_ERROR_NOMEMORY ? no_memory(pattern) : ERR_OK;
}

// Every pattern a regular expression, every place one.
static enum err check_overrides(const struct llama_model_tensor_buft_override *o) {
    for (int i = 0; o && o[i].pattern; i++) {
        pcre2_code *re;
        TRY(compile(o[i].pattern, &re));
        pcre2_code_free(re);
        if (!o[i].buft) return err_set(ERR_INVALID, "tensor override: the pattern '%s' has no buffer type", o[i].pattern);
    }
    return ERR_OK;
}

static enum err check_modes(const struct llama_model_params *p) {
    const struct {
        const char *name;
        int value, least, most;
    } choices[] = {
        {"split_mode", p->split_mode, LLAMA_SPLIT_MODE_NONE, LLAMA_SPLIT_MODE_TENSOR},
        {"load_mode", p->load_mode, LLAMA_LOAD_MODE_AUTO, LLAMA_LOAD_MODE_DIRECT_IO},
        {"lazy_mode", p->lazy_mode, LLAMA_LAZY_MODE_OFF, LLAMA_LAZY_MODE_ON},
    };
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (choices[i].value < choices[i].least || choices[i].value > choices[i].most)
            return err_set(ERR_INVALID, "%s is %d; %d to %d are possible", choices[i].name, choices[i].value,
                           choices[i].least, choices[i].most);
    const bool maps = p->load_mode == LLAMA_LOAD_MODE_AUTO || p->load_mode == LLAMA_LOAD_MODE_MMAP;
    if (p->lazy_mode == LLAMA_LAZY_MODE_ON && !maps)
        return err_set(ERR_INVALID,
                       "lazy_mode is ON, but load_mode '%s' reads or locks every weight at once; auto and mmap don't",
                       llama_load_mode_name(p->load_mode));
    return ERR_OK;
}

// With several devices: whole layers are what they can be given.
static enum err check_split(const struct llama_model *m) {
    if (m->n_dev < 2) return ERR_OK;
    if (m->params.split_mode == LLAMA_SPLIT_MODE_TENSOR)
        return err_set(ERR_UNSUPPORTED,
                       "split_mode is TENSOR, but none of the %d devices computes parts of a tensor; LAYER "
                       "spreads whole layers",
                       m->n_dev);
    if (m->params.split_mode == LLAMA_SPLIT_MODE_ROW)
        log_warn("split_mode is ROW, but none of the %d devices holds rows of a matrix: whole layers are spread instead\n",
                 m->n_dev);
    return ERR_OK;
}

enum err place_devices(struct llama_model *m) {
    m->cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (!m->cpu) return err_set(ERR_UNSUPPORTED, "no CPU device is registered");
    const struct llama_model_params *p = &m->params;
    TRY(check_overrides(p->tensor_buft_overrides));
    TRY(check_modes(p));
    if (p->devices) {
        for (int i = 0; p->devices[i]; i++) {
            if (p->devices[i] == m->cpu) continue;
            if (m->n_dev == MODEL_MAX_DEVICES)
                return err_set(ERR_INVALID, "more than %d devices are given", MODEL_MAX_DEVICES);
            m->dev[m->n_dev++] = p->devices[i];
        }
    } else {
        for (size_t i = 0; i < ggml_backend_dev_count() && m->n_dev < MODEL_MAX_DEVICES; i++)
            if (is_accelerator(ggml_backend_dev_get(i))) m->dev[m->n_dev++] = ggml_backend_dev_get(i);
    }
    if (p->split_mode == LLAMA_SPLIT_MODE_NONE && m->n_dev > 1) {
        const int main = p->main_gpu;
        if (main < 0) {
            m->n_dev = 0;
            return ERR_OK;
        }
        if (main >= m->n_dev) return err_set(ERR_INVALID, "main_gpu is %d; there are %d devices", main, m->n_dev);
        m->dev[0] = m->dev[main];
        m->n_dev = 1;
    }
    return check_split(m);
}

// The output counts as the last layer; the last n_gpu_layers of them are spread over the devices in the given shares, or by free memory.
void place_layers(struct llama_model *m) {
    const int n_layer = m->n_layers_alloc;
    const int n_all = n_layer + 1;
    int n = m->params.n_gpu_layers < 0 || m->params.n_gpu_layers > n_all ? n_all : m->params.n_gpu_layers;
    if (m->n_dev == 0) n = 0;
    float share[MODEL_MAX_DEVICES], sum = 0;
    bool given = false;
    for (int d = 0; d < m->n_dev && m->params.tensor_split; d++) given |= m->params.tensor_split[d] > 0;
    for (int d = 0; d < m->n_dev; d++) {
        size_t free = 0, total = 0;
        ggml_backend_dev_memory(m->dev[d], &free, &total);
        share[d] = given ? m->params.tensor_split[d] : (float) free;
        if (!(share[d] >= 0)) share[d] = 0;
        sum += share[d];
    }
    for (int d = 0; d < m->n_dev; d++)
        share[d] = (sum > 0 ? share[d] / sum : 1.0f / (float) m->n_dev) + (d ? share[d - 1] : 0);
    const int first = n_all - n;
    for (int il = 0; il < n_all; il++) {
        ggml_backend_dev_t dev = m->cpu;
        if (il >= first) {
            const float at = (float) (il - first) / (float) n;
            int d = 0;
            while (d < m->n_dev - 1 && at >= share[d]) d++;
            dev = m->dev[d];
        }
        if (il < n_layer)
            m->layer_dev[il] = dev;
        else
            m->output_dev = dev;
    }
    for (int il = n_layer; il < MAX_LAYERS; il++) m->layer_dev[il] = n_layer ? m->layer_dev[n_layer - 1] : m->cpu;
}

// Would the device run the operation that reads this weight? The question's tensors lie on the stack: whether there is memory must not
// decide where a weight goes.
static enum err can_use(ggml_backend_dev_t dev, enum role role, enum ggml_type type, int n_dims, const int64_t *ne,
                        bool *yes) {
    enum { ROOM = 4096 };
    _Alignas(64) char room[ROOM];
    struct ggml_context *ctx = ggml_init((struct ggml_init_params){.mem_size = ROOM, .mem_buffer = room, .no_alloc = true});
    if (!ctx) return err_set(ERR_NOMEM, "no memory to ask %s what it can do", ggml_backend_dev_name(dev));
    struct ggml_tensor *w = ggml_new_tensor(ctx, type, n_dims, ne), *op;
    if (n_dims == 1 || role == ROLE_NORM) {
        op = ggml_mul(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F32, ne[0], 512), w);
    } else if (role == ROLE_EMBD || role == ROLE_EMBD_OTHER) {
        op = ggml_get_rows(ctx, w, ggml_new_tensor_1d(ctx, GGML_TYPE_I32, 512));
    } else if (role == ROLE_FFN_GATE_EXPS || role == ROLE_FFN_UP_EXPS || role == ROLE_FFN_DOWN_EXPS) {
        op = ggml_mul_mat_id(ctx, w, ggml_new_tensor_3d(ctx, GGML_TYPE_F32, ne[0], 1, 512),
                             ggml_new_tensor_2d(ctx, GGML_TYPE_I32, 1, 512));
    } else {
        op = ggml_mul_mat(ctx, w, ggml_new_tensor_4d(ctx, GGML_TYPE_F32, ne[0], 512, n_dims > 2 ? ne[2] : 1, 1));
    }
    *yes = !ggml_is_error(op) && ggml_backend_dev_supports_op(dev, op);
    ggml_free(ctx);
    return ERR_OK;
}

enum err place_tensor(struct llama_model *m, const char *name, int layer, enum role role, enum ggml_type type, int n_dims,
                      const int64_t *ne, ggml_backend_buffer_type_t *buft) {
    const struct llama_model_tensor_buft_override *o = m->params.tensor_buft_overrides;
    for (int i = 0; o && o[i].pattern; i++) {
        bool yes;
        TRY(matches(o[i].pattern, name, &yes));
        if (!yes) continue;
        *buft = o[i].buft;
        return ERR_OK;
    }
    // rows of the embedding are few and looked up on the host; everything else follows its layer
    ggml_backend_dev_t dev = layer >= 0                                     ? m->layer_dev[layer]
                             : role == ROLE_EMBD || role == ROLE_EMBD_OTHER ? m->cpu
                                                                            : m->output_dev;
    bool yes = false;
    if (dev != m->cpu) TRY(can_use(dev, role, type, n_dims, ne, &yes));
    *buft = ggml_backend_dev_buffer_type(yes ? dev : m->cpu);
    return ERR_OK;
}
