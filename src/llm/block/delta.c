// Delta rules: a state of keys and values per head that decays and is corrected by each token. The gated delta net (Yang et al. 2024,
// arXiv 2412.06464) forgets by one number per head, Kimi delta attention (arXiv 2510.26692) by one per key dimension.
#include "block/block.h"

#include <math.h>

struct ggml_tensor *blk_delta_net(struct graph *g, int il, const struct delta_opts *o) {
    struct ggml_context *c = g->ctx;
    struct ggml_tensor *states = rs_main_states(g, il);
    const int64_t dv = o->v->ne[0], h = o->v->ne[1], t = o->v->ne[2], n_seqs = o->v->ne[3], dk = o->k->ne[0];
    const int n_keep = rs_n_states(g);
    struct ggml_tensor *s = ggml_reshape_4d(c, rs_read(g, states), dk, dv, h, n_seqs);
    struct ggml_tensor *r = ggml_gated_delta_net(c, o->q, o->k, o->v, o->gate, o->beta, s, n_keep);
    const int64_t n_y = dv * h * t * n_seqs, n_s = dk * dv * h;
    for (int k = 0; k < n_keep; k++)
        rs_write(
            g, states,
            ggml_view_2d(c, r, n_s, n_seqs, (size_t) n_s * sizeof(float), (size_t) (n_y + k * n_s * n_seqs) * sizeof(float)),
            k);
    return ggml_view_4d(c, r, dv, h, t, n_seqs, (size_t) dv * sizeof(float), (size_t) (dv * h) * sizeof(float),
                        (size_t) (dv * h * t) * sizeof(float), 0);
}

// The old layout: per key head [q, k, v of its value heads, z of them]; gives q k v joined, and z.
static void split_old(struct graph *g, struct ggml_tensor *p, struct ggml_tensor **qkv, struct ggml_tensor **z) {
    struct ggml_context *c = g->ctx;
    const struct hparams *hp = g->hp;
    const int64_t s = hp->ssm_state, nk = hp->ssm_group, r = hp->ssm_dt_rank / nk, t = p->ne[1];
    const int64_t w = 2 * s + 2 * r * s;
    struct ggml_tensor *y = ggml_reshape_3d(c, p, w, nk, t), *part[4];
    const int64_t from[4] = {0, s, 2 * s, 2 * s + r * s}, n[4] = {s, s, r * s, r * s};
    for (int i = 0; i < 4; i++)
        part[i] = ggml_cont_2d(c, ggml_view_3d(c, y, n[i], nk, t, y->nb[1], y->nb[2], (size_t) from[i] * sizeof(float)),
                               n[i] * nk, t);
    *qkv = ggml_concat(c, ggml_concat(c, part[0], part[1], 0), part[2], 0);
    *z = part[3];
}

// Key heads [S, nk, t, n] for value heads: value head h uses key head h / (nv / nk).
static struct ggml_tensor *spread(struct graph *g, struct ggml_tensor *x, int64_t r) {
    if (r == 1) return x;
    struct ggml_context *c = g->ctx;
    const int64_t s = x->ne[0], nk = x->ne[1], t = x->ne[2], n = x->ne[3];
    x = ggml_repeat_4d(c, ggml_reshape_4d(c, x, s, 1, nk, t * n), s, r, nk, t * n);
    return ggml_reshape_4d(c, x, s, r * nk, t, n);
}

// z and the joined q, k, v of a gated delta net.
static struct ggml_tensor *project(struct graph *g, const struct layer *l, struct ggml_tensor *x, struct ggml_tensor **z) {
    struct ggml_tensor *qkv;
    if (l->attn_qkv.w) {
        *z = blk_linear(g, &l->attn_gate, x);
        return blk_linear(g, &l->attn_qkv, x);
    }
    split_old(g, blk_linear(g, &l->ssm_in, x), &qkv, z);
    return qkv;
}

// Logits of beta, and alpha, [nv, T]; joined ones lie per key head as [beta, alpha] of its value heads.
static void beta_alpha(struct graph *g, const struct layer *l, struct ggml_tensor *x, struct ggml_tensor **beta,
                       struct ggml_tensor **alpha) {
    struct ggml_context *c = g->ctx;
    const int64_t nk = g->hp->ssm_group, nv = g->hp->ssm_dt_rank, r = nv / nk, t = x->ne[1];
    if (!l->ssm_ba.w) {
        *beta = blk_linear(g, &l->ssm_beta, x);
        *alpha = blk_linear(g, &l->ssm_alpha, x);
        return;
    }
    struct ggml_tensor *ba = ggml_reshape_3d(c, blk_linear(g, &l->ssm_ba, x), 2 * r, nk, t);
    *beta = ggml_cont_2d(c, ggml_view_3d(c, ba, r, nk, t, ba->nb[1], ba->nb[2], 0), nv, t);
    *alpha = ggml_cont_2d(c, ggml_view_3d(c, ba, r, nk, t, ba->nb[1], ba->nb[2], (size_t) r * sizeof(float)), nv, t);
}

struct ggml_tensor *blk_gated_delta(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il, bool sigmoid) {
    struct ggml_context *c = g->ctx;
    const struct hparams *hp = g->hp;
    const int64_t s = hp->ssm_state, nk = hp->ssm_group, nv = hp->ssm_dt_rank, t = g->n.n_seq_tokens, n = g->n.n_seqs;
    struct ggml_tensor *z, *beta, *alpha;
    struct ggml_tensor *qkv = project(g, l, x, &z);
    beta_alpha(g, l, x, &beta, &alpha);
    qkv = ggml_silu(c, blk_conv(g, blk_by_seq(g, qkv), l->ssm_conv1d.w, il, 0));
    qkv = ggml_reshape_2d(c, qkv, qkv->ne[0], t * n);
    struct ggml_tensor *q = blk_norm(g, blk_columns(g, qkv, s, nk, 0), NULL, NORM_L2);
    struct ggml_tensor *k = blk_norm(g, blk_columns(g, qkv, s, nk, s * nk), NULL, NORM_L2);
    if (l->ssm_ba.w) {  // files with joined beta and alpha have each key head's value heads side by side
        q = spread(g, q, nv / nk);
        k = spread(g, k, nv / nk);
    }
    struct ggml_tensor *gate = ggml_mul(c, ggml_softplus(c, ggml_add(c, alpha, l->ssm_dt.b)), l->ssm_a.w);
    const struct delta_opts o = {
        .q = q,
        .k = k,
        .v = blk_columns(g, qkv, s, nv, 2 * s * nk),
        .gate = ggml_reshape_4d(c, gate, 1, nv, t, n),
        .beta = ggml_reshape_4d(c, ggml_sigmoid(c, beta), 1, nv, t, n),
    };
    struct ggml_tensor *y = ggml_reshape_3d(c, blk_delta_net(g, il, &o), s, nv, t * n);
    y = blk_norm(g, y, &l->ssm_norm, NORM_RMS);
    z = ggml_reshape_3d(c, z, s, nv, t * n);
    y = sigmoid ? ggml_mul(c, y, ggml_sigmoid(c, z)) : ggml_swiglu_split(c, z, y);
    return blk_linear(g, &l->ssm_out, ggml_reshape_2d(c, y, s * nv, t * n));
}

// ---- Kimi delta attention ---------------------------------------------------------------------------------------------

// silu(conv(y)) as heads [d, H, t, S]; y [d * H, t, S] rows; i: which of the layer's three convolutions.
static struct ggml_tensor *kda_part(struct graph *g, struct ggml_tensor *y, struct ggml_tensor *conv, int il, int i) {
    const int64_t d = g->hp->kda_head, w = y->ne[0];
    y = ggml_silu(g->ctx, blk_conv(g, y, conv, il, i * (int) ((conv->ne[0] - 1) * w)));
    return ggml_reshape_4d(g->ctx, y, d, w / d, y->ne[1], y->ne[2]);
}

// Logarithm of the decay [d, H, T] from z [d * H, T].
static struct ggml_tensor *kda_decay(struct graph *g, const struct layer *l, struct ggml_tensor *z,
                                     const struct kda_opts *o) {
    struct ggml_context *c = g->ctx;
    const int64_t d = g->hp->kda_head, h = z->ne[0] / d;
    struct ggml_tensor *a = ggml_reshape_2d(c, l->ssm_a.w, 1, h);
    z = ggml_reshape_3d(c, z, d, h, z->ne[1]);
    if (!(o->lower < 0) || isinf(o->lower)) return ggml_mul(c, ggml_softplus(c, z), a);
    z = ggml_mul(c, z, a);
    return ggml_scale(c, ggml_sigmoid(c, o->a_positive ? z : ggml_neg(c, z)), o->lower);
}

struct ggml_tensor *blk_kda(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il,
                            const struct kda_opts *o) {
    struct ggml_context *c = g->ctx;
    const int64_t d = g->hp->kda_head, w = ggml_nelements(l->ssm_dt.b), h = w / d, t = g->n.n_seq_tokens, n = g->n.n_seqs;
    const float eps = o->l2_eps > 0 ? o->l2_eps : g->hp->eps;
    const struct weight *one[3] = {&l->attn_q, &l->attn_k, &l->attn_v},
                        *conv[3] = {&l->ssm_conv1d_q, &l->ssm_conv1d_k, &l->ssm_conv1d_v};
    struct ggml_tensor *fused = l->attn_qkv.w ? blk_matmul(g, l->attn_qkv.w, x) : NULL, *part[3];
    for (int i = 0; i < 3; i++) {
        struct ggml_tensor *y = fused ? ggml_view_3d(c, fused, w, t, n, fused->nb[1], fused->nb[1] * (size_t) t,
                                                     (size_t) (i * w) * sizeof(float))
                                      : blk_by_seq(g, blk_matmul(g, one[i]->w, x));
        part[i] = kda_part(g, y, conv[i]->w, il, i);
    }
    struct ggml_tensor *z = blk_linear(g, &l->ssm_f_a, x);
    if (l->ssm_f_b.w) z = blk_linear(g, &l->ssm_f_b, z);
    struct ggml_tensor *decay = kda_decay(g, l, ggml_add(c, z, l->ssm_dt.b), o);
    struct ggml_tensor *beta = ggml_sigmoid(c, blk_linear(g, &l->ssm_beta, x));
    const struct delta_opts dn = {
        .q = blk_norm_eps(g, part[0], NULL, NORM_L2, eps),
        .k = blk_norm_eps(g, part[1], NULL, NORM_L2, eps),
        .v = part[2],
        .gate = ggml_reshape_4d(c, decay, d, h, t, n),
        .beta = ggml_reshape_4d(c, beta, 1, h, t, n),
    };
    struct ggml_tensor *y = ggml_reshape_3d(c, blk_delta_net(g, il, &dn), d, h, t * n);
    y = ggml_reshape_2d(c, blk_norm(g, y, &l->ssm_norm, NORM_RMS), w, t * n);
    return blk_matmul(g, l->attn_output.w, ggml_mul(c, y, ggml_sigmoid(c, o->gate)));
}
