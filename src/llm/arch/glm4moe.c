// glm4moe: GLM-4.5; the norm before the network is called post_attention_norm.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS, K_FX_OR("F/U"), K_NSH(REQ), K_LEAD, K_WSCALE, K_WNORM, K_GATING("0"), K_SECTIONS("0"), {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    {SLOT_attn_q_norm, "D", T_OPT, 0, 0, 0, 0},
    {SLOT_attn_k_norm, "D", T_OPT, 0, 0, 0, 0},
    {SLOT_ffn_norm, "E", 0, 0, 0, "post_attention_norm", 0},
    T_FFN_WHEN("i<lead"),
    T_ROUTER("i>=lead"),
    T_EXPERTS("Fx", 0, "i>=lead"),
    T_EXP_PROBS_B(0, "i>=lead"),
    T_SHEXP("Fx*nsh", 0, "i>=lead"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    (void) b;
    if (!hp->expert_gating) hp->expert_gating = GATE_SIGMOID;
    if (hp->rope_sections[0] > 0 && hp->rope_sections[1] > 0) hp->rope_mode = LLAMA_ROPE_TYPE_MROPE;
    return ERR_OK;
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){.attn = {.qk_norm = QK_NORM_HEAD}, .moe = moe_of_file(g)});
}

const struct arch arch_glm4moe = {
    .name = "glm4moe",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
