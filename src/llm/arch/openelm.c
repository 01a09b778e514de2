// openelm: OpenELM; the number of heads and the width of the network grow from layer to layer.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_NORM(attn_norm),
    {SLOT_attn_qkv, "E,(H+2*K)*D", 0, 0, 0, 0, 0},
    T_QK_NORM,
    {SLOT_attn_output, "H*D,E", T_SCALE, 0, 0, 0, 0},
    T_NORM(ffn_norm),
    T_FFN,
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){.attn = {.qk_norm = QK_NORM_HEAD}});
}

const struct arch arch_openelm = {
    .name = "openelm",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .head = {.tied = true},
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
};
