// Thread pool parameters. The pools themselves are in ggml-cpu.h.
#pragma once

#include "ggml/types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ggml_threadpool_params {
    bool cpumask[512];              // processors that the threads may use; none set: as the thread that makes the pool
    int n_threads;                  // 1 .. GGML_MAX_N_THREADS, the computing thread included
    enum ggml_sched_priority prio;  // a wish: without the right to it, threads keep their priority
    uint32_t poll;                  // 0 .. 100: how long idle threads spin before they sleep; 0 sleeps at once
    bool strict_cpu;                // one processor of the mask per thread
    bool paused;                    // start without spinning; the first graph resumes the pool
};

// n_threads threads, normal priority, poll 50, no mask.
GGML_API struct ggml_threadpool_params ggml_threadpool_params_default(int n_threads);
GGML_API void ggml_threadpool_params_init(struct ggml_threadpool_params *p, int n_threads);
// Whether a pool made from one would serve for the other (`paused` does not count).
GGML_API bool ggml_threadpool_params_match(const struct ggml_threadpool_params *p0, const struct ggml_threadpool_params *p1);

#ifdef __cplusplus
}
#endif
