// Reading and encoding the operands of products, and cutting their work.
#include "ops/mul_mat.h"

#include <string.h>

const float *mm_row(const struct ggml_tensor *t, int64_t i1, int64_t i2, int64_t i3, float *tmp) {
    const uint8_t *p = (const uint8_t *) t->data + (size_t) i1 * t->nb[1] + (size_t) i2 * t->nb[2] + (size_t) i3 * t->nb[3];
    const struct type *type = type_get(t->type);
    if (mm_row_in_place(t)) return (const float *) p;
    if (t->nb[0] == type->size || t->ne[0] == type->block) {
        type->decode(p, tmp, t->ne[0]);
    } else {  // infer let this pass for types of one element per block only
        for (int64_t i = 0; i < t->ne[0]; i++) type->decode(p + (size_t) i * t->nb[0], tmp + i, 1);
    }
    return tmp;
}

enum err mm_check(const char *name, const struct ggml_tensor *a, const struct ggml_tensor *b) {
    const struct type *ta = type_facts(a->type), *tb = type_facts(b->type);
    if (!ta || !ta->decode)
        return err_set(ERR_INVALID, "%s: the first source has type %d, which cannot be multiplied", name, a->type);
    if (!tb || !tb->decode)
        return err_set(ERR_INVALID, "%s: the second source has type %d, which cannot be read", name, b->type);
    // rows of no elements lie as they like
    if (a->ne[0] > 0 && (ggml_is_transposed(a) || (a->nb[0] != ta->size && a->ne[0] != ta->block))) {
        return err_set(ERR_INVALID,
                       "%s: rows of the first source must be contiguous (elements are %zu bytes apart, rows %zu); "
                       "use ggml_cont",
                       name, a->nb[0], a->nb[1]);
    }
    if (tb->block > 1 && b->nb[0] != tb->size) {
        return err_set(ERR_INVALID, "%s: rows of a second source of type %s must be contiguous; use ggml_cont", name,
                       tb->name);
    }
    if (a->ne[0] != b->ne[0]) {
        return err_set(ERR_INVALID, "%s: rows of %lld elements cannot be multiplied with columns of %lld", name,
                       (long long) a->ne[0], (long long) b->ne[0]);
    }
    return ERR_OK;
}

void mm_plan(struct mm_plan *p, const struct ggml_tensor *t, int64_t n_col, int64_t n_act, int n_threads) {
    const struct ggml_tensor *a = t->src[0], *b = t->src[1];
    const int64_t k = a->ne[0];
    const bool exact = tensor_param_i32(t, MM_PARAM_SRC + 1) == GGML_PREC_F32;
    p->path = kern_mm()->path(a->type, k ? n_col : 1, exact);
    p->in_place = p->path->form == MM_F32 && mm_row_in_place(b);
    if (t->op == GGML_OP_MUL_MAT_ID && b->nb[2] != b->nb[1] * (size_t) b->ne[1])
        p->in_place = false;  // columns are numbered
    p->n_act = n_act;
    p->private_act = !p->in_place && n_act * k <= MM_PRIVATE_ELEMENTS;
    p->act_stride = p->in_place ? 0 : mm_align(p->path->act_bytes(k));
    p->act_bytes = mm_columns_bytes(p->path, p->act_stride, n_act);
    const struct mm_job j = {.k = k, .n_row = a->ne[1], .type = a->type, .n_col = n_col};
    p->row_at = mm_align(p->path->scratch(&j));
    p->scratch = p->row_at + mm_align((size_t) k * sizeof(float)) + (p->private_act ? p->act_bytes : 0);
    p->total = (p->private_act ? 0 : p->act_bytes) + p->scratch * (size_t) n_threads + 64;
}

bool mm_same_columns(const struct mm_plan *p, const struct mm_plan *q) {
    return !p->in_place && !q->in_place && p->path->form == q->path->form && p->path->variant == q->path->variant &&
           p->act_stride == q->act_stride;
}

uint8_t *mm_thread_scratch(const struct mm_plan *p, const struct task *k) {
    return (uint8_t *) k->work + (p->private_act ? 0 : p->act_bytes) + p->scratch * (size_t) k->ith;
}

uint8_t *mm_columns(const struct mm_plan *p, const struct task *k) {
    return p->private_act ? mm_thread_scratch(p, k) + p->scratch - p->act_bytes : k->work;
}

void mm_encode(const struct mm_plan *p, struct task *k, const struct ggml_tensor *b) {
    if (p->in_place) return;
    uint8_t *act = mm_columns(p, k);
    float *tmp = (float *) (mm_thread_scratch(p, k) + p->row_at);
    int64_t c0 = 0, c1 = p->n_act;
    if (!p->private_act) task_range(k, p->n_act, &c0, &c1);
    for (int64_t c = c0; c < c1; c++) {
        const int64_t i1 = c % b->ne[1], i2 = c / b->ne[1] % b->ne[2], i3 = c / b->ne[1] / b->ne[2];
        mm_encode_column(p->path, mm_row(b, i1, i2, i3, tmp), b->ne[0], act, p->act_stride, c);
    }
    if (!p->private_act) task_barrier(k);
}

// Few columns: what takes time is reading the weights, and the kernels read a piece as several streams, which should be long.
enum { PIECE_BYTES = 1 << 20 };

bool mm_is_small(const struct ggml_tensor *a, int64_t n_col, int n_threads) {
    return n_col <= MM_FEW_COLUMNS && (int64_t) a->nb[1] * a->ne[1] <= (int64_t) PIECE_BYTES * n_threads;
}

int64_t mm_row_block(const struct mm_plan *p, const struct ggml_tensor *a, int64_t n_col, int64_t n_slice, int n_threads) {
    const int64_t n_row = a->ne[1], step = p->path->row_step, slices = n_slice > 0 ? n_slice : 1;
    int64_t pieces;  // of a slice
    if (n_col <= MM_FEW_COLUMNS) {
        const int64_t all = mm_ceil((int64_t) a->nb[1] * n_row * slices, (int64_t) PIECE_BYTES * n_threads) * n_threads;
        pieces = mm_ceil(all, slices);
    } else {
        pieces = n_threads == 1 ? 1 : mm_ceil(8 * n_threads, slices);
    }
    int64_t rows = mm_ceil(mm_ceil(n_row, pieces > 0 ? pieces : 1), step) * step;
    if (n_col > MM_FEW_COLUMNS && rows > 128) rows = 128 / step * step;
    return rows > step ? rows : step;
}

void mm_cut(struct mm_cut *c, const struct mm_plan *p, const struct ggml_tensor *a, int64_t n_col, int64_t n_slice,
            int n_threads) {
    c->n_row = a->ne[1];
    c->n_col = n_col;
    c->rows = mm_row_block(p, a, n_col, n_slice, n_threads);
    const int64_t n_block = mm_ceil(c->n_row, c->rows);
    c->cols = n_threads > 1 ? mm_ceil(4 * n_threads, n_block * n_slice) : 1;
    if (c->cols > n_col / 24) c->cols = n_col / 24 > 1 ? n_col / 24 : 1;
    c->n_piece = n_block * c->cols;
}
