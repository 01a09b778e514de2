// talkie: no norm weights at all; a gain per query head; the embedding comes back in every layer.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, {"logit_scale", HP_f_logit_scale, REQ, 0}, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_OWN,
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    {SLOT_attn_q_norm, "1,H", 0, 0, 0, 0, 0},
    {SLOT_ffn_gate, "E,F", 0, 0, 0, 0, 0},
    {SLOT_ffn_up, "E,F", 0, 0, 0, 0, 0},
    {SLOT_ffn_down, "F,E", T_SCALE, 0, 0, 0, 0},
    {SLOT_layer_output_scale, "1", 0, 0, 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static void head(struct graph *g, struct ggml_tensor *x) {
    blk_head(g, x, &(struct head_opts){.scale = g->hp->f_logit_scale});
}

static struct ggml_tensor *embed(struct graph *g) {
    struct ggml_tensor *x = blk_norm(g, blk_embed(g, 0), NULL, NORM_RMS);
    g->arch_state = x;
    return x;
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    const struct attn_opts o = {0};
    struct ggml_tensor *first = g->arch_state;
    struct qkv a = blk_qkv(g, l, blk_norm(g, x, NULL, NORM_RMS), il, &o);
    a.q = ggml_mul(g->ctx, blk_norm(g, blk_rope(g, a.q, il), NULL, NORM_RMS), l->attn_q_norm.w);
    a.k = blk_norm(g, blk_rope(g, a.k, il), NULL, NORM_RMS);
    struct ggml_tensor *cur = blk_linear(g, &l->attn_output, blk_attend(g, a.q, a.k, a.v, il, &o));
    blk_select3(g, il, &cur, &x, &first);
    x = ggml_add(g->ctx, cur, x);
    x = ggml_add(g->ctx, blk_ffn_layer(g, l, blk_norm(g, x, NULL, NORM_RMS), ACT_SILU), x);
    return ggml_add(g->ctx, x, ggml_mul(g->ctx, first, l->layer_output_scale.w));
}

const struct arch arch_talkie = {
    .name = "talkie",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .embed = embed,
    .layer = layer,
    .head_fn = head,
};
