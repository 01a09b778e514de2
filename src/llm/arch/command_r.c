// command-r: Cohere's Command-R, R+ and Aya 23; one norm feeds both branches, logits are scaled.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_LN, {"logit_scale", HP_f_logit_scale, "0", 0}, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "E,E", T_SCALE, 0, 0, 0, 0},
    {SLOT_attn_q_norm, "D,H", 0, "L>=64", 0, 0, 0},
    {SLOT_attn_k_norm, "D,K", 0, "L>=64", 0, 0, 0},
    T_FFN,
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *n = blk_norm(g, x, &l->attn_norm, NORM_LN);
    struct ggml_tensor *cur = blk_self_attn(g, l, n, il, &(struct attn_opts){.qk_norm = QK_NORM_HEAD_LN});
    blk_select3(g, il, &cur, &x, &n);
    return ggml_add(g->ctx, ggml_add(g->ctx, x, blk_ffn_layer(g, l, n, ACT_SILU)), cur);
}

static void head(struct graph *g, struct ggml_tensor *x) {
    blk_head(g, x, &(struct head_opts){.norm = NORM_LN, .scale = g->hp->f_logit_scale, .tied = true});
}

const struct arch arch_command_r = {
    .name = "command-r",
    .rope = LLAMA_ROPE_TYPE_NORM,
    .norm = NORM_LN,
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
    .head_fn = head,
};
