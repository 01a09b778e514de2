// Control vectors: files with tensors direction.1, direction.2, ... of one F32 row per layer. Several are added up, each times its scale.
#include "cli/console.h"
#include "cli/parts.h"
#include "gguf.h"

#include <stdlib.h>
#include <string.h>

static int add_file(float *sum, int n_layer, int n_embd, const char *path, float scale) {
    struct ggml_context *tensors = NULL;
    struct gguf_context *g = gguf_init_from_file(path, (struct gguf_init_params){.no_alloc = false, .ctx = &tensors});
    if (!g) return console_library_error();
    int status = 0, found = 0;
    for (struct ggml_tensor *t = ggml_get_first_tensor(tensors); t && !status; t = ggml_get_next_tensor(tensors, t)) {
        char *end = NULL;
        if (strncmp(t->name, "direction.", 10) != 0) continue;
        const long layer = strtol(t->name + 10, &end, 10);
        if (*end || layer < 1 || layer >= n_layer)
            status = console_error("%s: tensor %s is for no layer of this model, which takes 1 to %d", path, t->name,
                                   n_layer - 1);
        else if (t->type != GGML_TYPE_F32 || t->ne[0] != n_embd || ggml_nrows(t) != 1)
            status = console_error("%s: tensor %s should be %d values of type f32", path, t->name, n_embd);
        for (int i = 0; !status && i < n_embd; i++)
            sum[(size_t) (layer - 1) * (size_t) n_embd + (size_t) i] += scale * ((const float *) t->data)[i];
        found++;
    }
    if (!status && !found) status = console_error("%s holds no control vector (tensors direction.1, ...)", path);
    gguf_free(g);
    ggml_free(tensors);
    return status;
}

int control_vectors_apply(struct session *s, const struct params *p) {
    if (p->control_vector.n == 0) return 0;
    const int n_layer = llama_model_n_layer(s->model), n_embd = llama_model_n_embd(s->model);
    int first = 1, last = n_layer - 1, status = 0, read = 0;
    if (p->control_layers && (sscanf(p->control_layers, "%d-%d%n", &first, &last, &read) != 2 || p->control_layers[read])) {
        console_error("--control-vector-layer-range is '%s', but should be FIRST-LAST", p->control_layers);
        return 2;
    }
    const size_t n = (size_t) (n_layer > 1 ? n_layer - 1 : 1) * (size_t) n_embd;
    float *sum = calloc(n, sizeof(float));
    if (!sum) return console_error("no memory for %zu values of a control vector", n);
    for (int i = 0; i < p->control_vector.n && !status; i++) {
        char path[4096];
        float scale = 1.0f;
        snprintf(path, sizeof(path), "%s", p->control_vector.v[i]);
        char *colon = strrchr(path, ':');
        if (colon && colon[1] && strspn(colon + 1, "0123456789.+-") == strlen(colon + 1)) {
            scale = strtof(colon + 1, NULL);
            *colon = '\0';
        }
        status = add_file(sum, n_layer, n_embd, path, scale);
    }
    if (!status && llama_set_adapter_cvec(s->ctx, sum, n, n_embd, first, last) != 0) status = console_library_error();
    free(sum);
    return status;
}
