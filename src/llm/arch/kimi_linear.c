// kimi-linear: three layers of Kimi delta attention to each of latent attention (arXiv 2510.26692). No positions.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS,         K_MLA_ABSORBED,    K_KDA, K_LEAD, K_FX(REQ), K_NSH(REQ), K_WSCALE,
                                       K_GATING(REQ), {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_OWN,
    T_NORM(attn_norm),
    T_MLA_ABSORBED(T_SCALE, "!rec"),
    {SLOT_attn_qkv, "E,3*H*kdad", T_OPT, "rec", 0, 0, 0},
    T_KDA,
    {SLOT_ssm_f_a, "E,kdad", 0, "rec", 0, 0, 0},
    {SLOT_ssm_f_b, "kdad,H*kdad", 0, "rec", 0, 0, 0},
    {SLOT_ssm_g_a, "E,kdad", 0, "rec", 0, 0, 0},
    {SLOT_ssm_g_b, "kdad,H*kdad", 0, "rec", 0, 0, 0},
    T_NORM(ffn_norm),
    T_FFN_WHEN("i<lead"),
    T_ROUTER("i>=lead"),
    T_EXP_PROBS_B(0, "i>=lead"),
    T_EXPERTS("Fx", 0, "i>=lead"),
    {SLOT_ffn_gate_shexp, "E,Fx*max(1,nsh)", T_OPT, "i>=lead", 0, 0, 0},
    {SLOT_ffn_up_shexp, "E,Fx*max(1,nsh)", 0, "i>=lead", 0, 0, 0},
    {SLOT_ffn_down_shexp, "Fx*max(1,nsh),E", 0, "i>=lead", 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *mixer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    if (!g->hp->is_recr[il]) return blk_mla(g, l, x, il, &(struct mla_opts){.no_rope = true});
    return blk_kda(g, l, x, il, &(struct kda_opts){.gate = blk_linear(g, &l->ssm_g_b, blk_linear(g, &l->ssm_g_a, x))});
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il,
                        &(struct form_opts){.mixer = mixer, .moe = {.norm = true, .wscale = g->hp->expert_weights_scale}});
}

const struct arch arch_kimi_linear = {
    .name = "kimi-linear",
    .flags = ARCH_HYBRID,
    .rope = LLAMA_ROPE_TYPE_NONE,
    .keys = keys,
    .tensors = tensors,
    .setup = arch_kda,
    .cache_k = "(rec==0)*(r+R)",
    .cache_v = "0",
    .state_r = "3*(k-1)*H*kdad",
    .state_s = "H*kdad*kdad",
    .nodes = 160,
    .layer = layer,
};
