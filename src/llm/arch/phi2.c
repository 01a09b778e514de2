// phi2: Phi-1, 1.5 and 2; one norm feeds both branches, biases everywhere, the output's too.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_LN, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM_B,
    {SLOT_output, "E,V", T_BIAS, 0, 0, 0, 0},
    T_NORM_B(attn_norm),
    T_QKV,
    {SLOT_attn_output, "E,E", T_BIAS | T_SCALE, 0, 0, 0, 0},
    {SLOT_ffn_up, "E,F", T_BIAS, 0, 0, 0, 0},
    {SLOT_ffn_down, "F,E", T_BIAS, 0, 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_parallel(g, l, x, il, &(struct form_opts){.norm = NORM_LN, .act = {.act = ACT_GELU}});
}

const struct arch arch_phi2 = {
    .name = "phi2",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .norm = NORM_LN,
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
};
