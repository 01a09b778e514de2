// gemma3: gemma2 without soft-capped scores, with head norms; five windowed layers to each full one, which turn by a base of their own.
#include "arch/arch.h"

#include <math.h>

static const struct arch_key keys[] = {
    K_RMS, K_SWA, {"final_logit_softcapping", HP_f_final_softcap, "0", 0}, K_ROPE_SWA("10000"), {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
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
    const int d = hp->n_block == 62 ? hp->n_embd / (hp->n_head[0] ? hp->n_head[0] : 1) : hp->n_embd_head_k[0];
    hp->f_attn_scale = 1.0f / sqrtf((float) d);
    hp->f_embd_scale = sqrtf((float) hp->n_embd);
    hp->rope_swa = SWA_ROPE_OWN;
    hp->rope_f_swa = 1;  // the scaling factor is for full layers
    return arch_windows(hp, b, WINDOW_STANDARD, 6, false);
}

static struct ggml_tensor *embed(struct graph *g) { return blk_embed(g, g->hp->f_embd_scale); }

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_sandwich(g, l, x, il, &(struct form_opts){.attn = {.qk_norm = QK_NORM_HEAD}, .act = {.act = ACT_GELU}});
}

static void head(struct graph *g, struct ggml_tensor *x) {
    blk_head(g, x, &(struct head_opts){.softcap = g->hp->f_final_softcap});
}

const struct arch arch_gemma3 = {
    .name = "gemma3",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .embed = embed,
    .layer = layer,
    .head_fn = head,
};
