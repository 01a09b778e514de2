// muse-glimmer: gated attention between norms; only windowed layers turn; scaled and capped logits.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS,
    K_SWA_REQ,
    K_ROPE_SWA("b"),
    {"logit_scale", HP_f_logit_scale, REQ, 0},
    {"final_logit_softcapping", HP_f_final_softcap, "0", 0},
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_OWN,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_gate, "E,H*D", 0, 0, 0, 0, 0},
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    T_QK_NORM,
    T_NORM(post_attn_norm),
    T_NORM(ffn_norm),
    T_FFN,
    T_NORM(post_ffw_norm),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    TRY(arch_windows(hp, b, WINDOW_STANDARD, 4, false));
    for (int i = 0; i < hp->n_block; i++) hp->rope_layers[i] = hp->is_swa[i] != 0;
    hp->rope_swa = SWA_ROPE_OWN;
    hp->rope_f_swa = 1;
    return ERR_OK;
}

static struct ggml_tensor *embed(struct graph *g) { return blk_norm(g, blk_embed(g, 0), NULL, NORM_RMS); }

static void head(struct graph *g, struct ggml_tensor *x) {
    blk_head(g, x, &(struct head_opts){.scale = g->hp->f_logit_scale, .softcap = g->hp->f_final_softcap});
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *n = blk_norm(g, x, &l->attn_norm, NORM_RMS);
    struct ggml_tensor *cur =
        blk_self_attn(g, l, n, il, &(struct attn_opts){.qk_norm = QK_NORM_HEAD, .gate = blk_linear(g, &l->attn_gate, n)});
    blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, blk_norm_eps(g, cur, &l->post_attn_norm, NORM_RMS, 1e-8f), x);
    n = blk_norm(g, x, &l->ffn_norm, NORM_RMS);
    cur = blk_ffn_layer(g, l, n, ACT_SILU);
    return ggml_add(g->ctx, blk_norm_eps(g, cur, &l->post_ffw_norm, NORM_RMS, 1e-8f), x);
}

const struct arch arch_muse_glimmer = {
    .name = "muse-glimmer",
    .rope = LLAMA_ROPE_TYPE_NORM,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .embed = embed,
    .layer = layer,
    .head_fn = head,
};
