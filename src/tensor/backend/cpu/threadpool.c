// Thread pools: a team with the parameters it was made with. A pool works on one graph at a time.
#include "backend/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

void ggml_threadpool_params_init(struct ggml_threadpool_params *p, int n_threads) {
    if (!p) return;
    memset(p, 0, sizeof *p);  // padding too: programs compare parameters by memcmp
    p->n_threads = n_threads;
    p->prio = GGML_SCHED_PRIO_NORMAL;
    p->poll = 50;
}

struct ggml_threadpool_params ggml_threadpool_params_default(int n_threads) {
    struct ggml_threadpool_params p;
    ggml_threadpool_params_init(&p, n_threads);
    return p;
}

bool ggml_threadpool_params_match(const struct ggml_threadpool_params *p0, const struct ggml_threadpool_params *p1) {
    return p0 && p1 && p0->n_threads == p1->n_threads && p0->prio == p1->prio && p0->poll == p1->poll &&
           p0->strict_cpu == p1->strict_cpu && memcmp(p0->cpumask, p1->cpumask, sizeof p0->cpumask) == 0;
}

struct ggml_threadpool *ggml_threadpool_new(struct ggml_threadpool_params *params) {
    if (!params || params->n_threads < 1 || params->n_threads > GGML_MAX_N_THREADS) {
        (void) err_set(ERR_INVALID, "ggml_threadpool_new: %d threads; 1 to %d are possible", params ? params->n_threads : 0,
                       GGML_MAX_N_THREADS);
        return NULL;
    }
    struct ggml_threadpool *pool = malloc(sizeof *pool);
    if (!pool) {
        (void) err_set(ERR_NOMEM, "ggml_threadpool_new: no memory");
        return NULL;
    }
    *pool = (struct ggml_threadpool){.params = *params, .paused = params->paused};
    pool->team = team_new(&(struct team_params){
        .n_threads = params->n_threads,
        .poll = params->paused ? 0 : params->poll,
        .cpumask = params->cpumask,
        .strict_cpu = params->strict_cpu,
        .priority = params->prio,
    });
    if (pool->team) return pool;
    free(pool);
    return NULL;
}

void ggml_threadpool_free(struct ggml_threadpool *threadpool) {
    if (!threadpool) return;
    team_free(threadpool->team);
    free(threadpool);
}

int ggml_threadpool_get_n_threads(struct ggml_threadpool *threadpool) {
    return threadpool ? team_size(threadpool->team) : 0;
}

// A paused pool's threads sleep without spinning. The next graph resumes it.
void ggml_threadpool_pause(struct ggml_threadpool *threadpool) {
    if (!threadpool) return;
    atomic_store(&threadpool->paused, true);
    team_set_poll(threadpool->team, 0);
}

void ggml_threadpool_resume(struct ggml_threadpool *threadpool) {
    if (!threadpool) return;
    atomic_store(&threadpool->paused, false);
    team_set_poll(threadpool->team, threadpool->params.poll);
}
