// phimoe: Phi-3.5-MoE; RMS norms with biases.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM_B,
    {SLOT_output, "E,V", T_BIAS, 0, 0, 0, 0},
    {SLOT_rope_factors_long, "E/H/2", T_OPT, 0, 0, 0, 0},  // the whole head's, however much of it turns
    {SLOT_rope_factors_short, "E/H/2", T_OPT, 0, 0, 0, 0},
    T_NORM_B(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_BIAS | T_SCALE, 0, 0, 0, 0},
    T_NORM_B(ffn_norm),
    T_ROUTER(0),
    T_EXPERTS("F", 0, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){.moe = {.gate = GATE_SOFTMAX, .norm = true}});
}

const struct arch arch_phimoe = {
    .name = "phimoe",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
};
