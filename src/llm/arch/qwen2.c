// qwen2: Qwen 1.5, 2 and 2.5; like llama, with biases on q, k and v and the other pairing of rotary dimensions.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    {SLOT_output, "E,V", T_OPT | T_BIAS_OPT, 0, 0, 0, 0},
    T_NORM(attn_norm),
    T_QKV,
    T_O,
    T_NORM(ffn_norm),
    T_FFN,
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) { return arch_whole_rotary(hp, b); }

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){0});
}

const struct arch arch_qwen2 = {
    .name = "qwen2",
    .flags = ARCH_FINER_VALUES,
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
