// deci: layers with attention, with a linear map in its place, without either, or without a network.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_ROPE_FREQS,
    {SLOT_rope_factors_long, "R/2", T_OPT, "rtype==3", 0, 0, 0},
    {SLOT_rope_factors_short, "R/2", T_OPT, "rtype==3", 0, 0, 0},
    {SLOT_attn_norm, "E", 0, "H>0", 0, 0, 0},
    T_QKV_WHEN("K>0"),
    {SLOT_attn_output, "H*Dv,E", T_BIAS_OPT | T_SCALE, "K>0", 0, 0, 0},
    {SLOT_attn_output, "E,E", T_SCALE, "H>0&&K==0", 0, 0, 0},
    {SLOT_ffn_norm, "E", 0, "F>0", 0, 0, 0},
    T_FFN_ANY(T_BIAS_OPT, "F>0"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *cur = NULL;
    if (g->hp->n_ff[il] == 0) return x;  // without a network the attention's result is not used either
    if (g->hp->n_head_kv[il] > 0)
        cur = blk_self_attn(g, l, blk_norm(g, x, &l->attn_norm, NORM_RMS), il, &(struct attn_opts){0});
    else if (g->hp->n_head[il] > 0)
        cur = blk_linear(g, &l->attn_output, blk_norm(g, x, &l->attn_norm, NORM_RMS));
    blk_select(g, il, cur ? &cur : NULL, &x);
    if (cur) x = ggml_add(g->ctx, cur, x);
    return ggml_add(g->ctx, blk_ffn_layer(g, l, blk_norm(g, x, &l->ffn_norm, NORM_RMS), ACT_SILU), x);
}

const struct arch arch_deci = {
    .name = "deci",
    .flags = ARCH_HF_PERMUTED | ARCH_FINER_VALUES,
    .rope = LLAMA_ROPE_TYPE_NORM,
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
};
