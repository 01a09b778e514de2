// minimax-01: seven layers of linear (lightning) attention to each of softmax attention, experts everywhere (arXiv 2501.08313).
#include "arch/arch.h"

#include <math.h>

static const struct arch_key keys[] = {K_RMS, {"residual_scale", HP_f_residual_scale, REQ, 0}, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_QKV_WHEN("!rec"),
    {SLOT_attn_output, "H*D,E", T_SCALE, "!rec", 0, 0, 0},
    {SLOT_attn_qkv, "E,3*H*D", 0, "rec", 0, 0, 0},
    {SLOT_attn_gate, "E,H*D", 0, "rec", 0, 0, 0},
    {SLOT_attn_norm_2, "H*D", 0, "rec", 0, 0, 0},
    {SLOT_attn_output, "H*D,E", 0, "rec", 0, 0, 0},
    T_NORM(ffn_norm),
    T_ROUTER(0),
    T_EXPERTS("F", 0, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) { return arch_recurrent_by_key(hp, b, 8); }

// Heads forget at rates 2^(-8 (h + 1) / H).
static void fill_slopes(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    (void) g;
    (void) ub;
    const int64_t n = in->t->ne[1];
    for (int64_t h = 0; h < n; h++) ((float *) dst)[h] = exp2f(-8.0f * (float) (h + 1) / (float) n);
}

// S = rho S + k v^T, o = S^T q: a selective scan whose steps are all 1.
static struct ggml_tensor *lightning(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_context *c = g->ctx;
    const struct hparams *hp = g->hp;
    const int64_t d = hp->n_embd_head_k[il], h = hp->n_head[il], t = g->n.n_seq_tokens, n = g->n.n_seqs;
    struct ggml_tensor *p = ggml_silu(c, blk_linear(g, &l->attn_qkv, x)), *part[3];  // [q, k, v] per head
    const size_t row = (size_t) (3 * d) * sizeof(float), tok = row * (size_t) h;
    for (int i = 0; i < 3; i++)
        part[i] = ggml_view_4d(c, p, d, h, t, n, row, tok, tok * (size_t) t, (size_t) (i * d) * sizeof(float));
    const float depth = hp->n_layer > 1 ? (float) il / (float) (hp->n_layer - 1) : 0.0f;
    struct ggml_tensor *slopes = graph_input(g, GGML_TYPE_F32, 1, h, fill_slopes, 0, 0, 0)->t;
    struct ggml_tensor *decay = ggml_scale(c, slopes, -(1.0f - depth + 1e-5f));
    struct ggml_tensor *any = ggml_view_3d(c, p, h, t, n, tok, tok * (size_t) t, 0);
    struct ggml_tensor *one = ggml_fill(c, any, 0.541324854612918f);  // softplus gives 1
    struct ggml_tensor *y = blk_ssm_scan(g, il, part[2], one, decay, part[1], part[0]);
    y = blk_norm(g, ggml_reshape_2d(c, y, d * h, t * n), &l->attn_norm_2, NORM_RMS);
    return blk_linear(g, &l->attn_output, ggml_mul(c, y, ggml_sigmoid(c, blk_linear(g, &l->attn_gate, x))));
}

// What is carried on beside a branch is the normed stream, not the stream.
static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_context *c = g->ctx;
    const float rs = g->hp->f_residual_scale;
    struct ggml_tensor *h = blk_norm(g, x, &l->attn_norm, NORM_RMS);
    struct ggml_tensor *cur =
        g->hp->is_recr[il] ? lightning(g, l, h, il) : blk_self_attn(g, l, h, il, &(struct attn_opts){0});
    blk_select(g, il, &cur, &h);
    x = ggml_add(c, cur, ggml_scale(c, h, rs));
    h = blk_norm(g, x, &l->ffn_norm, NORM_RMS);
    cur = blk_moe(g, l, h, il, &(struct moe_opts){.gate = GATE_SOFTMAX, .norm = true});
    return ggml_add(c, cur, ggml_scale(c, h, rs));
}

const struct arch arch_minimax_01 = {
    .name = "minimax-01",
    .flags = ARCH_HYBRID,
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .state_s = "H*D*D",
    .layer = layer,
};
