// qwen3next: three gated delta nets (Yang et al. 2024, arXiv 2412.06464) to each layer of gated attention; experts everywhere.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS, K_FX_OR("F/U"), K_FS("F"), K_SSM, K_SSM_GROUP, {NULL, 0, NULL, 0},
};

// nh value heads and ng key heads of size N
static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    {SLOT_ffn_norm, "E", 0, 0, 0, "post_attention_norm", 0},
    {SLOT_attn_qkv, "E,2*H*D+2*K*D", T_OPT | T_BIAS_OPT, "!rec", 0, 0, 0},
    {SLOT_attn_q, "E,2*H*D", T_BIAS_OPT | T_SCALE, "!rec", SLOT_attn_qkv, 0, 0},
    {SLOT_attn_k, "E,K*D", T_BIAS_OPT | T_SCALE, "!rec", SLOT_attn_qkv, 0, 0},
    {SLOT_attn_v, "E,K*D", T_BIAS_OPT | T_SCALE, "!rec", SLOT_attn_qkv, 0, 0},
    {SLOT_attn_output, "H*D,E", T_SCALE, "!rec", 0, 0, 0},
    {SLOT_attn_q_norm, "D", 0, "!rec", 0, 0, 0},
    {SLOT_attn_k_norm, "D", 0, "!rec", 0, 0, 0},
    {SLOT_attn_qkv, "E,2*ng*N+nh*N", T_OPT, "rec", 0, 0, 0},
    {SLOT_attn_gate, "E,nh*N", T_OPT, "rec", 0, 0, 0},
    {SLOT_ssm_in, "E,2*ng*N+2*nh*N", 0, "rec", SLOT_attn_qkv, 0, 0},
    {SLOT_ssm_ba, "E,2*nh", 0, "rec", 0, 0, 0},
    {SLOT_ssm_conv1d, "k,2*ng*N+nh*N", 0, "rec", 0, 0, 0},
    {SLOT_ssm_dt, "1,nh", T_BIAS_ONLY, "rec", 0, 0, 0},
    {SLOT_ssm_a, "nh", T_NO_SUFFIX, "rec", 0, 0, 0},
    {SLOT_ssm_norm, "N", 0, "rec", 0, 0, 0},
    {SLOT_ssm_out, "nh*N,E", 0, "rec", 0, 0, 0},
    T_ROUTER(0),
    T_EXPERTS_MERGED("Fx", T_SCALE, 0),
    {SLOT_ffn_gate_inp_shexp, "E", 0, 0, 0, 0, 0},
    T_SHEXP("Fs", T_SCALE, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    TRY(arch_require(hp->ssm_group > 0 && hp->ssm_dt_rank % hp->ssm_group == 0 &&
                         hp->ssm_inner == hp->ssm_dt_rank * hp->ssm_state,
                     b, "key heads must divide the value heads, which make up the inner size"));
    return arch_recurrent_by_key(hp, b, 4);
}

static struct ggml_tensor *recurrent(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_gated_delta(g, l, x, il, false);
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il,
                        &(struct form_opts){.attn = {.qk_norm = QK_NORM_HEAD, .q_gated = true},
                                            .recurrent = recurrent,
                                            .moe = {.gate = GATE_SOFTMAX, .norm = true}});
}

const struct arch arch_qwen3next = {
    .name = "qwen3next",
    .flags = ARCH_HYBRID,
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .state_r = "(k-1)*(2*ng*N+nh*N)",
    .state_s = "nh*N*N",
    .nodes = 160,
    .layer = layer,
};
