// Finding patterns, and what all of them need.
#include "backend/cpu/fuse/fuse.h"
#include "backend/cpu/cpu.h"

#define FUSE(name) extern const struct fuse fuse_##name;
#include "backend/cpu/fuse/fuse.def"
#undef FUSE

static const struct fuse *const patterns[] = {
#define FUSE(name) &fuse_##name,
#include "backend/cpu/fuse/fuse.def"
#undef FUSE
};

enum { N_PATTERNS = sizeof patterns / sizeof patterns[0] };

static inline int match(const struct fuse *f, const struct ggml_cgraph *g, int i) {
    const enum ggml_op op = g->nodes[i]->op;
    return op != GGML_OP_NONE && (op == f->begins[0] || op == f->begins[1] || op == f->begins[2]) ? f->match(g, i) : 0;
}

int fuse_span(const struct ggml_cgraph *g, int i) {
    for (int k = 0; k < N_PATTERNS; k++) {
        const int n = patterns[k]->planned ? match(patterns[k], g, i) : 0;
        if (n > 0) return n;
    }
    return 1;
}

// A result without memory: the allocator was told.
static bool is_missing(struct ggml_tensor *const *nodes, int n) {
    for (int i = 0; i < n; i++) {
        if (!nodes[i]->data && !fuse_is_view(nodes[i])) return true;
    }
    return false;
}

const struct fuse *fuse_find(const struct ggml_cgraph *g, int i, int *n) {
    for (int k = 0; k < N_PATTERNS; k++) {
        *n = match(patterns[k], g, i);
        if (*n > 0 && (!patterns[k]->planned || is_missing(&g->nodes[i], *n))) return patterns[k];
    }
    *n = 1;
    return NULL;
}

size_t fuse_scratch(const struct ggml_cgraph *g, int i, int n_threads, int *most, int *longest) {
    size_t bytes = 0;
    *longest = 0;
    for (int k = 0; k < N_PATTERNS; k++) {
        const int n = match(patterns[k], g, i);
        if (n == 0) continue;
        const int nth = patterns[k]->threads(&g->nodes[i], n, n_threads);
        const size_t need = patterns[k]->scratch(&g->nodes[i], n, nth);
        if (nth > *most) *most = nth;
        if (n > *longest) *longest = n;
        if (need > bytes) bytes = need;
    }
    return bytes;
}

static bool reads(const struct ggml_tensor *t, const struct ggml_tensor *what) {
    for (int k = 0; k < GGML_MAX_SRC; k++) {
        if (t->src[k] && (t->src[k] == what || t->src[k]->view_src == what)) return true;
    }
    return false;
}

static bool is_among(struct ggml_tensor *const *nodes, int n, const struct ggml_tensor *t) {
    for (int i = 0; i < n; i++) {
        if (nodes[i] == t || nodes[i] == t->view_src) return true;
    }
    return false;
}

bool fuse_ready(struct ggml_tensor *const *nodes, int n) {
    for (int i = 0; i < n; i++) {
        const struct ggml_tensor *t = nodes[i];
        if (fuse_is_view(t)) continue;
        for (int k = 0; k < GGML_MAX_SRC; k++) {
            const struct ggml_tensor *s = t->src[k];
            if (s && !s->data && !ggml_is_empty(s) && !is_among(nodes, i, s)) return false;
        }
        bool read = false;
        for (int j = i + 1; j < n && !read; j++) read = reads(nodes[j], t);
        if (!t->data && !read) return false;
    }
    return true;
}

bool fuse_is_view(const struct ggml_tensor *t) {
    const struct op *op = op_get(t->op);
    return t->op != GGML_OP_NONE && op && (op->flags & OP_VIEW);
}

int fuse_next(const struct ggml_cgraph *g, int i) {
    for (i++; i < g->n_nodes; i++) {
        const struct op *op = op_get(g->nodes[i]->op);
        if (fuse_is_view(g->nodes[i])) continue;
        return op && cpu_node_runs(op, g->nodes[i]) ? i : -1;
    }
    return -1;
}

bool fuse_apart(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    const char *pa = a->data, *pb = b->data;
    return pa + ggml_nbytes(a) <= pb || pb + ggml_nbytes(b) <= pa;
}

struct ggml_tensor fuse_tile(float *data, int64_t n0, int64_t n1) {
    struct ggml_tensor v = {.type = GGML_TYPE_F32, .ne = {n0, n1, 1, 1}, .data = data};
    v.nb[0] = sizeof(float);
    v.nb[1] = v.nb[0] * (size_t) n0;
    v.nb[2] = v.nb[3] = v.nb[1] * (size_t) n1;
    return v;
}

void fuse_apply(const struct task *k, const struct ggml_tensor *node, const struct ggml_tensor *out,
                const struct ggml_tensor *src0, const struct ggml_tensor *src1) {
    struct ggml_tensor t = *node, s0 = *src0, s1 = src1 ? *src1 : s0;
    for (int d = 0; d < GGML_MAX_DIMS; d++) {
        t.ne[d] = out->ne[d];
        t.nb[d] = out->nb[d];
    }
    t.data = out->data;
    t.src[0] = &s0;
    t.src[1] = src1 ? &s1 : NULL;
    struct task alone = {.nth = 1, .crew = k->crew};
    op_get(t.op)->run(&alone, &t);
}

size_t fuse_singly_scratch(struct ggml_tensor *const *nodes, int n, int n_threads) {
    size_t most = 0;
    for (int i = 0; i < n; i++) {
        const struct op *op = op_get(nodes[i]->op);
        if (!op || !op->scratch || !cpu_node_runs(op, nodes[i])) continue;
        const size_t bytes = op->scratch(nodes[i], n_threads);
        if (bytes > most) most = bytes;
    }
    return most;
}

void fuse_singly(struct task *k, struct ggml_tensor **nodes, int n) {
    for (int i = 0; i < n; i++) {
        const struct op *op = op_get(nodes[i]->op);
        if (!cpu_node_runs(op, nodes[i])) continue;
        op->run(k, nodes[i]);
        if (i + 1 < n) task_rewind(k);
    }
}
