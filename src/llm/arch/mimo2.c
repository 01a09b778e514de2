// mimo2: values narrower than keys, sinks, windowed layers with a base of their own; a layer has experts if it has a router.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS,
    K_FX(REQ),
    K_SWA_REQ,
    K_ROPE_SWA("10000"),
    {"attention.value_scale", HP_f_attn_value_scale, "0", 0},
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_OWN,
    T_NORM(attn_norm),
    {SLOT_attn_qkv, "E,H*D+K*D+K*Dv", T_OPT, 0, 0, 0, 0},
    {SLOT_attn_q, "E,H*D", 0, 0, SLOT_attn_qkv, 0, 0},
    {SLOT_attn_k, "E,K*D", 0, 0, SLOT_attn_qkv, 0, 0},
    {SLOT_attn_v, "E,K*Dv", 0, 0, SLOT_attn_qkv, 0, 0},
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    {SLOT_attn_sinks, "H", T_OPT, 0, 0, 0, 0},
    T_NORM(ffn_norm),
    {SLOT_ffn_gate_inp, "E,X", T_OPT, 0, 0, 0, 0},
    {SLOT_ffn_gate, "E,F", 0, 0, SLOT_ffn_gate_inp, 0, 0},
    {SLOT_ffn_up, "E,F", 0, 0, SLOT_ffn_gate_inp, 0, 0},
    {SLOT_ffn_down, "F,E", 0, 0, SLOT_ffn_gate_inp, 0, 0},
    T_EXPERTS("Fx", T_OPT, 0),
    T_EXP_PROBS_B(T_OPT, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    TRY(arch_require(arch_has_key(b, "attention.sliding_window_pattern"), b, "attention.sliding_window_pattern is missing"));
    hp->rope_swa = SWA_ROPE_OWN;
    hp->rope_f_swa = 1;
    return arch_windows(hp, b, WINDOW_STANDARD, 1, false);
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    const float vs = g->hp->f_attn_value_scale;
    struct ggml_tensor *cur =
        blk_self_attn(g, l, blk_norm(g, x, &l->attn_norm, NORM_RMS), il, &(struct attn_opts){.sinks = l->attn_sinks.w});
    blk_select(g, il, &cur, &x);
    if (vs != 0 && vs != 1.0f) cur = ggml_scale(g->ctx, cur, vs);
    x = ggml_add(g->ctx, cur, x);
    cur = blk_norm(g, x, &l->ffn_norm, NORM_RMS);
    return ggml_add(g->ctx, blk_network(g, l, cur, il, &(struct form_opts){.moe = {.gate = GATE_SIGMOID, .norm = true}}), x);
}

const struct arch arch_mimo2 = {
    .name = "mimo2",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
