// olmo: OLMo 1; LayerNorms without weights, so the file has no norm tensors at all.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_LN, {"attention.clamp_kqv", HP_f_clamp_kqv, "0", 0}, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {T_EMBD, T_OUT_TIED, T_QKV, T_O, T_FFN, {SLOT_NONE, NULL, 0, 0, 0, 0, 0}};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *cur = blk_norm(g, x, NULL, NORM_LN);
    cur = blk_self_attn(g, l, cur, il, &(struct attn_opts){.clamp = g->hp->f_clamp_kqv});
    blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, cur, x);
    return ggml_add(g->ctx, blk_ffn_layer(g, l, blk_norm(g, x, NULL, NORM_LN), ACT_SILU), x);
}

const struct arch arch_olmo = {
    .name = "olmo",
    .flags = ARCH_HF_PERMUTED,
    .rope = LLAMA_ROPE_TYPE_NORM,
    .norm = NORM_LN,
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
};
