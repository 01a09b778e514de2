// olmo2: OLMo 2 and 3; norms behind the branches, whole rows of q and k normed; OLMo 3 has windows.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, K_SWA, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_OWN,
    T_QKV,
    {SLOT_attn_output, "E,E", T_SCALE, 0, 0, 0, 0},
    {SLOT_attn_q_norm, "E", 0, 0, 0, 0, 0},
    {SLOT_attn_k_norm, "K*D", 0, 0, 0, 0, 0},
    T_NORM(post_attn_norm),
    T_FFN,
    T_NORM(post_ffw_norm),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    hp->rope_swa = SWA_ROPE_SCALE | SWA_ROPE_NO_YARN;
    hp->rope_f_swa = 1;
    return arch_windows(hp, b, WINDOW_STANDARD, 4, false);
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_sandwich(g, l, x, il, &(struct form_opts){.attn = {.qk_norm = QK_NORM_ROW}, .raw = true});
}

const struct arch arch_olmo2 = {
    .name = "olmo2",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
