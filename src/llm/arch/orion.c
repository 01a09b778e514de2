// orion: llama with LayerNorms.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_LN, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM_B,
    T_OUT_OWN,
    T_NORM_B(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    T_NORM_B(ffn_norm),
    T_FFN,
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){.norm = NORM_LN});
}

const struct arch arch_orion = {
    .name = "orion",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .norm = NORM_LN,
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
};
