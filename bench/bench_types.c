// Element types on one core: per type, MB/s of F16 source for quantization (without and with importance weights), 10^9 elements
// per second for encode, decode and dot, and the error of normally distributed data.
// Counts the thread's processor time and takes the best of several runs.
#include "args.h"
#include "type/type.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 65536, ROW = 1024 };

static float x[N], y[N], importance[ROW];
static _Alignas(64) char blocks[N * 8], other[N * 8];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static float normal(void) {
    const double u = (rand() + 1.0) / ((double) RAND_MAX + 2.0), v = rand() / (double) RAND_MAX;
    return (float) (0.02 * sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v));
}

enum task { QUANTIZE, QUANTIZE_WEIGHTED, ENCODE, DECODE, DOT };

static void run(const struct type *t, enum task task, int64_t n) {
    float s;
    switch (task) {
        case QUANTIZE:
        case QUANTIZE_WEIGHTED: t->quantize(x, blocks, n / ROW, ROW, task == QUANTIZE ? NULL : importance); break;
        case ENCODE: t->encode(x, blocks, n); break;
        case DECODE: t->decode(blocks, y, n); break;
        case DOT: t->dot(n, &s, blocks, other); break;
    }
}

// 10^9 elements per second
static double rate(const struct type *t, enum task task) {
    const bool slow = t->search_only && task <= ENCODE;
    const int64_t n = slow ? 4 * ROW : N;
    double best = INFINITY;
    for (int i = 0; i < (slow ? 2 : 7); i++) {
        const double start = now();
        run(t, task, n);
        const double took = now() - start;
        best = took < best ? took : best;
    }
    return 1e-9 * (double) n / best;
}

static void bench(const struct type *t) {
    const double plain = t->quantize && !t->needs_imatrix ? rate(t, QUANTIZE) : 0.0;
    const double weighted = t->quantize ? rate(t, QUANTIZE_WEIGHTED) : 0.0;
    const double encode = t->search_only ? 0.0 : rate(t, ENCODE);
    t->encode(x, blocks, N);
    type_get(t->dot_type)->encode(x, other, N);
    const double decode = rate(t, DECODE), dot = rate(t, DOT);
    double e = 0.0, s = 0.0;
    for (int i = 0; i < N; i++) {
        e += ((double) x[i] - y[i]) * ((double) x[i] - y[i]);
        s += (double) x[i] * x[i];
    }
    printf("%-8s %9.1f %9.1f %8.2f %8.2f %8.2f %10.3e\n", t->name, 2e3 * plain, 2e3 * weighted, encode, decode, dot, e / s);
}

static bool wanted(const char *name, int n, char **names) {
    for (int i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return n == 0;
}

int main(int argc, char **argv) {
    const int from =
        bench_args(argc, argv, "[TYPE ...]",
                   "Element types on one core: MB/s of F16 source quantized without and with importance weights, 10^9 "
                   "elements per second for encode, decode and dot, and the error of normally distributed data.",
                   NULL, 0);
    for (int i = 0; i < N; i++) x[i] = normal();
    for (int i = 0; i < ROW; i++) importance[i] = 1.0f;
    printf("level %s\n%-8s %9s %9s %8s %8s %8s %10s\n", isa_name(isa_active()), "type", "quantize", "weighted", "encode",
           "decode", "dot", "error");
    for (int id = 0; id < GGML_TYPE_COUNT; id++) {
        const struct type *t = type_get((enum ggml_type) id);
        if (t && t->tolerance < INFINITY && wanted(t->name, argc - from, argv + from)) bench(t);
    }
    return 0;
}
