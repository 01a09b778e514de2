// phimoe: Phi-3.5-MoE; RMS norms with biases.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM_B,
    {SLOT_output, "E,V", T_BIAS, 0, 0, 0, 0},
    T_ROPE_LONG,
    T_NORM_B(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_BIAS | T_SCALE, 0, 0, 0, 0},
    T_NORM_B(ffn_norm),
    T_ROUTER(0),
    T_EXPERTS("F", 0, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *cur = blk_norm(g, x, &l->attn_norm, NORM_RMS);
    cur = blk_self_attn(g, l, cur, il, &(struct attn_opts){0});
    blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, cur, x);
    cur = blk_moe(g, l, blk_norm(g, x, &l->ffn_norm, NORM_RMS), il, &(struct moe_opts){.gate = GATE_SOFTMAX, .norm = true});
    return ggml_add(g->ctx, cur, x);
}

const struct arch arch_phimoe = {
    .name = "phimoe",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
};
