// Matrix products at kernel level: per type, GOP/s with many columns as a share of the peaks measured in the same run, and GB/s of
// weights with one column as a share of what reading them linearly gives just before, run by run: the memory of a shared machine is
// now twice as fast as a moment later.
#include "args.h"
#include "kern/mm.h"
#include "kern/peak.h"
#include "type/type.h"

#include "ggml/ext.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct bench {
    int n_thread, repeat;
    int64_t m, k, n;
    size_t weight_bytes;
    struct ggml_cpu_peaks peaks;
};

static clockid_t watch = CLOCK_MONOTONIC;

static double now(void) {
    struct timespec t;
    clock_gettime(watch, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static float noise(uint64_t *s) {
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (float) (*s >> 40) / 8388608.0f - 1.0f;
}

struct pass {
    const struct mm_path *path;
    struct mm_job job;
    int64_t n_mat, rows;  // matrices after one another, rows per piece
    size_t mat_bytes;
    atomic_long next;
    atomic_int arrived;
    uint8_t *scratch;
    size_t scratch_bytes;
    int repeat;
    double *seconds, *reading;  // per run; reading: of the same bytes, linearly, or NULL
};

static void meet(struct pass *p, int nth, int *round) {
    const int target = nth * ++*round;
    atomic_fetch_add(&p->arrived, 1);
    for (int spin = 0; atomic_load(&p->arrived) < target; spin++) {
        if (spin > 2000) sched_yield();
    }
}

// This thread's part of the weights, in order.
static void read_part(const struct pass *p, int ith, int nth) {
    const size_t part = p->mat_bytes * (size_t) p->n_mat / (size_t) nth / 4096 * 4096;
    if (part) kern_peak()->read(p->job.a + part * (size_t) ith, part);
}

static void work(int ith, int nth, void *data) {
    struct pass *p = data;
    struct mm_job j = p->job;
    j.scratch = p->scratch + p->scratch_bytes * (size_t) ith;
    const int64_t per = (j.n_row + p->rows - 1) / p->rows, n = p->n_mat * per;
    int round = 0;
    for (int r = 0; r < p->repeat; r++) {
        if (p->reading) {
            const double t = now();
            meet(p, nth, &round);
            read_part(p, ith, nth);
            meet(p, nth, &round);
            if (ith == 0) p->reading[r] = now() - t;
        }
        if (ith == 0) atomic_store(&p->next, 0);
        const double t =
            now();  // before all meet: on a busy machine this thread may come back from there when the work is done
        meet(p, nth, &round);
        for (int64_t i = atomic_fetch_add(&p->next, 1); i < n; i = atomic_fetch_add(&p->next, 1)) {
            j.a = p->job.a + p->mat_bytes * (size_t) (i / per);
            j.row0 = i % per * p->rows;
            j.row1 = j.row0 + p->rows < j.n_row ? j.row0 + p->rows : j.n_row;
            p->path->run(&j);
        }
        meet(p, nth, &round);
        if (ith == 0) p->seconds[r] = now() - t;
        meet(p, nth, &round);
    }
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *) a, y = *(const double *) b;
    return x < y ? -1 : x > y;
}

// Median (and least) seconds of one pass over all matrices with n columns; share, if wanted: the median of what reading alone takes of it.
static double run_pass(const struct bench *b, const struct type *type, const uint8_t *weights, int64_t n_mat,
                       size_t mat_bytes, int64_t n, const float *x, double *best, double *share) {
    struct pass p = {
        .path = kern_mm()->path(type->id, n, false), .n_mat = n_mat, .mat_bytes = mat_bytes, .repeat = b->repeat};
    p.job = (struct mm_job){.a = weights,
                            .a_stride = mat_bytes / (size_t) b->m,
                            .n_row = b->m,
                            .k = b->k,
                            .n_col = n,
                            .type = type->id,
                            .dst_stride = (size_t) b->m};
    p.job.act_stride = (p.path->act_bytes(b->k) + 63) / 64 * 64;
    uint8_t *act = aligned_alloc(64, mm_columns_bytes(p.path, p.job.act_stride, n));
    for (int64_t c = 0; c < n; c++) mm_encode_column(p.path, x + c * b->k, b->k, act, p.job.act_stride, c);
    p.job.act = act;
    p.job.dst = aligned_alloc(64, (size_t) (n * b->m) * sizeof(float) + 64);
    // Pieces as ggml_mul_mat makes them: of 1 MB for few columns, where reading is what takes time.
    const int64_t megabytes = (int64_t) (mat_bytes >> 20) / b->n_thread + 1, pieces = (n <= 8 ? megabytes : 8) * b->n_thread;
    p.rows = ((b->m + pieces - 1) / pieces + p.path->row_step - 1) / p.path->row_step * p.path->row_step;
    p.scratch_bytes = (p.path->scratch(&p.job) + 63) / 64 * 64;
    p.job.scratch_bytes = p.scratch_bytes;
    if (n > 8 && p.rows > 128) p.rows = 128;
    p.scratch = aligned_alloc(64, p.scratch_bytes * (size_t) b->n_thread);
    p.seconds = calloc((size_t) b->repeat, sizeof(double));
    p.reading = share ? calloc((size_t) b->repeat, sizeof(double)) : NULL;
    ggml_parallel(b->n_thread, work, &p);
    if (share) {
        for (int r = 0; r < b->repeat; r++) p.reading[r] /= p.seconds[r];
        qsort(p.reading, (size_t) b->repeat, sizeof(double), ascending);
        *share = p.reading[b->repeat / 2];
    }
    qsort(p.seconds, (size_t) b->repeat, sizeof(double), ascending);
    const double median = p.seconds[b->repeat / 2];
    *best = p.seconds[0];
    free(p.seconds);
    free(p.reading);
    free(p.scratch);
    free(p.job.dst);
    free(act);
    return median;
}

static void bench_type(const struct bench *b, const struct type *type, uint8_t *weights, const float *x) {
    const size_t mat_bytes = (size_t) (b->k / type->block) * type->size * (size_t) b->m;
    const int64_t n_mat = (int64_t) (b->weight_bytes / mat_bytes) > 0 ? (int64_t) (b->weight_bytes / mat_bytes) : 1;
    float *row = malloc(sizeof(float) * (size_t) b->k);
    uint64_t seed = 7;
    for (int64_t i = 0; i < b->k; i++) row[i] = noise(&seed);
    type->encode(row, weights, b->k);
    const size_t row_bytes = mat_bytes / (size_t) b->m;
    for (int64_t r = 1; r < b->m * n_mat; r++) memcpy(weights + row_bytes * (size_t) r, weights, row_bytes);
    free(row);
    double best, best_one, share;
    const double many = run_pass(b, type, weights, 1, mat_bytes, b->n, x, &best, NULL);
    const double one = run_pass(b, type, weights, n_mat, mat_bytes, 1, x, &best_one, &share);
    const double eight = run_pass(b, type, weights, n_mat > 4 ? 4 : n_mat, mat_bytes, 8, x, &(double){0}, NULL);
    const double ops = 2.0 * (double) (b->m * b->k) * (double) b->n, bytes = (double) mat_bytes * (double) n_mat;
    // What a type's products are held against: F32 and F16 may be products of BF16 parts, which are counted as one product of values.
    const bool ints = kern_mm()->path(type->id, b->n, false)->form >= MM_I8, bf16 = type->id == GGML_TYPE_BF16;
    const double peak = ints ? b->peaks.i8 : bf16 ? b->peaks.bf16 : b->peaks.f32;
    printf("%-8s %8.0f %5.1f%% (best %5.1f%%) of %-5s %7.2f %5.1f%% of reading (best %.2f)   %7.2f\n", type->name,
           ops / many / 1e9, 100 * ops / many / peak, 100 * ops / best / peak,
           ints   ? "int8"
           : bf16 ? "bf16"
                  : "f32",
           bytes / one / 1e9, 100 * share, bytes / best_one / 1e9,
           one / (double) n_mat * 8 / (eight / (double) (n_mat > 4 ? 4 : n_mat)));
    fflush(stdout);
}

int main(int argc, char **argv) {
    struct bench b = {
        .n_thread = ggml_cpu_default_threads(), .repeat = 5, .m = 2048, .k = 2048, .n = 512, .weight_bytes = 256u << 20};
    long threads = b.n_thread, repeat = b.repeat, rows = b.m, depth = b.k, columns = b.n, megabytes = 256, processor = 0;
    const struct bench_option options[] = {
        {"-t", &threads, 1, "threads"},
        {"-m", &rows, 1, "rows of the weights"},
        {"-k", &depth, 32, "values of a row"},
        {"-n", &columns, 1, "columns of the activations"},
        {"-w", &megabytes, 1, "MB of weights to go through for one column"},
        {"-r", &repeat, 1, "runs, of which the median counts"},
        {"-c", &processor, 0, "1: one thread, counting its processor time, so that other processes do not disturb"},
    };
    const int i =
        bench_args(argc, argv, "[TYPE ...]",
                   "Matrix products at kernel level: per type, GOP/s with many columns and GB/s of weights with one, as "
                   "shares of the peaks measured in the same run.",
                   options, sizeof options / sizeof *options);
    b.n_thread = (int) threads, b.repeat = (int) repeat, b.m = rows, b.k = depth, b.n = columns;
    b.weight_bytes = (size_t) megabytes << 20;
    if (processor) watch = CLOCK_THREAD_CPUTIME_ID;
    const size_t bytes = b.weight_bytes + (size_t) (b.m * b.k) * 4;
    uint8_t *weights = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    float *x = malloc(sizeof(float) * (size_t) (b.k * (b.n > 8 ? b.n : 8)));
    if (!weights || !x) return 1;
    memset(weights, 1, bytes);
    uint64_t seed = 3;
    for (int64_t j = 0; j < b.k * (b.n > 8 ? b.n : 8); j++) x[j] = noise(&seed);
    if (watch == CLOCK_THREAD_CPUTIME_ID) b.n_thread = 1;
    if (!ggml_cpu_measure_peaks(b.n_thread, weights, b.weight_bytes, &b.peaks)) return 1;
    printf("level %s, %d threads, %lld x %lld; peaks: f32 %.0f bf16 %.0f GFLOP/s, int8 %.0f GOP/s (1 : %.2f : %.2f), read "
           "%.1f GB/s\n",
           isa_name(isa_active()), b.n_thread, (long long) b.m, (long long) b.k, b.peaks.f32 / 1e9, b.peaks.bf16 / 1e9,
           b.peaks.i8 / 1e9, b.peaks.bf16 / b.peaks.f32, b.peaks.i8 / b.peaks.f32, b.peaks.read / 1e9);
    printf("%-8s %8s at %lld columns %22s GB/s at 1 column %20s\n", "type", "GOP/s", (long long) b.n, "",
           "8 columns, times 1");
    for (int id = 0; id < GGML_TYPE_COUNT; id++) {
        const struct type *type = type_get((enum ggml_type) id);
        if (!type || !type->encode || b.k % type->block || (id >= GGML_TYPE_I8 && id <= GGML_TYPE_F64)) continue;
        int wanted = i >= argc;
        for (int a = i; a < argc; a++) wanted |= strcmp(argv[a], type->name) == 0;
        if (wanted) bench_type(&b, type, weights, x);
    }
    free(weights);
    free(x);
    return 0;
}
