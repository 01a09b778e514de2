// What `lamina bench` measures and how it is printed.
#pragma once

#include "cli/params.h"
#include "ggml/ext.h"

#define BENCH_MAX_LIST 32

struct list {
    int n;
    int32_t v[BENCH_MAX_LIST];
};

// What one pass over a model costs, read off its file.
struct cost {
    double layer_weights, layer_bytes;  // per token
    double head_weights, head_bytes;    // per row of logits
    double attn_dim;                    // sum over layers of heads * (key + value dimensions)
    double kv_dim;                      // sum over layers of K and V values per position
    enum ggml_type type;                // that most weights have
    uint64_t size;
    double n_params;
};

struct test {
    const char *path, *name;
    int32_t n_prompt, n_gen, n_depth, n_batch, n_ubatch, n_threads;
    enum ggml_type type_k, type_v;
    bool flash;
    int64_t when;                       // seconds since 1970
    double t_s[100], mean, median, sd;  // tokens per second of each run
    double share;                       // of the limit that binds
    const char *limit;
    double ops_per_token, bytes_per_token;
};

// bench_print.c: rows in the format of -o, under the column names of llama-bench; what no peer prints comes last.
bool bench_knows(const char *format);
// The peaks on which the shares of the following rows stand. first: headings too.
void bench_peaks(const struct params *p, const struct ggml_cpu_peaks *k, int n_threads, bool first);
void bench_row(const struct test *t, const struct cost *c, const struct params *p, const struct ggml_cpu_peaks *k,
               bool first);
void bench_end(const struct params *p);
