// bailingmoe2: Ling 2; fused projections, groups of experts.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS,
    K_LEAD,
    K_FX(REQ),
    {"expert_shared_feed_forward_length", HP_n_ff_shexp, "0", 0},
    K_NSH(REQ),
    K_WSCALE,
    K_WNORM,
    K_GATING(REQ),
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_OWN,
    T_NORM(attn_norm),
    {SLOT_attn_qkv, "E,H*D+2*K*D", T_SCALE, 0, 0, 0, 0},
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    T_QK_NORM,
    T_NORM(ffn_norm),
    T_FFN_WHEN("i<lead"),
    T_ROUTER("i>=lead"),
    T_EXPERTS("Fx", 0, "i>=lead"),
    T_EXP_PROBS_B(T_OPT, "i>=lead"),
    T_SHEXP("(Fs>0)*Fs*nsh+(Fs==0)*Fx*nsh", 0, "i>=lead"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){.attn = {.qk_norm = QK_NORM_HEAD}, .moe = moe_of_file(g)});
}

const struct arch arch_bailingmoe2 = {
    .name = "bailingmoe2",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
};
