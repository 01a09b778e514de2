// qwen2vl: the text side of Qwen2-VL; four positions per token, norms without epsilon.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_SECTIONS(REQ), {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    T_NORM(ffn_norm),
    T_FFN,
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    hp->eps = 0;  // the key is not read
    return arch_require(hp->rope_sections[0] + hp->rope_sections[1] + hp->rope_sections[2] + hp->rope_sections[3] > 0, b,
                        "the sections of its rotary dimensions are all empty");
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){0});
}

const struct arch arch_qwen2vl = {
    .name = "qwen2vl",
    .rope = LLAMA_ROPE_TYPE_MROPE,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
