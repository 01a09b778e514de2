// qwen3next: three gated delta nets (Yang et al. 2024, arXiv 2412.06464) to each layer of gated attention; experts everywhere.
#include "arch/arch.h"

#include <math.h>

static const struct arch_key keys[] = {
    K_RMS, K_FX_OR("F/U"), K_FS("F"), K_SSM, K_SSM_GROUP,
    {NULL, 0, NULL, 0},
};

// nh value heads and ng key heads of size N
static const struct arch_tensor tensors[] = {
    T_EMBD, T_OUT_NORM, T_OUT_TIED, T_NORM(attn_norm), T_NORM(post_attn_norm),
    {SLOT_attn_qkv, "E,2*H*D+2*K*D", T_OPT | T_BIAS_OPT, "!rec", 0, 0, 0},
    {SLOT_attn_q, "E,2*H*D", T_BIAS_OPT | T_SCALE, "!rec", SLOT_attn_qkv, 0, 0}, {SLOT_attn_k, "E,K*D", T_BIAS_OPT | T_SCALE, "!rec", SLOT_attn_qkv, 0, 0},
    {SLOT_attn_v, "E,K*D", T_BIAS_OPT | T_SCALE, "!rec", SLOT_attn_qkv, 0, 0}, {SLOT_attn_output, "H*D,E", T_SCALE, "!rec", 0, 0, 0},
    {SLOT_attn_q_norm, "D", 0, "!rec", 0, 0, 0}, {SLOT_attn_k_norm, "D", 0, "!rec", 0, 0, 0},
    {SLOT_attn_qkv, "E,2*ng*N+nh*N", T_OPT, "rec", 0, 0, 0}, {SLOT_attn_gate, "E,nh*N", T_OPT, "rec", 0, 0, 0},
    {SLOT_ssm_in, "E,2*ng*N+2*nh*N", 0, "rec", SLOT_attn_qkv, 0, 0}, {SLOT_ssm_ba, "E,2*nh", 0, "rec", 0, 0, 0},
    {SLOT_ssm_conv1d, "k,2*ng*N+nh*N", 0, "rec", 0, 0, 0}, {SLOT_ssm_dt, "1,nh", T_BIAS_ONLY, "rec", 0, 0, 0},
    {SLOT_ssm_a, "nh", T_NO_SUFFIX, "rec", 0, 0, 0}, {SLOT_ssm_norm, "N", 0, "rec", 0, 0, 0}, {SLOT_ssm_out, "nh*N,E", 0, "rec", 0, 0, 0},
    T_ROUTER(0), T_EXPERTS_MERGED("Fx", T_SCALE, 0), {SLOT_ffn_gate_inp_shexp, "E", 0, 0, 0, 0, 0}, T_SHEXP("Fs", T_SCALE, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    TRY(arch_require(hp->ssm_group > 0 && hp->ssm_dt_rank % hp->ssm_group == 0 && hp->ssm_inner == hp->ssm_dt_rank * hp->ssm_state, b,
                     "key heads must divide the value heads, which make up the inner size"));
    return arch_recurrent_by_key(hp, b, 4);
}

// Rows of q are [query, gate] per head; the result is gated before the output projection.
static struct ggml_tensor *attention(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_context *c = g->ctx;
    const struct hparams *hp = g->hp;
    const int64_t d = hp->n_embd_head_k[il], h = hp->n_head[il], n_kv = hp->n_head_kv[il], t = x->ne[1];
    struct ggml_tensor *qg, *k, *v;
    if (l->attn_qkv.w) {
        struct ggml_tensor *y = blk_linear(g, &l->attn_qkv, x);
        qg = ggml_view_3d(c, y, 2 * d, h, t, (size_t) (2 * d) * sizeof(float), y->nb[1], 0);
        k = ggml_view_3d(c, y, d, n_kv, t, (size_t) d * sizeof(float), y->nb[1], (size_t) (2 * d * h) * sizeof(float));
        v = ggml_view_3d(c, y, d, n_kv, t, (size_t) d * sizeof(float), y->nb[1], (size_t) (2 * d * h + d * n_kv) * sizeof(float));
    } else {
        qg = ggml_reshape_3d(c, blk_linear(g, &l->attn_q, x), 2 * d, h, t);
        k = ggml_reshape_3d(c, blk_linear(g, &l->attn_k, x), d, n_kv, t);
        v = ggml_reshape_3d(c, blk_linear(g, &l->attn_v, x), d, n_kv, t);
    }
    struct ggml_tensor *q = ggml_view_3d(c, qg, d, h, t, qg->nb[1], qg->nb[2], 0);
    struct ggml_tensor *gate = ggml_cont_2d(c, ggml_view_3d(c, qg, d, h, t, qg->nb[1], qg->nb[2], (size_t) d * sizeof(float)), d * h, t);
    q = blk_rope(g, blk_norm(g, q, &l->attn_q_norm, NORM_RMS), il);
    k = blk_rope(g, blk_norm(g, k, &l->attn_k_norm, NORM_RMS), il);
    struct ggml_tensor *y = blk_attend(g, q, k, v, il, &(struct attn_opts){0});
    return blk_linear(g, &l->attn_output, ggml_mul(c, y, ggml_sigmoid(c, gate)));
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
        part[i] = ggml_cont_2d(c, ggml_view_3d(c, y, n[i], nk, t, y->nb[1], y->nb[2], (size_t) from[i] * sizeof(float)), n[i] * nk, t);
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

static struct ggml_tensor *delta_net(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_context *c = g->ctx;
    const struct hparams *hp = g->hp;
    const int64_t s = hp->ssm_state, nk = hp->ssm_group, nv = hp->ssm_dt_rank, r = nv / nk, t = g->n.n_seq_tokens, n = g->n.n_seqs;
    struct ggml_tensor *qkv, *z;
    if (l->attn_qkv.w) {
        qkv = blk_linear(g, &l->attn_qkv, x);
        z = blk_linear(g, &l->attn_gate, x);
    } else {
        split_old(g, blk_linear(g, &l->ssm_in, x), &qkv, &z);
    }
    struct ggml_tensor *ba = ggml_reshape_3d(c, blk_linear(g, &l->ssm_ba, x), 2 * r, nk, t * n);
    struct ggml_tensor *beta = ggml_cont_2d(c, ggml_view_3d(c, ba, r, nk, t * n, ba->nb[1], ba->nb[2], 0), nv, t * n);
    struct ggml_tensor *alpha = ggml_cont_2d(c, ggml_view_3d(c, ba, r, nk, t * n, ba->nb[1], ba->nb[2], (size_t) r * sizeof(float)), nv, t * n);
    qkv = ggml_silu(c, blk_conv(g, blk_by_seq(g, qkv), l->ssm_conv1d.w, il, 0));
    qkv = ggml_reshape_2d(c, qkv, qkv->ne[0], t * n);
    struct ggml_tensor *q = spread(g, blk_norm(g, blk_columns(g, qkv, s, nk, 0), NULL, NORM_L2), r);
    struct ggml_tensor *k = spread(g, blk_norm(g, blk_columns(g, qkv, s, nk, s * nk), NULL, NORM_L2), r);
    struct ggml_tensor *gate = ggml_mul(c, ggml_softplus(c, ggml_add(c, alpha, l->ssm_dt.b)), l->ssm_a.w);
    const struct delta_opts o = {
        .q = q, .k = k, .v = blk_columns(g, qkv, s, nv, 2 * s * nk),
        .gate = ggml_reshape_4d(c, gate, 1, nv, t, n), .beta = ggml_reshape_4d(c, ggml_sigmoid(c, beta), 1, nv, t, n),
    };
    struct ggml_tensor *y = ggml_reshape_3d(c, blk_delta_net(g, il, &o), s, nv, t * n);
    y = blk_norm(g, y, &l->ssm_norm, NORM_RMS);
    y = ggml_swiglu_split(c, ggml_reshape_3d(c, z, s, nv, t * n), y);
    return blk_linear(g, &l->ssm_out, ggml_reshape_2d(c, y, s * nv, t * n));
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *cur = blk_norm(g, x, &l->attn_norm, NORM_RMS);
    cur = g->hp->is_recr[il] ? delta_net(g, l, cur, il) : attention(g, l, cur, il);
    blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, cur, x);
    cur = blk_norm(g, x, &l->post_attn_norm, NORM_RMS);
    struct ggml_tensor *y = blk_moe(g, l, cur, il, &(struct moe_opts){.gate = GATE_SOFTMAX, .norm = true});
    y = ggml_add(g->ctx, y, blk_shared_expert(g, l, cur, &(struct act_opts){.act = ACT_SILU}));
    return ggml_add(g->ctx, y, x);
}

const struct arch arch_qwen3next = {
    .name = "qwen3next",
    .flags = ARCH_HYBRID,
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .state_r = "(k-1)*(2*ng*N+nh*N)",
    .state_s = "nh*N*N",
    .nodes = 160,
    .layer = layer,
};
