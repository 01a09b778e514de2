// ernie4_5-moe: every st-th layer after the first has experts.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS,
    K_FX(REQ),
    {"expert_shared_feed_forward_length", HP_n_ff_shexp, "0", 0},
    K_LEAD,
    {"interleave_moe_layer_step", HP_moe_step, REQ, 0},
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    T_NORM(ffn_norm),
    T_FFN_WHEN("i<lead||(i+1)%st!=0"),
    T_ROUTER("i>=lead&&(i+1)%st==0"),
    T_EXPERTS_GATE("Fx", T_OPT, 0, "i>=lead&&(i+1)%st==0"),
    T_EXP_PROBS_B(T_OPT, "i>=lead&&(i+1)%st==0"),
    T_SHEXP("Fs", 0, "i>=lead&&(i+1)%st==0&&Fs>0"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    return arch_require(hp->moe_step > 0, b, "interleave_moe_layer_step must be positive");
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){.moe = {.gate = GATE_SOFTMAX, .norm = true}});
}

const struct arch arch_ernie4_5_moe = {
    .name = "ernie4_5-moe",
    .rope = LLAMA_ROPE_TYPE_NORM,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
