// jais: linear biases by distance, scores over D and not its root, biases everywhere.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_LN, {"attention.max_alibi_bias", HP_f_alibi, "0", 0}, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM_B,
    T_OUT_OWN,
    T_NORM_B(attn_norm),
    {SLOT_attn_qkv, "E,H*D+K*D+K*Dv", T_BIAS | T_SCALE, 0, 0, 0, 0},
    {SLOT_attn_output, "H*Dv,E", T_BIAS | T_SCALE, 0, 0, 0, 0},
    T_NORM_B(ffn_norm),
    T_FFN_ANY(T_BIAS, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    (void) b;
    hp->f_attn_scale = 1.0f / (float) hp->n_embd_head_k[0];
    return ERR_OK;
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il,
                        &(struct form_opts){.norm = NORM_LN, .attn = {.no_rope = true, .alibi = g->hp->f_alibi}});
}

const struct arch arch_jais = {
    .name = "jais",
    .rope = LLAMA_ROPE_TYPE_NONE,
    .norm = NORM_LN,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
