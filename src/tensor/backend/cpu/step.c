// From nodes to steps.
#include "backend/cpu/step.h"
#include "backend/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

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

enum err step_list_reserve(struct step_list *l, int n_nodes) {
    if (n_nodes <= l->room) return ERR_OK;
    struct step *p = realloc(l->steps, (size_t) n_nodes * sizeof *p);
    if (!p) return err_set(ERR_NOMEM, "no memory for the steps of a graph of %d nodes", n_nodes);
    l->steps = p;
    l->room = n_nodes;
    return ERR_OK;
}

bool step_list_is_for(const struct step_list *l, const struct ggml_cgraph *g, int nth) {
    return l->uid != 0 && l->uid == g->uid && l->nodes == g->nodes && l->n_nodes == g->n_nodes && l->nth == nth;
}

// Steps that have been asked for their scratch: layers repeat, and what is alike needs the same.
enum { ASKED = 64 };

static bool same_tensor(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    int64_t other = a->type ^ b->type;
    for (int d = 0; d < GGML_MAX_DIMS; d++) other |= (a->ne[d] ^ b->ne[d]) | (int64_t) (a->nb[d] ^ b->nb[d]);
    return other == 0;
}

bool step_alike(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    if (a->op != b->op || !same_tensor(a, b) || memcmp(a->op_params, b->op_params, sizeof a->op_params) != 0) return false;
    for (int k = 0; k < GGML_MAX_SRC; k++) {
        const struct ggml_tensor *s = a->src[k], *t = b->src[k];
        if (!s != !t || (s && !same_tensor(s, t))) return false;
    }
    return true;
}

// Whether step s needs what step o did.
static bool needs_same(const struct ggml_cgraph *g, const struct step *s, const struct step *o) {
    if (s->fuse != o->fuse || s->n_nodes != o->n_nodes || s->n_threads != o->n_threads) return false;
    for (int k = 0; k < s->n_nodes; k++) {
        if (!step_alike(g->nodes[s->first + k], g->nodes[o->first + k])) return false;
    }
    return true;
}

static size_t place_of(const struct ggml_cgraph *g, const struct step *s) {
    const struct ggml_tensor *last = g->nodes[s->first + s->n_nodes - 1];
    const uint64_t h = (uint64_t) last->op * 31 + (uint64_t) last->ne[0] * 7 + (uint64_t) s->n_nodes;
    return (size_t) (h * 0x9e3779b97f4a7c15ull >> 58);
}

bool step_list_make(struct step_list *l, const struct ggml_cgraph *g, int nth) {
    int32_t asked[ASKED];
    memset(asked, -1, sizeof asked);
    if (g->n_nodes > l->room) return false;
    l->n = l->most = 0;
    l->work = 0;
    for (int i = 0; step_find(g, i, nth, false, &l->steps[l->n]); l->n++) {
        const struct step *s = &l->steps[l->n];
        i = s->first + s->n_nodes;
        if (s->n_threads > l->most) l->most = s->n_threads;
        if (!s->fuse && !op_get(g->nodes[s->first]->op)->scratch) continue;
        int32_t *before = &asked[place_of(g, s)];
        if (*before >= 0 && needs_same(g, s, &l->steps[*before])) continue;
        *before = l->n;
        const size_t bytes = step_scratch(g, s);
        if (bytes > l->work) l->work = bytes;
    }
    l->uid = g->uid;
    l->nodes = g->nodes;
    l->n_nodes = g->n_nodes;
    l->nth = nth;
    l->ready = false;
    return true;
}

void step_list_free(struct step_list *l) {
    free(l->steps);
    *l = (struct step_list){0};
}
