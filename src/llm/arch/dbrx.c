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
    {SLOT_ffn_norm, "E", 0, 0, 0, "attn_output_norm", 0},
    T_ROUTER(0),
    T_EXPERTS("F", 0, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il,
                        &(struct form_opts){.norm = NORM_LN,
                                            .attn = {.clamp = g->hp->f_clamp_kqv},
                                            .moe = {.gate = GATE_SOFTMAX, .norm = true}});
}

const struct arch arch_dbrx = {
    .name = "dbrx",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .norm = NORM_LN,
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
};
