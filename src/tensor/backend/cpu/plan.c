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

static bool alike(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    if (a->op != b->op || a->type != b->type || memcmp(a->ne, b->ne, sizeof(a->ne)) != 0) return false;
    for (int k = 0; k < GGML_MAX_SRC; k++) {
        const struct ggml_tensor *s = a->src[k], *t = b->src[k];
        if (!s != !t) return false;
        if (s &&
            (s->type != t->type || memcmp(s->ne, t->ne, sizeof(s->ne)) != 0 || memcmp(s->nb, t->nb, sizeof(s->nb)) != 0))
            return false;
    }
    return memcmp(a->op_params, b->op_params, sizeof(a->op_params)) == 0;
}

// Layers repeat: a node is new unless it and those after it, which may be computed with it, are like some nodes before them. Nodes that
// are often are so for a whole layer, so the place that the last one was like is looked at first, and what was found alike
// there is not compared again.
enum { TOGETHER = 8 };

struct seen {
    int node[64];  // new ones, where in the graph
    int n;
    int back, end;  // nodes up to `end` are like those `back` before them; 0: none are
};

// Nodes that must be alike from i on.
static int last_of(const struct ggml_cgraph *g, int i) { return i + TOGETHER < g->n_nodes ? i + TOGETHER : g->n_nodes; }

static bool follow(struct seen *s, const struct ggml_cgraph *g, int i) {
    if (s->end < i) s->end = i;
    while (s->end < last_of(g, i) && alike(g->nodes[s->end - s->back], g->nodes[s->end])) s->end++;
    return s->end == last_of(g, i);
}

// To be asked of every node in turn.
static bool is_new(struct seen *s, const struct ggml_cgraph *g, int i, bool runs) {
    if (s->back && follow(s, g, i)) return false;
    s->back = 0;
    if (!runs) return false;
    for (int k = 0; k < s->n; k++) {
        s->back = i - s->node[k];
        s->end = i;
        if (follow(s, g, i)) return false;
    }
    s->back = 0;
    if (s->n < (int) (sizeof(s->node) / sizeof(s->node[0]))) s->node[s->n++] = i;
    return true;
}

// ---- fewer tokens ---------------------------------------------------------------------------------------------------

// Copies of the nodes of a span, and of what they read, that can be given fewer tokens.
struct span_copy {
    struct ggml_tensor *nodes[FUSE_MAX];
    struct ggml_tensor copies[4 * FUSE_MAX];
    const struct ggml_tensor *of[4 * FUSE_MAX];
    int8_t dim[4 * FUSE_MAX];  // that counts tokens
    int n, n_copies;
    int64_t n_token;
    bool experts;
};

// Tokens are rows, and slices where each goes to several experts; -1: t has none.
static int token_dim(const struct span_copy *c, const struct ggml_tensor *t) {
    if (c->experts && t->ne[2] == c->n_token) return 2;
    return t->ne[1] == c->n_token ? 1 : -1;
}

// What has a row per token is copied, weights are not.
static struct ggml_tensor *copy_of(struct span_copy *c, struct ggml_tensor *t) {
    const int dim = t ? token_dim(c, t) : -1;
    if (dim < 0) return t;
    for (int i = 0; i < c->n_copies; i++) {
        if (c->of[i] == t) return &c->copies[i];
    }
    if (c->n_copies == 4 * FUSE_MAX) return t;
    c->of[c->n_copies] = t;
    c->dim[c->n_copies] = (int8_t) dim;
    c->copies[c->n_copies] = *t;
    return &c->copies[c->n_copies++];
}

static bool copy_span(struct span_copy *c, const struct ggml_cgraph *g, int i, int n) {
    *c = (struct span_copy){.n = n};
    for (int k = 0; k < n && !c->n_token; k++) {
        const struct ggml_tensor *t = g->nodes[i + k];
        c->experts = t->op == GGML_OP_MUL_MAT_ID;
        if (t->op == GGML_OP_MUL_MAT || c->experts) c->n_token = t->src[1]->ne[c->experts ? 2 : 1];
    }
    if (c->n_token < 2) return false;
    for (int k = 0; k < n; k++) c->nodes[k] = copy_of(c, g->nodes[i + k]);
    for (int k = 0; k < c->n_copies; k++) {
        for (int j = 0; j < GGML_MAX_SRC; j++) {
            // a matrix may have as many rows as there are tokens
            const bool matrix = c->copies[k].op == GGML_OP_MUL_MAT || c->copies[k].op == GGML_OP_MUL_MAT_ID;
            if (!matrix || j != 0) c->copies[k].src[j] = copy_of(c, c->copies[k].src[j]);
        }
    }
    return true;
}

static void set_tokens(struct span_copy *c, int64_t n) {
    for (int k = 0; k < c->n_copies; k++) {
        struct ggml_tensor *t = &c->copies[k];
        const bool rows_packed = t->nb[2] == t->nb[1] * (size_t) t->ne[1], packed = t->nb[3] == t->nb[2] * (size_t) t->ne[2];
        t->ne[c->dim[k]] = n;
        if (rows_packed) t->nb[2] = t->nb[1] * (size_t) t->ne[1];
        if (packed) t->nb[3] = t->nb[2] * (size_t) t->ne[2];
    }
}

enum { MANY_TOKENS = 96 };  // from here on scratch of products only grows with their number; not so where experts share them

static size_t fused_most(const struct ggml_cgraph *g, int i, int n_threads) {
    const int left = g->n_nodes - i;
    struct span_copy c;
    int threads = 1;
    if (fuse_scratch(g, i, n_threads, &threads) == 0 || !copy_span(&c, g, i, left < FUSE_MAX ? left : FUSE_MAX)) return 0;
    const struct ggml_cgraph copy = {.nodes = c.nodes, .n_nodes = c.n};
    size_t most = 0;
    for (int64_t n = 1; n < c.n_token && (n <= MANY_TOKENS || c.experts); n++) {
        set_tokens(&c, n);
        const size_t bytes = fuse_scratch(&copy, 0, n_threads, &threads);
        if (bytes > most) most = bytes;
    }
    return most;
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
        if (!is_new(&seen, cgraph, i, op && cpu_node_runs(op, t))) continue;
        const bool counts = op->token_dim[0] || op->token_dim[1];
        const size_t alone = counts ? op_scratch_most(op, t, n_threads) : 0, fused = fused_most(cgraph, i, n_threads);
        if (alone > most) most = alone;
        if (fused > most) most = fused;
    }
    return most > 0 && most + 64 > now ? most + 64 : now;
}
