// plamo3: norms around both branches, fused projections, windowed layers with a base of their own.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, K_SWA, K_ROPE_SWA("10000"), {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    {SLOT_attn_qkv, "E,H*D+K*D+K*Dv", 0, 0, 0, 0, 0},
    T_QK_NORM,
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    {SLOT_post_attn_norm, "E", T_NO_SUFFIX, 0, 0, 0, 0},
    T_NORM(ffn_norm),
    {SLOT_ffn_up, "E,2*F", 0, 0, 0, 0, 0},
    {SLOT_ffn_down, "F,E", 0, 0, 0, 0, 0},
    {SLOT_post_ffw_norm, "E", T_NO_SUFFIX, 0, 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    hp->rope_swa = SWA_ROPE_OWN;
    hp->rope_f_swa = 1;
    return arch_windows(hp, b, WINDOW_STANDARD, 8, false);
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_sandwich(g, l, x, il, &(struct form_opts){.attn = {.qk_norm = QK_NORM_HEAD}});
}

const struct arch arch_plamo3 = {
    .name = "plamo3",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
