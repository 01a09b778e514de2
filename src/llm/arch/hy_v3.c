// hy_v3: a layer has experts if it has a router.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS, K_FX_OR("F/U"), K_FS("Fx"), K_GATING("0"), K_WSCALE, K_WNORM, {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    T_QK_NORM,
    T_NORM(ffn_norm),
    {SLOT_ffn_gate_inp, "E,X", T_OPT, 0, 0, 0, 0},
    {SLOT_ffn_gate, "E,F", T_SCALE, 0, SLOT_ffn_gate_inp, 0, 0},
    {SLOT_ffn_up, "E,F", T_SCALE, 0, SLOT_ffn_gate_inp, 0, 0},
    {SLOT_ffn_down, "F,E", T_SCALE, 0, SLOT_ffn_gate_inp, 0, 0},
    {SLOT_ffn_gate_up_exps, "E,2*Fx,X", T_OPT, 0, 0, 0, 0},
    {SLOT_ffn_gate_exps, "E,Fx,X", T_OPT | T_SCALE, 0, SLOT_ffn_gate_up_exps, 0, 0},
    {SLOT_ffn_up_exps, "E,Fx,X", T_OPT | T_SCALE, 0, SLOT_ffn_gate_up_exps, 0, 0},
    {SLOT_ffn_down_exps, "Fx,E,X", T_OPT | T_SCALE, 0, 0, 0, 0},
    {SLOT_exp_probs_b, "X", T_OPT | T_NO_SUFFIX, 0, 0, 0, 0},
    T_SHEXP("Fs", T_OPT | T_SCALE, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    (void) b;
    if (!hp->expert_gating) hp->expert_gating = GATE_SIGMOID;
    return ERR_OK;
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){.attn = {.qk_norm = QK_NORM_HEAD}, .moe = moe_of_file(g)});
}

const struct arch arch_hy_v3 = {
    .name = "hy_v3",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
