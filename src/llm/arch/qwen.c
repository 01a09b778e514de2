// qwen: the first generation; the key gives twice the width of the network.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_OWN,
    T_NORM(attn_norm),
    {SLOT_attn_qkv, "E,3*E", T_BIAS | T_SCALE, 0, 0, 0, 0},
    {SLOT_attn_output, "E,E", T_SCALE, 0, 0, 0, 0},
    T_NORM(ffn_norm),
    {SLOT_ffn_gate, "E,F/2", 0, 0, 0, 0, 0},
    {SLOT_ffn_up, "E,F/2", 0, 0, 0, 0, 0},
    {SLOT_ffn_down, "F/2,E", 0, 0, 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){0});
}

const struct arch arch_qwen = {
    .name = "qwen",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
};
