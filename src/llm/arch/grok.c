// grok: scores and logits through tanh, norms around both branches, embeddings and logits scaled.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS,
    {"logit_scale", HP_f_logit_scale, "0.57735026918962", 0},
    {"embedding_scale", HP_f_embd_scale, "78.3836717690617", 0},
    {"attention.output_scale", HP_f_attn_out_scale, "0.08838834764831845", 0},
    {"attn_logit_softcapping", HP_f_attn_softcap, "30", 0},
    {"final_logit_softcapping", HP_f_final_softcap, "0", 0},
    K_FX_OR("F"),
    {"rope.scaling.yarn_ext_factor", HP_rope_ext, "0-1", 0},
    {"rope.scaling.yarn_attn_factor", HP_rope_yarn_attn, "1", 0},
    {"rope.scaling.yarn_beta_fast", HP_rope_beta_fast, "8", 0},
    {"rope.scaling.yarn_beta_slow", HP_rope_beta_slow, "1", 0},
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "E,E", T_SCALE, 0, 0, 0, 0},
    T_NORM(attn_output_norm),
    T_NORM(ffn_norm),
    T_FFN_ANY(T_OPT, 0),
    T_ROUTER(0),
    T_EXPERTS_GATE("Fx", T_OPT, 0, 0),
    {SLOT_layer_output_norm, "E", T_OPT, 0, 0, 0, 0},
    {SLOT_post_ffw_norm, "E", T_OPT, 0, SLOT_layer_output_norm, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    (void) b;
    hp->rope_attn_factor *= hp->rope_yarn_attn;
    return ERR_OK;
}

static struct ggml_tensor *embed(struct graph *g) { return blk_embed(g, g->hp->f_embd_scale); }

static void head(struct graph *g, struct ggml_tensor *x) {
    blk_head(g, x, &(struct head_opts){.scale = g->hp->f_logit_scale, .softcap = g->hp->f_final_softcap});
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    const struct attn_opts o = {.scale = g->hp->f_attn_out_scale, .softcap = g->hp->f_attn_softcap};
    struct ggml_tensor *cur = blk_self_attn(g, l, blk_norm(g, x, &l->attn_norm, NORM_RMS), il, &o);
    blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, blk_norm(g, cur, &l->attn_output_norm, NORM_RMS), x);
    struct ggml_tensor *n = blk_norm(g, x, &l->ffn_norm, NORM_RMS);
    cur = blk_moe(g, l, n, il, &(struct moe_opts){.gate = GATE_SOFTMAX, .norm = true, .act = {.act = ACT_GELU}});
    if (l->ffn_up.w) cur = ggml_scale(g->ctx, ggml_add(g->ctx, cur, blk_ffn_layer(g, l, n, ACT_GELU)), 0.70710678f);
    return ggml_add(g->ctx, blk_norm(g, cur, l->layer_output_norm.w ? &l->layer_output_norm : &l->post_ffw_norm, NORM_RMS),
                    x);
}

const struct arch arch_grok = {
    .name = "grok",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .embed = embed,
    .layer = layer,
    .head_fn = head,
};
