// olmoe: experts, whole rows of q and k normed.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_OWN,
    T_NORM(attn_norm),
    T_QKV,
    T_O,
    {SLOT_attn_q_norm, "H*D", 0, 0, 0, 0, 0},
    {SLOT_attn_k_norm, "K*D", 0, 0, 0, 0, 0},
    T_NORM(ffn_norm),
    T_ROUTER(0),
    T_EXPERTS("F", 0, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *cur = blk_norm(g, x, &l->attn_norm, NORM_RMS);
    cur = blk_self_attn(g, l, cur, il, &(struct attn_opts){.qk_norm = QK_NORM_ROW});
    blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, cur, x);
    cur = blk_moe(g, l, blk_norm(g, x, &l->ffn_norm, NORM_RMS), il, &(struct moe_opts){.gate = GATE_SOFTMAX});
    return ggml_add(g->ctx, cur, x);
}

const struct arch arch_olmoe = {
    .name = "olmoe",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
};
