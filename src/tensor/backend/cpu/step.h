// Steps: what the threads of a graph do together before they meet again. Most steps are one node; some are several that are
// computed as one (fuse/). The list is made once for a graph and a number of threads, and kept while the graph is the same.
#pragma once

#include "backend/cpu/fuse/fuse.h"

struct step {
    int32_t first;            // node
    int16_t n_nodes;          // nodes that it spans, views between them included
    int16_t n_threads;        // of use
    const struct fuse *fuse;  // NULL: the one node
};

// The first step at or after node i for nth threads; false if nothing more runs. singly: no nodes are computed as one.
bool step_find(const struct ggml_cgraph *g, int i, int nth, bool singly, struct step *s);
// Whether two nodes have the same operation, parameters, shapes and strides, sources included: both need the same.
bool step_alike(const struct ggml_tensor *a, const struct ggml_tensor *b);
size_t step_scratch(const struct ggml_cgraph *g, const struct step *s);
void step_run(const struct step *s, struct task *k, const struct ggml_cgraph *g);

// A list that is kept, with what all its steps need. Zero-initialised; freed with step_list_free.
struct step_list {
    struct step *steps;
    int n, room;
    uint64_t uid;  // of the graph; 0: the list is for none
    struct ggml_tensor **nodes;
    int n_nodes, nth;
    int most;       // threads that the busiest step can use; 0: nothing runs
    size_t work;    // bytes of scratch of the neediest step
    bool ready;     // all that the steps read and write was found to have memory
    uint64_t used;  // when it was last of use, by the owner's count
};
// Room for the steps of g, so that making the list allocates nothing.
MUST_USE enum err step_list_reserve(struct step_list *l, int n_nodes);
// Whether the list is for g and nth threads.
bool step_list_is_for(const struct step_list *l, const struct ggml_cgraph *g, int nth);
// Makes it so, `most` and `work` included, if there is room; false if not.
bool step_list_make(struct step_list *l, const struct ggml_cgraph *g, int nth);
void step_list_free(struct step_list *l);
