// olmoe: experts, whole rows of q and k normed.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_OWN,
    T_NORM(attn_norm),
    T_QKV,
    T_O,
    {SLOT_attn_q_norm, "H*D", 0, 0, 0, 0, 0},
    {SLOT_attn_k_norm, "K*D", 0, 0, 0, 0, 0},
    T_NORM(ffn_norm),
    T_ROUTER(0),
    T_EXPERTS("F", 0, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){.attn = {.qk_norm = QK_NORM_ROW}, .moe = {.gate = GATE_SOFTMAX}});
}

const struct arch arch_olmoe = {
    .name = "olmoe",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
};
