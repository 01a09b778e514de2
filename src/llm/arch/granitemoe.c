// granitemoe: granite with experts, always with rotary positions.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS,
    {"logit_scale", HP_f_logit_scale, REQ, 0},
    {"residual_scale", HP_f_residual_scale, "0", 0},
    {"embedding_scale", HP_f_embd_scale, "0", 0},
    {"attention.scale", HP_f_attn_scale, "0", 0},
    {"expert_shared_feed_forward_length", HP_n_ff_shexp, "0", 0},
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_ROPE_FREQS,
    {SLOT_rope_factors_long, "R/2", T_OPT, "rtype==3", 0, 0, 0},
    {SLOT_rope_factors_short, "R/2", T_OPT, "rtype==3", 0, 0, 0},
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_BIAS_OPT | T_SCALE, 0, 0, 0, 0},
    T_NORM(ffn_norm),
    T_FFN_ANY(T_BIAS_OPT, "X==0"),
    T_ROUTER("X>0"),
    T_EXPERTS_GATE("F", T_OPT, 0, "X>0"),
    T_SHEXP("Fs", 0, "X>0&&Fs>0"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *embed(struct graph *g) { return blk_embed(g, g->hp->f_embd_scale); }

static void head(struct graph *g, struct ggml_tensor *x) {
    const float ls = g->hp->f_logit_scale;
    blk_head(g, x, &(struct head_opts){.scale = ls != 0 ? 1.0f / ls : 0});
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(
        g, l, x, il, &(struct form_opts){.residual = g->hp->f_residual_scale, .moe = {.gate = GATE_SOFTMAX, .norm = true}});
}

const struct arch arch_granitemoe = {
    .name = "granitemoe",
    .flags = ARCH_HF_PERMUTED,
    .rope = LLAMA_ROPE_TYPE_NORM,
    .keys = keys,
    .tensors = tensors,
    .embed = embed,
    .layer = layer,
    .head_fn = head,
};
