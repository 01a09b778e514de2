// llama: Llama 1 to 3.x, Mistral, SmolLM, TinyLlama, and with experts Mixtral.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_ROPE_FREQS,
    {SLOT_rope_factors_long, "R/2", T_OPT, "rtype==3", 0, 0, 0},
    {SLOT_rope_factors_short, "R/2", T_OPT, "rtype==3", 0, 0, 0},
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_SCALE | T_BIAS_OPT, 0, 0, 0, 0},
    T_NORM(ffn_norm),
    T_FFN_ANY(T_BIAS_OPT | T_SCALE, "X==0"),
    // Mixtral's experts are as wide as a dense layer
    T_ROUTER("X>0"),
    T_EXPERTS_GATE("F", T_OPT | T_SCALE, T_SCALE, "X>0"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    TRY(arch_whole_rotary(hp, b));
    // the key attention.scale belongs to other architectures
    return arch_require(hp->n_embd_head_k[0] == hp->n_embd_head_v[0], b, "its keys and values must have one head size");
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){.moe = {.gate = GATE_SOFTMAX, .norm = true}});
}

const struct arch arch_llama = {
    .name = "llama",
    .flags = ARCH_HF_PERMUTED | ARCH_FINER_VALUES,
    .rope = LLAMA_ROPE_TYPE_NORM,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
