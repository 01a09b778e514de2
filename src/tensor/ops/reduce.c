// SUM, SUM_ROWS, MEAN, CUMSUM, ARGMAX, COUNT_EQUAL. A row is summed in 32 lanes, rows are added in their order in double precision:
// one order, whatever the thread count.
#include "ops/backward.h"
#include "ops/row.h"
#include "kern/norm.h"

static enum err infer_sum(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check_float(t, 0));
    return shape_4d(shape, t->src[0]->type, 1, 1, 1, 1);
}
static enum err infer_sum_rows(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *a = t->src[0];
    TRY(check_float(t, 0));
    return shape_4d(shape, a->type, 1, a->ne[1], a->ne[2], a->ne[3]);
}
static enum err infer_mean(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(infer_sum_rows(t, shape));
    shape->type = GGML_TYPE_F32;
    return ERR_OK;
}
static enum err infer_cumsum(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check_float(t, 0));
    return shape_like(t->src[0], t->src[0]->type, shape);
}
static enum err infer_argmax(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check_float(t, 0));
    if (!ggml_is_matrix(t->src[0]))
        return err_set(ERR_INVALID, "ARGMAX: " SHAPE_FMT " is not a matrix", SHAPE_ARG(t->src[0]));
    return shape_4d(shape, GGML_TYPE_I32, t->src[0]->ne[1], 1, 1, 1);
}
static enum err infer_count(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check_type(t, 0, GGML_TYPE_I32));
    TRY(check_type(t, 1, GGML_TYPE_I32));
    TRY(check_same_shape(t, 0, 1));
    return shape_4d(shape, GGML_TYPE_I64, 1, 1, 1, 1);
}

static int threads(const struct ggml_tensor *t, int n_threads) { return row_threads_map(t->src[0], n_threads); }
// A row of floats for each thread, for sources that are not direct.
static size_t scratch_row(const struct ggml_tensor *t, int n_threads) {
    return row_direct(t->src[0]) ? 0 : row_scratch_bytes(t->src[0]->ne[0], 1, n_threads);
}
static float *row_buf(const struct task *k, const struct ggml_tensor *t) {
    return row_direct(t->src[0]) ? NULL : row_scratch(k, t->src[0]->ne[0], 1, 0);
}

// ---- SUM: partial sums of the rows first, after the rows' own scratch ---------------------------------------------------------

static size_t scratch_sum(const struct ggml_tensor *t, int n_threads) {
    return scratch_row(t, n_threads) + (size_t) ggml_nrows(t->src[0]) * sizeof(float);
}

static void run_sum(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0];
    float *part = (float *) (void *) ((char *) k->work + scratch_row(t, k->nth));
    float *buf = row_buf(k, t);
    const int64_t rows = ggml_nrows(a);
    int64_t r0, r1;
    task_range(k, rows, &r0, &r1);
    for (int64_t r = r0; r < r1; r++) part[r] = kern_norm()->sum(a->ne[0], row_read(a, row_of(a, r), 0, a->ne[0], buf));
    task_barrier(k);
    if (k->ith != 0) return;
    double sum = 0.0;
    for (int64_t r = 0; r < rows; r++) sum += (double) part[r];
    row_write(t, t->data, 0, 1, &(float){(float) sum});
}

static void rows_to_value(struct task *k, struct ggml_tensor *t, bool mean) {
    const struct ggml_tensor *a = t->src[0];
    float *buf = row_buf(k, t);
    int64_t r0, r1;
    task_range(k, ggml_nrows(a), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        float s = kern_norm()->sum(a->ne[0], row_read(a, row_of(a, r), 0, a->ne[0], buf));
        if (mean) s /= (float) a->ne[0];
        row_write(t, row_of(t, r), 0, 1, &s);
    }
}
static void run_sum_rows(struct task *k, struct ggml_tensor *t) { rows_to_value(k, t, false); }
static void run_mean(struct task *k, struct ggml_tensor *t) { rows_to_value(k, t, true); }

static void run_cumsum(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0];
    alignas(64) float in[ROW_CHUNK], out[ROW_CHUNK];
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        double sum = 0.0;
        char *row = row_of(t, r);
        for (int64_t e = 0; e < t->ne[0]; e += ROW_CHUNK) {
            const int64_t n = t->ne[0] - e < ROW_CHUNK ? t->ne[0] - e : ROW_CHUNK;
            const float *x = row_read(a, row_of(a, r), e, n, in);
            float *y = row_target(t, row, e, out);
            for (int64_t i = 0; i < n; i++) y[i] = (float) (sum += (double) x[i]);
            row_write(t, row, e, n, y);
        }
    }
}

// ---- ARGMAX: the first of the largest; 0 where nothing but NaN -----------------------------------------------------------------

static void run_argmax(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0];
    float *buf = row_buf(k, t);
    int64_t r0, r1;
    task_range(k, t->ne[0], &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        const float *x = row_read(a, row_of(a, r), 0, a->ne[0], buf);
        const float max = kern_norm()->max(a->ne[0], x);
        int32_t best = 0;
        for (int64_t i = 0; i < a->ne[0]; i++) {
            if (x[i] != max) continue;
            best = (int32_t) i;
            break;
        }
        memcpy((char *) t->data + (size_t) r * t->nb[0], &best, sizeof best);
    }
}

// ---- COUNT_EQUAL -----------------------------------------------------------------------------------------------------------------

static size_t scratch_count(const struct ggml_tensor *t, int n_threads) {
    (void) t;
    return (size_t) n_threads * sizeof(int64_t);
}

static void run_count(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0], *b = t->src[1];
    int64_t *part = k->work, count = 0, r0, r1;
    task_range(k, ggml_nrows(a), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        const char *p = row_of(a, r), *q = row_of(b, r);
        for (int64_t i = 0; i < a->ne[0]; i++)
            count += memcmp(p + (size_t) i * a->nb[0], q + (size_t) i * b->nb[0], sizeof(int32_t)) == 0;
    }
    part[k->ith] = count;
    task_barrier(k);
    if (k->ith != 0) return;
    for (int i = 1; i < k->nth; i++) count += part[i];
    memcpy(t->data, &count, sizeof count);
}

// ---- builders --------------------------------------------------------------------------------------------------------------------

#define BUILD(name, ID)                                                                                                     \
    struct ggml_tensor *ggml_##name(struct ggml_context *ctx, struct ggml_tensor *a) {                                      \
        return op_build(ctx, GGML_OP_##ID, false, NULL, 0, &a, 1);                                                          \
    }
BUILD(sum, SUM)
BUILD(sum_rows, SUM_ROWS)
BUILD(mean, MEAN)
BUILD(cumsum, CUMSUM)
BUILD(argmax, ARGMAX)

struct ggml_tensor *ggml_count_equal(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b) {
    return op_build(ctx, GGML_OP_COUNT_EQUAL, false, NULL, 0, (struct ggml_tensor *[]){a, b}, 2);
}

// ---- gradients: each element of a sum gets the sum's --------------------------------------------------------------------------

static enum err back_sum(struct backward *b, struct ggml_tensor *t) {
    return backward_add(b, t->src[0], ggml_repeat(b->ctx, backward_grad(b, t), t->src[0]));
}
static enum err back_mean(struct backward *b, struct ggml_tensor *t) {
    struct ggml_tensor *g = ggml_scale(b->ctx, backward_grad(b, t), 1.0f / (float) t->src[0]->ne[0]);
    return backward_add(b, t->src[0], ggml_repeat(b->ctx, g, t->src[0]));
}
// The sums from each element on: all, less those before it.
static enum err back_cumsum(struct backward *b, struct ggml_tensor *t) {
    struct ggml_tensor *g = backward_grad(b, t);
    struct ggml_tensor *before = ggml_sub(b->ctx, ggml_cumsum(b->ctx, g), g);
    return backward_add(b, t->src[0], ggml_neg(b->ctx, ggml_sub(b->ctx, before, ggml_sum_rows(b->ctx, g))));
}

const struct op op_sum = {.id = GGML_OP_SUM,
                          .name = "SUM",
                          .symbol = "Σx",
                          .n_src = 1,
                          .infer = infer_sum,
                          .scratch = scratch_sum,
                          .run = run_sum,
                          .threads = threads,
                          .backward = back_sum};
const struct op op_sum_rows = {.id = GGML_OP_SUM_ROWS,
                               .name = "SUM_ROWS",
                               .symbol = "Σx_k",
                               .n_src = 1,
                               .infer = infer_sum_rows,
                               .scratch = scratch_row,
                               .run = run_sum_rows,
                               .threads = threads,
                               .backward = back_sum};
const struct op op_mean = {.id = GGML_OP_MEAN,
                           .name = "MEAN",
                           .symbol = "Σx/n",
                           .n_src = 1,
                           .infer = infer_mean,
                           .scratch = scratch_row,
                           .run = run_mean,
                           .threads = threads,
                           .backward = back_mean};
const struct op op_cumsum = {.id = GGML_OP_CUMSUM,
                             .name = "CUMSUM",
                             .symbol = "cumsum(x)",
                             .n_src = 1,
                             .infer = infer_cumsum,
                             .run = run_cumsum,
                             .threads = threads,
                             .backward = back_cumsum};
const struct op op_argmax = {.id = GGML_OP_ARGMAX,
                             .name = "ARGMAX",
                             .symbol = "argmax(x)",
                             .n_src = 1,
                             .infer = infer_argmax,
                             .scratch = scratch_row,
                             .run = run_argmax,
                             .threads = threads};
const struct op op_count_equal = {.id = GGML_OP_COUNT_EQUAL,
                                  .name = "COUNT_EQUAL",
                                  .symbol = "count_equal(x)",
                                  .n_src = 2,
                                  .infer = infer_count,
                                  .scratch = scratch_count,
                                  .run = run_count,
                                  .threads = threads};
