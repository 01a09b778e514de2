// cohere2: Command-R7B and Command-A; three windowed layers with rotary positions to each full one without.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_LN, {"logit_scale", HP_f_logit_scale, REQ, 0}, K_SWA_REQ, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "E,E", T_SCALE, 0, 0, 0, 0},
    T_FFN_ANY(T_SCALE, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    TRY(arch_windows(hp, b, WINDOW_STANDARD, 4, false));
    for (int i = 0; i < hp->n_block; i++) hp->rope_layers[i] = hp->is_swa[i] != 0;
    return ERR_OK;
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *n = blk_norm(g, x, &l->attn_norm, NORM_LN);
    struct ggml_tensor *cur = blk_self_attn(g, l, n, il, &(struct attn_opts){0});
    blk_select3(g, il, &cur, &x, &n);
    return ggml_add(g->ctx, ggml_add(g->ctx, x, blk_ffn_layer(g, l, n, ACT_SILU)), cur);
}

static void head(struct graph *g, struct ggml_tensor *x) {
    blk_head(g, x, &(struct head_opts){.norm = NORM_LN, .scale = g->hp->f_logit_scale, .tied = true});
}

const struct arch arch_cohere2 = {
    .name = "cohere2",
    .rope = LLAMA_ROPE_TYPE_NORM,
    .norm = NORM_LN,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
    .head_fn = head,
};
