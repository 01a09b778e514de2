// minimax-m3: experts, and attention to blocks of positions that an indexer with one head per group of heads selects.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS,
    K_LEAD,
    K_FX(REQ),
    K_NSH(REQ),
    K_WSCALE,
    K_WNORM,
    K_GATING(REQ),
    {"attention.indexer.head_count", HP_idx_head, REQ, 0},
    {"attention.indexer.key_length", HP_idx_dim, REQ, 0},
    {"attention.indexer.top_k", HP_idx_top_k, REQ, 0},
    {"attention.indexer.block_size", HP_idx_block, REQ, 0},
    {"attention.indexer.local_blocks", HP_idx_local, REQ, 0},
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_OWN,
    T_NORM(attn_norm),
    T_QKV,
    T_O,
    T_QK_NORM,
    {SLOT_idx_q_proj, "E,ni*di", 0, "i>=lead", 0, 0, 0},
    {SLOT_idx_k_proj, "E,di", 0, "i>=lead", 0, 0, 0},
    {SLOT_idx_q_norm, "di", 0, "i>=lead", 0, 0, 0},
    {SLOT_idx_k_norm, "di", 0, "i>=lead", 0, 0, 0},
    T_NORM(ffn_norm),
    T_FFN_WHEN("i<lead"),
    T_ROUTER("i>=lead"),
    T_EXP_PROBS_B(0, "i>=lead"),
    T_EXPERTS("Fx", 0, "i>=lead"),
    T_SHEXP("Fx*nsh", 0, "i>=lead"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    for (int i = hp->n_layer_dense_lead > 0 ? hp->n_layer_dense_lead : 0; i < hp->n_layer; i++)
        TRY(arch_require(hp->idx_head == hp->n_head_kv[i], b, "its indexer must have as many heads as there are key heads"));
    TRY(arch_require(hp->idx_block > 0 && hp->idx_top_k > 0 && hp->idx_local >= 0, b,
                     "its selection needs a block size and a number of blocks"));
    hp->idx_rope = IDX_ROPE_LAYER;
    return arch_require(hp->idx_dim >= hp->n_rot[0], b, "the indexer's keys must hold the rotary part");
}

static struct ggml_tensor *select_blocks(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_context *c = g->ctx;
    const int64_t d = g->hp->idx_dim, heads = g->hp->idx_head, t = x->ne[1];
    struct ggml_tensor *q = ggml_reshape_3d(c, blk_linear(g, &l->idx_q_proj, x), d, heads, t);
    struct ggml_tensor *k = ggml_reshape_3d(c, blk_linear(g, &l->idx_k_proj, x), d, 1, t);
    q = blk_rope(g, blk_norm(g, q, &l->idx_q_norm, NORM_RMS), il);
    k = blk_rope(g, blk_norm(g, k, &l->idx_k_norm, NORM_RMS), il);
    struct ggml_tensor *cells = blk_cache_extra(g, ggml_reshape_2d(c, k, d, t), il);
    struct ggml_tensor *s = ggml_mul_mat(c, cells, ggml_reshape_2d(c, q, d, heads * t));
    return attn_keep_blocks(g, ggml_reshape_3d(c, s, s->ne[0], heads, t), il);
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    const struct hparams *hp = g->hp;
    struct ggml_tensor *n = blk_norm(g, x, &l->attn_norm, NORM_RMS);
    struct attn_opts o = {.qk_norm = QK_NORM_HEAD};
    if (il >= hp->n_layer_dense_lead) o.keep = select_blocks(g, l, n, il);
    struct ggml_tensor *cur = blk_self_attn(g, l, n, il, &o);
    blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, cur, x);
    const struct act_opts act = {.act = ACT_SWIGLU_OAI};
    const struct form_opts f = {.act = act,
                                .moe = {.norm = hp->expert_weights_norm, .wscale = hp->expert_weights_scale, .act = act}};
    return ggml_add(g->ctx, blk_network(g, l, blk_norm(g, x, &l->ffn_norm, NORM_RMS), il, &f), x);
}

const struct arch arch_minimax_m3 = {
    .name = "minimax-m3",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .cache_x = "(i>=lead)*di",
    .nodes = 128,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
