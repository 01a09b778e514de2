// qwen3moe: Qwen 3 with experts in every layer.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, K_FX_OR("F/U"), {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_QKV,
    T_O,
    T_QK_NORM,
    T_NORM(ffn_norm),
    T_ROUTER(0),
    T_EXPERTS("Fx", T_SCALE, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il,
                        &(struct form_opts){.attn = {.qk_norm = QK_NORM_HEAD}, .moe = {.gate = GATE_SOFTMAX, .norm = true}});
}

const struct arch arch_qwen3moe = {
    .name = "qwen3moe",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
};
