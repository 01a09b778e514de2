// Measures what the processor's arithmetic and memory give at most with a number of threads: best of 20 tries, all threads
// at once. Every printed share of peak is a share of these.
#include "base/err.h"
#include "kern/peak.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

enum { TRIES = 20, MAX_THREADS = 512 };

struct meter {
    atomic_int arrived;
    int n;
    const char *mem;
    size_t bytes;
    double seconds[MAX_THREADS], done[MAX_THREADS];
    struct ggml_cpu_peaks *out;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

// All threads meet; round: how often they met before.
static void meet(struct meter *m, int *round) {
    const int target = m->n * ++*round;
    atomic_fetch_add(&m->arrived, 1);
    for (int spin = 0; atomic_load(&m->arrived) < target; spin++) {
        if (spin > 1000) sched_yield();
    }
}

static double once(const struct meter *m, int kind, int ith) {
    const struct kern_peak *k = kern_peak();
    const int64_t rounds = 40000;
    if (kind == 0) return k->f32(rounds);
    if (kind == 1) return k->bf16(rounds);
    if (kind == 2) return k->i8(rounds);
    const size_t part = m->bytes / (size_t) m->n / 4096 * 4096;
    return part ? k->read(m->mem + part * (size_t) ith, part) : 0;
}

static void measure(int ith, int nth, void *data) {
    struct meter *m = data;
    double *const out[4] = {&m->out->f32, &m->out->bf16, &m->out->i8, &m->out->read};
    int round = 0;
    (void) nth;
    for (int kind = 0; kind < 4; kind++) {
        for (int try = 0; try < TRIES; try++) {
            meet(m, &round);
            const double t = now();
            m->done[ith] = once(m, kind, ith);
            m->seconds[ith] = now() - t;
            meet(m, &round);
            if (ith != 0) continue;
            double longest = 1e-9, sum = 0;
            for (int i = 0; i < m->n; i++) {
                longest = m->seconds[i] > longest ? m->seconds[i] : longest;
                sum += m->done[i];
            }
            *out[kind] = sum / longest > *out[kind] ? sum / longest : *out[kind];
        }
    }
}

bool ggml_cpu_measure_peaks(int n_threads, const void *mem, size_t bytes, struct ggml_cpu_peaks *peaks) {
    if (!peaks || n_threads < 1 || n_threads > MAX_THREADS || (bytes && !mem)) {
        (void) err_set(ERR_INVALID,
                       "ggml_cpu_measure_peaks: needs 1 to %d threads (%d given), memory to read and a place for the result",
                       MAX_THREADS, n_threads);
        return false;
    }
    *peaks = (struct ggml_cpu_peaks){0};
    struct meter m = {.n = n_threads, .mem = mem, .bytes = bytes, .out = peaks};
    ggml_parallel(n_threads, measure, &m);
    return true;
}
