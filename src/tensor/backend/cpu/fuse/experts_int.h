// What the two halves of a mixture of experts share.
#pragma once

#include "backend/cpu/cpu.h"
#include "backend/cpu/fuse/fuse.h"
#include "ops/mul_mat.h"

// Whether t adds a row per expert, in place, to a result of `product`: a row for every expert, or an id could be out of its range
// alone.
static inline bool experts_is_bias(const struct ggml_tensor *t, const struct ggml_tensor *product) {
    const struct ggml_tensor *b = t->src[1];
    return t->op == GGML_OP_ADD_ID && t->src[2] == product->src[2] && b->type == GGML_TYPE_F32 &&
           b->nb[0] == sizeof(float) && b->ne[1] >= product->src[0]->ne[2];
}

static inline int experts_threads(struct ggml_tensor *const *nodes, int n, int n_threads) {
    (void) n;
    return cpu_node_threads(op_get(nodes[0]->op), nodes[0], n_threads);
}

// The kernel's job for n_row rows of `product`, written packed to a tile; which expert, which columns and where to is for the caller.
static inline struct mm_job experts_job(const struct mm_plan *plan, const struct task *k, const struct ggml_tensor *product,
                                        int64_t n_row, float *tile) {
    const struct ggml_tensor *a = product->src[0], *b = product->src[1];
    return (struct mm_job){.a_stride = a->nb[1],
                           .row1 = n_row,
                           .k = a->ne[0],
                           .type = a->type,
                           .act = plan->in_place ? b->data : mm_columns(plan, k),
                           .act_stride = plan->in_place ? b->nb[1] : plan->act_stride,
                           .dst = tile,
                           .dst_stride = (size_t) n_row,
                           .scratch = mm_thread_scratch(plan, k),
                           .scratch_bytes = plan->row_at};
}
