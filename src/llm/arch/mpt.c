// mpt: MPT and Replit; linear biases by distance instead of positions, or a table of positions.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_LN,
    {"attention.clamp_kqv", HP_f_clamp_kqv, "0", 0},
    {"attention.max_alibi_bias", HP_f_alibi, "0", 0},
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    {SLOT_position_embd, "E,C", T_OPT, 0, 0, 0, 0},
    {SLOT_output_norm, "E", T_BIAS_OPT, 0, 0, 0, 0},
    T_OUT_TIED,
    {SLOT_attn_norm, "E", T_BIAS_OPT, 0, 0, 0, 0},
    {SLOT_attn_qkv, "E,E+2*K*D", T_BIAS_OPT | T_SCALE, 0, 0, 0, 0},
    {SLOT_attn_output, "E,E", T_BIAS_OPT | T_SCALE, 0, 0, 0, 0},
    {SLOT_attn_q_norm, "H*D", T_OPT | T_BIAS_OPT, 0, 0, 0, 0},
    {SLOT_attn_k_norm, "K*D", T_OPT | T_BIAS_OPT, 0, 0, 0, 0},
    {SLOT_ffn_norm, "E", T_BIAS_OPT, 0, 0, 0, 0},
    {SLOT_ffn_up, "E,F", T_BIAS_OPT, 0, 0, 0, 0},
    {SLOT_ffn_down, "F,E", T_BIAS_OPT, 0, 0, 0, 0},
    {SLOT_ffn_act, "F", T_OPT | T_NO_SUFFIX, 0, 0, "ffn.act.scales", 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *embed(struct graph *g) {
    struct ggml_tensor *x = blk_embed(g, 0);
    return g->w->position_embd.w ? ggml_add(g->ctx, x, blk_pos_rows(g, g->w->position_embd.w)) : x;
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    // a norm of k alone, which some files carry, is not applied
    const enum qk_norm qk = l->attn_q_norm.w && l->attn_k_norm.w ? QK_NORM_ROW_LN : QK_NORM_NONE;
    struct ggml_tensor *cur = blk_norm(g, x, &l->attn_norm, NORM_LN);
    cur = blk_self_attn(
        g, l, cur, il,
        &(struct attn_opts){.no_rope = true, .clamp = g->hp->f_clamp_kqv, .alibi = g->hp->f_alibi, .qk_norm = qk});
    blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, cur, x);
    cur = blk_linear(g, &l->ffn_up, blk_norm(g, x, &l->ffn_norm, NORM_LN));
    cur = ggml_gelu(g->ctx, cur);
    if (l->ffn_act.w) cur = ggml_div(g->ctx, cur, l->ffn_act.w);
    return ggml_add(g->ctx, blk_linear(g, &l->ffn_down, cur), x);
}

const struct arch arch_mpt = {
    .name = "mpt",
    .rope = LLAMA_ROPE_TYPE_NONE,
    .norm = NORM_LN,
    .keys = keys,
    .tensors = tensors,
    .embed = embed,
    .layer = layer,
};
