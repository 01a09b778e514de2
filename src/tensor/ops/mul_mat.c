// mul_mat: {k, m} times {k, n} gives {m, n}: every row of a with every row of b. Dimensions 2 and 3 of a are repeated to those
// of b. The columns (rows of b) are encoded once into the form that suits a's type, then pieces of rows times columns are
// handed out one by one. Which path computes a piece never shows in its bits (kern/mm.h).
#include "ops/backward.h"
#include "ops/mul_mat.h"

static enum err infer(const struct ggml_tensor *t, struct op_shape *s) {
    const struct ggml_tensor *a = t->src[0], *b = t->src[1];
    TRY(mm_check("ggml_mul_mat", a, b));
    for (int d = 2; d < 4; d++) {
        if (a->ne[d] > 0 ? b->ne[d] % a->ne[d] != 0 : b->ne[d] != 0) {
            return err_set(ERR_INVALID,
                           "ggml_mul_mat: dimension %d of the first source (%lld) does not divide the second's (%lld)", d,
                           (long long) a->ne[d], (long long) b->ne[d]);
        }
    }
    s->type = GGML_TYPE_F32;
    s->ne[0] = a->ne[1];
    for (int d = 1; d < 4; d++) s->ne[d] = b->ne[d];
    return ERR_OK;
}

static int64_t n_columns(const struct ggml_tensor *t) { return t->src[1]->ne[1] * t->src[1]->ne[2] * t->src[1]->ne[3]; }

static size_t scratch(const struct ggml_tensor *t, int n_threads) {
    struct mm_plan p;
    mm_plan(&p, t, t->src[1]->ne[1], n_columns(t), n_threads);
    return p.total;
}

static int threads(const struct ggml_tensor *t, int n_threads) {
    const double work = (double) t->src[0]->ne[0] * (double) t->src[0]->ne[1] * (double) n_columns(t);
    return mm_threads(work, n_threads);
}

static void run(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0], *b = t->src[1];
    const int64_t n = b->ne[1], m = a->ne[1], n_slice = b->ne[2] * b->ne[3];
    if (n * m * n_slice == 0) return;
    struct mm_plan p;
    mm_plan(&p, t, n, n_columns(t), k->nth);
    mm_encode(&p, k, b);
    struct mm_cut cut;
    mm_cut(&cut, &p, a, n, n_slice, k->nth);
    struct mm_job j = {
        .a_stride = a->nb[1], .n_row = m, .k = a->ne[0], .type = a->type, .dst_stride = t->nb[1] / sizeof(float)};
    j.scratch = mm_thread_scratch(&p, k);
    j.scratch_bytes = p.row_at;
    const int64_t r2 = b->ne[2] / a->ne[2], r3 = b->ne[3] / a->ne[3];
    const int64_t n_piece = cut.n_piece * n_slice;
    for (int64_t i = task_piece(k, n_piece); i < n_piece; i = task_piece(k, n_piece)) {
        const int64_t slice = i / cut.n_piece, i2 = slice % b->ne[2], i3 = slice / b->ne[2];
        int64_t c0, c1;
        mm_piece(&cut, i % cut.n_piece, &j.row0, &j.row1, &c0, &c1);
        j.a = (const uint8_t *) a->data + (size_t) (i2 / r2) * a->nb[2] + (size_t) (i3 / r3) * a->nb[3];
        if (p.in_place) {
            j.act_stride = b->nb[1];
            j.act = (const uint8_t *) b->data + (size_t) i2 * b->nb[2] + (size_t) i3 * b->nb[3];
            j.col0 = c0;
        } else {
            j.act_stride = p.act_stride;
            j.act = mm_columns(&p, k);
            j.col0 = slice * n + c0;
        }
        j.dst = (float *) ((char *) t->data + (size_t) i2 * t->nb[2] + (size_t) i3 * t->nb[3] + (size_t) c0 * t->nb[1]);
        j.n_col = c1 - c0;
        p.path->run(&j);
    }
}

static bool is_product(const struct ggml_tensor *a, const char *who) {
    if (a && !ggml_is_error(a) && (a->op == GGML_OP_MUL_MAT || a->op == GGML_OP_MUL_MAT_ID)) return true;
    if (!a || !ggml_is_error(a)) (void) err_set(ERR_INVALID, "%s: not a matrix product", who);
    return false;
}

bool ggml_prec_set_acc(struct ggml_tensor *a, enum ggml_prec prec) {
    if (a && a->op == GGML_OP_FLASH_ATTN_EXT) {
        tensor_set_param_i32(a, 3, (int32_t) prec);
        return true;
    }
    if (!is_product(a, "ggml_prec_set_acc")) return false;
    tensor_set_param_i32(a, MM_PARAM_ACC, (int32_t) prec);
    return true;
}

bool ggml_prec_set_src(struct ggml_tensor *a, enum ggml_prec prec, int idx) {
    if (!is_product(a, "ggml_prec_set_src")) return false;
    if (idx < 0 || idx > 1) {
        (void) err_set(ERR_INVALID, "ggml_prec_set_src: a product has sources 0 and 1, not %d", idx);
        return false;
    }
    tensor_set_param_i32(a, MM_PARAM_SRC + idx, (int32_t) prec);
    return true;
}

void ggml_mul_mat_set_prec(struct ggml_tensor *a, enum ggml_prec prec) {
    if (is_product(a, "ggml_mul_mat_set_prec")) tensor_set_param_i32(a, MM_PARAM_ACC, (int32_t) prec);
}

void ggml_mul_mat_set_hint(struct ggml_tensor *a, enum ggml_op_hint hint) {
    if (is_product(a, "ggml_mul_mat_set_hint")) tensor_set_param_i32(a, MM_PARAM_HINT, (int32_t) hint);
}

struct ggml_tensor *ggml_mul_mat(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b) {
    const int32_t params[MM_N_PARAM] = {0};
    struct ggml_tensor *src[] = {a, b};
    return op_build(ctx, GGML_OP_MUL_MAT, false, params, MM_N_PARAM, src, 2);
}

// t {M, N} = b {K, N} times a {K, M} transposed: da = b g^T, db = a^T g as outer products.
static enum err backward(struct backward *bw, struct ggml_tensor *t) {
    struct ggml_tensor *a = t->src[0], *b = t->src[1], *g = backward_grad(bw, t);
    if (backward_wants(bw, a)) {
        struct ggml_tensor *da = backward_unbroadcast(bw->ctx, ggml_out_prod(bw->ctx, b, g), a);
        TRY(backward_add(bw, a, da));
    }
    if (!backward_wants(bw, b)) return ERR_OK;
    return backward_add(bw, b, ggml_out_prod(bw->ctx, a, ggml_transpose(bw->ctx, g)));
}

const struct op op_mul_mat = {
    .id = GGML_OP_MUL_MAT,
    .name = "MUL_MAT",
    .symbol = "X*Y",
    .n_src = 2,
    .infer = infer,
    .scratch = scratch,
    .token_dim = {0, 2},
    .many_tokens = MM_MANY_TOKENS,
    .run = run,
    .threads = threads,
    .backward = backward,
};
