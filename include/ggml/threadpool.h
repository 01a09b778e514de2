// Thread pool parameters.
#pragma once

#include "ggml/types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ggml_threadpool_params {
    bool cpumask[512];
    int n_threads;
    enum ggml_sched_priority prio;
    uint32_t poll;
    bool strict_cpu;
    bool paused;
};

GGML_API struct ggml_threadpool_params ggml_threadpool_params_default(int n_threads);
GGML_API void ggml_threadpool_params_init(struct ggml_threadpool_params *p, int n_threads);
GGML_API bool ggml_threadpool_params_match(const struct ggml_threadpool_params *p0, const struct ggml_threadpool_params *p1);

#ifdef __cplusplus
}
#endif
