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
    // Results that only the nodes themselves read may have no memory: the allocator gives them none, and only then, when at
    // least one of them is missing, the pattern is used. Without this mark every result is written, and the allocator plans the
    // nodes one by one.
    bool planned;
    // Operations of the first node: match is asked for no others. Unused places are 0.
    enum ggml_op begins[3];
    // Nodes from i on that are computed as one, 0 if this is not a place for the pattern. Cheap: asked for every node.
    int (*match)(const struct ggml_cgraph *g, int i);
    // Threads of use for the n nodes, out of n_threads; depends on shapes alone.
    int (*threads)(struct ggml_tensor *const *nodes, int n, int n_threads);
    // Bytes of scratch that n_threads threads share.
    size_t (*scratch)(struct ggml_tensor *const *nodes, int n, int n_threads);
    void (*run)(struct task *k, struct ggml_tensor **nodes, int n);
};

// Nodes that the planned pattern spans that begins at node i; 1 if there is none. What the device says (ggml/device.h).
int fuse_span(const struct ggml_cgraph *g, int i);
// How node i is computed: the pattern that begins there and the number of nodes it spans; NULL: by itself.
const struct fuse *fuse_find(const struct ggml_cgraph *g, int i, int *n);
// The most scratch that any pattern beginning at node i needs, with as many of n_threads threads as are of use, whether memory
// is planned yet or not. *most: raised to that number of threads. *longest: the most nodes that a pattern spans there, 0: there is none.
size_t fuse_scratch(const struct ggml_cgraph *g, int i, int n_threads, int *most, int *longest);
// Whether all is there for a planned pattern to run: what it reads from outside, and what others read of it.
bool fuse_ready(struct ggml_tensor *const *nodes, int n);

// ---- for patterns ---------------------------------------------------------------------------------------------------

// Whether a node is a view: nothing runs, whoever reads it reads its root. (A node without operation is none: its memory is
// written between those before and after it, by the scheduler, say.)
bool fuse_is_view(const struct ggml_tensor *t);
// The next node after i that is not a view, if it is to be computed; else -1.
int fuse_next(const struct ggml_cgraph *g, int i);
// Whether the bytes of two tensors lie apart.
bool fuse_apart(const struct ggml_tensor *a, const struct ggml_tensor *b);
// Floats of a piece in cache: [n0, n1], packed.
struct ggml_tensor fuse_tile(float *data, int64_t n0, int64_t n1);
// Computes what node computes, by its own function, from other sources to another place (out: shape, strides and data).
void fuse_apply(const struct task *k, const struct ggml_tensor *node, const struct ggml_tensor *out,
                const struct ggml_tensor *src0, const struct ggml_tensor *src1);
// Bytes of scratch for the nodes one by one, and computing them so, all threads of the step together.
size_t fuse_singly_scratch(struct ggml_tensor *const *nodes, int n, int n_threads);
void fuse_singly(struct task *k, struct ggml_tensor **nodes, int n);
