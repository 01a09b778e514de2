// GPT-2 over several devices with a scheduler: -ngl N puts the last N layers on a device, the final norm and the output
// layer too if N > 0, and the embeddings if N exceeds the number of layers. Weights are placed by name; the cache lies
// where more layers are.
#include "common.h"

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HOST, DEVICE, N_PLACES };

struct model {
    struct gpt2_file file;
    struct gpt2_weights w;
    ggml_backend_t backends[N_PLACES];  // DEVICE may be NULL: there is only the processor
    struct ggml_context *weights, *cache;
    ggml_backend_buffer_t weights_buffers[N_PLACES], cache_buffer;
    struct ggml_tensor *k, *v;  // [n_embd * n_ctx * n_layer] F32
    ggml_backend_sched_t sched;
    struct ggml_context *graphs;  // the graph and the headers of its tensors, emptied for each batch
    int n_gpu_layers;
    int32_t *positions;  // [n_batch]
    float *logits;       // [n_vocab]
};

struct options {
    const char *model, *prompt;
    int n_made_up, n_predict, n_batch, n_threads, n_gpu_layers;
};

static const char usage[] = "usage: %s -m MODEL [-p TEXT | -k N: N made-up tokens] [-n tokens to add] [-b batch] [-t "
                            "threads] [-ngl layers on the device]\n";

static bool parse(int argc, char **argv, struct options *o) {
    *o = (struct options){.prompt = "Hello, my name is", .n_predict = 16, .n_batch = 32, .n_threads = 2};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *v = argv[i + 1];
        if (strcmp(argv[i], "-m") == 0)
            o->model = v;
        else if (strcmp(argv[i], "-p") == 0)
            o->prompt = v;
        else if (strcmp(argv[i], "-k") == 0)
            o->n_made_up = atoi(v);
        else if (strcmp(argv[i], "-n") == 0)
            o->n_predict = atoi(v);
        else if (strcmp(argv[i], "-b") == 0)
            o->n_batch = atoi(v);
        else if (strcmp(argv[i], "-t") == 0)
            o->n_threads = atoi(v);
        else if (strcmp(argv[i], "-ngl") == 0)
            o->n_gpu_layers = atoi(v);
        else
            return false;
    }
    return o->model && argc % 2 == 1 && o->n_batch > 0 && o->n_threads > 0 && o->n_predict > 0;
}

// The prompt as tokens, with room behind it for what is added. NULL: no memory, or the context is too small.
static int32_t *make_prompt(const struct gpt2_file *file, const struct options *o, int *n) {
    const int room = file->hp.n_ctx;
    int32_t *tokens = malloc(((size_t) room + 1) * sizeof(int32_t));
    if (!tokens) return NULL;
    if (o->n_made_up > 0) {
        for (*n = 0; *n < o->n_made_up && *n < room; ++*n) tokens[*n] = (7 + 37 * *n) % file->hp.n_vocab;
    } else {
        *n = gpt2_tokenize(file, o->prompt, tokens, room);
    }
    if (*n > 0 && *n + o->n_predict <= room) return tokens;
    fprintf(stderr, "%d tokens and %d more do not fit the context of %d\n", *n, o->n_predict, room);
    free(tokens);
    return NULL;
}

static uint64_t hash_of(uint64_t h, const float *x, int n) {  // FNV-1a over the bytes
    const unsigned char *p = (const unsigned char *) x;
    for (size_t i = 0; i < (size_t) n * sizeof(float); i++) h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

static int32_t best_of(const float *x, int n) {
    int32_t best = 0;
    for (int i = 1; i < n; i++) {
        if (x[i] > x[best]) best = i;
    }
    return best;
}

// ---- the graph ------------------------------------------------------------------------------------------------------

static struct ggml_tensor *norm(struct ggml_context *c, struct ggml_tensor *x, float eps, struct ggml_tensor *g,
                                struct ggml_tensor *b) {
    return ggml_add(c, ggml_mul(c, ggml_norm(c, x, eps), g), b);
}

static struct ggml_tensor *linear(struct ggml_context *c, struct ggml_tensor *w, struct ggml_tensor *b,
                                  struct ggml_tensor *x) {
    return ggml_add(c, ggml_mul_mat(c, w, x), b);
}

// Attention of n new tokens at n_past over all n_past + n positions. The new keys and values go to the cache first.
static struct ggml_tensor *attention(const struct model *m, struct ggml_context *c, struct ggml_cgraph *gf, int il,
                                     struct ggml_tensor *x, int n, int n_past) {
    const struct gpt2_hparams *hp = &m->file.hp;
    const struct gpt2_layer *l = &m->w.layers[il];
    const int64_t e = hp->n_embd, d = e / hp->n_head, n_kv = n_past + n;
    struct ggml_tensor *qkv = linear(c, l->qkv_w, l->qkv_b, x);
    struct ggml_tensor *q = ggml_view_2d(c, qkv, e, n, qkv->nb[1], 0);
    struct ggml_tensor *k = ggml_view_2d(c, qkv, e, n, qkv->nb[1], (size_t) e * sizeof(float));
    struct ggml_tensor *v = ggml_view_2d(c, qkv, e, n, qkv->nb[1], (size_t) (2 * e) * sizeof(float));
    struct ggml_tensor *ck = m->k, *cv = m->v;
    const size_t layer = (size_t) il * (size_t) hp->n_ctx * (size_t) e * sizeof(float), row = (size_t) e * sizeof(float);
    ggml_build_forward_expand(gf, ggml_cpy(c, k, ggml_view_2d(c, ck, e, n, row, layer + (size_t) n_past * row)));
    ggml_build_forward_expand(gf, ggml_cpy(c, v, ggml_view_2d(c, cv, e, n, row, layer + (size_t) n_past * row)));
    q = ggml_permute(c, ggml_cont_3d(c, q, d, hp->n_head, n), 0, 2, 1, 3);
    k = ggml_permute(c, ggml_view_3d(c, ck, d, hp->n_head, n_kv, (size_t) d * sizeof(float), row, layer), 0, 2, 1, 3);
    v = ggml_permute(c, ggml_view_3d(c, cv, d, hp->n_head, n_kv, (size_t) d * sizeof(float), row, layer), 1, 2, 0, 3);
    struct ggml_tensor *kq = ggml_scale(c, ggml_mul_mat(c, k, q), 1.0f / sqrtf((float) d));
    kq = ggml_soft_max(c, ggml_diag_mask_inf(c, kq, n_past));
    struct ggml_tensor *kqv = ggml_mul_mat(c, ggml_cont(c, v), kq);  // [d, n, head]
    x = ggml_cont_2d(c, ggml_permute(c, kqv, 0, 2, 1, 3), e, n);
    return linear(c, l->proj_w, l->proj_b, x);
}

static struct ggml_cgraph *build(const struct model *m, struct ggml_context *c, int n, int n_past) {
    const struct gpt2_hparams *hp = &m->file.hp;
    struct ggml_cgraph *gf = ggml_new_graph(c);
    struct ggml_tensor *tokens = ggml_set_name(ggml_new_tensor_1d(c, GGML_TYPE_I32, n), "tokens");
    struct ggml_tensor *positions = ggml_set_name(ggml_new_tensor_1d(c, GGML_TYPE_I32, n), "positions"), *x;
    ggml_set_input(tokens);
    ggml_set_input(positions);
    x = ggml_add(c, ggml_get_rows(c, m->w.wte, tokens), ggml_get_rows(c, m->w.wpe, positions));
    for (int il = 0; il < hp->n_layer; il++) {
        const struct gpt2_layer *l = &m->w.layers[il];
        x = ggml_add(c, attention(m, c, gf, il, norm(c, x, hp->eps, l->ln_1_g, l->ln_1_b), n, n_past), x);
        struct ggml_tensor *h = ggml_gelu(c, linear(c, l->up_w, l->up_b, norm(c, x, hp->eps, l->ln_2_g, l->ln_2_b)));
        x = ggml_add(c, linear(c, l->down_w, l->down_b, h), x);
    }
    x = ggml_view_2d(c, x, hp->n_embd, 1, x->nb[1], (size_t) (n - 1) * x->nb[1]);  // only the last token's logits are wanted
    x = ggml_mul_mat(c, m->w.lm_head, norm(c, x, hp->eps, m->w.ln_f_g, m->w.ln_f_b));
    ggml_set_output(ggml_set_name(x, "logits"));
    ggml_build_forward_expand(gf, x);
    return gf;
}

static const float *eval(struct model *m, const int32_t *ids, int n, int n_past) {
    ggml_reset(m->graphs);  // the headers of the batch before
    struct ggml_cgraph *gf = build(m, m->graphs, n, n_past);
    ggml_backend_sched_reset(m->sched);
    bool ok = gf && ggml_backend_sched_alloc_graph(m->sched, gf);
    if (ok) {
        for (int i = 0; i < n; i++) m->positions[i] = n_past + i;
        ggml_backend_tensor_set(ggml_graph_get_tensor(gf, "tokens"), ids, 0, (size_t) n * sizeof(int32_t));
        ggml_backend_tensor_set(ggml_graph_get_tensor(gf, "positions"), m->positions, 0, (size_t) n * sizeof(int32_t));
        ok = ggml_backend_sched_graph_compute(m->sched, gf) == GGML_STATUS_SUCCESS;
    }
    if (ok)
        ggml_backend_tensor_get(ggml_graph_get_tensor(gf, "logits"), m->logits, 0,
                                (size_t) m->file.hp.n_vocab * sizeof(float));
    if (!ok) fprintf(stderr, "a batch of %d tokens could not be computed\n", n);
    return ok ? m->logits : NULL;
}

// ---- memory ---------------------------------------------------------------------------------------------------------

static void unload(struct model *m) {
    ggml_backend_sched_free(m->sched);
    ggml_backend_buffer_free(m->cache_buffer);
    for (int p = 0; p < N_PLACES; p++) {
        ggml_backend_buffer_free(m->weights_buffers[p]);
        ggml_backend_free(m->backends[p]);
    }
    ggml_free(m->weights);
    ggml_free(m->cache);
    ggml_free(m->graphs);
    free(m->positions);
    free(m->logits);
    gpt2_free_weights(&m->w);
    gpt2_close(&m->file);
}

static bool start(struct model *m, const struct options *o) {
    m->backends[HOST] = ggml_backend_cpu_init();
    if (!m->backends[HOST]) return false;
    ggml_backend_cpu_set_n_threads(m->backends[HOST], o->n_threads);
    m->n_gpu_layers = o->n_gpu_layers;
    if (m->n_gpu_layers <= 0) return true;
    ggml_backend_dev_t dev = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_GPU);
    m->backends[DEVICE] = dev ? ggml_backend_dev_init(dev, NULL) : NULL;
    if (!m->backends[DEVICE]) fprintf(stderr, "-ngl %d needs a device (LAMINA_SIM=1 makes one)\n", m->n_gpu_layers);
    return m->backends[DEVICE] != NULL;
}

static int place_of_layer(const struct model *m, int il) {
    return il >= m->file.hp.n_layer - m->n_gpu_layers ? DEVICE : HOST;
}

// Where a weight goes follows from its name.
static int place_of(const struct model *m, const char *name) {
    int il;
    if (sscanf(name, "blk.%d.", &il) == 1) return place_of_layer(m, il);
    const bool output = strncmp(name, "output_norm", 11) == 0 || strcmp(name, "lm_head") == 0;
    return m->n_gpu_layers > (output ? 0 : m->file.hp.n_layer) ? DEVICE : HOST;
}

// One buffer and one linear allocator per device.
static bool place_weights(struct model *m) {
    for (int p = 0; p < N_PLACES; p++) {
        if (!m->backends[p]) continue;
        const ggml_backend_buffer_type_t type = ggml_backend_get_default_buffer_type(m->backends[p]);
        const size_t align = ggml_backend_buft_get_alignment(type);
        size_t size = 0;
        for (struct ggml_tensor *t = ggml_get_first_tensor(m->weights); t; t = ggml_get_next_tensor(m->weights, t)) {
            if (place_of(m, t->name) == p) size += GGML_PAD(ggml_backend_buft_get_alloc_size(type, t), align);
        }
        m->weights_buffers[p] = ggml_backend_buft_alloc_buffer(type, size);
        if (!m->weights_buffers[p]) return false;
        ggml_backend_buffer_set_usage(m->weights_buffers[p], GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        struct ggml_tallocr ta = ggml_tallocr_new(m->weights_buffers[p]);
        for (struct ggml_tensor *t = ggml_get_first_tensor(m->weights); t; t = ggml_get_next_tensor(m->weights, t)) {
            if (place_of(m, t->name) == p && ggml_tallocr_alloc(&ta, t) != GGML_STATUS_SUCCESS) return false;
        }
        printf("weights: %8.2f MiB on %s\n", (double) size / 1048576.0, ggml_backend_name(m->backends[p]));
    }
    return true;
}

static bool load(struct model *m, const struct options *o) {
    memset(m, 0, sizeof(*m));
    if (!gpt2_open(&m->file, o->model) || !start(m, o)) return false;
    const struct gpt2_hparams *hp = &m->file.hp;
    const bool apart = place_of(m, "lm_head") != place_of(m, "token_embd.weight");  // tied weights, needed in two places
    m->weights =
        ggml_init((struct ggml_init_params){(size_t) gpt2_n_tensors(&m->file) * ggml_tensor_overhead(), NULL, true});
    if (!m->weights || !gpt2_make_weights(&m->file, m->weights, apart, &m->w)) return false;
    if (!place_weights(m) || !gpt2_read_weights(&m->file, m->weights)) return false;
    m->cache = ggml_init((struct ggml_init_params){2 * ggml_tensor_overhead(), NULL, true});
    if (!m->cache) return false;
    const int64_t n_kv = (int64_t) hp->n_embd * hp->n_ctx * hp->n_layer;
    m->k = ggml_new_tensor_1d(m->cache, GGML_TYPE_F32, n_kv);
    m->v = ggml_new_tensor_1d(m->cache, GGML_TYPE_F32, n_kv);
    const ggml_backend_t home = m->backends[2 * m->n_gpu_layers > hp->n_layer ? DEVICE : HOST];
    m->cache_buffer = ggml_backend_alloc_ctx_tensors(m->cache, home);
    m->logits = malloc((size_t) hp->n_vocab * sizeof(float));
    m->positions = malloc((size_t) o->n_batch * sizeof(int32_t));
    if (!m->cache_buffer || !m->logits || !m->positions) return false;
    ggml_backend_buffer_clear(m->cache_buffer, 0);
    printf("cache:   %8.2f MiB on %s\n", (double) ggml_backend_buffer_get_size(m->cache_buffer) / 1048576.0,
           ggml_backend_name(home));
    return true;
}

// A batch of the largest size, so that threads and what the backends needs beside the plan are there before the first real
// one. What it leaves at the end of the cache is written again before anything reads it.
static bool warm_up(struct model *m, int n) {
    int32_t *ids = calloc((size_t) n, sizeof(int32_t));
    const bool ok = ids && eval(m, ids, n, m->file.hp.n_ctx - n) != NULL;
    free(ids);
    return ok;
}

static bool reserve(struct model *m, const struct options *o) {
    const struct gpt2_hparams *hp = &m->file.hp;
    const int n = o->n_batch < hp->n_ctx ? o->n_batch : hp->n_ctx;
    ggml_backend_t order[N_PLACES];  // preferred first, the processor last
    int n_backends = 0;
    if (m->backends[DEVICE]) order[n_backends++] = m->backends[DEVICE];
    order[n_backends++] = m->backends[HOST];
    m->sched = ggml_backend_sched_new(order, NULL, n_backends, GGML_DEFAULT_GRAPH_SIZE, false, false);
    const size_t headers = (size_t) (40 * hp->n_layer + 40) * ggml_tensor_overhead() + ggml_graph_overhead();
    m->graphs = ggml_init((struct ggml_init_params){headers, NULL, true});
    struct ggml_cgraph *gf = m->graphs && m->sched ? build(m, m->graphs, n, hp->n_ctx - n) : NULL;
    const bool ok = gf && ggml_backend_sched_reserve(m->sched, gf);
    if (!ok) return false;
    for (int i = 0; i < n_backends; i++) {
        printf("compute: %8.2f MiB on %s\n", (double) ggml_backend_sched_get_buffer_size(m->sched, order[i]) / 1048576.0,
               ggml_backend_name(order[i]));
    }
    printf("splits:  %d\n", ggml_backend_sched_get_n_splits(m->sched));
    return warm_up(m, n);
}

// ---- the loop -------------------------------------------------------------------------------------------------------

static bool generate(struct model *m, const struct options *o) {
    int n;
    int32_t *tokens = make_prompt(&m->file, o, &n);
    if (!tokens) return false;
    const int n_prompt = n, n_end = n + o->n_predict;
    uint64_t hash = 0xcbf29ce484222325u;
    bool ok = true;
    for (int at = 0; ok && at < n_end - 1;) {
        const int left = n - at, step = left < o->n_batch ? left : o->n_batch;
        const float *logits = eval(m, tokens + at, step, at);
        ok = logits != NULL;
        if (!ok) break;
        at += step;
        if (at <= n_prompt) printf("%s%d", at == step ? "batches: " : " + ", step);
        if (at == n_prompt) printf("\n");
        if (at < n) continue;
        hash = hash_of(hash, logits, m->file.hp.n_vocab);
        tokens[n++] = best_of(logits, m->file.hp.n_vocab);
    }
    if (ok) {
        printf("tokens:");
        for (int i = n_prompt; i < n; i++) printf(" %d", tokens[i]);
        printf("\ntext: ");
        for (int i = n_prompt; i < n; i++) gpt2_print(&m->file, tokens[i]);
        printf("\nlogits: %016llx\n", (unsigned long long) hash);
    }
    free(tokens);
    return ok;
}

int main(int argc, char **argv) {
    struct options o;
    if (!parse(argc, argv, &o)) {
        const bool help = argc == 2 && strcmp(argv[1], "-h") == 0;
        fprintf(help ? stdout : stderr, usage, argv[0]);
        return help ? 0 : 2;
    }
    struct model m;
    const bool ok = load(&m, &o) && reserve(&m, &o) && generate(&m, &o);
    unload(&m);
    return ok ? 0 : 1;
}
