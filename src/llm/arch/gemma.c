// gemma: Gemma 1; embeddings times sqrt(E), GELU, the output matrix is the embedding.
#include "arch/arch.h"

#include <math.h>

static const struct arch_key keys[] = {K_RMS, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD, T_OUT_NORM, T_NORM(attn_norm), T_QKV, T_O, T_NORM(ffn_norm), T_FFN, {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    (void) b;
    hp->f_embd_scale = sqrtf((float) hp->n_embd);
    return ERR_OK;
}

static struct ggml_tensor *embed(struct graph *g) { return blk_embed(g, g->hp->f_embd_scale); }

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){.act = {.act = ACT_GELU}});
}

const struct arch arch_gemma = {
    .name = "gemma",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .head = {.tied = true},
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .embed = embed,
    .layer = layer,
};
