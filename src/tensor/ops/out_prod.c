// out_prod: {n, k} and {m, k} give {n, m}: result[i, j] = sum over l of a[i, l] * b[j, l], summed in order of l, one fma each.
// Dimensions 2 and 3 of a are repeated to those of b. Both may have any type; b any strides.
#include "ops/backward.h"
#include "ops/mul_mat.h"

#include <string.h>

enum { COLS = 32, DEPTH = 16, BLOCK_MAX = 256 };

static enum err infer(const struct ggml_tensor *t, struct op_shape *s) {
    const struct ggml_tensor *a = t->src[0], *b = t->src[1];
    const struct type *ta = type_get(a->type), *tb = type_get(b->type);
    if (!ta || !ta->decode || !tb || !tb->decode) {
        return err_set(ERR_INVALID, "ggml_out_prod: types %d and %d cannot be multiplied", a->type, b->type);
    }
    // rows of no elements lie as they like
    if (a->ne[0] > 0 && (ggml_is_transposed(a) || (a->nb[0] != ta->size && a->ne[0] != ta->block))) {
        return err_set(ERR_INVALID,
                       "ggml_out_prod: rows of the first source must be contiguous (elements are %zu bytes apart); "
                       "use ggml_cont",
                       a->nb[0]);
    }
    if (tb->block > 1 && b->nb[0] != tb->size) {
        return err_set(ERR_INVALID, "ggml_out_prod: rows of a second source of type %s must be contiguous; use ggml_cont",
                       tb->name);
    }
    if (a->ne[1] != b->ne[1]) {
        return err_set(ERR_INVALID, "ggml_out_prod: sources have %lld and %lld rows", (long long) a->ne[1],
                       (long long) b->ne[1]);
    }
    for (int d = 2; d < 4; d++) {
        if (a->ne[d] > 0 ? b->ne[d] % a->ne[d] != 0 : b->ne[d] != 0) {
            return err_set(ERR_INVALID,
                           "ggml_out_prod: dimension %d of the first source (%lld) does not divide the second's (%lld)", d,
                           (long long) a->ne[d], (long long) b->ne[d]);
        }
    }
    *s = (struct op_shape){GGML_TYPE_F32, {a->ne[0], b->ne[0], b->ne[2], b->ne[3]}};
    return ERR_OK;
}

// Per thread: DEPTH rows of a, then COLS columns of DEPTH values of b.
static size_t thread_bytes(const struct ggml_tensor *t) {
    return mm_align(((size_t) t->src[0]->ne[0] * DEPTH + COLS * DEPTH) * sizeof(float));
}

static size_t scratch(const struct ggml_tensor *t, int n_threads) { return thread_bytes(t) * (size_t) n_threads; }

// b[j0 .. j0 + n - 1, l] to out[j * DEPTH].
static void column_values(const struct ggml_tensor *b, const struct type *type, const uint8_t *row, int64_t j0, int64_t n,
                          float *out) {
    if (type->block == 1) {
        for (int64_t j = 0; j < n; j++) type->decode(row + (size_t) (j0 + j) * b->nb[0], out + j * DEPTH, 1);
        return;
    }
    float block[BLOCK_MAX];
    for (int64_t j = 0; j < n; j++) {
        const int64_t at = (j0 + j) % type->block;
        if (j == 0 || at == 0) type->decode(row + (size_t) ((j0 + j) / type->block) * type->size, block, type->block);
        out[j * DEPTH] = block[at];
    }
}

// n columns from j0 on, rows l .. l + depth - 1 of b's slice to out[column * DEPTH + row].
static void columns(const struct ggml_tensor *b, const struct type *type, const uint8_t *slice, int64_t l, int64_t depth,
                    int64_t j0, int64_t n, float *out) {
    if (b->type == GGML_TYPE_F32 && b->nb[1] == sizeof(float)) {  // transposed: a column's values lie side by side
        const uint8_t *from = slice + (size_t) l * b->nb[1] + (size_t) j0 * b->nb[0];
        for (int64_t j = 0; j < n; j++)
            memcpy(out + j * DEPTH, from + (size_t) j * b->nb[0], (size_t) depth * sizeof(float));
        return;
    }
    for (int64_t q = 0; q < depth; q++) column_values(b, type, slice + (size_t) (l + q) * b->nb[1], j0, n, out + q);
}

static void run(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0], *b = t->src[1];
    const struct type *ta = type_get(a->type), *tb = type_get(b->type);
    const int64_t n = a->ne[0], m = b->ne[0], depth = a->ne[1], n_slice = b->ne[2] * b->ne[3];
    if (n * m * n_slice == 0) return;
    float *tmp = (float *) ((char *) k->work + thread_bytes(t) * (size_t) k->ith), *bt = tmp + n * DEPTH;
    const int64_t r2 = b->ne[2] / a->ne[2], r3 = b->ne[3] / a->ne[3], n_block = mm_ceil(m, COLS);
    const size_t y_stride = t->nb[1] / sizeof(float);
    for (int64_t i = task_next(k); i < n_block * n_slice; i = task_next(k)) {
        const int64_t slice = i / n_block, j0 = i % n_block * COLS, n_col = m - j0 < COLS ? m - j0 : COLS;
        const int64_t i2 = slice % b->ne[2], i3 = slice / b->ne[2];
        const uint8_t *pa = (const uint8_t *) a->data + (size_t) (i2 / r2) * a->nb[2] + (size_t) (i3 / r3) * a->nb[3];
        const uint8_t *pb = (const uint8_t *) b->data + (size_t) i2 * b->nb[2] + (size_t) i3 * b->nb[3];
        float *y = (float *) ((char *) t->data + (size_t) i2 * t->nb[2] + (size_t) i3 * t->nb[3]) + (size_t) j0 * y_stride;
        for (int64_t j = 0; j < n_col; j++) memset(y + (size_t) j * y_stride, 0, (size_t) n * sizeof(float));
        for (int64_t l = 0; l < depth; l += DEPTH) {
            const int64_t d = depth - l < DEPTH ? depth - l : DEPTH;
            const float *rows = (const float *) (pa + (size_t) l * a->nb[1]);
            size_t stride = a->nb[1] / sizeof(float);
            if (a->type != GGML_TYPE_F32 || a->nb[1] % sizeof(float)) {
                for (int64_t q = 0; q < d; q++) ta->decode(pa + (size_t) (l + q) * a->nb[1], tmp + q * n, n);
                rows = tmp;
                stride = (size_t) n;
            }
            columns(b, tb, pb, l, d, j0, n_col, bt);
            kern_mm()->outer(n, n_col, d, rows, stride, bt, DEPTH, y, y_stride);
        }
    }
}

struct ggml_tensor *ggml_out_prod(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b) {
    struct ggml_tensor *src[] = {a, b};
    return op_build(ctx, GGML_OP_OUT_PROD, false, NULL, 0, src, 2);
}

// t {M, N} = sum over k of a {M, K} and b {N, K}: da = sum over n of g and b, db = sum over m of g and a.
static enum err backward(struct backward *bw, struct ggml_tensor *t) {
    struct ggml_tensor *a = t->src[0], *b = t->src[1], *g = backward_grad(bw, t);
    if (backward_wants(bw, a)) {
        struct ggml_tensor *da = ggml_out_prod(bw->ctx, g, ggml_cont(bw->ctx, ggml_transpose(bw->ctx, b)));
        TRY(backward_add(bw, a, backward_unbroadcast(bw->ctx, da, a)));
    }
    if (!backward_wants(bw, b)) return ERR_OK;
    struct ggml_tensor *db = ggml_mul_mat(bw->ctx, a, g);  // {K, N}
    return backward_add(bw, b, ggml_cont(bw->ctx, ggml_transpose(bw->ctx, db)));
}

const struct op op_out_prod = {
    .id = GGML_OP_OUT_PROD,
    .name = "OUT_PROD",
    .symbol = "X*Y",
    .n_src = 2,
    .infer = infer,
    .scratch = scratch,
    .run = run,
    .backward = backward,
};
