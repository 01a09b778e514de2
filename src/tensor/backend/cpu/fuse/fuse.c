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

const struct fuse *fuse_find(const struct ggml_cgraph *g, int i, int *n) {
    for (size_t k = 0; k < sizeof patterns / sizeof patterns[0]; k++) {
        *n = patterns[k]->match(g, i);
        if (*n > 0) return patterns[k];
    }
    *n = 1;
    return NULL;
}

bool fuse_is_view(const struct ggml_tensor *t) {
    const struct op *op = op_get(t->op);
    return op && (op->flags & OP_VIEW);
}

int fuse_next(const struct ggml_cgraph *g, int i) {
    for (i++; i < g->n_nodes; i++) {
        const struct op *op = op_get(g->nodes[i]->op);
        if (!op) return -1;
        if (op->flags & OP_VIEW) continue;
        return cpu_node_runs(op, g->nodes[i]) ? i : -1;
    }
    return -1;
}

bool fuse_apart(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    const char *pa = a->data, *pb = b->data;
    return pa + ggml_nbytes(a) <= pb || pb + ggml_nbytes(b) <= pa;
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
