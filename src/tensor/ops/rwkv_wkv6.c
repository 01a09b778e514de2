// RWKV_WKV6: the time mixing of RWKV-6 (Peng et al. 2024, arXiv 2404.05892): y = r (S + diag(u) k v^T), S = diag(w) S + k
// v^T.
#include "ops/rwkv_linear_int.h"

enum { K_, V, R, U, W, STATE };

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    static const char *const names[] = {"k", "v", "r"};
    TRY(rwkv_infer("rwkv_wkv6", t, 3, names, t->src[STATE], shape));
    const struct ggml_tensor *k = t->src[K_], *u = t->src[U];
    TRY(recur_check_contiguous("rwkv_wkv6", "tf", u));
    TRY(recur_check_contiguous("rwkv_wkv6", "td", t->src[W]));
    TRY(recur_check_shape("rwkv_wkv6", "td", t->src[W], k->ne[0], k->ne[1], k->ne[2], 1));
    if (ggml_nelements(u) != k->ne[0] * k->ne[1])
        return err_set(ERR_INVALID, "rwkv_wkv6: tf has %lld values; %lld x %lld heads are needed",
                       (long long) ggml_nelements(u), (long long) k->ne[0], (long long) k->ne[1]);
    return ERR_OK;
}

static void run(struct task *k, struct ggml_tensor *t) {
    rwkv_linear_run(k, t,
                    &(struct rwkv_linear){t->src[K_], t->src[V], t->src[R], t->src[U], t->src[W], t->src[STATE], 1.0f});
}

struct ggml_tensor *ggml_rwkv_wkv6(struct ggml_context *ctx, struct ggml_tensor *k, struct ggml_tensor *v,
                                   struct ggml_tensor *r, struct ggml_tensor *tf, struct ggml_tensor *td,
                                   struct ggml_tensor *state) {
    struct ggml_tensor *src[] = {k, v, r, tf, td, state};
    return op_build(ctx, GGML_OP_RWKV_WKV6, false, NULL, 0, src, 6);
}

const struct op op_rwkv_wkv6 = {.id = GGML_OP_RWKV_WKV6,
                                .name = "RWKV_WKV6",
                                .symbol = "rwkv_wkv6(k, v, r, tf, td, s)",
                                .n_src = 6,
                                .infer = infer,
                                .run = run};
