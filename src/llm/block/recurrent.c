// Recurrent layers: convolutions over time, selective scans, delta rules. A micro-batch holds sequences of equal length side by
// side; states are read from and written to the memory's slots inside the graph, the last few of them as snapshots.
#include "block/block.h"

#include <string.h>

int rs_n_states(const struct graph *g) {
    const int most = 1 + g->cp->n_rs_seq;
    return g->n.n_seq_tokens < most ? g->n.n_seq_tokens : most;
}

struct ggml_tensor *rs_read(struct graph *g, struct ggml_tensor *states) {
    return ggml_get_rows(g->ctx, states, in_rs_src(g));
}

void rs_write(struct graph *g, struct ggml_tensor *states, struct ggml_tensor *now, int k) {
    ggml_build_forward_expand(g->gf, ggml_set_rows(g->ctx, states, now, in_rs_dst(g, k)));
}

struct ggml_tensor *rs_conv_states(struct graph *g, int il) {
    return g->mem->rs->r[il];
}

struct ggml_tensor *rs_main_states(struct graph *g, int il) {
    return g->mem->rs->s[il];
}

// Columns [off, off + n) of every slot.
static struct ggml_tensor *part_of(struct graph *g, struct ggml_tensor *states, int64_t n, int64_t off) {
    if (off == 0 && n == states->ne[0]) return states;
    return ggml_view_2d(g->ctx, states, n, states->ne[1], states->nb[1], (size_t) off * sizeof(float));
}

struct ggml_tensor *blk_conv_input(struct graph *g, struct ggml_tensor *x, int64_t n_before, int il, int state_off) {
    struct ggml_context *c = g->ctx;
    const int64_t n_ch = x->ne[0], t = x->ne[1], n_seqs = x->ne[2];
    struct ggml_tensor *states = part_of(g, rs_conv_states(g, il), n_before * n_ch, state_off);
    struct ggml_tensor *old = ggml_reshape_3d(c, rs_read(g, states), n_before, n_ch, n_seqs);
    struct ggml_tensor *sx = ggml_concat(c, old, ggml_cont(c, ggml_permute(c, x, 1, 0, 2, 3)), 0);  // [n_before + t, C, S]
    for (int k = 0; k < rs_n_states(g); k++) {
        struct ggml_tensor *last =
            ggml_view_3d(c, sx, n_before, n_ch, n_seqs, sx->nb[1], sx->nb[2], (size_t) (t - k) * sizeof(float));
        rs_write(g, states, ggml_cont_2d(c, last, n_before * n_ch, n_seqs), k);
    }
    return sx;
}

struct ggml_tensor *blk_conv(struct graph *g, struct ggml_tensor *x, struct ggml_tensor *w, int il, int state_off) {
    const int64_t k = w->ne[0];
    struct ggml_tensor *kernel = ggml_reshape_2d(g->ctx, blk_f32(g, w), k, ggml_nelements(w) / k);
    return ggml_ssm_conv(g->ctx, blk_conv_input(g, x, k - 1, il, state_off), kernel);
}

struct ggml_tensor *blk_token_shift(struct graph *g, struct ggml_tensor *x, int il, int state_off) {
    struct ggml_context *c = g->ctx;
    const int64_t e = x->ne[0], t = x->ne[1], n_seqs = x->ne[2];
    struct ggml_tensor *states = part_of(g, rs_conv_states(g, il), e, state_off);
    struct ggml_tensor *before = ggml_reshape_3d(c, rs_read(g, states), e, 1, n_seqs);
    ggml_build_forward_expand(g->gf, before);  // the writes don't depend on it, and must come later
    for (int k = 0; k < rs_n_states(g); k++) {
        struct ggml_tensor *last = ggml_view_3d(c, x, e, 1, n_seqs, x->nb[1], x->nb[2], (size_t) (t - 1 - k) * x->nb[1]);
        rs_write(g, states, ggml_cont_2d(c, last, e, n_seqs), k);
    }
    if (t == 1) return before;
    return ggml_concat(c, before, ggml_view_3d(c, x, e, t - 1, n_seqs, x->nb[1], x->nb[2], 0), 1);
}

struct ggml_tensor *blk_by_seq(struct graph *g, struct ggml_tensor *x) {
    return ggml_reshape_3d(g->ctx, x, x->ne[0], g->n.n_seq_tokens, g->n.n_seqs);
}

struct ggml_tensor *blk_ssm_scan(struct graph *g, int il, struct ggml_tensor *x, struct ggml_tensor *dt,
                                 struct ggml_tensor *a, struct ggml_tensor *b, struct ggml_tensor *cc) {
    struct ggml_context *c = g->ctx;
    struct ggml_tensor *states = rs_main_states(g, il);
    const int64_t dim = x->ne[0], n_head = x->ne[1], t = x->ne[2], n_seqs = x->ne[3], n_state = b->ne[0];
    const int n_keep = rs_n_states(g);
    struct ggml_tensor *s = ggml_reshape_4d(c, states, n_state, dim, n_head, states->ne[1]);
    struct ggml_tensor *r = ggml_ssm_scan(c, s, x, dt, blk_f32(g, a), b, cc, in_rs_src(g), n_keep);
    const int64_t n_y = dim * n_head * t * n_seqs, n_s = n_state * dim * n_head;
    for (int k = 0; k < n_keep; k++)
        rs_write(
            g, states,
            ggml_view_2d(c, r, n_s, n_seqs, (size_t) n_s * sizeof(float), (size_t) (n_y + k * n_s * n_seqs) * sizeof(float)),
            k);
    return ggml_view_4d(c, r, dim, n_head, t, n_seqs, (size_t) dim * sizeof(float), (size_t) (dim * n_head) * sizeof(float),
                        (size_t) (dim * n_head * t) * sizeof(float), 0);
}

// n columns of x [w, T] from `from` on, as [a, b, n_seq_tokens, n_seqs] with a * b == n.
struct ggml_tensor *blk_columns(struct graph *g, struct ggml_tensor *x, int64_t a, int64_t b, int64_t from) {
    const int64_t t = g->n.n_seq_tokens;
    const size_t row = x->nb[1];
    return ggml_view_4d(g->ctx, x, a, b, t, g->n.n_seqs, (size_t) a * sizeof(float), row, row * (size_t) t,
                        (size_t) from * sizeof(float));
}

static struct ggml_tensor *norm_part(struct graph *g, struct ggml_tensor *x, const struct weight *w) {
    if (w->w) return blk_norm(g, x, w, NORM_RMS);
    return g->hp->ssm_dt_b_c_rms ? blk_norm(g, x, NULL, NORM_RMS) : x;
}

struct ggml_tensor *blk_mamba1(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_context *c = g->ctx;
    const struct hparams *hp = g->hp;
    const int64_t n_in = hp->ssm_inner, n = hp->ssm_state, r = hp->ssm_dt_rank, t = g->n.n_seq_tokens, n_seqs = g->n.n_seqs;
    struct ggml_tensor *xz = blk_linear(g, &l->ssm_in, x);
    struct ggml_tensor *u = ggml_view_3d(c, xz, n_in, t, n_seqs, xz->nb[1], xz->nb[1] * (size_t) t, 0);
    struct ggml_tensor *z = ggml_view_2d(c, xz, n_in, t * n_seqs, xz->nb[1], (size_t) n_in * sizeof(float));
    z = ggml_cont(c, z);  // before the scan, so that the joint projection need not live beside it
    ggml_build_forward_expand(g->gf, z);
    u = blk_conv(g, u, l->ssm_conv1d.w, il, 0);
    if (l->ssm_conv1d.b) u = ggml_add(c, u, l->ssm_conv1d.b);
    u = ggml_reshape_2d(c, ggml_silu(c, u), n_in, t * n_seqs);
    struct ggml_tensor *p = blk_linear(g, &l->ssm_x, u);
    struct ggml_tensor *dt = ggml_view_2d(c, p, r, t * n_seqs, p->nb[1], 0);
    dt = blk_linear(g, &l->ssm_dt, ggml_cont(c, norm_part(g, dt, &l->ssm_dt_norm)));
    struct ggml_tensor *b = norm_part(g, blk_columns(g, p, n, 1, r), &l->ssm_b_norm);
    struct ggml_tensor *cc = norm_part(g, blk_columns(g, p, n, 1, r + n), &l->ssm_c_norm);
    struct ggml_tensor *y = blk_ssm_scan(g, il, ggml_reshape_4d(c, u, 1, n_in, t, n_seqs),
                                         ggml_reshape_3d(c, dt, n_in, t, n_seqs), l->ssm_a.w, b, cc);
    y = ggml_view_2d(c, y, n_in, t * n_seqs, (size_t) n_in * sizeof(float), 0);
    y = ggml_add(c, y, ggml_mul(c, u, l->ssm_d.w));
    y = ggml_swiglu_split(c, z, y);
    return blk_linear(g, &l->ssm_out, y);
}

struct ggml_tensor *blk_mamba2(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_context *c = g->ctx;
    const struct hparams *hp = g->hp;
    const int64_t n_in = hp->ssm_inner, n = hp->ssm_state, nh = hp->ssm_dt_rank, ng = hp->ssm_group, hd = n_in / nh;
    const int64_t t = g->n.n_seq_tokens, n_seqs = g->n.n_seqs, n_conv = n_in + 2 * ng * n;
    struct ggml_tensor *p = blk_linear(g, &l->ssm_in, x);  // z, x B C, dt
    struct ggml_tensor *z = ggml_view_2d(c, p, n_in, t * n_seqs, p->nb[1], 0);
    struct ggml_tensor *xbc =
        ggml_view_3d(c, p, n_conv, t, n_seqs, p->nb[1], p->nb[1] * (size_t) t, (size_t) n_in * sizeof(float));
    struct ggml_tensor *dt =
        ggml_view_3d(c, p, nh, t, n_seqs, p->nb[1], p->nb[1] * (size_t) t, (size_t) (n_in + n_conv) * sizeof(float));
    // z and dt leave the joint projection first: it need not live beside the scan
    dt = ggml_add(c, dt, l->ssm_dt.b);
    z = ggml_cont(c, z);
    ggml_build_forward_expand(g->gf, dt);
    ggml_build_forward_expand(g->gf, z);
    xbc = blk_conv(g, xbc, l->ssm_conv1d.w, il, 0);
    if (l->ssm_conv1d.b) xbc = ggml_add(c, xbc, l->ssm_conv1d.b);
    xbc = ggml_reshape_2d(c, ggml_silu(c, xbc), n_conv, t * n_seqs);
    struct ggml_tensor *u = blk_columns(g, xbc, hd, nh, 0);
    struct ggml_tensor *a = ggml_reshape_2d(c, l->ssm_a.w, 1, nh);
    struct ggml_tensor *y =
        blk_ssm_scan(g, il, u, dt, a, blk_columns(g, xbc, n, ng, n_in), blk_columns(g, xbc, n, ng, n_in + ng * n));
    y = ggml_add(c, y, ggml_mul(c, u, ggml_reshape_2d(c, l->ssm_d.w, 1, nh)));
    y = ggml_swiglu_split(c, z, ggml_reshape_2d(c, y, n_in, t * n_seqs));
    if (l->ssm_norm.w) {
        y = ggml_reshape_3d(c, y, n_in / ng, ng, t * n_seqs);
        y = ggml_mul(c, ggml_rms_norm(c, y, hp->eps), ggml_reshape_2d(c, l->ssm_norm.w, n_in / ng, ng));
        y = ggml_reshape_2d(c, y, n_in, t * n_seqs);
    }
    return blk_linear(g, &l->ssm_out, y);
}

struct ggml_tensor *blk_wkv_state(struct graph *g, int il) {
    return rs_read(g, rs_main_states(g, il));
}

struct ggml_tensor *blk_wkv_result(struct graph *g, struct ggml_tensor *r, int64_t n, int il) {
    struct ggml_context *c = g->ctx;
    const int64_t w = r->ne[0], t = (int64_t) g->n.n_seq_tokens * g->n.n_seqs, n_s = n * w;
    rs_write(g, rs_main_states(g, il),
             ggml_view_2d(c, r, n_s, g->n.n_seqs, (size_t) n_s * sizeof(float), (size_t) (w * t) * sizeof(float)), 0);
    return ggml_view_3d(c, r, n, w / n, t, (size_t) n * sizeof(float), (size_t) w * sizeof(float), 0);
}

// Centred taps see ahead as well: rows of the micro-batch alone, which then holds whole texts.
static struct ggml_tensor *centred_conv(struct graph *g, struct ggml_tensor *x, struct ggml_tensor *w) {
    struct ggml_context *c = g->ctx;
    const int k = (int) w->ne[0], before = (k - 1) / 2;
    struct ggml_tensor *sx =
        ggml_pad_ext(c, ggml_cont(c, ggml_permute(c, x, 1, 0, 2, 3)), before, k - 1 - before, 0, 0, 0, 0, 0, 0);
    return ggml_ssm_conv(c, sx, ggml_reshape_2d(c, blk_f32(g, w), k, ggml_nelements(w) / k));
}

struct ggml_tensor *blk_short_conv(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_context *c = g->ctx;
    const int64_t e = x->ne[0], t = x->ne[1];
    struct ggml_tensor *p = blk_linear(g, &l->shortconv_in, x), *part[3];
    for (int i = 0; i < 3; i++) part[i] = ggml_view_2d(c, p, e, t, p->nb[1], (size_t) i * (size_t) e * sizeof(float));
    struct ggml_tensor *u = blk_by_seq(g, ggml_mul(c, part[0], part[2]));
    struct ggml_tensor *y =
        g->hp->causal ? blk_conv(g, u, l->shortconv_conv.w, il, 0) : centred_conv(g, u, l->shortconv_conv.w);
    return blk_linear(g, &l->shortconv_out, ggml_mul(c, ggml_reshape_2d(c, y, e, t), part[1]));
}
