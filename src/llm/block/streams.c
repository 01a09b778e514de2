// Residuals of several streams (hyper-connections): each branch reads a mixture of them and its result goes to all, by weights that the
// streams themselves give.
#include "block/block.h"

struct ggml_tensor *blk_hc_begin(struct graph *g, struct ggml_tensor *x) {
    return ggml_repeat_4d(g->ctx, x, x->ne[0] * g->hp->n_hc, x->ne[1], 1, 1);
}

static struct ggml_tensor *streams(struct graph *g, struct ggml_tensor *x) {
    const int64_t n = g->hp->n_hc;
    return ggml_reshape_3d(g->ctx, x, x->ne[0] / n, n, x->ne[1]);
}

// sigmoid(mix[from ...] * scale[i] + base[from ...]) for all streams [hc, T].
static struct ggml_tensor *weights(struct graph *g, struct ggml_tensor *mix, const struct hc_weights *w, int i) {
    struct ggml_context *c = g->ctx;
    const int64_t n = g->hp->n_hc, from = i * n;
    struct ggml_tensor *f = ggml_view_2d(c, mix, n, mix->ne[1], mix->nb[1], (size_t) from * sizeof(float));
    f = ggml_mul(c, f, ggml_view_1d(c, blk_f32(g, w->scale->w), 1, (size_t) i * sizeof(float)));
    return ggml_sigmoid(c, ggml_add(c, f, ggml_view_1d(c, blk_f32(g, w->base->w), n, (size_t) from * sizeof(float))));
}

struct ggml_tensor *blk_hc_in(struct graph *g, struct ggml_tensor *x, const struct hc_weights *w, struct ggml_tensor **mix) {
    *mix = blk_linear(g, w->fn, ggml_rms_norm(g->ctx, x, g->hp->eps));
    struct ggml_tensor *a = ggml_scale_bias(g->ctx, weights(g, *mix, w, 0), 1.0f, g->hp->hc_eps);
    return ggml_dsv4_hc_pre(g->ctx, streams(g, x), a);
}

struct ggml_tensor *blk_hc_out(struct graph *g, struct ggml_tensor *x, struct ggml_tensor *y, struct ggml_tensor *mix,
                               const struct hc_weights *w) {
    struct ggml_context *c = g->ctx;
    const struct hparams *hp = g->hp;
    const int64_t n = hp->n_hc, e = y->ne[0], t = y->ne[1];
    struct ggml_tensor *s = streams(g, x), *p = weights(g, mix, w, 1);
    if (hp->hc_iter > 0) {
        struct ggml_tensor *comb =
            ggml_dsv4_hc_comb(c, mix, blk_f32(g, w->scale->w), blk_f32(g, w->base->w), hp->hc_eps, hp->hc_iter);
        s = ggml_dsv4_hc_post(c, y, s, ggml_scale(c, p, 2.0f), comb);
    } else {
        p = ggml_reshape_3d(c, ggml_scale_bias(c, p, hp->hc_magnitude, hp->hc_eps), 1, n, t);
        s = ggml_add(c, s, ggml_mul(c, ggml_repeat_4d(c, ggml_reshape_3d(c, y, e, 1, t), e, n, t, 1), p));
    }
    return ggml_reshape_2d(c, s, e * n, t);
}

struct ggml_tensor *blk_hc_mean(struct graph *g, struct ggml_tensor *x) {
    struct ggml_tensor *s = streams(g, x), *sum = NULL;
    for (int64_t i = 0; i < s->ne[1]; i++) {
        struct ggml_tensor *v = ggml_view_2d(g->ctx, s, s->ne[0], s->ne[2], s->nb[2], (size_t) i * s->nb[1]);
        sum = sum ? ggml_add(g->ctx, sum, v) : v;
    }
    return ggml_scale(g->ctx, s->ne[1] == 1 ? ggml_cont(g->ctx, sum) : sum, 1.0f / (float) s->ne[1]);
}

struct ggml_tensor *blk_hc_end(struct graph *g, struct ggml_tensor *x) {
    struct ggml_tensor *mix;
    return blk_hc_in(g, x, &(struct hc_weights){&g->w->output_hc_fn, &g->w->output_hc_base, &g->w->output_hc_scale}, &mix);
}

struct ggml_tensor *blk_mix_streams(struct graph *g, struct ggml_tensor *x, struct ggml_tensor *m) {
    return ggml_mul_mat(g->ctx, ggml_cont(g->ctx, ggml_permute(g->ctx, x, 1, 0, 2, 3)), m);
}
