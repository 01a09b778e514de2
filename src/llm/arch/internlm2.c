// internlm2: llama without optional biases, the output matrix its own.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD, T_OUT_NORM, T_OUT_OWN, T_NORM(attn_norm), T_QKV, T_O, T_NORM(ffn_norm), T_FFN, {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){0});
}

const struct arch arch_internlm2 = {
    .name = "internlm2",
    .flags = ARCH_HF_PERMUTED,
    .rope = LLAMA_ROPE_TYPE_NORM,
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
};
