// olmo: OLMo 1; LayerNorms without weights, so the file has no norm tensors at all.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_LN, {"attention.clamp_kqv", HP_f_clamp_kqv, "0", 0}, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {T_EMBD, T_OUT_TIED, T_QKV, T_O, T_FFN, {SLOT_NONE, NULL, 0, 0, 0, 0, 0}};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){.norm = NORM_LN, .attn = {.clamp = g->hp->f_clamp_kqv}});
}

const struct arch arch_olmo = {
    .name = "olmo",
    .flags = ARCH_HF_PERMUTED,
    .rope = LLAMA_ROPE_TYPE_NORM,
    .norm = NORM_LN,
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
};
