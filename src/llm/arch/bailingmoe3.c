// bailingmoe3: Ling 3: Kimi delta attention with a bounded decay and gated latent attention; clamped experts.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS,
    K_Q_LORA("0"),
    K_MLA_ABSORBED,
    K_KDA,
    {"leading_dense_block_count", HP_n_layer_dense_lead, REQ, 0},
    K_FX(REQ),
    K_NSH(REQ),
    K_FS("Fx*max(1,nsh)"),
    K_WSCALE,
    K_WNORM,
    K_GATING(REQ),
    K_SECTIONS("0"),
    {"kda.gate_lower_bound", HP_kda_gate_lower, REQ, 0},
    {"kda.safe_gate", HP_kda_safe_gate, "1", 0},
    {"swiglu_clamp_exp", HP_swiglu_clamp_exp, "0", 0},
    {"swiglu_clamp_shexp", HP_swiglu_clamp_shexp, "0", 0},
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_MLA_ABSORBED(0, "!rec"),
    {SLOT_attn_gate, "E,H", 0, "!rec", 0, 0, 0},
    T_KDA,
    {SLOT_ssm_f_a, "E,H*kdad", 0, "rec", 0, 0, 0},
    {SLOT_ssm_g_a, "E,H*kdad", 0, "rec", 0, 0, 0},
    T_NORM(ffn_norm),
    T_FFN_WHEN("i<lead"),
    T_ROUTER("i>=lead"),
    T_EXP_PROBS_B(0, "i>=lead"),
    T_EXPERTS("Fx", 0, "i>=lead"),
    T_SHEXP("Fs", 0, "i>=lead"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    if (hp->rope_sections[0] > 0 && hp->rope_sections[1] > 0) hp->rope_mode = LLAMA_ROPE_TYPE_MROPE;
    TRY(arch_require(hp->kda_safe_gate, b, "its delta attention has an unbounded decay"));
    TRY(arch_require(hp->kda_gate_lower < 0, b, "the lower bound of its decay is not negative"));
    return arch_kda(hp, b);
}

static struct ggml_tensor *mixer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    if (!g->hp->is_recr[il]) return blk_mla(g, l, x, il, &(struct mla_opts){.gate = &l->attn_gate});
    return blk_kda(
        g, l, x, il,
        &(struct kda_opts){.gate = blk_linear(g, &l->ssm_g_a, x), .lower = g->hp->kda_gate_lower, .a_positive = true});
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    const struct hparams *hp = g->hp;
    struct ggml_tensor *cur = mixer(g, l, blk_norm(g, x, &l->attn_norm, NORM_RMS), il);
    blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, cur, x);
    const struct form_opts o = {
        .act = {.clamp = hp->swiglu_clamp_shexp[il], .clamp_late = true},
        .moe = {.norm = hp->expert_weights_norm,
                .wscale = hp->expert_weights_scale,
                .act = {.clamp = hp->swiglu_clamp_exp[il], .clamp_late = true}},
    };
    return ggml_add(g->ctx, blk_network(g, l, blk_norm(g, x, &l->ffn_norm, NORM_RMS), il, &o), x);
}

const struct arch arch_bailingmoe3 = {
    .name = "bailingmoe3",
    .flags = ARCH_HYBRID,
    .rope = LLAMA_ROPE_TYPE_NORM,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .cache_k = "(rec==0)*(r+R)",
    .cache_v = "0",
    .state_r = "3*(k-1)*H*kdad",
    .state_s = "H*kdad*kdad",
    .nodes = 160,
    .layer = layer,
};
