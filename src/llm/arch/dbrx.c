// dbrx: clipped projections, LayerNorms without biases; the norm before the experts is called attn_output_norm.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_LN, {"attention.clamp_kqv", HP_f_clamp_kqv, REQ, 0}, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_OWN,
    T_NORM(attn_norm),
    {SLOT_attn_qkv, "E,H*D+2*K*D", T_SCALE, 0, 0, 0, 0},
    {SLOT_attn_output, "E,E", T_SCALE, 0, 0, 0, 0},
    T_NORM(attn_output_norm),
    T_ROUTER(0),
    T_EXPERTS("F", 0, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *cur = blk_self_attn(g, l, blk_norm(g, x, &l->attn_norm, NORM_LN), il,
                                            &(struct attn_opts){.clamp = g->hp->f_clamp_kqv, .raw_qkv = true});
    blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, cur, x);
    cur = blk_norm(g, x, &l->attn_output_norm, NORM_LN);
    return ggml_add(g->ctx, blk_moe(g, l, cur, il, &(struct moe_opts){.gate = GATE_SOFTMAX, .norm = true}), x);
}

const struct arch arch_dbrx = {
    .name = "dbrx",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .norm = NORM_LN,
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
};
