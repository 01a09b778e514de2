// qwen2moe: Qwen 1.5 and 2 with experts; a shared expert behind a gate of its own.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, K_FX_OR("F/U"), K_FS("F"), {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_OWN,
    T_NORM(attn_norm),
    T_QKV,
    T_O,
    T_NORM(ffn_norm),
    T_ROUTER(0),
    T_EXPERTS("Fx", 0, 0),
    {SLOT_ffn_gate_inp_shexp, "E", 0, 0, 0, 0, 0},
    T_SHEXP("Fs", 0, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    return arch_require(hp->n_expert > 0 && hp->n_expert_used[0] > 0, b, "it must have experts");
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *cur = blk_norm(g, x, &l->attn_norm, NORM_RMS);
    cur = blk_self_attn(g, l, cur, il, &(struct attn_opts){0});
    blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, cur, x);
    struct ggml_tensor *n = blk_norm(g, x, &l->ffn_norm, NORM_RMS);
    cur = blk_moe(g, l, n, il, &(struct moe_opts){.gate = GATE_SOFTMAX});
    cur = ggml_add(g->ctx, cur, blk_shared_expert(g, l, n, &(struct act_opts){.act = ACT_SILU}));
    return ggml_add(g->ctx, cur, x);
}

const struct arch arch_qwen2moe = {
    .name = "qwen2moe",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
