// From nodes to steps.
#include "backend/cpu/step.h"
#include "backend/cpu/cpu.h"

#include <stdlib.h>

bool step_find(const struct ggml_cgraph *g, int i, int nth, bool singly, struct step *s) {
    for (; i < g->n_nodes; i++) {
        const struct op *op = op_get(g->nodes[i]->op);
        if (!op || !cpu_node_runs(op, g->nodes[i])) continue;
        int n = 1;
        const struct fuse *f = singly ? NULL : fuse_find(g, i, &n);
        *s = (struct step){.first = i, .n_nodes = (int16_t) n, .fuse = f};
        s->n_threads = (int16_t) (f ? f->threads(&g->nodes[i], n, nth) : cpu_node_threads(op, g->nodes[i], nth));
        return true;
    }
    return false;
}

size_t step_scratch(const struct ggml_cgraph *g, const struct step *s) {
    struct ggml_tensor **nodes = &g->nodes[s->first];
    if (s->fuse) return s->fuse->scratch(nodes, s->n_nodes, s->n_threads);
    const struct op *op = op_get(nodes[0]->op);
    return op->scratch ? op->scratch(nodes[0], s->n_threads) : 0;
}

void step_run(const struct step *s, struct task *k, const struct ggml_cgraph *g) {
    struct ggml_tensor **nodes = &g->nodes[s->first];
    if (s->fuse)
        s->fuse->run(k, nodes, s->n_nodes);
    else
        op_get(nodes[0]->op)->run(k, nodes[0]);
}

// ---- lists ----------------------------------------------------------------------------------------------------------

enum err step_list_reserve(struct step_list *l, const struct ggml_cgraph *g) {
    if (g->n_nodes <= l->room) return ERR_OK;
    struct step *p = realloc(l->steps, (size_t) g->n_nodes * sizeof *p);
    if (!p) return err_set(ERR_NOMEM, "no memory for the steps of a graph of %d nodes", g->n_nodes);
    l->steps = p;
    l->room = g->n_nodes;
    return ERR_OK;
}

bool step_list_is_for(const struct step_list *l, const struct ggml_cgraph *g, int nth) {
    return l->uid != 0 && l->uid == g->uid && l->nodes == g->nodes && l->n_nodes == g->n_nodes && l->nth == nth;
}

bool step_list_make(struct step_list *l, const struct ggml_cgraph *g, int nth) {
    if (g->n_nodes > l->room) return false;
    l->n = 0;
    for (int i = 0; step_find(g, i, nth, false, &l->steps[l->n]); l->n++) i = l->steps[l->n].first + l->steps[l->n].n_nodes;
    l->uid = g->uid;
    l->nodes = g->nodes;
    l->n_nodes = g->n_nodes;
    l->nth = nth;
    return true;
}

void step_list_free(struct step_list *l) {
    free(l->steps);
    *l = (struct step_list){0};
}
