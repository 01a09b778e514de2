// spark2_5: a gate per head, GELU, windowed layers with a base and rotary dimensions of their own.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, K_SWA_REQ, K_ROPE_SWA("b"), {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_gate, "E,H", 0, 0, 0, 0, 0},
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    T_NORM(ffn_norm),
    T_FFN,
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    TRY(arch_require(arch_has_key(b, "attention.sliding_window_pattern"), b, "attention.sliding_window_pattern is missing"));
    hp->rope_swa = SWA_ROPE_OWN;
    return arch_windows(hp, b, WINDOW_STANDARD, 1, false);
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *n = blk_norm(g, x, &l->attn_norm, NORM_RMS);
    struct ggml_tensor *cur = blk_self_attn(g, l, n, il, &(struct attn_opts){.gate = blk_linear(g, &l->attn_gate, n)});
    blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, cur, x);
    return ggml_add(g->ctx, blk_ffn_layer(g, l, blk_norm(g, x, &l->ffn_norm, NORM_RMS), ACT_GELU), x);
}

const struct arch arch_spark2_5 = {
    .name = "spark2_5",
    .flags = ARCH_SWA_ROT,
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
