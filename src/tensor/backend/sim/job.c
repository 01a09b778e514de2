// Snapshots of graphs with the device's addresses. A graph may be changed or freed as soon as it has been queued, so
// everything the kernels look at is copied; a tensor that occurs twice is copied once, so that whoever compares pointers
// sees the same graph.
#include "backend/sim/sim.h"

#include <stdlib.h>
#include <string.h>

void sim_job_free(struct sim_job *j) {
    free(j->tensors);
    free(j->nodes);
    free(j->keys);
    free(j->values);
    memset(j, 0, sizeof(*j));
}

static enum err resize(void **p, size_t bytes) {
    void *q = realloc(*p, bytes);
    if (!q) return err_set(ERR_NOMEM, "sim: no memory for a graph of %zu bytes", bytes);
    *p = q;
    return ERR_OK;
}

int sim_job_count(const struct ggml_cgraph *graph) {
    int n = graph->n_nodes;
    for (int i = 0; i < graph->n_nodes; i++) {
        for (int k = 0; k < GGML_MAX_SRC; k++) n += graph->nodes[i]->src[k] != NULL;
    }
    return n;
}

bool sim_job_has_room(const struct sim_job *j, const struct ggml_cgraph *graph) {
    return graph->n_nodes <= j->node_room && sim_job_count(graph) <= j->room;
}

static size_t map_size_for(int n_tensors) {
    size_t size = 64;
    while (size < 2 * (size_t) n_tensors) size *= 2;
    return size;
}

enum err sim_job_reserve(struct sim_job *j, int n_nodes, int n_tensors) {
    if (n_nodes > j->node_room) {
        TRY(resize((void **) &j->nodes, (size_t) n_nodes * sizeof(*j->nodes)));
        j->node_room = n_nodes;
    }
    if (n_tensors <= j->room) return ERR_OK;
    const size_t size = map_size_for(n_tensors);
    TRY(resize((void **) &j->tensors, (size_t) n_tensors * sizeof(*j->tensors)));
    TRY(resize((void **) &j->keys, size * sizeof(*j->keys)));
    TRY(resize((void **) &j->values, size * sizeof(*j->values)));
    j->map_size = size;
    j->room = n_tensors;
    return ERR_OK;
}

size_t sim_job_bytes(int n_nodes, int n_tensors) {
    const struct sim_job *j = NULL;
    const size_t nodes = (size_t) n_nodes * sizeof(*j->nodes);
    if (n_tensors == 0) return nodes;
    return nodes + (size_t) n_tensors * sizeof(*j->tensors) +
           map_size_for(n_tensors) * (sizeof(*j->keys) + sizeof(*j->values));
}

static int32_t enter(struct sim_job *j, const struct ggml_tensor *t) {
    size_t h = ((uintptr_t) t >> 4) * 0x9E3779B97F4A7C15u >> 32;
    while (j->keys[h & (j->map_size - 1)] && j->keys[h & (j->map_size - 1)] != t) h++;
    h &= j->map_size - 1;
    if (j->keys[h]) return j->values[h];
    const int32_t i = j->n_tensors++;
    j->keys[h] = t;
    j->values[h] = i;
    j->tensors[i] = *t;
    j->tensors[i].data = t->data ? sim_address(t) : NULL;
    return i;
}

// The copy of t, or t itself if there is none.
static struct ggml_tensor *copy_of(const struct sim_job *j, struct ggml_tensor *t) {
    size_t h = ((uintptr_t) t >> 4) * 0x9E3779B97F4A7C15u >> 32;
    while (j->keys[h & (j->map_size - 1)] && j->keys[h & (j->map_size - 1)] != t) h++;
    h &= j->map_size - 1;
    return j->keys[h] ? &j->tensors[j->values[h]] : t;
}

enum err sim_job_take(struct sim_job *j, const struct ggml_cgraph *graph) {
    TRY(sim_job_reserve(j, graph->n_nodes, sim_job_count(graph)));
    memset(j->keys, 0, j->map_size * sizeof(*j->keys));
    j->n_tensors = 0;
    for (int i = 0; i < graph->n_nodes; i++) j->nodes[i] = &j->tensors[enter(j, graph->nodes[i])];
    for (int i = 0; i < graph->n_nodes; i++) {
        for (int k = 0; k < GGML_MAX_SRC; k++) {
            if (graph->nodes[i]->src[k]) j->nodes[i]->src[k] = &j->tensors[enter(j, graph->nodes[i]->src[k])];
        }
    }
    // A view of a tensor that is not copied keeps the caller's: kernels do not follow it, it says only that this is a view.
    for (int i = 0; i < j->n_tensors; i++) {
        if (j->tensors[i].view_src) j->tensors[i].view_src = copy_of(j, j->tensors[i].view_src);
    }
    j->graph = *graph;
    j->graph.nodes = j->nodes;
    j->graph.size = graph->n_nodes;
    j->graph.leafs = NULL;
    j->graph.n_leafs = 0;
    j->graph.visited = (struct tensor_set){0};
    j->graph.use_counts = NULL;
    j->graph.grads = j->graph.grad_accs = NULL;
    return ERR_OK;
}
