// What the products (mul_mat, mul_mat_id, out_prod) share: reading rows of any type and layout as floats, encoding columns,
// and how a node's work is cut.
#pragma once

#include "kern/mm.h"
#include "ops/op.h"
#include "type/type.h"

// Parameter words of mul_mat and mul_mat_id.
enum { MM_PARAM_ACC = 0, MM_PARAM_HINT = 1, MM_PARAM_SRC = 2 /* and 3 */, MM_N_PARAM = 4 };

static inline size_t mm_align(size_t n) { return (n + 63) / 64 * 64; }
static inline int64_t mm_ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Row (i1, i2, i3) of t as floats: in place where it lies so, else through tmp [ne0].
const float *mm_row(const struct ggml_tensor *t, int64_t i1, int64_t i2, int64_t i3, float *tmp);
// Threads of use for `work` multiplications, out of n_threads.
static inline int mm_threads(double work, int n_threads) {
    const double useful = work / 16384 + 1;
    return useful < n_threads ? (int) useful : n_threads;
}
// Whether rows of t are floats that can be read in place.
static inline bool mm_row_in_place(const struct ggml_tensor *t) {
    return t->type == GGML_TYPE_F32 && (t->nb[0] == 4 || t->ne[0] == 1);
}

// Checks the operands that mul_mat and mul_mat_id have in common: a's rows must be contiguous and of a type that can be
// multiplied, b's type must be readable.
enum err mm_check(const char *name, const struct ggml_tensor *a, const struct ggml_tensor *b);

// Up to so many elements every thread encodes all columns for itself: cheaper than to wait for the others.
enum { MM_PRIVATE_ELEMENTS = 16384 };

// The plan of a node: where the encoded columns lie and what each thread has for itself.
struct mm_plan {
    const struct mm_path *path;
    bool in_place;     // columns are rows of b as they lie
    bool private_act;  // few columns: every thread encodes them for itself and nobody waits
    int64_t n_act;     // columns to encode
    size_t act_stride;
    size_t act_bytes;  // of one copy of the encoded columns
    size_t scratch;    // of one thread: kernel scratch, then one row of floats
    size_t row_at;     // offset of that row
    size_t total;      // bytes of work for n_threads
};

// n_col: columns of one product; n_act: columns to encode in all.
void mm_plan(struct mm_plan *p, const struct ggml_tensor *t, int64_t n_col, int64_t n_act, int n_threads);
// Whether two products of one activation want its columns encoded to the very same bytes.
bool mm_same_columns(const struct mm_plan *p, const struct mm_plan *q);
// This thread's kernel scratch, and the encoded columns it is to use.
uint8_t *mm_thread_scratch(const struct mm_plan *p, const struct task *k);
uint8_t *mm_columns(const struct mm_plan *p, const struct task *k);
// Encodes all rows of b (as columns, in the order i3, i2, i1); includes the barrier where one is needed.
void mm_encode(const struct mm_plan *p, struct task *k, const struct ggml_tensor *b);

// Rows per piece of work, so that the rows of a in `n_slice` slices give every thread pieces enough and, of few columns, all threads
// the same number.
int64_t mm_row_block(const struct mm_plan *p, const struct ggml_tensor *a, int64_t n_col, int64_t n_slice, int n_threads);
enum { MM_FEW_COLUMNS = 8 };
// From so many columns on scratch of a product only grows with their number; not so where experts share them.
enum { MM_MANY_TOKENS = 96 };
// Whether a product is so small that it is cut into one piece per thread, which is not worth handing out: piece i is thread i's.
bool mm_is_small(const struct ggml_tensor *a, int64_t n_col, int n_threads);

// How one slice of a product is cut into pieces: blocks of rows, and the columns too where there are few blocks for many threads.
struct mm_cut {
    int64_t rows;          // of a block
    int64_t cols;          // cuts of the columns
    int64_t n_row, n_col;  // of the slice
    int64_t n_piece;
};
// n_slice: slices, or products, that are handed out together.
void mm_cut(struct mm_cut *c, const struct mm_plan *p, const struct ggml_tensor *a, int64_t n_col, int64_t n_slice,
            int n_threads);
// Piece i of the slice: rows [*r0, *r1) times columns [*c0, *c1).
static inline void mm_piece(const struct mm_cut *c, int64_t i, int64_t *r0, int64_t *r1, int64_t *c0, int64_t *c1) {
    *r0 = i / c->cols * c->rows;
    *r1 = *r0 + c->rows < c->n_row ? *r0 + c->rows : c->n_row;
    *c0 = c->n_col * (i % c->cols) / c->cols;
    *c1 = c->n_col * (i % c->cols + 1) / c->cols;
}

// mul_mat_id: tokens by expert. first [n_expert + 1]: where an expert's list begins; col: the columns that it multiplies; out: where
// their results go, slot + n_slot * token.
struct mm_groups {
    int32_t *first, *col, *out;
};
size_t mm_groups_bytes(const struct ggml_tensor *t);
// Lists them in memory of mm_groups_bytes. False when an id is out of range: the node has failed, nothing must be written.
bool mm_groups_make(struct mm_groups *g, struct task *k, const struct ggml_tensor *t, void *memory);
// mm_plan for t; gives the columns that an expert gets on average.
int64_t mm_plan_id(struct mm_plan *p, const struct ggml_tensor *t, int n_threads);
