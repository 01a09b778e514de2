// Nodes that the CPU computes as one. A pattern is one file of this folder and ends in its descriptor
//     const struct fuse fuse_<name> = { ... };
// with one line FUSE(name) in fuse.def; the first that matches wins.
//
// Rules of every pattern:
// - A match depends on the nodes alone, not on where in memory they are, how many threads there are or what comes after.
// - The results have the bits that the nodes have one by one, whatever the number of threads.
// - Nodes between the first and the last that run nothing (views) belong to no one; all others are members.
#pragma once

#include "ops/op.h"

enum { FUSE_MAX = 32 };  // nodes that a match may span

struct fuse {
    const char *name;
    // Nodes from i on that are computed as one, 0 if this is not a place for the pattern. Cheap: asked for every node.
    int (*match)(const struct ggml_cgraph *g, int i);
    // Threads of use for the n nodes, out of n_threads; depends on shapes alone.
    int (*threads)(struct ggml_tensor *const *nodes, int n, int n_threads);
    // Bytes of scratch that n_threads threads share.
    size_t (*scratch)(struct ggml_tensor *const *nodes, int n, int n_threads);
    void (*run)(struct task *k, struct ggml_tensor **nodes, int n);
};

// The pattern that begins at node i and the number of nodes it spans; NULL if node i is computed by itself.
const struct fuse *fuse_find(const struct ggml_cgraph *g, int i, int *n);

// ---- for patterns ---------------------------------------------------------------------------------------------------

// Whether a node is a view: nothing runs, whoever reads it reads its root.
bool fuse_is_view(const struct ggml_tensor *t);
// The next node after i that is not a view, if it is to be computed; else -1.
int fuse_next(const struct ggml_cgraph *g, int i);
// Whether the bytes of two tensors lie apart.
bool fuse_apart(const struct ggml_tensor *a, const struct ggml_tensor *b);
// Bytes of scratch for the nodes one by one, and computing them so, all threads of the step together.
size_t fuse_singly_scratch(struct ggml_tensor *const *nodes, int n, int n_threads);
void fuse_singly(struct task *k, struct ggml_tensor **nodes, int n);
