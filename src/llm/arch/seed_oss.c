// seed_oss: the norm before the network is called post_attention_norm.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    T_NORM(post_attn_norm),
    T_FFN,
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *cur = blk_self_attn(g, l, blk_norm(g, x, &l->attn_norm, NORM_RMS), il, &(struct attn_opts){0});
    blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, cur, x);
    return ggml_add(g->ctx, blk_ffn_layer(g, l, blk_norm(g, x, &l->post_attn_norm, NORM_RMS), ACT_SILU), x);
}

const struct arch arch_seed_oss = {
    .name = "seed_oss",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
};
