// afmoe: gated attention between norms, three windowed layers to each full one without positions.
#include "arch/arch.h"

#include <math.h>

static const struct arch_key keys[] = {
    K_RMS, K_LEAD, K_FX(REQ), K_NSH(REQ), K_GATING("0"), K_WSCALE, K_WNORM, K_SWA, K_ROPE_SWA("b"), {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_gate, "E,H*D", 0, 0, 0, 0, 0},
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    T_QK_NORM,
    T_NORM(post_attn_norm),
    T_NORM(ffn_norm),
    T_FFN_WHEN("i<lead"),
    T_ROUTER("i>=lead"),
    T_EXPERTS("Fx", 0, "i>=lead"),
    T_EXP_PROBS_B(0, "i>=lead"),
    T_SHEXP("Fx*nsh", 0, "i>=lead&&nsh>0"),
    T_NORM(post_ffw_norm),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    (void) b;
    if (!hp->expert_gating) hp->expert_gating = GATE_SIGMOID;
    hp->f_embd_scale = sqrtf((float) hp->n_embd);
    for (int i = 0; i < hp->n_block; i++) hp->rope_layers[i] = (i + 1) % 4 != 0;
    hp->rope_swa = SWA_ROPE_OWN;
    return arch_windows(hp, b, WINDOW_STANDARD, 4, false);
}

static struct ggml_tensor *embed(struct graph *g) { return blk_embed(g, g->hp->f_embd_scale); }

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *n = blk_norm(g, x, &l->attn_norm, NORM_RMS);
    struct ggml_tensor *cur =
        blk_self_attn(g, l, n, il, &(struct attn_opts){.qk_norm = QK_NORM_HEAD, .gate = blk_linear(g, &l->attn_gate, n)});
    blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, blk_norm(g, cur, &l->post_attn_norm, NORM_RMS), x);
    n = blk_norm(g, x, &l->ffn_norm, NORM_RMS);
    cur = blk_network(g, l, n, il, &(struct form_opts){.moe = moe_of_file(g)});
    return ggml_add(g->ctx, blk_norm(g, cur, &l->post_ffw_norm, NORM_RMS), x);
}

const struct arch arch_afmoe = {
    .name = "afmoe",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .embed = embed,
    .layer = layer,
};
