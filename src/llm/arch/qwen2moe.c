// qwen2moe: Qwen 1.5 and 2 with experts; a shared expert behind a gate of its own.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, K_FX_OR("F/U"), K_FS("F"), {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_OWN,
    T_NORM(attn_norm),
    T_QKV,
    T_O,
    T_NORM(ffn_norm),
    T_ROUTER(0),
    T_EXPERTS("Fx", 0, 0),
    {SLOT_ffn_gate_inp_shexp, "E", 0, 0, 0, 0, 0},
    T_SHEXP("Fs", 0, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    return arch_require(hp->n_expert > 0 && hp->n_expert_used[0] > 0, b, "it must have experts");
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){.moe = {.gate = GATE_SOFTMAX}});
}

const struct arch arch_qwen2moe = {
    .name = "qwen2moe",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
