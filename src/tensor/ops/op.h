// Operations. One operation or family is one file of this folder: builders, shape inference, the forward computation,
// the gradient, and last its descriptor(s)
//     const struct op op_<name> = { ... };
// with one line OP(ID, name) in ops.def. Loops over elements that gain from SIMD live in kern/; an op's run function
// splits the work, calls kernels and needs no ISA variants itself.
#pragma once

#include "graph/graph.h"

struct crew;  // ops/crew.h

// What one thread of a team needs to compute its part of a node.
struct task {
    int ith, nth;       // this thread, of so many
    void *work;         // scratch shared by all threads of the node, 64-byte aligned
    size_t work_bytes;  // at least what scratch() asked for
    struct crew *crew;  // what the threads of a node share
    bool counting;      // task_next has given this thread its first piece
};

// All threads of the node wait here for each other.
void task_barrier(struct task *k);
// Next piece of this node for this thread, for work in pieces 0, 1, 2, ...: first the piece of the thread's own number, then whichever
// nobody has claimed; each is given out once, to every thread in rising order. Counting begins anew before each node, and by
// task_rewind, which all threads must call (it is a barrier, too).
int64_t task_next(struct task *k);
void task_rewind(struct task *k);
// The same where the number n of pieces is known, for all that are asked for: n when there are none left.
static inline int64_t task_piece(struct task *k, int64_t n) { return k->counting && n <= k->nth ? n : task_next(k); }
// The data was bad (row index out of range): nothing is written, the graph's status becomes FAILED with this sentence.
void task_fail(struct task *k, const struct ggml_tensor *node, const char *fmt, ...) GGML_ATTRIBUTE_FORMAT(3, 4);
// Even split of n items: [*i0, *i1) for this thread. Only for outputs: a sum is never split between threads.
static inline void task_range(const struct task *k, int64_t n, int64_t *i0, int64_t *i1) {
    const int64_t per = (n + k->nth - 1) / k->nth;
    *i0 = per * k->ith < n ? per * k->ith : n;
    *i1 = *i0 + per < n ? *i0 + per : n;
}

enum op_flag {
    OP_VIEW = 1,          // result is a view of src[0]: nothing to run
    OP_INPLACE = 2,       // result may overwrite src[0] of the same layout (list LB1 of the memory plan)
    OP_ELEMENTWISE = 4,   // element i of the result depends on element i of the sources alone
    OP_INPLACE_WIDE = 8,  // as OP_INPLACE, but beyond what ggml itself does (list LB2)
};

struct op_shape {
    enum ggml_type type;
    int64_t ne[GGML_MAX_DIMS];
};

struct backward;  // ops/backward.h

struct op {
    enum ggml_op id;
    const char *name;    // "MUL_MAT": what ggml_op_name gives
    const char *symbol;  // "X*Y": what ggml_op_symbol gives
    int n_src;           // sources that must be there; further ones are optional
    unsigned flags;
    // Validates sources and params of t (op, op_params and src set; type and ne not) and gives the result's shape.
    // Records a sentence and returns an error when they do not fit. Also used to verify graphs that come from outside.
    enum err (*infer)(const struct ggml_tensor *t, struct op_shape *shape);
    // Bytes of shared scratch for n_threads threads; NULL means none.
    size_t (*scratch)(const struct ggml_tensor *t, int n_threads);
    // Where fewer tokens may take more scratch (the work is then cut in another way): per source, one more than the dimension that
    // counts them, 0 for none.
    int8_t token_dim[3];
    // From so many tokens on scratch only grows with their number; 0: it does not.
    int16_t many_tokens;
    // The computation; every thread of the team calls it. Must not fail, allocate, log or lock. NULL for views.
    void (*run)(struct task *k, struct ggml_tensor *t);
    // Threads that can be of use (1 for tiny work); NULL means any number.
    // Must depend on the shape alone, be cheap (every thread asks) and give the same to all. Two nodes in a row that need one
    // thread run without a barrier between them.
    int (*threads)(const struct ggml_tensor *t, int n_threads);
    // Adds t's gradient to its sources' gradients; NULL means not differentiable.
    enum err (*backward)(struct backward *b, struct ggml_tensor *t);
};

const struct op *op_get(enum ggml_op id);  // NULL if out of range
// The most scratch that t or the same operation on fewer tokens asks for.
size_t op_scratch_most(const struct op *op, const struct ggml_tensor *t, int n_threads);

// The last step of every builder: checks every source for NULL and the error tensor, runs infer, makes the tensor (a view of
// src[0] for `inplace`), copies params (n_params words) and sources. Returns the error tensor when anything does not fit.
struct ggml_tensor *op_build(struct ggml_context *ctx, enum ggml_op id, bool inplace, const int32_t *params, int n_params,
                             struct ggml_tensor **src, int n_src);
// The general form. want: a type or shape that is the caller's choice, which infer then finds in t (else t->type is
// GGML_TYPE_COUNT and t->ne is 0 there); NULL for none. over: the tensor that the result is written over, as a view; NULL for a new one.
struct ggml_tensor *op_build_as(struct ggml_context *ctx, enum ggml_op id, const struct op_shape *want,
                                struct ggml_tensor *over, const int32_t *params, int n_params, struct ggml_tensor **src,
                                int n_src);
