// Element-wise, row and copy operations: time per element and bytes moved per second, beside a plain memcpy of the same run.
// Best of several runs. What reads and writes memory at the memcpy's rate is as fast as it can be; a tensor that fits the cache
// (-n 1024 -r 64) shows the kernels themselves.
#include "args.h"
#include "ggml.h"
#include "ggml-cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct ggml_tensor T;
typedef struct ggml_context C;

static int n_threads = 1;
static int64_t n_col = 1024, n_row = 8192;
static const char *filter = "";

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec * 1e3 + (double) t.tv_nsec * 1e-6;
}

static T *make(C *c, enum ggml_type type, int64_t n0, int64_t n1, int64_t n2) {
    T *t = ggml_new_tensor_3d(c, type, n0, n1, n2);
    memset(t->data, 0x11, ggml_nbytes(t));
    for (int64_t i = 0; type == GGML_TYPE_F32 && i < ggml_nelements(t); i++)
        ((float *) t->data)[i] = (float) (i * 7919 % 2001 - 1000) / 500.0f;
    return t;
}

static size_t bytes_of(const T *t) {
    size_t n = ggml_nbytes(t);
    for (int i = 0; i < GGML_MAX_SRC && t->src[i]; i++) n += ggml_nbytes(t->src[i]);
    return n;
}

static void measure(C *c, const char *name, T *t) {
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 16, false);
    ggml_build_forward_expand(g, t);
    struct ggml_cplan plan = ggml_graph_plan(g, n_threads, NULL);
    plan.work_data = malloc(plan.work_size + 64);
    double best = 1e30;
    for (int i = 0; i < 9; i++) {
        const double start = now_ms();
        if (ggml_graph_compute(g, &plan) != GGML_STATUS_SUCCESS) printf("%s: failed\n", name);
        const double ms = now_ms() - start;
        if (ms < best) best = ms;
    }
    printf("%-24s %9.3f ms  %7.2f ns/element  %7.2f GB/s\n", name, best, best * 1e6 / (double) ggml_nelements(t),
           (double) bytes_of(t) / best * 1e-6);
    free(plan.work_data);
}

static void copy_rate(size_t bytes) {
    char *a = malloc(bytes), *b = malloc(bytes);
    double best = 1e30;
    memset(a, 1, bytes);
    for (int i = 0; i < 9; i++) {
        const double start = now_ms();
        memcpy(b, a, bytes);
        const double ms = now_ms() - start;
        if (ms < best) best = ms;
    }
    printf("%-24s %9.3f ms  %7.2f ns/element  %7.2f GB/s\n", "memcpy, one thread", best, best * 1e6 / (double) (bytes / 4),
           2.0 * (double) bytes / best * 1e-6);
    free(a);
    free(b);
}

#define BENCH(name, expr)                                                                                                   \
    if (strstr(name, filter)) {                                                                                             \
        C *c = ggml_init((struct ggml_init_params){.mem_size = room});                                                      \
        T *a = make(c, GGML_TYPE_F32, n_col, n_row, 1), *h = make(c, GGML_TYPE_F16, n_col, n_row, 1);                       \
        (void) a, (void) h;                                                                                                 \
        measure(c, name, expr);                                                                                             \
        ggml_free(c);                                                                                                       \
    }

static T *positions(C *c, int64_t n) {
    T *t = ggml_new_tensor_1d(c, GGML_TYPE_I32, n);
    for (int64_t i = 0; i < n; i++) ((int32_t *) t->data)[i] = (int32_t) i;
    return t;
}

int main(int argc, char **argv) {
    long threads = n_threads, columns = n_col, rows = n_row;
    const struct bench_option options[] = {
        {"-t", &threads, 1, "threads"},
        {"-n", &columns, 64, "columns, a multiple of 64"},
        {"-r", &rows, 1, "rows"},
    };
    const int from =
        bench_args(argc, argv, "[FILTER]",
                   "Element-wise, row and copy operations: time per element and bytes moved per second, beside a plain "
                   "memcpy of the same run. FILTER: part of the operations' names.",
                   options, sizeof options / sizeof *options);
    if (columns % 64 != 0) {
        fprintf(stderr, "error: -n %ld: the columns must be a multiple of 64\n", columns);
        return 2;
    }
    if (from < argc) filter = argv[from];
    n_threads = (int) threads, n_col = columns, n_row = rows;
    const size_t room = (size_t) (n_col * n_row) * 32 + ((size_t) 1 << 20);
    copy_rate((size_t) (n_col * n_row) * 4);
    BENCH("add", ggml_add(c, a, make(c, GGML_TYPE_F32, n_col, n_row, 1)))
    BENCH("add f16 to f32", ggml_add(c, a, h))
    BENCH("mul by a row", ggml_mul(c, a, make(c, GGML_TYPE_F32, n_col, 1, 1)))
    BENCH("scale", ggml_scale(c, a, 0.5f))
    BENCH("exp", ggml_exp(c, a))
    BENCH("tanh", ggml_tanh(c, a))
    BENCH("silu", ggml_silu(c, a))
    BENCH("gelu", ggml_gelu(c, a))
    BENCH("gelu_erf", ggml_gelu_erf(c, a))
    BENCH("swiglu of two", ggml_swiglu_split(c, a, make(c, GGML_TYPE_F32, n_col, n_row, 1)))
    BENCH("rms_norm", ggml_rms_norm(c, a, 1e-5f))
    BENCH("norm", ggml_norm(c, a, 1e-5f))
    BENCH("soft_max", ggml_soft_max(c, a))
    BENCH("rope", ggml_rope(c, ggml_reshape_3d(c, a, 64, n_col / 64, n_row), positions(c, n_row), 64, 0))
    BENCH("rope neox", ggml_rope(c, ggml_reshape_3d(c, a, 64, n_col / 64, n_row), positions(c, n_row), 64, 2))
    BENCH("sum_rows", ggml_sum_rows(c, a))
    BENCH("argsort", ggml_argsort(c, a, GGML_SORT_ORDER_DESC))
    BENCH("cpy f32 to f16", ggml_cast(c, a, GGML_TYPE_F16))
    BENCH("cpy f16 to f32", ggml_cast(c, h, GGML_TYPE_F32))
    BENCH("cpy f32 to q8_0", ggml_cast(c, a, GGML_TYPE_Q8_0))
    BENCH("cont transposed", ggml_cont(c, ggml_transpose(c, a)))
    BENCH("cont transposed f16", ggml_cont(c, ggml_transpose(c, h)))
    BENCH("cont heads", ggml_cont(c, ggml_permute(c, ggml_reshape_3d(c, a, 64, n_col / 64, n_row), 0, 2, 1, 3)))
    BENCH("get_rows f16", ggml_get_rows(c, h, positions(c, n_row)))
    BENCH("set_rows f16", ggml_set_rows(c, h, a, positions(c, n_row)))
    return 0;
}
