// bloom: linear biases by distance, a norm on the embeddings.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_LN, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    {SLOT_token_embd_norm, "E", T_BIAS, 0, 0, 0, 0},
    T_OUT_NORM_B,
    T_OUT_TIED,
    T_NORM_B(attn_norm),
    {SLOT_attn_qkv, "E,3*E", T_BIAS | T_SCALE, 0, 0, 0, 0},
    {SLOT_attn_output, "E,E", T_BIAS | T_SCALE, 0, 0, 0, 0},
    T_NORM_B(ffn_norm),
    {SLOT_ffn_up, "E,F", T_BIAS, 0, 0, 0, 0},
    {SLOT_ffn_down, "F,E", T_BIAS, 0, 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    (void) b;
    hp->f_alibi = 8.0f;  // the files have no key for it
    return ERR_OK;
}

static struct ggml_tensor *embed(struct graph *g) { return blk_norm(g, blk_embed(g, 0), &g->w->token_embd_norm, NORM_LN); }

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(
        g, l, x, il,
        &(struct form_opts){.norm = NORM_LN, .attn = {.no_rope = true, .alibi = g->hp->f_alibi}, .act = {.act = ACT_GELU}});
}

const struct arch arch_bloom = {
    .name = "bloom",
    .rope = LLAMA_ROPE_TYPE_NONE,
    .norm = NORM_LN,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .embed = embed,
    .layer = layer,
};
