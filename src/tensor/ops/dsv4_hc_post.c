// DSV4_HC_POST: the residual streams after a branch under hyper-connections: stream d becomes post_d x + sum over s of
// comb[d, s] residual_s.
#include "kern/recur.h"
#include "ops/recur_int.h"

enum { X, RESIDUAL, POST, COMB };

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *x = t->src[X], *res = t->src[RESIDUAL], *post = t->src[POST], *comb = t->src[COMB];
    static const char *const names[] = {"x", "residual", "post", "comb"};
    for (int i = X; i <= COMB; i++) TRY(recur_check_rows("dsv4_hc_post", names[i], t->src[i]));
    const int64_t n = x->ne[0], n_stream = res->ne[1], n_token = x->ne[1];
    TRY(recur_check_shape("dsv4_hc_post", "x", x, n, n_token, 1, 1));
    TRY(recur_check_shape("dsv4_hc_post", "residual", res, n, n_stream, n_token, 1));
    TRY(recur_check_shape("dsv4_hc_post", "post", post, n_stream, n_token, 1, 1));
    TRY(recur_check_shape("dsv4_hc_post", "comb", comb, n_stream, n_stream, n_token, 1));
    *shape = (struct op_shape){.type = GGML_TYPE_F32, .ne = {n, n_stream, n_token, 1}};
    return ERR_OK;
}

static void run(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *res = t->src[RESIDUAL], *comb = t->src[COMB];
    const int64_t n = t->ne[0], n_stream = t->ne[1];
    int64_t i0, i1;
    task_range(k, n_stream * t->ne[2], &i0, &i1);
    for (int64_t i = i0; i < i1; i++) {
        const int64_t d = i % n_stream, token = i / n_stream;
        float *y = recur_at(t, d, token, 0);
        kern_recur()->weighted(recur_at(t->src[X], token, 0, 0), 0, recur_at(t->src[POST], token, 0, 0) + d, 0, 1, y, n,
                               false);
        kern_recur()->weighted(recur_at(res, 0, token, 0), recur_step(res, 1), recur_at(comb, 0, token, 0) + d,
                               recur_step(comb, 1), n_stream, y, n, true);
    }
}

struct ggml_tensor *ggml_dsv4_hc_post(struct ggml_context *ctx, struct ggml_tensor *x, struct ggml_tensor *residual,
                                      struct ggml_tensor *post, struct ggml_tensor *comb) {
    struct ggml_tensor *src[] = {x, residual, post, comb};
    return op_build(ctx, GGML_OP_DSV4_HC_POST, false, NULL, 0, src, 4);
}

const struct op op_dsv4_hc_post = {
    .id = GGML_OP_DSV4_HC_POST, .name = "DSV4_HC_POST", .symbol = "dsv4_hc_post(x)", .n_src = 4, .infer = infer, .run = run};
