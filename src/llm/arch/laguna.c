// laguna: a softplus gate per head or element; windowed layers with rotary dimensions of their own.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS,
    {"leading_dense_block_count", HP_n_layer_dense_lead, REQ, 0},
    K_FX(REQ),
    K_NSH("1"),
    K_FS("Fx*nsh"),
    K_GATING("0"),
    K_WSCALE,
    K_WNORM,
    K_SWA,
    K_ROPE_SWA("b"),
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_gate, "E,?", 0, 0, 0, 0, 0},
    {SLOT_attn_output, "H*D,E", T_SCALE, 0, 0, 0, 0},
    T_QK_NORM,
    T_NORM(ffn_norm),
    T_FFN_WHEN("i<lead"),
    T_ROUTER("i>=lead"),
    T_EXPERTS("Fx", 0, "i>=lead"),
    T_EXP_PROBS_B(0, "i>=lead"),
    T_SHEXP("Fs", 0, "i>=lead"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    (void) b;
    if (!hp->expert_gating) hp->expert_gating = GATE_SIGMOID;
    hp->rope_swa = SWA_ROPE_OWN | SWA_ROPE_NO_YARN;
    hp->rope_f_swa = 1;
    return arch_windows(hp, b, WINDOW_STANDARD, 4, true);
}

// x [n, T] times softplus(gate), which has a value per element or per head.
static struct ggml_tensor *soft_gate(struct graph *g, struct ggml_tensor *x, struct ggml_tensor *gate) {
    const int64_t n = x->ne[0], t = x->ne[1], h = gate->ne[0];
    gate = ggml_softplus(g->ctx, gate);
    x = ggml_mul(g->ctx, ggml_reshape_3d(g->ctx, x, n / h, h, t), ggml_reshape_3d(g->ctx, gate, 1, h, t));
    return ggml_reshape_2d(g->ctx, x, n, t);
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *n = blk_norm(g, x, &l->attn_norm, NORM_RMS);
    struct ggml_tensor *cur = blk_self_attn(g, l, n, il, &(struct attn_opts){.qk_norm = QK_NORM_HEAD, .no_out = true});
    cur = blk_linear(g, &l->attn_output, soft_gate(g, cur, blk_linear(g, &l->attn_gate, n)));
    blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, cur, x);
    n = blk_norm(g, x, &l->ffn_norm, NORM_RMS);
    return ggml_add(g->ctx, blk_network(g, l, n, il, &(struct form_opts){.moe = moe_of_file(g)}), x);
}

const struct arch arch_laguna = {
    .name = "laguna",
    .flags = ARCH_SWA_ROT,
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
