// glm4: GLM-4 0414; norms around both branches, gate and up in one matrix; the sections key decides the pairing.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, K_SECTIONS("0"), {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    T_NORM(post_attn_norm),
    T_NORM(ffn_norm),
    {SLOT_ffn_up, "E,2*F", 0, 0, 0, 0, "mlp.gate_up_proj"},
    {SLOT_ffn_down, "F,E", 0, 0, 0, 0, 0},
    T_NORM(post_ffw_norm),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    (void) b;
    if (hp->rope_sections[0] > 0 && hp->rope_sections[1] > 0) hp->rope_mode = LLAMA_ROPE_TYPE_MROPE;
    return ERR_OK;
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_sandwich(g, l, x, il, &(struct form_opts){0});
}

const struct arch arch_glm4 = {
    .name = "glm4",
    .rope = LLAMA_ROPE_TYPE_NORM,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
