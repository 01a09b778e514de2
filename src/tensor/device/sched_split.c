// Pass 5 of the scheduler: the nodes are cut where the backend changes, and sources on other backends are replaced by
// copies that are made before the split runs. The result is also written down as a graph of the scheduler's own (nodes
// with the copies where they are made) in which gallocr sees how long everything lives: a source until it has been copied,
// a copy until its last reader.
#include "device/sched.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- tensors of the scheduler's own ---------------------------------------------------------------------------------

struct ggml_tensor *sched_new_tensor(struct ggml_backend_sched *s) {
    struct sched_tensors *p = &s->pool;
    if (p->n_used == p->n_blocks * SCHED_TENSORS_PER_BLOCK) {
        struct ggml_tensor **blocks = realloc(p->blocks, ((size_t) p->n_blocks + 1) * sizeof(*blocks));
        if (blocks) p->blocks = blocks;
        struct ggml_tensor *b = blocks ? malloc(SCHED_TENSORS_PER_BLOCK * sizeof(*b)) : NULL;
        if (!b) DEVICE_FAIL(NULL, ERR_NOMEM, "scheduler: no memory for copies of tensors");
        p->blocks[p->n_blocks++] = b;
    }
    struct ggml_tensor *t = &p->blocks[p->n_used / SCHED_TENSORS_PER_BLOCK][p->n_used % SCHED_TENSORS_PER_BLOCK];
    p->n_used++;
    return t;
}

// A tensor like t, with its strides, that nothing computes. source: what it will be a copy of, so that this lives until
// then.
static struct ggml_tensor *twin(struct ggml_backend_sched *s, struct ggml_tensor *t, struct ggml_tensor *source,
                                const char *where, int set) {
    struct ggml_tensor *c = sched_new_tensor(s);
    if (!c) return NULL;
    memset(c, 0, sizeof(*c));
    c->type = t->type;
    memcpy(c->ne, t->ne, sizeof(c->ne));
    memcpy(c->nb, t->nb, sizeof(c->nb));
    c->src[0] = source;
    snprintf(c->name, sizeof(c->name), "%.15s#%.40s#%d", where, t->name, set);
    return c;
}

// ---- copies ---------------------------------------------------------------------------------------------------------

static int32_t find_copy(const struct ggml_backend_sched *s, const struct sched_entry *e, int backend) {
    const int32_t version = s->entries[e->root].version;
    for (int32_t c = e->copies; c >= 0; c = s->copies[c].next) {
        if (s->copies[c].backend == backend && s->copies[c].version == version) return c;
    }
    return -1;
}

static enum err make_copy(struct ggml_backend_sched *s, struct sched_entry *e, int backend, int32_t *copy) {
    TRY(sched_grow((void **) &s->copies, &s->copy_room, s->n_copies + 1, sizeof(struct sched_copy)));
    struct ggml_tensor *t = e->tensor;
    const struct ggml_tensor *root = t->view_src ? t->view_src : t;
    struct sched_copy *c = &s->copies[s->n_copies];
    *c = (struct sched_copy){.source = t,
                             .next = e->copies,
                             .version = s->entries[e->root].version,
                             .backend = (int16_t) backend,
                             .source_backend = e->backend,
                             .user_input = (root->flags & GGML_TENSOR_FLAG_INPUT) != 0};
    for (int k = 0; k < s->n_sets; k++) {
        // With several sets every copy has memory of its own from start to end, so that two graphs can be under way.
        struct ggml_tensor *source = s->n_sets == 1 ? t : NULL;
        c->to[k] = twin(s, t, source, ggml_backend_name(s->backends[backend]), k);
        if (!c->to[k]) return ERR_NOMEM;
        if (s->n_sets > 1) c->to[k]->flags = GGML_TENSOR_FLAG_INPUT | GGML_TENSOR_FLAG_OUTPUT;
    }
    if (s->n_sets >
        1) {  // the copies are there from the start; this stands where they are made, so that the source lives until then
        c->marker = twin(s, t, t, "copy", 0);
        if (!c->marker) return ERR_NOMEM;
        c->marker->ne[0] = 0;
    }
    *copy = e->copies = s->n_copies++;
    return ERR_OK;
}

// ---- cutting --------------------------------------------------------------------------------------------------------

static bool needs_copy(const struct ggml_backend_sched *s, const struct sched_entry *e, int backend) {
    return e->backend != backend && !sched_readable(s, e, backend);
}

// A weight that must be copied starts a split of its own, so that the copy of the weight before it can be forgotten; and a
// split takes only so many copies.
static bool must_cut(const struct ggml_backend_sched *s, int i, const struct sched_split *split) {
    if (split->n_copies == 0) return false;
    int fresh = 0;
    for (int j = 0; j < GGML_MAX_SRC; j++) {
        const int32_t k = s->node_src[i * GGML_MAX_SRC + j];
        if (k < 0 || !needs_copy(s, &s->entries[k], split->backend)) continue;
        if (find_copy(s, &s->entries[k], split->backend) >= 0) continue;
        fresh++;
        const ggml_backend_buffer_t buffer = sched_buffer(s->entries[k].tensor);
        if (buffer && buffer->usage == GGML_BACKEND_BUFFER_USAGE_WEIGHTS) return true;
    }
    return fresh > 0 && split->n_copies + fresh > SCHED_MAX_SPLIT_INPUTS;
}

static enum err open_split(struct ggml_backend_sched *s, int backend, int i) {
    TRY(sched_grow((void **) &s->splits, &s->split_room, s->n_splits + 1, sizeof(struct sched_split)));
    if (s->n_splits > 0) s->splits[s->n_splits - 1].i_end = i;
    s->splits[s->n_splits++] = (struct sched_split){.backend = backend, .i_start = i, .first_copy = s->n_copies};
    return ERR_OK;
}

static enum err read_node(struct ggml_backend_sched *s, int i, struct sched_split *split) {
    for (int j = 0; j < GGML_MAX_SRC; j++) {
        const int32_t k = s->node_src[i * GGML_MAX_SRC + j];
        if (k < 0 || !needs_copy(s, &s->entries[k], split->backend)) continue;
        int32_t copy = find_copy(s, &s->entries[k], split->backend);
        if (copy < 0) {
            TRY(make_copy(s, &s->entries[k], split->backend, &copy));
            split->n_copies++;
        }
        TRY(sched_grow((void **) &s->patches, &s->patch_room, s->n_patches + 1, sizeof(struct sched_patch)));
        s->patches[s->n_patches++] = (struct sched_patch){.node = s->graph->nodes[i],
                                                          .original = s->graph->nodes[i]->src[j],
                                                          .copy = copy,
                                                          .position = i,
                                                          .i_src = (int16_t) j};
    }
    return ERR_OK;
}

static enum err cut(struct ggml_backend_sched *s) {
    const int n = s->graph->n_nodes;
    for (int i = 0; i < n; i++) {
        const struct sched_entry *e = &s->entries[s->node_entry[i]];
        if (sched_is_view(e->tensor)) continue;
        if (s->n_splits == 0) {
            TRY(open_split(s, e->backend, 0));
        } else if (e->backend != s->splits[s->n_splits - 1].backend || must_cut(s, i, &s->splits[s->n_splits - 1])) {
            TRY(open_split(s, e->backend, i));
        }
        TRY(read_node(s, i, &s->splits[s->n_splits - 1]));
        if (e->tensor->view_src) s->entries[e->root].version++;  // writes its root: copies made before are out of date
    }
    if (s->n_splits == 0 && n > 0) TRY(open_split(s, s->n_backends - 1, 0));
    if (s->n_splits > 0) s->splits[s->n_splits - 1].i_end = n;
    return ERR_OK;
}

// ---- the scheduler's own graph --------------------------------------------------------------------------------------

static enum err own_reserve(struct ggml_backend_sched *s, int n_nodes, int n_leafs) {
    int room = s->own_nodes_room;
    TRY(sched_grow((void **) &s->own.nodes, &room, n_nodes, sizeof(struct ggml_tensor *)));
    TRY(sched_grow((void **) &s->node_ids, &s->own_nodes_room, n_nodes, sizeof(int)));
    room = s->own_leafs_room;
    TRY(sched_grow((void **) &s->own.leafs, &room, n_leafs, sizeof(struct ggml_tensor *)));
    TRY(sched_grow((void **) &s->leaf_ids, &s->own_leafs_room, n_leafs, sizeof(int)));
    s->own.size = n_nodes > n_leafs ? n_nodes : n_leafs;
    return ERR_OK;
}

// gallocr's buffer ids are backend indexes. What lies in foreign memory is placed already; the id does not matter.
static int buffer_id(int backend) { return backend < 0 ? 0 : backend; }

static void add_node(struct ggml_backend_sched *s, struct ggml_tensor *t, int backend) {
    s->node_ids[s->own.n_nodes] = buffer_id(backend);
    s->own.nodes[s->own.n_nodes++] = t;
}

static void add_leaf(struct ggml_backend_sched *s, struct ggml_tensor *t, int backend) {
    s->leaf_ids[s->own.n_leafs] = buffer_id(backend);
    s->own.leafs[s->own.n_leafs++] = t;
}

// With several sets of inputs, each input that has no memory yet gets one place per set.
static enum err rotate_inputs(struct ggml_backend_sched *s) {
    for (int i = 0; s->n_sets > 1 && i < s->graph->n_leafs; i++) {
        struct ggml_tensor *t = s->graph->leafs[i];
        if (!(t->flags & GGML_TENSOR_FLAG_INPUT) || t->view_src || t->data) continue;
        TRY(sched_grow((void **) &s->rotated, &s->rotated_room, s->n_rotated + 1, sizeof(struct sched_rotated)));
        struct sched_rotated *r = &s->rotated[s->n_rotated++];
        *r = (struct sched_rotated){.input = t};
        const int32_t e = sched_find(s, t);
        for (int k = 1; k < s->n_sets; k++) {
            r->others[k] = twin(s, t, NULL, ggml_backend_name(s->backends[buffer_id(s->entries[e].backend)]), k);
            if (!r->others[k]) return ERR_NOMEM;
            r->others[k]->flags = GGML_TENSOR_FLAG_INPUT | GGML_TENSOR_FLAG_OUTPUT;
        }
    }
    return ERR_OK;
}

static void add_leafs(struct ggml_backend_sched *s) {
    for (int i = 0; i < s->graph->n_leafs; i++) {
        add_leaf(s, s->graph->leafs[i], s->entries[sched_find(s, s->graph->leafs[i])].backend);
    }
    for (int i = 0; i < s->n_rotated; i++) {
        const int backend = s->entries[sched_find(s, s->rotated[i].input)].backend;
        for (int k = 1; k < s->n_sets; k++) add_leaf(s, s->rotated[i].others[k], backend);
    }
    for (int i = 0; s->n_sets > 1 && i < s->n_copies; i++) {
        for (int k = 0; k < s->n_sets; k++) add_leaf(s, s->copies[i].to[k], s->copies[i].backend);
    }
}

static enum err write_own(struct ggml_backend_sched *s) {
    TRY(rotate_inputs(s));
    const int most = s->graph->n_leafs + (s->n_rotated + s->n_copies) * s->n_sets;
    TRY(own_reserve(s, s->graph->n_nodes + s->n_copies, most));
    s->own.n_nodes = s->own.n_leafs = 0;
    s->own.visited = s->graph->visited;
    s->own.use_counts = s->graph->use_counts;
    s->own.failure = s->graph->failure;
    s->own.grads = s->own.grad_accs = NULL;
    add_leafs(s);
    int patch = 0;
    for (int k = 0; k < s->n_splits; k++) {
        struct sched_split *split = &s->splits[k];
        for (int c = 0; c < split->n_copies; c++) {
            const struct sched_copy *copy = &s->copies[split->first_copy + c];
            add_node(s, copy->marker ? copy->marker : copy->to[0], split->backend);
        }
        split->own_start = s->own.n_nodes;
        for (int i = split->i_start; i < split->i_end; i++) {
            for (; patch < s->n_patches && s->patches[patch].position == i; patch++)
                s->patches[patch].position = s->own.n_nodes;
            add_node(s, s->graph->nodes[i], s->entries[s->node_entry[i]].backend);
        }
        split->own_end = s->own.n_nodes;
    }
    return ERR_OK;
}

enum err sched_split(struct ggml_backend_sched *s) {
    s->n_splits = s->n_copies = s->n_patches = s->n_rotated = s->pool.n_used = 0;
    TRY(cut(s));
    return write_own(s);
}
