// stablelm: StableLM 3B, 2-1.6B and 2-12B; the last has norms of its own for every head and both branches side by side.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_LN, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM_B,
    T_OUT_OWN,
    T_NORM_B(attn_norm),
    T_QKV,
    {SLOT_attn_output, "E,E", T_SCALE, 0, 0, 0, 0},
    {SLOT_attn_q_norm, "D,H", T_OPT, 0, 0, 0, 0},
    {SLOT_attn_k_norm, "D,K", T_OPT, 0, 0, 0, 0},
    {SLOT_ffn_norm, "E", T_OPT | T_BIAS_OPT, 0, 0, 0, 0},
    T_FFN,
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *n = blk_norm(g, x, &l->attn_norm, NORM_LN);
    struct ggml_tensor *cur = blk_self_attn(g, l, n, il, &(struct attn_opts){.qk_norm = QK_NORM_HEAD_LN});
    blk_select3(g, il, &cur, &x, &n);
    x = ggml_add(g->ctx, cur, x);
    struct ggml_tensor *seen = l->ffn_norm.w ? blk_norm(g, x, &l->ffn_norm, NORM_LN) : n;
    return ggml_add(g->ctx, blk_ffn_layer(g, l, seen, ACT_SILU), x);
}

const struct arch arch_stablelm = {
    .name = "stablelm",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .norm = NORM_LN,
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
};
