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

// ---- what has been asked already --------------------------------------------------------------------------------------

// Nodes that a node may be computed with, and the one that ends them.
enum { WINDOW = 2 * FUSE_MAX + 1, RING = 128, NEAR = 8 };

enum question { ALL, ALONE, TOGETHER, TOGETHER_FEWER };

// Marks of a graph's nodes as a polynomial: that of any nodes in a row comes from two sums.
struct marks {
    const struct ggml_cgraph *g;
    int n;               // nodes summed up
    uint64_t sum[RING];  // of the nodes before the one at its index
    uint64_t power[WINDOW + 1];
};

static const uint64_t base = 0x9e3779b97f4a7c15ull;

static uint64_t mix(uint64_t h, uint64_t v) {
    h = (h ^ v) * 0xd6e8feb86659fd93ull;
    return h ^ h >> 32;
}

static uint64_t mark_tensor(uint64_t h, const struct ggml_tensor *t) {
    uint64_t sum = (uint64_t) t->type, k = base;
    // a sum of products with odd numbers is cheaper than a product after the other
    for (int d = 0; d < GGML_MAX_DIMS; d++, k *= 5) sum += (uint64_t) t->ne[d] * k + t->nb[d] * (k ^ 0x5bd1e995cc9e2d50ull);
    return mix(h, sum);
}

// All that what a node needs depends on; of how nodes are linked, whether a source is one of the last before it.
static uint64_t mark_node(const struct ggml_cgraph *g, int i) {
    const struct ggml_tensor *t = g->nodes[i];
    uint64_t h = mark_tensor(mix((uint64_t) t->op, (uint64_t) t->flags), t), params[sizeof t->op_params / 8];
    memcpy(params, t->op_params, sizeof params);
    for (size_t k = 0; k < sizeof params / sizeof(uint64_t); k++) {
        if (params[k]) h = mix(h, params[k] + k);
    }
    for (int k = 0; k < GGML_MAX_SRC; k++) {
        if (!t->src[k]) continue;
        int back = 1;
        while (back <= NEAR && back <= i && g->nodes[i - back] != t->src[k]) back++;
        h = mark_tensor(mix(h, (uint64_t) (k * RING + back)), t->src[k]);
    }
    return h;
}

static void marks_begin(struct marks *m, const struct ggml_cgraph *g) {
    m->g = g;
    m->n = 0;
    m->sum[0] = 0;
    m->power[0] = 1;
    for (int k = 0; k < WINDOW; k++) m->power[k + 1] = m->power[k] * base;
}

// Of n nodes from the i-th on, of which no earlier ones are asked for later.
static uint64_t mark_of(struct marks *m, int i, int n) {
    for (; m->n < i + n; m->n++) m->sum[(m->n + 1) % RING] = m->sum[m->n % RING] * base + mark_node(m->g, m->n);
    return mix(m->sum[(i + n) % RING] - m->sum[i % RING] * m->power[n], (uint64_t) n);
}

// Whether that question has been asked of nodes so marked; from now on it has.
static bool was_asked(struct cpu_asked *a, enum question q, uint64_t mark) {
    const uint64_t key = mix(mark, q) | 1;
    uint64_t *const home = &a->keys[key % (CPU_ASKED - NEAR)], *slot = home;
    while (slot < home + NEAR && *slot && *slot != key) slot++;
    const bool found = slot < home + NEAR && *slot == key;
    *(slot < home + NEAR ? slot : home) = key;
    return found;
}

// ---- fewer tokens ---------------------------------------------------------------------------------------------------

enum { MAX_COPIES = 2 * WINDOW };

// Copies of the nodes of a span, and of what they read, that can be given fewer tokens.
struct span_copy {
    struct ggml_tensor *nodes[WINDOW];
    struct ggml_tensor copies[MAX_COPIES];
    const struct ggml_tensor *of[MAX_COPIES];
    int8_t dim[MAX_COPIES];  // that counts tokens
    bool rows_packed[MAX_COPIES], packed[MAX_COPIES];
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
    if (c->n_copies == MAX_COPIES) return t;
    c->of[c->n_copies] = t;
    c->dim[c->n_copies] = (int8_t) dim;
    c->rows_packed[c->n_copies] = t->nb[2] == t->nb[1] * (size_t) t->ne[1];
    c->packed[c->n_copies] = t->nb[3] == t->nb[2] * (size_t) t->ne[2];
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
        t->ne[c->dim[k]] = n;
        if (c->rows_packed[k]) t->nb[2] = t->nb[1] * (size_t) t->ne[1];
        if (c->packed[k]) t->nb[3] = t->nb[2] * (size_t) t->ne[2];
    }
}

// n: nodes that may be computed as one, with the node after them, which ended them.
static size_t fused_most(const struct ggml_cgraph *g, int i, int n, int n_threads, struct cpu_asked *asked) {
    struct span_copy c;
    int threads = 1, left;
    if (!copy_span(&c, g, i, n)) return 0;
    const struct ggml_cgraph copy = {.nodes = c.nodes, .n_nodes = c.n};
    const int64_t most_tokens = c.experts || c.n_token <= MM_MANY_TOKENS ? c.n_token - 1 : MM_MANY_TOKENS;
    set_tokens(&c, 1);
    uint64_t key = (uint64_t) most_tokens;
    for (int k = 0; k < n; k++) key = mix(key, mark_node(&copy, k));
    if (was_asked(asked, TOGETHER_FEWER, key)) return 0;  // perhaps of another number of tokens
    size_t most = 0;
    for (int64_t n_token = 1; n_token <= most_tokens; n_token++) {
        set_tokens(&c, n_token);
        const size_t bytes = fuse_scratch(&copy, 0, n_threads, &threads, &left);
        if (bytes > most) most = bytes;
    }
    return most;
}

// ---- all nodes ------------------------------------------------------------------------------------------------------

static int least(int a, int b) { return a < b ? a : b; }

// Bytes of the neediest node, alone or with others: what will be is not known before memory is planned. asked: for fewer tokens, too, and
// only what has not been asked (layers repeat); NULL: only as the graph is. *threads: the most that are of use.
static size_t work_of(const struct ggml_cgraph *g, int n_threads, struct cpu_asked *asked, int *threads) {
    size_t most = 0;
    struct marks marks;
    if (asked) marks_begin(&marks, g);
    for (int i = 0; i < g->n_nodes; i++) {
        const struct ggml_tensor *t = g->nodes[i];
        const struct op *op = op_get(t->op);
        const int left = g->n_nodes - i;
        if (!op || !cpu_node_runs(op, t) || (asked && was_asked(asked, ALL, mark_of(&marks, i, least(left, WINDOW)))))
            continue;
        const int n = cpu_node_threads(op, t, n_threads);
        if (n > *threads) *threads = n;
        int span;
        size_t needs[4] = {op->scratch ? op->scratch(t, n) : 0, fuse_scratch(g, i, n_threads, threads, &span)};
        if (asked && (op->token_dim[0] || op->token_dim[1]) && !was_asked(asked, ALONE, mark_of(&marks, i, 1)))
            needs[2] = op_scratch_most(op, t, n_threads);
        if (asked && span && !was_asked(asked, TOGETHER, mark_of(&marks, i, least(left, span + 1))))
            needs[3] = fused_most(g, i, least(left, span + 1), n_threads, asked);
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

size_t cpu_work_most(const struct ggml_cgraph *g, int n_threads, struct cpu_asked *asked) {
    int threads = 1;
    n_threads = threads_for(n_threads);
    if (asked->n_threads != n_threads) *asked = (struct cpu_asked){.n_threads = n_threads};
    return work_of(g, n_threads, asked, &threads);
}

size_t ggml_graph_work_most(const struct ggml_cgraph *cgraph, int n_threads) {
    struct cpu_asked asked = {0};
    return cgraph ? cpu_work_most(cgraph, n_threads, &asked) : 0;
}
