// Planning a graph for the CPU: how many threads can be of use, and the scratch memory of the neediest step.
#include "backend/cpu/step.h"
#include "backend/cpu/cpu.h"
#include "ggml/ext.h"
#include "ops/mul_mat.h"

#include <string.h>

int cpu_node_threads(const struct op *op, const struct ggml_tensor *t, int n) {
    if (n <= 1 || !op->threads) return n;
    const int useful = op->threads(t, n);
    return useful < 1 ? 1 : useful < n ? useful : n;
}

bool cpu_node_runs(const struct op *op, const struct ggml_tensor *t) {
    return op->run && (t->flags & GGML_TENSOR_FLAG_COMPUTE) && !ggml_is_empty(t);
}

// Nodes that have been asked already what fewer tokens would need, alone (span 0) or with what may be computed with them: layers
// repeat.
enum { ASKED = 128, NEAR = 4 };
struct asked {
    int node[ASKED + NEAR];  // -1: none, as in all else
    int span[ASKED + NEAR];
    struct {
        int back,
            end;  // nodes up to `end` are known to be like those `back` before them: what repeats mostly does so for a layer
    } runs[8];
};

static bool same_nodes(struct asked *a, const struct ggml_cgraph *g, int before, int i, int n) {
    const int back = i - before, r = back % 8;
    int k = a->runs[r].back == back && a->runs[r].end > i ? a->runs[r].end : i;
    while (k < i + n && step_alike(g->nodes[k - back], g->nodes[k])) k++;
    a->runs[r].back = back;
    a->runs[r].end = k;
    return k >= i + n;
}

// Whether they were not.
static bool ask(struct asked *a, const struct ggml_cgraph *g, int i, int span) {
    const int n = span ? span : 1;
    uint64_t h = (uint64_t) span;
    for (int k = i; k < i + n; k++) {
        const struct ggml_tensor *t = g->nodes[k], *s = t->src[0] ? t->src[0] : t;
        h ^= (uint64_t) t->op ^ (uint64_t) t->ne[0] << 8 ^ (uint64_t) s->type << 40 ^ (uint64_t) s->ne[0] << 46;
        h *= 0x9e3779b97f4a7c15ull;
    }
    int at = (int) ((h >> 40) % ASKED), last = at + NEAR - 1;
    bool same = false;
    while (at < last && a->node[at] >= 0) {
        same = a->span[at] == span && same_nodes(a, g, a->node[at], i, n);
        if (same) break;
        at++;
    }
    a->node[at] = i;  // the last ones like it are compared with: a layer before, which next ones are, too
    a->span[at] = span;
    return !same;
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
    c->n = n;
    c->n_copies = 0;  // nodes and copies are written as they come
    c->n_token = 0;
    c->experts = false;
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

// span: nodes that may be computed as one. Asked with the node after them, which ended them.
static size_t fused_most(const struct ggml_cgraph *g, int i, int span, int n_threads, struct asked *asked) {
    const int n = span + 1 < g->n_nodes - i ? span + 1 : g->n_nodes - i;
    struct span_copy c;
    int threads = 1, left;
    if (!ask(asked, g, i, n) || !copy_span(&c, g, i, n)) return 0;
    const struct ggml_cgraph copy = {.nodes = c.nodes, .n_nodes = c.n};
    size_t most = 0;
    for (int64_t n_token = 1; n_token < c.n_token && (n_token <= MM_MANY_TOKENS || c.experts); n_token++) {
        set_tokens(&c, n_token);
        const size_t bytes = fuse_scratch(&copy, 0, n_threads, &threads, &left);
        if (bytes > most) most = bytes;
    }
    return most;
}

// ---- all nodes ------------------------------------------------------------------------------------------------------

// Bytes of the neediest node, alone or with others: what will be is not known before memory is planned. asked: for fewer tokens, too;
// NULL: only as the graph is. *threads: the most that are of use.
static size_t work_of(const struct ggml_cgraph *g, int n_threads, struct asked *asked, int *threads) {
    size_t most = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        const struct ggml_tensor *t = g->nodes[i];
        const struct op *op = op_get(t->op);
        if (!op || !cpu_node_runs(op, t)) continue;
        const int n = cpu_node_threads(op, t, n_threads);
        if (n > *threads) *threads = n;
        int span;
        size_t needs[4] = {op->scratch ? op->scratch(t, n) : 0, fuse_scratch(g, i, n_threads, threads, &span)};
        if (asked && (op->token_dim[0] || op->token_dim[1]) && ask(asked, g, i, 0))
            needs[2] = op_scratch_most(op, t, n_threads);
        if (asked && span) needs[3] = fused_most(g, i, span, n_threads, asked);
        for (int k = 0; k < 4; k++) most = needs[k] > most ? needs[k] : most;
    }
    return most > 0 ? most + 64 : 0;  // the caller's memory may begin anywhere, scratch is aligned to 64
}

static int threads_for(int n) {
    if (n <= 0) n = ggml_cpu_default_threads();
    return n > GGML_MAX_N_THREADS ? GGML_MAX_N_THREADS : n;
}

struct ggml_cplan ggml_graph_plan(const struct ggml_cgraph *cgraph, int n_threads, struct ggml_threadpool *threadpool) {
    struct ggml_cplan plan = {.n_threads = 1, .threadpool = threadpool};
    if (!cgraph) return plan;
    if (threadpool && (n_threads <= 0 || n_threads > team_size(threadpool->team))) n_threads = team_size(threadpool->team);
    plan.work_size = work_of(cgraph, threads_for(n_threads), NULL, &plan.n_threads);
    return plan;
}

size_t ggml_graph_work_most(const struct ggml_cgraph *cgraph, int n_threads) {
    struct asked asked;
    int threads = 1;
    memset(&asked, -1, sizeof(asked));
    return cgraph ? work_of(cgraph, threads_for(n_threads), &asked, &threads) : 0;
}
