// gemma-embedding: gemma3 that sees both ways through symmetric windows, and gives states instead of logits.
#include "arch/arch.h"

#include <math.h>

static const struct arch_key keys[] = {K_RMS, K_SWA_REQ, K_ROPE_SWA("10000"), {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    {SLOT_dense_2, "E,?", T_OPT, 0, 0, 0, 0},
    {SLOT_dense_3, "?,E", T_OPT, 0, 0, 0, 0},
    T_NORM(attn_norm),
    T_QKV,
    T_O,
    T_QK_NORM,
    T_NORM(post_attn_norm),
    T_NORM(ffn_norm),
    T_FFN,
    T_NORM(post_ffw_norm),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    hp->f_embd_scale = sqrtf((float) hp->n_embd);
    hp->rope_swa = SWA_ROPE_OWN;
    hp->rope_f_swa = 1;
    return arch_windows(hp, b, WINDOW_SYMMETRIC, 6, false);
}

static struct ggml_tensor *embed(struct graph *g) { return blk_embed(g, g->hp->f_embd_scale); }

static struct ggml_tensor *pooled(struct graph *g, struct ggml_tensor *x, enum llama_pooling_type kind) {
    x = blk_pool(g, x, kind);
    if (g->w->dense_2.w) x = blk_linear(g, &g->w->dense_2, x);
    return g->w->dense_3.w ? blk_linear(g, &g->w->dense_3, x) : x;
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_sandwich(g, l, x, il, &(struct form_opts){.attn = {.qk_norm = QK_NORM_HEAD}, .act = {.act = ACT_GELU}});
}

const struct arch arch_gemma_embedding = {
    .name = "gemma-embedding",
    .flags = ARCH_ENCODER,
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .pooled = pooled,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .embed = embed,
    .layer = layer,
};
