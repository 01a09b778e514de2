// phi3: Phi-3, 3.5-mini and 4: fused projections, long and short rotary factors.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_ROPE_LONG,
    T_NORM(attn_norm),
    T_QKV,
    T_O,
    T_NORM(ffn_norm),
    {SLOT_ffn_up, "E,2*F", 0, 0, 0, 0, "mlp.gate_up_proj"},
    {SLOT_ffn_down, "F,E", 0, 0, 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *cur = blk_norm(g, x, &l->attn_norm, NORM_RMS);
    cur = blk_self_attn(g, l, cur, il, &(struct attn_opts){0});
    blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, cur, x);
    cur = blk_ffn_layer(g, l, blk_norm(g, x, &l->ffn_norm, NORM_RMS), ACT_SILU);
    return ggml_add(g->ctx, cur, x);
}

const struct arch arch_phi3 = {
    .name = "phi3",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
};
