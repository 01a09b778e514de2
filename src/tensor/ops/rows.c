// GET_ROWS, GET_ROWS_BACK, SET_ROWS: rows chosen by an index tensor. An index outside is found when it is read: the node fails, and
// nothing is read or written there.
#include "ops/backward.h"
#include "ops/copy.h"
#include "ops/row.h"
#include "kern/binary.h"

static enum err check_index(const struct ggml_tensor *t, int i) {
    const enum ggml_type type = t->src[i]->type;
    if (type != GGML_TYPE_I32 && type != GGML_TYPE_I64)
        return err_set(ERR_INVALID, "%s: the indices are %s, they must be I32 or I64", op_what(t), ggml_type_name(type));
    return ERR_OK;
}

static int64_t index_at(const struct ggml_tensor *ids, int64_t i0, int64_t i1, int64_t i2) {
    const char *p =
        (const char *) ids->data + (size_t) i0 * ids->nb[0] + (size_t) i1 * ids->nb[1] + (size_t) i2 * ids->nb[2];
    int32_t v32;
    int64_t v64;
    if (ids->type == GGML_TYPE_I32) {
        memcpy(&v32, p, sizeof v32);
        return v32;
    }
    memcpy(&v64, p, sizeof v64);
    return v64;
}

static void fail(struct task *k, const struct ggml_tensor *t, int64_t row, int64_t rows, int64_t at) {
    task_fail(k, t, "index %lld at place %lld is outside the %lld rows", (long long) row, (long long) at, (long long) rows);
}

// ---- GET_ROWS: a [n, rows, b2, b3], ids [k, b2, b3] -> [n, k, b2, b3], F32 (I32 from I32) ---------------------------------

static enum err infer_get(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *a = t->src[0], *ids = t->src[1];
    TRY(check_rows(t, 0));
    TRY(check_index(t, 1));
    if (a->ne[2] != ids->ne[1] || a->ne[3] != ids->ne[2] || ids->ne[3] != 1)
        return err_set(ERR_INVALID, "GET_ROWS: indices " SHAPE_FMT " do not fit " SHAPE_FMT "; wanted [k, %lld, %lld]",
                       SHAPE_ARG(ids), SHAPE_ARG(a), (long long) a->ne[2], (long long) a->ne[3]);
    const enum ggml_type type = a->type == GGML_TYPE_I32 ? GGML_TYPE_I32 : GGML_TYPE_F32;
    return shape_4d(shape, type, a->ne[0], ids->ne[0], ids->ne[1], ids->ne[2]);
}

static void run_get(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0], *ids = t->src[1];
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        int64_t i1, i2, i3;
        row_split(t, r, &i1, &i2, &i3);
        const int64_t row = index_at(ids, i1, i2, i3);
        if (row < 0 || row >= a->ne[1]) {
            fail(k, t, row, a->ne[1], i1);
            return;
        }
        char *d = row_at(t, i1, i2, i3);
        const char *s = row_at(a, row, i2, i3);
        if (a->type == GGML_TYPE_I32)
            copy_elements(d, t->nb[0], s, a->nb[0], sizeof(int32_t), t->ne[0]);
        else
            copy_piece(a, s, t, d, 0, t->ne[0]);
    }
}

// ---- GET_ROWS_BACK: grad [n, k], ids [k] -> [n, rows], F32: the sum of the gradients that fell to each row ----------------

static enum err infer_get_back(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *g = t->src[0], *ids = t->src[1];
    TRY(check_float(t, 0));
    TRY(check_index(t, 1));
    if (!ggml_is_matrix(g) || !ggml_is_vector(ids) || g->ne[1] != ids->ne[0] || t->ne[0] != g->ne[0] || t->ne[2] != 1 ||
        t->ne[3] != 1)
        return err_set(ERR_INVALID,
                       "GET_ROWS_BACK: gradient " SHAPE_FMT ", indices " SHAPE_FMT ", result " SHAPE_FMT
                       "; wanted [n, k], [k], [n, rows]",
                       SHAPE_ARG(g), SHAPE_ARG(ids), SHAPE_ARG(t));
    return shape_4d(shape, GGML_TYPE_F32, t->ne[0], t->ne[1], 1, 1);
}

#define COLUMNS 64  // each thread owns blocks of so many columns and adds the rows in the order of the indices

static void run_get_back(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *g = t->src[0], *ids = t->src[1];
    int64_t c0, c1;
    task_range(k, (t->ne[0] + COLUMNS - 1) / COLUMNS, &c0, &c1);
    alignas(64) float buf[COLUMNS];
    for (int64_t c = c0; c < c1; c++) {
        const int64_t e = c * COLUMNS, n = t->ne[0] - e < COLUMNS ? t->ne[0] - e : COLUMNS;
        for (int64_t r = 0; r < t->ne[1]; r++)
            memset(row_at(t, r, 0, 0) + (size_t) e * sizeof(float), 0, (size_t) n * sizeof(float));
        for (int64_t i = 0; i < ids->ne[0]; i++) {
            const int64_t row = index_at(ids, i, 0, 0);
            if (row < 0 || row >= t->ne[1]) {
                fail(k, t, row, t->ne[1], i);
                return;
            }
            float *y = (float *) (void *) row_at(t, row, 0, 0) + e;
            kern_binary()->add(n, y, y, row_read(g, row_at(g, i, 0, 0), e, n, buf));
        }
    }
}

// ---- SET_ROWS: src [n, k, b2, b3], ids [k, b2 / r2, b3 / r3], over dst [n, rows, b2, b3] of any type -----------------------

static enum err infer_set(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *s = t->src[0], *ids = t->src[1], *d = t->src[2];
    TRY(check_index(t, 1));
    if (s->ne[0] != d->ne[0] || s->ne[2] != d->ne[2] || s->ne[3] != d->ne[3] || s->ne[1] != ids->ne[0] || ids->ne[1] < 1 ||
        ids->ne[2] < 1 || s->ne[2] % ids->ne[1] != 0 || s->ne[3] % ids->ne[2] != 0 || ids->ne[3] != 1)
        return err_set(ERR_INVALID, "SET_ROWS: rows " SHAPE_FMT " and indices " SHAPE_FMT " do not fit " SHAPE_FMT,
                       SHAPE_ARG(s), SHAPE_ARG(ids), SHAPE_ARG(d));
    TRY(copy_check(
        "SET_ROWS", s,
        &(struct ggml_tensor){.type = d->type, .ne = {s->ne[0], s->ne[1], s->ne[2], s->ne[3]}, .nb = {d->nb[0]}}));
    return shape_like(d, d->type, shape);
}

// Every thread reads all indices and writes the rows that are its own, so that of two rows for one place the last wins
// whatever the thread count. Neighbouring rows have one owner: they may share cache lines.
static void run_set(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *s = t->src[0], *ids = t->src[1];
    const struct type *ty = type_get(t->type);
    for (int64_t r = 0; r < ggml_nrows(s); r++) {
        int64_t i1, i2, i3;
        row_split(s, r, &i1, &i2, &i3);
        const int64_t row = index_at(ids, i1, i2 % ids->ne[1], i3 % ids->ne[2]);
        if (row < 0 || row >= t->ne[1]) {
            fail(k, t, row, t->ne[1], i1);
            return;
        }
        if (row / 16 % k->nth != k->ith) continue;
        char *d = row_at(t, row, i2, i3);
        if (s->type == t->type)
            copy_elements(d, t->nb[0], row_at(s, i1, i2, i3), s->nb[0], ty->size, t->ne[0] / ty->block);
        else
            copy_piece(s, row_at(s, i1, i2, i3), t, d, 0, t->ne[0]);
    }
}

static int threads_set(const struct ggml_tensor *t, int n_threads) {
    return row_threads(ggml_nelements(t->src[0]), 4096, n_threads);
}

// ---- builders -------------------------------------------------------------------------------------------------------------

struct ggml_tensor *ggml_get_rows(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b) {
    return op_build(ctx, GGML_OP_GET_ROWS, false, NULL, 0, (struct ggml_tensor *[]){a, b}, 2);
}

struct ggml_tensor *ggml_get_rows_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                       struct ggml_tensor *c) {
    if (!c) {
        (void) err_set(ERR_INVALID, "GET_ROWS_BACK: the tensor whose gradient is wanted is missing (NULL)");
        return tensor_error();
    }
    const struct op_shape want = {GGML_TYPE_F32, {c->ne[0], c->ne[1], c->ne[2], c->ne[3]}};
    return ggml_is_error(c)
               ? c
               : op_build_as(ctx, GGML_OP_GET_ROWS_BACK, &want, NULL, NULL, 0, (struct ggml_tensor *[]){a, b}, 2);
}

struct ggml_tensor *ggml_set_rows(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                  struct ggml_tensor *c) {
    if (a && ggml_is_error(a)) return a;
    return op_build_as(ctx, GGML_OP_SET_ROWS, NULL, a, NULL, 0, (struct ggml_tensor *[]){b, c, a}, 3);
}

static enum err back_get(struct backward *b, struct ggml_tensor *t) {
    return backward_add(b, t->src[0], ggml_get_rows_back(b->ctx, backward_grad(b, t), t->src[1], t->src[0]));
}
static enum err back_get_back(struct backward *b, struct ggml_tensor *t) {
    return backward_add(b, t->src[0], ggml_get_rows(b->ctx, backward_grad(b, t), t->src[1]));
}

const struct op op_get_rows = {.id = GGML_OP_GET_ROWS,
                               .name = "GET_ROWS",
                               .symbol = "get_rows(x)",
                               .n_src = 2,
                               .infer = infer_get,
                               .run = run_get,
                               .threads = row_threads_map,
                               .backward = back_get};
const struct op op_get_rows_back = {.id = GGML_OP_GET_ROWS_BACK,
                                    .name = "GET_ROWS_BACK",
                                    .symbol = "get_rows_back(x)",
                                    .n_src = 2,
                                    .infer = infer_get_back,
                                    .run = run_get_back,
                                    .backward = back_get_back};
const struct op op_set_rows = {.id = GGML_OP_SET_ROWS,
                               .name = "SET_ROWS",
                               .symbol = "set_rows(x)",
                               .n_src = 3,
                               .infer = infer_set,
                               .run = run_set,
                               .threads = threads_set};
