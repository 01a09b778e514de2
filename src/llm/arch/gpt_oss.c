// gpt-oss: experts with biases, attention sinks, every other layer windowed.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS, {"expert_feed_forward_length", HP_n_ff_exp, REQ, KEY_FIRST}, K_SWA_REQ, K_ROPE_SWA("b"), {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_OWN,
    T_NORM(attn_norm),
    {SLOT_ffn_norm, "E", 0, 0, 0, "post_attention_norm", 0},
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_BIAS | T_SCALE, 0, 0, 0, 0},
    {SLOT_attn_sinks, "H", 0, 0, 0, 0, 0},
    {SLOT_ffn_gate_inp, "E,X", T_BIAS, 0, 0, 0, 0},
    {SLOT_ffn_gate_exps, "E,Fx,X", T_BIAS, 0, 0, 0, 0},
    {SLOT_ffn_up_exps, "E,Fx,X", T_BIAS, 0, 0, 0, 0},
    {SLOT_ffn_down_exps, "Fx,E,X", T_BIAS, 0, 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    hp->rope_swa = SWA_ROPE_OWN;
    return arch_windows(hp, b, WINDOW_STANDARD, 2, false);
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il,
                        &(struct form_opts){.attn = {.sinks = l->attn_sinks.w},
                                            .moe = {.gate = GATE_SOFTMAX_LATE, .act = {.act = ACT_SWIGLU_OAI}}});
}

const struct arch arch_gpt_oss = {
    .name = "gpt-oss",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
