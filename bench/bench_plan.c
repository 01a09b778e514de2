// bench_plan [NAME]: memory plans of graphs with the shapes of well-known models. One line each: nodes, what the plan uses,
// the bounds LB1 and LB2, placement in order of execution, and how long planning took (best of several). No weights are
// allocated: they and the caches lie in a buffer type whose memory does not exist.
// bench_plan MODEL.gguf ...: the same for what the runtime builds for models, from their headers alone (files of
// shared/plans/sparse_models.py will do), beside the columns of targets.tsv in the folder that LAMINA_SHARED names. The numbers
// come from the scheduler's debug print, for the largest of a context's graphs; every one must meet its bound.
//
// Columns of MiB; "us" is reading the graph and placing, of the slowest of a context's graphs; "miss" is what the plan exceeds its
// bound by, in bytes (0 everywhere). Met and ABOVE: beside the column of targets.tsv; only LB1 counts as missed.
#include "args.h"
#include "ggml.h"
#include "ggml/device.h"
#include "ggml/plan.h"
#ifdef HAVE_LLAMA
#include "llama.h"
#include "llama/ext.h"
#include "ggml/ext.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// ---- memory that does not exist -------------------------------------------------------------------------------------

static const char *void_name(ggml_backend_buffer_type_t t) { return (void) t, "VOID"; }
static size_t void_align(ggml_backend_buffer_type_t t) { return (void) t, 32; }
static void *void_base(ggml_backend_buffer_t b) { return (void) b, (void *) (uintptr_t) 4096; }
static void void_clear(ggml_backend_buffer_t b, uint8_t v) { (void) b, (void) v; }
static const struct ggml_buffer_iface void_buffer = {.get_base = void_base, .clear = void_clear};
static ggml_backend_buffer_t void_alloc(ggml_backend_buffer_type_t t, size_t n) {
    return ggml_device_buffer_new(t, &void_buffer, NULL, n);
}
static const struct ggml_buffer_type_iface void_iface = {
    .get_name = void_name, .alloc_buffer = void_alloc, .get_alignment = void_align};
static struct ggml_backend_buffer_type void_type = {&void_iface, NULL, NULL};

// ---- shapes ---------------------------------------------------------------------------------------------------------

struct shape {
    const char *name;
    int layers, embd, heads, kv_heads, head_dim, ff, vocab;
    bool gpt;  // layer norms with bias, plain feed-forward part
    bool qk_norm, fused_up;
    int experts, used;      // 0: dense
    int window;             // sliding window on most layers: a second mask
    double lb1, lb1_no_fa;  // to compare with, MiB
};

static const struct shape shapes[] = {
    {.name = "smollm2-135m", 30, 576, 9, 3, 64, 1536, 49152, .lb1 = 18.1, .lb1_no_fa = 163.0},
    {.name = "llama-1b", 22, 2048, 32, 4, 64, 5632, 32000, .lb1 = 45.0, .lb1_no_fa = 537.0},
    {.name = "gpt2-124m", 12, 768, 12, 12, 64, 3072, 50257, .gpt = true, .lb1 = 17.0, .lb1_no_fa = 217.0},
    {.name = "phi3-mini", 32, 3072, 32, 32, 96, 8192, 32064, .fused_up = true, .lb1 = 62.0, .lb1_no_fa = 552.0},
    {.name = "llama3.1-8b", 32, 4096, 32, 8, 128, 14336, 128256, .lb1 = 100.0, .lb1_no_fa = 548.0},
    {.name = "qwen3-8b", 36, 4096, 32, 8, 128, 12288, 151936, .qk_norm = true, .lb1 = 88.0, .lb1_no_fa = 548.0},
    {.name = "gemma3-4b",
     34,
     2560,
     8,
     4,
     256,
     10240,
     262144,
     .qk_norm = true,
     .window = 1024,
     .lb1 = 81.0,
     .lb1_no_fa = 177.0},
    {.name = "llama3.1-70b", 80, 8192, 64, 8, 128, 28672, 128256, .lb1 = 192.0, .lb1_no_fa = 1076.0},
    {.name = "mixtral-8x7b", 32, 4096, 32, 8, 128, 14336, 32000, .experts = 8, .used = 2, .lb1 = 184.0, .lb1_no_fa = 548.0},
    {.name = "qwen3-30b-a3b",
     48,
     2048,
     32,
     4,
     128,
     768,
     151936,
     .qk_norm = true,
     .experts = 128,
     .used = 8,
     .lb1 = 56.3,
     .lb1_no_fa = 542.0},
};

struct build {
    struct ggml_context *weights, *c;
    struct ggml_cgraph *g;
    const struct shape *s;
    int n_token, n_kv, n_seq;
    bool fa, all_rows;
    struct ggml_tensor *pos, *mask, *mask_swa, *rows, *out_ids;
};

static struct ggml_tensor *weight(struct build *b, enum ggml_type type, int64_t n0, int64_t n1, int64_t n2) {
    return ggml_new_tensor_3d(b->weights, type, n0, n1, n2);
}

static struct ggml_tensor *input(struct build *b, enum ggml_type type, int64_t n0, int64_t n1, const char *name) {
    struct ggml_tensor *t = ggml_new_tensor_2d(b->c, type, n0, n1);
    ggml_set_input(t);
    return ggml_set_name(t, name);
}

static struct ggml_tensor *norm(struct build *b, struct ggml_tensor *x) {
    if (!b->s->gpt) return ggml_mul(b->c, ggml_rms_norm(b->c, x, 1e-6f), weight(b, GGML_TYPE_F32, x->ne[0], 1, 1));
    x = ggml_mul(b->c, ggml_norm(b->c, x, 1e-5f), weight(b, GGML_TYPE_F32, x->ne[0], 1, 1));
    return ggml_add(b->c, x, weight(b, GGML_TYPE_F32, x->ne[0], 1, 1));
}

static struct ggml_tensor *linear(struct build *b, struct ggml_tensor *x, int64_t n_out) {
    struct ggml_tensor *y = ggml_mul_mat(b->c, weight(b, GGML_TYPE_F16, x->ne[0], n_out, 1), x);
    return b->s->gpt ? ggml_add(b->c, y, weight(b, GGML_TYPE_F32, n_out, 1, 1)) : y;
}

static struct ggml_tensor *rope(struct build *b, struct ggml_tensor *x, int d) {
    return b->s->gpt ? x : ggml_rope_ext(b->c, x, b->pos, NULL, d, 0, 8192, 1e4f, 1, 0, 1, 32, 1);
}

static struct ggml_tensor *attention(struct build *b, struct ggml_tensor *h, bool windowed) {
    const struct shape *s = b->s;
    struct ggml_context *c = b->c;
    const int64_t d = s->head_dim, t = b->n_token;
    struct ggml_tensor *q = ggml_reshape_3d(c, linear(b, h, d * s->heads), d, s->heads, t);
    struct ggml_tensor *k = ggml_reshape_3d(c, linear(b, h, d * s->kv_heads), d, s->kv_heads, t);
    struct ggml_tensor *v = ggml_reshape_3d(c, linear(b, h, d * s->kv_heads), d, s->kv_heads, t);
    if (s->qk_norm) q = norm(b, q), k = norm(b, k);
    q = rope(b, q, (int) d);
    k = rope(b, k, (int) d);
    ggml_build_forward_expand(b->g, q);
    ggml_build_forward_expand(b->g, k);
    ggml_build_forward_expand(b->g, v);
    const int64_t gqa = d * s->kv_heads;
    struct ggml_tensor *ck = weight(b, GGML_TYPE_F16, gqa, b->n_kv, 1), *cv = weight(b, GGML_TYPE_F16, gqa, b->n_kv, 1);
    ggml_build_forward_expand(b->g, ggml_set_rows(c, ck, ggml_reshape_2d(c, k, gqa, t), b->rows));
    ggml_build_forward_expand(b->g, ggml_set_rows(c, cv, ggml_reshape_2d(c, v, gqa, t), b->rows));
    k = ggml_permute(c, ggml_reshape_3d(c, ck, d, s->kv_heads, b->n_kv), 0, 2, 1, 3);
    q = ggml_permute(c, q, 0, 2, 1, 3);
    struct ggml_tensor *mask = windowed ? b->mask_swa : b->mask;
    if (b->fa) {
        v = ggml_permute(c, ggml_reshape_3d(c, cv, d, s->kv_heads, b->n_kv), 0, 2, 1, 3);
        h = ggml_flash_attn_ext(c, q, k, v, mask, 0.1f, 0, 0);
        h = ggml_reshape_2d(c, h, d * s->heads, t);
    } else {
        v = ggml_view_3d(c, cv, b->n_kv, d, s->kv_heads, (size_t) b->n_kv * 2, (size_t) (b->n_kv * d) * 2, 0);
        struct ggml_tensor *kq = ggml_soft_max_ext(c, ggml_mul_mat(c, k, q), mask, 0.1f, 0);
        h = ggml_cont_2d(c, ggml_permute(c, ggml_mul_mat(c, v, kq), 0, 2, 1, 3), d * s->heads, t);
    }
    return linear(b, h, s->embd);
}

static struct ggml_tensor *experts(struct build *b, struct ggml_tensor *h) {
    const struct shape *s = b->s;
    struct ggml_context *c = b->c;
    const int64_t t = h->ne[1];
    struct ggml_tensor *probs = ggml_soft_max(c, linear(b, h, s->experts));
    struct ggml_tensor *chosen = ggml_argsort_top_k(c, probs, s->used);
    struct ggml_tensor *w = ggml_get_rows(c, ggml_reshape_3d(c, probs, 1, s->experts, t), chosen);
    w = ggml_reshape_2d(c, w, s->used, t);
    w = ggml_div(c, w, ggml_sum_rows(c, w));
    w = ggml_reshape_3d(c, w, 1, s->used, t);
    ggml_build_forward_expand(b->g, w);
    h = ggml_reshape_3d(c, h, s->embd, 1, t);
    struct ggml_tensor *up = ggml_mul_mat_id(c, weight(b, GGML_TYPE_F16, s->embd, s->ff, s->experts), h, chosen);
    struct ggml_tensor *gate = ggml_mul_mat_id(c, weight(b, GGML_TYPE_F16, s->embd, s->ff, s->experts), h, chosen);
    struct ggml_tensor *x =
        ggml_mul_mat_id(c, weight(b, GGML_TYPE_F16, s->ff, s->embd, s->experts), ggml_swiglu_split(c, gate, up), chosen);
    x = ggml_mul(c, x, w);
    struct ggml_tensor *sum = NULL;
    for (int i = 0; i < s->used; i++) {
        struct ggml_tensor *v = ggml_view_2d(c, x, s->embd, t, x->nb[2], (size_t) i * x->nb[1]);
        ggml_build_forward_expand(b->g, v);
        sum = sum ? ggml_add(c, sum, v) : v;
    }
    return sum;
}

static struct ggml_tensor *feed_forward(struct build *b, struct ggml_tensor *h) {
    const struct shape *s = b->s;
    if (s->experts) return experts(b, h);
    if (s->gpt) return linear(b, ggml_gelu(b->c, linear(b, h, s->ff)), s->embd);
    if (s->fused_up) return linear(b, ggml_swiglu(b->c, linear(b, h, 2 * s->ff)), s->embd);
    struct ggml_tensor *up = linear(b, h, s->ff);
    return linear(b, ggml_swiglu_split(b->c, linear(b, h, s->ff), up), s->embd);
}

static void build_graph(struct build *b) {
    const struct shape *s = b->s;
    const int64_t t = b->n_token;
    const enum ggml_type mask_type = b->fa ? GGML_TYPE_F16 : GGML_TYPE_F32;
    b->weights = ggml_init((struct ggml_init_params){16 << 20, NULL, true});
    b->c = ggml_init((struct ggml_init_params){32 << 20, NULL, true});
    b->g = ggml_new_graph_custom(b->c, 16384, false);
    struct ggml_tensor *x =
        ggml_get_rows(b->c, weight(b, GGML_TYPE_F16, s->embd, s->vocab, 1), input(b, GGML_TYPE_I32, t, 1, "tokens"));
    b->pos = input(b, GGML_TYPE_I32, t, 1, "pos");
    b->mask = input(b, mask_type, b->n_kv, t, "mask");
    b->mask_swa = s->window ? input(b, mask_type, b->n_kv, t, "mask_swa") : b->mask;
    b->rows = input(b, GGML_TYPE_I64, t, 1, "rows");
    if (!b->all_rows) b->out_ids = input(b, GGML_TYPE_I32, b->n_seq, 1, "out_ids");
    if (s->gpt) x = ggml_add(b->c, x, ggml_get_rows(b->c, weight(b, GGML_TYPE_F32, s->embd, 8192, 1), b->pos));
    for (int il = 0; il < s->layers; il++) {
        struct ggml_tensor *a = attention(b, norm(b, x), s->window && (il + 1) % 6 != 0);
        if (il == s->layers - 1 && !b->all_rows) {
            a = ggml_get_rows(b->c, a, b->out_ids);
            x = ggml_get_rows(b->c, x, b->out_ids);
        }
        if (s->window) a = norm(b, a);
        x = ggml_add(b->c, a, x);
        struct ggml_tensor *f = feed_forward(b, norm(b, x));
        if (s->window) f = norm(b, f);
        x = ggml_add(b->c, f, x);
    }
    x = ggml_mul_mat(b->c, weight(b, GGML_TYPE_F16, s->embd, s->vocab, 1), norm(b, x));
    ggml_set_output(x);
    ggml_build_forward_expand(b->g, x);
}

// ---- the table ------------------------------------------------------------------------------------------------------

static double mib(size_t n) { return (double) n / 1048576.0; }

static int run(const struct shape *s, int n_token, int n_kv, bool fa, bool all_rows, int n_seq, double lb1) {
    struct build b = {.s = s, .n_token = n_token, .n_kv = n_kv, .fa = fa, .all_rows = all_rows, .n_seq = n_seq};
    build_graph(&b);
    ggml_backend_buffer_t w = ggml_backend_alloc_ctx_tensors_from_buft(b.weights, &void_type);
    ggml_backend_buffer_type_t buft = ggml_backend_cpu_buffer_type();
    int64_t best = INT64_MAX;
    struct ggml_plan_report *r = NULL;
    for (int i = 0; i < 7; i++) {
        ggml_plan_report_free(r);
        r = ggml_plan_report_new(b.g, &buft, 1, NULL, NULL);
        if (!r) {
            printf("%s: no plan\n", s->name);
            return 1;
        }
        if (r->plan_us < best) best = r->plan_us;
    }
    const struct ggml_plan_buffer *p = &r->buffers[0];
    printf("%-14s %5d %4d %5d %3s %4s %5d %9.2f %9.2f %9.2f %9.2f %8zu %5d %6lld", s->name, r->n_nodes, n_token, n_kv,
           fa ? "on" : "off", all_rows ? "all" : "one", n_seq, mib(p->peak), mib(p->lb1), mib(p->lb2), mib(p->best_fit),
           p->peak - p->bound, r->tries, (long long) best);
    if (lb1 > 0) printf("   %7.1f %s", lb1, mib(p->peak) <= lb1 + 0.06 ? "met" : "ABOVE");
    printf("\n");
    const bool missed = p->peak != p->bound || p->peak > p->lb1;
    ggml_plan_report_free(r);
    ggml_backend_buffer_free(w);
    ggml_free(b.weights);
    ggml_free(b.c);
    return missed;
}

#ifdef HAVE_LLAMA
// ---- what the runtime builds ----------------------------------------------------------------------------------------

struct seen {
    size_t nodes, peak, bound, lb1, lb2, best_fit;
    int tries;
    long long us;
    int n_graphs, n_missed;  // of a context's graphs: prompt, generation, encoder
    long long most_us;
};

// Keeps the largest plan that the scheduler reports, and counts those that miss a bound.
static void listen(enum ggml_log_level level, const char *text, void *data) {
    (void) level;
    struct seen now, *s = data;
    char name[32];
    int pieces;
    if (sscanf(text,
               "## plan for %31[^:]: nodes %zu peak %zu bound %zu lb1 %zu lb2 %zu best-fit %zu pieces %d tries %d us %lld",
               name, &now.nodes, &now.peak, &now.bound, &now.lb1, &now.lb2, &now.best_fit, &pieces, &now.tries,
               &now.us) != 10)
        return;
    s->n_graphs++;
    s->n_missed += now.peak != now.bound || now.peak > now.lb1;
    if (now.us > s->most_us) s->most_us = now.us;
    if (now.peak <= s->peak) return;
    now.n_graphs = s->n_graphs, now.n_missed = s->n_missed, now.most_us = s->most_us;
    *s = now;
}

// The columns of targets.tsv, in MiB.
enum column { NODES, PEER_DEFAULT, LOGITS_OUT_DEFAULT, PEER, LB1, LB2, L3, R64, PEER_FA_OFF, LB1_FA_OFF, N_COLUMNS };

static bool targets(const char *model, double v[N_COLUMNS]) {
    char path[512], line[512], name[128];
    const char *shared = getenv("LAMINA_SHARED");
    snprintf(path, sizeof(path), "%s/plans/targets.tsv", shared ? shared : "../shared");
    FILE *f = fopen(path, "r");
    bool found = false;
    while (f && !found && fgets(line, sizeof(line), f)) {
        double t[N_COLUMNS];
        if (sscanf(line, "%127[^\t]\t%lf\t%lf\t%lf\t%lf\t%lf\t%lf\t%lf\t%lf\t%lf\t%lf", name, &t[0], &t[1], &t[2], &t[3],
                   &t[4], &t[5], &t[6], &t[7], &t[8], &t[9]) != 1 + N_COLUMNS)
            continue;
        const size_t n = strcspn(name, " ");  // "llama-1b (synth_model.py)"
        // file names say less (smollm2.gguf) or more (llama-1b-f16.gguf) than the table
        const size_t m =
            strcspn(model, ".") < n && !strchr("0123456789", model[strcspn(model, ".") + 1]) ? strcspn(model, ".") : n;
        found = strncasecmp(model, name, m) == 0;
        if (found) memcpy(v, t, sizeof(t));
    }
    if (f) fclose(f);
    return found;
}

static int beside(const char *what, size_t peak, double target) {
    const bool met = mib(peak) <= target + 0.05;
    printf("  %s %.1f %s", what, target, met ? "met" : "ABOVE");
    return !met;
}

struct setting {
    int n_ctx, n_ub, n_seq;
    bool fa, all;
};

static int run_context(struct llama_model *model, const char *name, const struct setting *s) {
    struct seen seen = {0};
    double t[N_COLUMNS];
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = (uint32_t) s->n_ctx;
    p.n_batch = p.n_ubatch = (uint32_t) s->n_ub;
    p.n_seq_max = (uint32_t) s->n_seq;
    p.kv_unified = true;
    p.n_outputs_max = s->all ? 0 : (uint32_t) s->n_seq;
    p.flash_attn_type = s->fa ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    ggml_log_set(listen, &seen);
    struct llama_context *c = llama_init_from_model(model, p);
    ggml_log_set(NULL, NULL);
    if (!c) printf("%s: %s\n", name, ggml_last_error());
    llama_free(c);
    int missed = seen.n_missed + !c;
    printf("%-14.14s %5zu %4d %5d %3s %4s %5d %9.2f %9.2f %9.2f %9.2f %8zu %5d %6lld", name, seen.nodes, s->n_ub, s->n_ctx,
           s->fa ? "on" : "off", s->all ? "all" : "one", s->n_seq, mib(seen.peak), mib(seen.lb1), mib(seen.lb2),
           mib(seen.best_fit), seen.peak - seen.bound, seen.tries, seen.most_us);
    if (seen.n_missed) printf("  %d of %d graphs MISS a bound", seen.n_missed, seen.n_graphs);
    if (s->n_ub == 512 && s->n_seq == 1 && targets(name, t)) {
        if (!s->all && s->n_ctx == 8192) missed += beside("LB1", seen.peak, s->fa ? t[LB1] : t[LB1_FA_OFF]);
        if (!s->all && s->n_ctx == 8192 && s->fa) (void) beside("LB2", seen.peak, t[LB2]);
        if (!s->all && s->n_ctx == 8192 && s->fa) (void) beside("L3", seen.peak, t[L3]);
        if (s->all && s->n_ctx == 2048 && s->fa) (void) beside("logits-out", seen.peak, t[LOGITS_OUT_DEFAULT]);
    }
    printf("\n");
    fflush(stdout);
    return missed;
}

// From the file's header alone: nothing is allocated for weights, caches and buffers.
static int run_model(const char *path) {
    setenv("GGML_SCHED_DEBUG", "1", 1);
    struct llama_model_params mp = llama_model_default_params();
    mp.n_gpu_layers = 0;
    struct llama_model *model = llama_model_plan_from_file(path, mp);
    if (!model) {
        printf("%s: %s\n", path, ggml_last_error());
        return 1;
    }
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int missed = run_context(model, name, &(struct setting){2048, 512, 1, true, true});
    for (int fa = 1; fa >= 0; fa--) {
        for (int n_ub = 512; n_ub >= 1; n_ub = n_ub == 512 ? 64 : n_ub == 64 ? 1 : 0) {
            for (int k = 0; k < 4; k++)
                missed += run_context(model, name, &(struct setting){8192, n_ub, k & 2 ? 4 : 1, fa, k & 1});
        }
    }
    llama_model_free(model);
    return missed;
}
#else
static int run_model(const char *path) {
    printf("%s: built without the runtime\n", path);
    return 1;
}
#endif

int main(int argc, char **argv) {
    const int from =
        bench_args(argc, argv, "[SHAPE | MODEL.gguf ...]",
                   "Memory plans: nodes, what the plan uses, the bounds LB1 and LB2, placement in order of execution, and "
                   "the time of planning. MODEL.gguf: what the runtime builds for it, from its header alone, beside the "
                   "columns of targets.tsv in the folder that LAMINA_SHARED names. Status 1 if a bound is missed.",
                   NULL, 0);
    int missed = 0;
    printf("%-14s %5s %4s %5s %3s %4s %5s %9s %9s %9s %9s %8s %5s %6s   %7s\n", "model", "nodes", "ub", "kv", "FA", "rows",
           "seqs", "peak", "LB1", "LB2", "best fit", "miss", "tries", "us", "targets.tsv");
    for (int i = from; i < argc; i++) {
        if (strstr(argv[i], ".gguf")) missed += run_model(argv[i]);
    }
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const struct shape *s = &shapes[i];
        if (from < argc && strstr(argv[from], ".gguf")) break;
        if (from < argc && strcmp(argv[from], s->name) != 0) continue;
        missed += run(s, 512, 8192, true, false, 1, s->lb1);
        missed += run(s, 512, 8192, false, false, 1, s->lb1_no_fa);
        missed += run(s, 512, 2048, true, true, 1, 0);
        missed += run(s, 64, 8192, true, false, 4, 0);
        missed += run(s, 64, 8192, false, true, 4, 0);
        missed += run(s, 1, 8192, true, false, 1, 0);
        missed += run(s, 1, 8192, false, false, 1, 0);
    }
    printf("%d missed\n", missed);
    return missed != 0;
}
