// A product whose result is the first part of a concatenation along dimension 0 (queries of latent attention: what a head's matrix made of
// them, then their rotary part): it is written where the concatenation has it, and the second part is copied behind.
#include "backend/cpu/cpu.h"
#include "backend/cpu/fuse/fuse.h"
#include "ops/copy.h"

// The product as it lies in the concatenation; false where `part`, a view of it, has its elements in other rows.
static bool place(struct ggml_tensor *y, const struct ggml_tensor *part, const struct ggml_tensor *joined) {
    const struct ggml_tensor *t = y;
    const size_t nb[GGML_MAX_DIMS] = {t->nb[0], t->nb[1], t->nb[2], t->nb[3]};
    if (part->ne[0] != t->ne[0] || part->nb[0] != t->nb[0] || joined->nb[0] != t->nb[0]) return false;
    for (int d = 1; d < GGML_MAX_DIMS; d++) {
        int e = 1;
        while (e < GGML_MAX_DIMS && (part->ne[e] != y->ne[d] || part->nb[e] != nb[d])) e++;
        if (y->ne[d] > 1 && e == GGML_MAX_DIMS) return false;
        if (y->ne[d] > 1) y->nb[d] = joined->nb[e];
    }
    y->data = joined->data;
    return true;
}

static int match(const struct ggml_cgraph *g, int i) {
    struct ggml_tensor y = *g->nodes[i];
    const int j = fuse_next(g, i);
    if (y.op != GGML_OP_MUL_MAT || y.view_src || !cpu_node_runs(op_get(y.op), g->nodes[i]) || j < 0 || j - i >= FUSE_MAX)
        return 0;
    const struct ggml_tensor *t = g->nodes[j], *a = t->src[0], *b = t->src[1];
    if (t->op != GGML_OP_CONCAT || tensor_param_i32(t, 0) != 0 || t->view_src) return 0;
    if (a != g->nodes[i] && (a->view_src != g->nodes[i] || a->view_offs != 0)) return 0;
    if (b == g->nodes[i] || b->view_src == g->nodes[i] || ggml_nelements(a) != ggml_nelements(&y)) return 0;
    return place(&y, a, t) ? j - i + 1 : 0;
}

static int threads(struct ggml_tensor *const *nodes, int n, int n_threads) {
    (void) n;
    return cpu_node_threads(op_get(nodes[0]->op), nodes[0], n_threads);
}

static size_t scratch(struct ggml_tensor *const *nodes, int n, int n_threads) {
    (void) n;
    return op_get(nodes[0]->op)->scratch(nodes[0], n_threads);
}

static void run(struct task *k, struct ggml_tensor **nodes, int n) {
    struct ggml_tensor *t = nodes[n - 1], y = *nodes[0], rest = *t;
    if (!place(&y, t->src[0], t)) return;  // cannot be: the step was made of the same nodes
    op_get(y.op)->run(k, &y);
    rest.ne[0] = t->src[1]->ne[0];
    rest.data = (char *) t->data + (size_t) y.ne[0] * t->nb[0];
    copy_run(k, t->src[1], &rest);
}

const struct fuse fuse_joined = {.name = "joined",
                                 .planned = true,
                                 .begins = {GGML_OP_MUL_MAT},
                                 .match = match,
                                 .threads = threads,
                                 .scratch = scratch,
                                 .run = run};
