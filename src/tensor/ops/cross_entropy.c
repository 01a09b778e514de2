// CROSS_ENTROPY_LOSS: mean over rows of -sum(b log softmax(a)); CROSS_ENTROPY_LOSS_BACK: its gradient with respect to a.
//   a [n_class, ...] logits; b [n_class, ...] labels, each row a distribution; result [1] F32
// The loss of each row goes to scratch and one thread adds them in order: the sum does not depend on the number of threads.
#include "ops/backward.h"
#include "ops/row.h"
#include "kern/norm.h"
#include "kern/softmax.h"
#include "kern/train.h"

#include <math.h>

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check_float(t, 0));
    TRY(check_float(t, 1));
    TRY(check_same_shape(t, 0, 1));
    if (ggml_is_empty(t->src[0])) return err_set(ERR_INVALID, "%s: there are no rows to take the mean of", op_what(t));
    return shape_4d(shape, GGML_TYPE_F32, 1, 1, 1, 1);
}

// Per thread two rows; before them one float per row of a.
static size_t losses_bytes(const struct ggml_tensor *a) { return GGML_PAD((size_t) ggml_nrows(a) * sizeof(float), 64); }

static size_t scratch(const struct ggml_tensor *t, int n_threads) {
    return losses_bytes(t->src[0]) + row_scratch_bytes(t->src[0]->ne[0], 3, n_threads);
}

static int threads(const struct ggml_tensor *t, int n_threads) {
    const int64_t rows = ggml_nrows(t->src[0]);
    return row_threads(ggml_nelements(t->src[0]), 4096, rows < n_threads ? (int) rows : n_threads);
}

static float row_loss(const struct ggml_tensor *a, const struct ggml_tensor *b, int64_t r, float *buf) {
    const int64_t n = a->ne[0];
    const float *x = row_read(a, row_of(a, r), 0, n, buf);
    const float *labels = row_read(b, row_of(b, r), 0, n, buf + n);
    const float max = kern_norm()->max(n, x);
    const float sum = kern_softmax()->exp_sum(n, buf + 2 * n, x, max);
    return kern_train()->cross_entropy(n, x, labels, max + logf(sum));
}

static void run(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0], *b = t->src[1];
    float *losses = k->work;
    float *buf =
        (float *) (void *) ((char *) k->work + losses_bytes(a) + row_scratch_bytes(a->ne[0], 3, 1) * (size_t) k->ith);
    const int64_t n_rows = ggml_nrows(a);
    int64_t r0, r1;
    task_range(k, n_rows, &r0, &r1);
    for (int64_t r = r0; r < r1; r++) losses[r] = row_loss(a, b, r, buf);
    task_barrier(k);
    if (k->ith == 0) *(float *) t->data = kern_norm()->sum(n_rows, losses) / (float) n_rows;
}

// ---- CROSS_ENTROPY_LOSS_BACK: src[0] the gradient of the loss [1], src[1] logits, src[2] labels --------------------------

static enum err infer_back(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check_type(t, 0, GGML_TYPE_F32));
    TRY(check_float(t, 1));
    TRY(check_float(t, 2));
    TRY(check_same_shape(t, 1, 2));
    if (!ggml_is_scalar(t->src[0])) return err_set(ERR_INVALID, "%s: the loss's gradient must be one value", op_what(t));
    return shape_like(t->src[1], GGML_TYPE_F32, shape);
}

static size_t scratch_back(const struct ggml_tensor *t, int n_threads) { return row_scratch_bytes(t->ne[0], 2, n_threads); }

static int threads_back(const struct ggml_tensor *t, int n_threads) {
    const int64_t rows = ggml_nrows(t);
    return row_threads(ggml_nelements(t), 4096, rows < n_threads ? (int) rows : n_threads);
}

static void run_back(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[1], *b = t->src[2];
    const int64_t n = t->ne[0];
    const float scale = *(const float *) t->src[0]->data / (float) ggml_nrows(t);
    float *x_buf = row_scratch(k, n, 2, 0), *b_buf = row_scratch(k, n, 2, 1);
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        const float *x = row_read(a, row_of(a, r), 0, n, x_buf);
        const float *labels = row_read(b, row_of(b, r), 0, n, b_buf);
        float *y = (float *) (void *) row_of(t, r);
        const float sum = kern_softmax()->exp_sum(n, y, x, kern_norm()->max(n, x));
        kern_train()->cross_entropy_back(n, y, y, labels, sum, scale);
    }
}

static enum err backward(struct backward *b, struct ggml_tensor *t) {
    if (backward_wants(b, t->src[1])) {
        return err_set(ERR_UNSUPPORTED, "CROSS_ENTROPY_LOSS: there is no gradient with respect to the labels");
    }
    return backward_add(b, t->src[0], ggml_cross_entropy_loss_back(b->ctx, backward_grad(b, t), t->src[0], t->src[1]));
}

struct ggml_tensor *ggml_cross_entropy_loss(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b) {
    return op_build(ctx, GGML_OP_CROSS_ENTROPY_LOSS, false, NULL, 0, (struct ggml_tensor *[]){a, b}, 2);
}

struct ggml_tensor *ggml_cross_entropy_loss_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                                 struct ggml_tensor *c) {
    return op_build(ctx, GGML_OP_CROSS_ENTROPY_LOSS_BACK, false, NULL, 0, (struct ggml_tensor *[]){a, b, c}, 3);
}

const struct op op_cross_entropy_loss = {.id = GGML_OP_CROSS_ENTROPY_LOSS,
                                         .name = "CROSS_ENTROPY_LOSS",
                                         .symbol = "cross_entropy_loss(x,y)",
                                         .n_src = 2,
                                         .infer = infer,
                                         .scratch = scratch,
                                         .run = run,
                                         .threads = threads,
                                         .backward = backward};
const struct op op_cross_entropy_loss_back = {.id = GGML_OP_CROSS_ENTROPY_LOSS_BACK,
                                              .name = "CROSS_ENTROPY_LOSS_BACK",
                                              .symbol = "cross_entropy_loss_back(x,y)",
                                              .n_src = 3,
                                              .infer = infer_back,
                                              .scratch = scratch_back,
                                              .run = run_back,
                                              .threads = threads_back};
