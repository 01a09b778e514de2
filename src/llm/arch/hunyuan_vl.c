// hunyuan_vl: hunyuan-dense with, if the file says so, four positions per token.
#include "arch/arch.h"

#include <math.h>

static const struct arch_key keys[] = {
    K_RMS,
    {"rope.scaling.alpha", HP_rope_alpha, "0", 0},
    K_SECTIONS("0"),
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,     T_OUT_NORM,
    T_OUT_TIED, T_NORM(attn_norm),
    T_QKV,      {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    T_QK_NORM,  T_NORM(ffn_norm),
    T_FFN,      {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    (void) b;
    const double d = hp->n_embd_head_k[0];
    if (hp->rope_alpha > 0) hp->rope_base = (float) (hp->rope_base * pow(hp->rope_alpha, d / (d - 2)));
    if (hp->rope_sections[0] > 0 && hp->rope_sections[1] > 0) hp->rope_mode = LLAMA_ROPE_TYPE_MROPE;
    return ERR_OK;
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){.attn = {.qk_norm = QK_NORM_HEAD, .norm_after_rope = true}});
}

const struct arch arch_hunyuan_vl = {
    .name = "hunyuan_vl",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
