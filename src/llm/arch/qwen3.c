// qwen3: dense; norms on the heads of q and k before they turn. Rerankers bring a classifier over the last token.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS, {"classifier.output_labels", HP_n_cls_out, "1", KEY_COUNT}, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    {SLOT_cls_out, "E,ncls", T_OPT, 0, 0, 0, 0},
    T_NORM(attn_norm),
    T_QKV,
    T_O,
    T_QK_NORM,
    T_NORM(ffn_norm),
    T_FFN_ANY(T_SCALE, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){.attn = {.qk_norm = QK_NORM_HEAD}});
}

static struct ggml_tensor *pooled(struct graph *g, struct ggml_tensor *x, enum llama_pooling_type kind) {
    if (kind != LLAMA_POOLING_TYPE_RANK || !g->w->cls_out.w) return blk_pool(g, x, kind);
    return ggml_soft_max(g->ctx, blk_linear(g, &g->w->cls_out, blk_pool(g, x, LLAMA_POOLING_TYPE_LAST)));
}

const struct arch arch_qwen3 = {
    .name = "qwen3",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
    .pooled = pooled,
};
