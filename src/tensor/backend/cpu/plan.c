// Planning a graph for the CPU: how many threads can be of use, and the scratch memory of the neediest step.
#include "backend/cpu/step.h"
#include "backend/cpu/cpu.h"
#include "ggml/ext.h"

#include <string.h>

int cpu_node_threads(const struct op *op, const struct ggml_tensor *t, int n) {
    if (n <= 1 || !op->threads) return n;
    const int useful = op->threads(t, n);
    return useful < 1 ? 1 : useful < n ? useful : n;
}

bool cpu_node_runs(const struct op *op, const struct ggml_tensor *t) {
    return op->run && (t->flags & GGML_TENSOR_FLAG_COMPUTE) && !ggml_is_empty(t);
}

struct ggml_cplan ggml_graph_plan(const struct ggml_cgraph *cgraph, int n_threads, struct ggml_threadpool *threadpool) {
    struct ggml_cplan plan = {.n_threads = 1, .threadpool = threadpool};
    if (!cgraph) return plan;
    if (threadpool && (n_threads <= 0 || n_threads > team_size(threadpool->team))) n_threads = team_size(threadpool->team);
    if (n_threads <= 0) n_threads = ggml_cpu_default_threads();
    if (n_threads > GGML_MAX_N_THREADS) n_threads = GGML_MAX_N_THREADS;
    for (int i = 0; i < cgraph->n_nodes; i++) {
        const struct ggml_tensor *t = cgraph->nodes[i];
        const struct op *op = op_get(t->op);
        if (!op || !cpu_node_runs(op, t)) continue;
        const int n = cpu_node_threads(op, t, n_threads);
        if (n > plan.n_threads) plan.n_threads = n;
        // Alone or with others: what will be is not known before memory is planned.
        const size_t alone = op->scratch ? op->scratch(t, n) : 0;
        const size_t fused = fuse_scratch(cgraph, i, n_threads, &plan.n_threads);
        if (alone > plan.work_size) plan.work_size = alone;
        if (fused > plan.work_size) plan.work_size = fused;
    }
    if (plan.work_size > 0) plan.work_size += 64;  // the caller's memory may begin anywhere, scratch is aligned to 64
    return plan;
}

// Layers repeat: nodes like one of these have been asked already.
struct seen {
    const struct ggml_tensor *node[32];
    int n;
};

static bool alike(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    if (a->op != b->op || memcmp(a->ne, b->ne, sizeof(a->ne)) != 0) return false;
    for (int k = 0; k < GGML_MAX_SRC; k++) {
        const struct ggml_tensor *s = a->src[k], *t = b->src[k];
        if (!s != !t) return false;
        if (s &&
            (s->type != t->type || memcmp(s->ne, t->ne, sizeof(s->ne)) != 0 || memcmp(s->nb, t->nb, sizeof(s->nb)) != 0))
            return false;
    }
    return memcmp(a->op_params, b->op_params, sizeof(a->op_params)) == 0;
}

static bool is_new(struct seen *s, const struct ggml_tensor *t) {
    for (int i = 0; i < s->n; i++) {
        if (alike(s->node[i], t)) return false;
    }
    if (s->n < (int) (sizeof(s->node) / sizeof(s->node[0]))) s->node[s->n++] = t;
    return true;
}

size_t ggml_graph_work_most(const struct ggml_cgraph *cgraph, int n_threads) {
    if (!cgraph) return 0;
    if (n_threads <= 0) n_threads = ggml_cpu_default_threads();
    if (n_threads > GGML_MAX_N_THREADS) n_threads = GGML_MAX_N_THREADS;
    const size_t now = ggml_graph_plan(cgraph, n_threads, NULL).work_size;
    size_t most = 0;
    struct seen seen = {.n = 0};
    for (int i = 0; i < cgraph->n_nodes; i++) {
        const struct ggml_tensor *t = cgraph->nodes[i];
        const struct op *op = op_get(t->op);
        if (!op || (!op->token_dim[0] && !op->token_dim[1]) || !cpu_node_runs(op, t) || !is_new(&seen, t)) continue;
        const size_t bytes = op_scratch_most(op, t, n_threads);
        if (bytes > most) most = bytes;
    }
    return most > 0 && most + 64 > now ? most + 64 : now;
}
