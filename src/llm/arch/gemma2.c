// gemma2: norms before and after each branch, soft-capped scores and logits, every other layer windowed.
#include "arch/arch.h"

#include <math.h>

static const struct arch_key keys[] = {
    K_RMS,
    {"attention.sliding_window", HP_n_swa, "4096", 0},
    {"attn_logit_softcapping", HP_f_attn_softcap, "50", 0},
    {"final_logit_softcapping", HP_f_final_softcap, "30", 0},
    K_ROPE_SWA("b"),
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_NORM(attn_norm),
    T_QKV,
    T_O,
    T_NORM(post_attn_norm),
    T_NORM(ffn_norm),
    T_FFN,
    T_NORM(post_ffw_norm),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    // 27B scales by the width of a head's share of the residual stream; every other size by the head
    const int d = hp->n_block == 46 ? hp->n_embd / (hp->n_head[0] ? hp->n_head[0] : 1) : hp->n_embd_head_k[0];
    hp->f_attn_scale = 1.0f / sqrtf((float) d);
    hp->f_embd_scale = sqrtf((float) hp->n_embd);
    hp->rope_swa = SWA_ROPE_OWN;
    return arch_windows(hp, b, WINDOW_STANDARD, 2, false);
}

static struct ggml_tensor *embed(struct graph *g) { return blk_embed(g, g->hp->f_embd_scale); }

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_sandwich(g, l, x, il,
                        &(struct form_opts){.attn = {.softcap = g->hp->f_attn_softcap}, .act = {.act = ACT_GELU}});
}

static void head(struct graph *g, struct ggml_tensor *x) {
    blk_head(g, x, &(struct head_opts){.softcap = g->hp->f_final_softcap, .tied = true});
}

const struct arch arch_gemma2 = {
    .name = "gemma2",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .embed = embed,
    .layer = layer,
    .head_fn = head,
};
