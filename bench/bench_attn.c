// Attention through block tables: prefill as a share of the F32 multiply-add peak, decode as a share of the read bandwidth,
// both measured in the same run over the same memory.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "args.h"
#include "ggml-cpu.h"
#include "ggml.h"
#include "ggml/ext.h"
#include "kern/isa.h"

struct bench {
    int n_thread, repeat;
    int64_t n_head, n_kv_head, d, n_query, n_layer, depth;  // depth 0: the usual three
    struct ggml_cpu_peaks peaks;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

struct job {
    struct ggml_context *ctx;
    struct ggml_cgraph *graph;
    struct ggml_cplan plan;
    char *cache;
    size_t cache_bytes;
};

// n_query queries behind `depth` positions, in n_layer layers with a cache of their own each.
static void make(struct job *j, const struct bench *b, enum ggml_type type, int64_t depth, int64_t n_query,
                 int64_t n_layer) {
    const int64_t n_block = (depth + n_query + 63) / 64, cells = n_block * 64, width = b->d * b->n_kv_head;
    const size_t row = ggml_row_size(type, b->d), cell = row * (size_t) b->n_kv_head;
    const size_t floats = (size_t) (b->d * b->n_head * n_query) * 8;
    j->ctx = ggml_init((struct ggml_init_params){.mem_size = (size_t) n_layer * (floats + 8 * ggml_tensor_overhead()) +
                                                             floats + (8u << 20)});
    j->cache_bytes = (size_t) n_layer * 2 * (size_t) cells * cell;
    j->cache = aligned_alloc(4096, (j->cache_bytes + 4095) / 4096 * 4096);
    float *x = malloc((size_t) width * sizeof(float));
    if (!j->ctx || !j->cache || !x) exit(1);
    uint32_t seed = 1;
    for (int64_t i = 0; i < width; i++) x[i] = (float) (int32_t) (seed = seed * 1664525u + 1013904223u) * 0x1p-31f;
    for (int64_t i = 0; i < n_layer * 2 * cells; i++) {
        if (i == 0)
            ggml_quantize_chunk(type, x, j->cache, 0, b->n_kv_head, b->d, NULL);
        else
            memcpy(j->cache + (size_t) i * cell, j->cache, cell);
    }
    struct ggml_tensor *query = ggml_new_tensor_2d(j->ctx, GGML_TYPE_I32, 4, n_query);
    struct ggml_tensor *table = ggml_new_tensor_3d(j->ctx, GGML_TYPE_I32, 3, n_block, 1);
    for (int64_t i = 0; i < n_query; i++) {
        const int32_t p = (int32_t) (depth + i);
        memcpy((int32_t *) query->data + 4 * i, (int32_t[]){0, p, 0, p + 1}, 4 * sizeof p);
    }
    for (int32_t i = 0; i < n_block; i++) memcpy((int32_t *) table->data + 3 * i, (int32_t[]){i, -1, -1}, 3 * sizeof i);
    j->graph = ggml_new_graph_custom(j->ctx, (size_t) n_layer * 8 + 8, false);
    for (int64_t l = 0; l < n_layer; l++) {
        struct ggml_tensor *kv[2];
        for (int i = 0; i < 2; i++) {
            kv[i] = ggml_new_tensor_3d(j->ctx, type, 0, cells, b->n_kv_head);
            kv[i]->ne[0] = b->d;
            kv[i]->nb[1] = cell, kv[i]->nb[2] = row, kv[i]->nb[3] = cell * (size_t) cells;
            kv[i]->data = j->cache + (size_t) (2 * l + i) * (size_t) cells * cell;
        }
        struct ggml_tensor *q = ggml_new_tensor_3d(j->ctx, GGML_TYPE_F32, b->d, n_query, b->n_head);
        for (int64_t i = 0; i < ggml_nelements(q); i++) ((float *) q->data)[i] = x[i % width] * 0.1f;
        struct ggml_tensor *y = ggml_flash_attn_ext(j->ctx, q, kv[0], kv[1], NULL, 0.125f, 0, 0);
        if (!ggml_flash_attn_ext_set_blocks(y, query, table)) exit(1);
        ggml_build_forward_expand(j->graph, y);
    }
    free(x);
    j->plan = ggml_graph_plan(j->graph, b->n_thread, NULL);
    j->plan.work_data = j->plan.work_size ? aligned_alloc(64, (j->plan.work_size + 63) / 64 * 64) : NULL;
}

static void drop(struct job *j) {
    free(j->plan.work_data);
    free(j->cache);
    ggml_free(j->ctx);
}

// Median; *best gets the shortest.
static double median_time(const struct bench *b, struct job *j, double *best) {
    double t[4096];
    const int n = b->repeat < 4096 ? b->repeat : 4096;
    if (ggml_graph_compute(j->graph, &j->plan) != GGML_STATUS_SUCCESS) exit(1);
    for (int i = 0; i < n; i++) {
        const double start = now();
        ggml_graph_compute(j->graph, &j->plan);
        t[i] = now() - start;
    }
    qsort(t, (size_t) n, sizeof *t, by_value);
    *best = t[0];
    return t[n / 2];
}

static void bench_type(struct bench *b, enum ggml_type type) {
    static const int64_t depths[] = {512, 2048, 8192};
    for (int i = 0; i < (b->depth ? 1 : 3); i++) {
        const int64_t depth = b->depth ? b->depth : depths[i];
        struct job j;
        make(&j, b, type, depth, 1, b->n_layer);
        if (!ggml_cpu_measure_peaks(b->n_thread, j.cache, j.cache_bytes, &b->peaks)) exit(1);
        double best_one, best_many;
        const double one = median_time(b, &j, &best_one), bytes = (double) j.cache_bytes, read = b->peaks.read;
        drop(&j);
        make(&j, b, type, depth, b->n_query, 1);
        const double many = median_time(b, &j, &best_many);
        const double seen = (double) b->n_query * ((double) depth + (double) (b->n_query + 1) / 2);
        const double flop = seen * 4 * (double) (b->d * b->n_head);
        drop(&j);
        printf("%-6s %6lld  prefill %6.1f GFLOP/s, %4.1f %% of %4.0f (best %4.1f %%)   decode %5.1f GB/s, %5.1f %% of %4.1f "
               "(best %5.1f %%), %7.1f us per layer\n",
               ggml_type_name(type), (long long) depth, flop / many / 1e9, 100 * flop / many / b->peaks.f32,
               b->peaks.f32 / 1e9, 100 * flop / best_many / b->peaks.f32, bytes / one / 1e9, 100 * bytes / one / read,
               read / 1e9, 100 * bytes / best_one / read, one * 1e6 / (double) b->n_layer);
        fflush(stdout);
    }
}

int main(int argc, char **argv) {
    struct bench b = {.n_thread = ggml_cpu_default_threads(),
                      .repeat = 5,
                      .n_head = 9,
                      .n_kv_head = 3,
                      .d = 64,
                      .n_query = 512,
                      .n_layer = 30};
    long threads = b.n_thread, repeat = b.repeat, heads = b.n_head, kv_heads = b.n_kv_head, size = b.d, queries = b.n_query,
         layers = b.n_layer, depth = 0;
    const struct bench_option options[] = {
        {"-t", &threads, 1, "threads"},
        {"-H", &heads, 1, "heads"},
        {"-k", &kv_heads, 1, "key and value heads"},
        {"-d", &size, 1, "size of a head"},
        {"-n", &queries, 1, "positions of a prefill"},
        {"-l", &layers, 1, "layers of a decoding"},
        {"-D", &depth, 0, "positions in the cache before; 0: several depths"},
        {"-r", &repeat, 1, "runs, of which the median counts"},
    };
    const int i =
        bench_args(argc, argv, "[TYPE ...]",
                   "Attention over a cache of the given types: prefill as a share of the FMA peak, decoding as a share "
                   "of the read bandwidth.",
                   options, sizeof options / sizeof *options);
    b.n_thread = (int) threads, b.repeat = (int) repeat, b.n_head = heads, b.n_kv_head = kv_heads, b.d = size;
    b.n_query = queries, b.n_layer = layers, b.depth = depth;
    printf("level %s, %d threads, %lld heads, %lld kv heads of %lld, prefill of %lld behind each depth, decode over %lld "
           "layers\n",
           isa_name(isa_active()), b.n_thread, (long long) b.n_head, (long long) b.n_kv_head, (long long) b.d,
           (long long) b.n_query, (long long) b.n_layer);
    static const enum ggml_type all[] = {GGML_TYPE_F16, GGML_TYPE_F32, GGML_TYPE_BF16, GGML_TYPE_Q8_0};
    for (int k = 0; k < 4; k++) {
        int wanted = i >= argc;
        for (int a = i; a < argc; a++) wanted |= strcmp(argv[a], ggml_type_name(all[k])) == 0;
        if (wanted) bench_type(&b, all[k]);
    }
    return 0;
}
