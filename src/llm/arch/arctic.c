// arctic: a dense network after attention, and experts that read the layer's input.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "E,E", T_SCALE, 0, 0, 0, 0},
    T_NORM(ffn_norm),
    {SLOT_ffn_gate, "E,E", 0, 0, 0, 0, 0},
    {SLOT_ffn_up, "E,E", 0, 0, 0, 0, 0},
    {SLOT_ffn_down, "E,E", 0, 0, 0, 0, 0},
    T_NORM(ffn_norm_exps),
    T_ROUTER(0),
    T_EXPERTS("F", 0, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *cur = blk_self_attn(g, l, blk_norm(g, x, &l->attn_norm, NORM_RMS), il, &(struct attn_opts){0});
    blk_select(g, il, &cur, &x);
    struct ggml_tensor *h = ggml_add(g->ctx, cur, x);
    h = ggml_add(g->ctx, blk_ffn_layer(g, l, blk_norm(g, h, &l->ffn_norm, NORM_RMS), ACT_SILU), h);
    cur = blk_moe(g, l, blk_norm(g, x, &l->ffn_norm_exps, NORM_RMS), il,
                  &(struct moe_opts){.gate = GATE_SOFTMAX, .norm = true});
    return ggml_add(g->ctx, cur, h);
}

const struct arch arch_arctic = {
    .name = "arctic",
    .rope = LLAMA_ROPE_TYPE_NORM,
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
};
