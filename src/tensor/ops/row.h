// Rows of any type and layout seen as floats, and the checks that most operations share. An operation that is written over this
// works for every element type and every stride: what is F32 and contiguous within the row is used where it lies, all else goes
// through a small buffer in cache.
#pragma once

#include "ops/op.h"
#include "type/type.h"

#include <stdalign.h>
#include <string.h>

#define ROW_CHUNK 1024  // elements per piece; a multiple of every block size

// Where row (i1, i2, i3) of t begins.
static inline char *row_at(const struct ggml_tensor *t, int64_t i1, int64_t i2, int64_t i3) {
    return (char *) t->data + (size_t) i1 * t->nb[1] + (size_t) i2 * t->nb[2] + (size_t) i3 * t->nb[3];
}
// Row number ir in the order i1, i2, i3, of a tensor of t's shape.
static inline void row_split(const struct ggml_tensor *t, int64_t ir, int64_t *i1, int64_t *i2, int64_t *i3) {
    *i1 = ir % t->ne[1];
    *i2 = ir / t->ne[1] % t->ne[2];
    *i3 = ir / t->ne[1] / t->ne[2];
}
// The row after it (division is dear beside a short row).
static inline void row_step(const int64_t ne[4], int64_t *i1, int64_t *i2, int64_t *i3) {
    if (++*i1 < ne[1]) return;
    *i1 = 0;
    if (++*i2 < ne[2]) return;
    *i2 = 0;
    ++*i3;
}
static inline char *row_of(const struct ggml_tensor *t, int64_t ir) {
    int64_t i1, i2, i3;
    row_split(t, ir, &i1, &i2, &i3);
    return row_at(t, i1, i2, i3);
}

// True when the elements of a row are floats one after the other.
static inline bool row_direct(const struct ggml_tensor *t) { return t->type == GGML_TYPE_F32 && t->nb[0] == sizeof(float); }

// Elements e0 .. e0 + n of the row that begins at `row`: the row itself where it is direct, else decoded to buf (n floats).
// e0 and n: multiples of t's block size (n may also end at the row's end).
const float *row_read(const struct ggml_tensor *t, const char *row, int64_t e0, int64_t n, float *buf);
// The same, always copied to buf; when the row is shorter than e0 + n it is repeated.
void row_fill(const struct ggml_tensor *t, const char *row, int64_t e0, int64_t n, float *buf);
// Store y to elements e0 .. e0 + n; nothing to do when y is the row itself.
void row_write(const struct ggml_tensor *t, char *row, int64_t e0, int64_t n, const float *y);
// Where to compute elements from e0 on: the row itself or buf.
static inline float *row_target(const struct ggml_tensor *t, char *row, int64_t e0, float *buf) {
    return row_direct(t) ? (float *) (void *) row + e0 : buf;
}

// One element as a double, exact for every plain type (I64 beyond 2^53 apart). t: not quantized.
double row_get(const struct ggml_tensor *t, const char *p);

// ---- element-wise maps --------------------------------------------------------------------------------------------

// y[i] = f(x[0][i], x[1][i], ...) over n elements; ctx: whatever the operation needs beside.
typedef void (*row_fn)(int64_t n, float *y, const float *const *x, const void *ctx);
// Applies f to all elements of t, this thread's share. src: 0 to 4 tensors of t's shape or repeated to it. t may lie over any source
// of its own shape and layout.
void row_map(struct task *k, const struct ggml_tensor *t, const struct ggml_tensor *const *src, int n_src, row_fn f,
             const void *ctx);

// Threads for work of n steps when each thread should have at least per_thread of them.
static inline int row_threads(int64_t n, int64_t per_thread, int n_threads) {
    const int64_t want = n / per_thread;
    return want < 1 ? 1 : want < n_threads ? (int) want : n_threads;
}
int row_threads_map(const struct ggml_tensor *t, int n_threads);   // element-wise and cheap
int row_threads_func(const struct ggml_tensor *t, int n_threads);  // element-wise with an exponential or so

// ---- scratch for whole rows ---------------------------------------------------------------------------------------

// Bytes for n_rows rows of n floats for each thread, and one thread's part of it.
static inline size_t row_scratch_bytes(int64_t n, int n_rows, int n_threads) {
    return (size_t) n_threads * (size_t) n_rows * GGML_PAD((size_t) n * sizeof(float), 64);
}
static inline float *row_scratch(const struct task *k, int64_t n, int n_rows, int i) {
    return (float *) (void *) ((char *) k->work + row_scratch_bytes(n, k->ith * n_rows + i, 1));
}

// ---- checks for infer ---------------------------------------------------------------------------------------------

#define SHAPE_FMT "[%lld, %lld, %lld, %lld]"
#define SHAPE_ARG(t) (long long) (t)->ne[0], (long long) (t)->ne[1], (long long) (t)->ne[2], (long long) (t)->ne[3]

MUST_USE enum err check_float(const struct ggml_tensor *t, int i);                      // source i: F32, F16 or BF16
MUST_USE enum err check_real(const struct ggml_tensor *t, int i);                       // as check_float, or quantized
MUST_USE enum err check_type(const struct ggml_tensor *t, int i, enum ggml_type type);  // source i has this type
MUST_USE enum err check_contiguous(const struct ggml_tensor *t, int i);                 // source i lies in one piece
MUST_USE enum err check_same_shape(const struct ggml_tensor *t, int i, int j);          // sources i and j
MUST_USE enum err check_repeats(const struct ggml_tensor *t, int i, int j);             // source i repeated gives j's shape
MUST_USE enum err check_rows(const struct ggml_tensor *t,
                             int i);                // source i, if quantized, has unbroken rows of whole blocks
MUST_USE enum err check_size(const int64_t ne[4]);  // the number of elements fits

static inline enum err shape_like(const struct ggml_tensor *src, enum ggml_type type, struct op_shape *s) {
    s->type = type;
    for (int d = 0; d < 4; d++) s->ne[d] = src->ne[d];
    return ERR_OK;
}
static inline enum err shape_4d(struct op_shape *s, enum ggml_type type, int64_t ne0, int64_t ne1, int64_t ne2,
                                int64_t ne3) {
    *s = (struct op_shape){type, {ne0, ne1, ne2, ne3}};
    return check_size(s->ne);
}
// Name for messages: "ADD", or the function's for UNARY and GLU.
const char *op_what(const struct ggml_tensor *t);
