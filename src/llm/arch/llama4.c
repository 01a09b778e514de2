// llama4: chunked attention, every fourth layer full and without positions; experts whose input is weighted.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS,
    K_FX(REQ),
    {"interleave_moe_layer_step", HP_moe_step, REQ, 0},
    {"attention.sliding_window", HP_n_swa, "8192", 0},
    K_ROPE_SWA("b"),
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_ROPE_FREQS,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    T_NORM(ffn_norm),
    T_FFN_WHEN("(i+1)%st!=0"),
    T_ROUTER("(i+1)%st==0"),
    T_EXPERTS("Fx", 0, "(i+1)%st==0"),
    T_SHEXP("Fx", 0, "(i+1)%st==0"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    TRY(arch_require(hp->n_expert > 0 && hp->moe_step > 0, b, "it must have experts, and interleave_moe_layer_step"));
    if (hp->n_swa == 0) return ERR_OK;  // no chunks, and positions everywhere
    hp->n_swa = 8192;
    hp->rope_swa = SWA_ROPE_OWN;
    for (int i = 0; i < hp->n_block; i++) hp->rope_layers[i] = (i + 1) % 4 != 0;
    return arch_windows(hp, b, WINDOW_CHUNKED, 4, false);
}

static struct ggml_tensor *attention(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct attn_opts o = {0};
    struct qkv a = blk_qkv(g, l, x, il, &o);
    if (!g->hp->rope_layers[il]) {
        a.q = ggml_mul(g->ctx, a.q, in_temperature(g, 0.1f, 8192.0f, 1));
    } else {
        a.q = blk_rope(g, a.q, il);
        a.k = blk_rope(g, a.k, il);
        if (g->hp->n_expert != 128) {
            a.q = blk_norm(g, a.q, NULL, NORM_RMS);
            a.k = blk_norm(g, a.k, NULL, NORM_RMS);
        }
    }
    return blk_linear(g, &l->attn_output, blk_attend(g, a.q, a.k, a.v, il, &o));
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *cur = attention(g, l, blk_norm(g, x, &l->attn_norm, NORM_RMS), il);
    blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, cur, x);
    cur = blk_norm(g, x, &l->ffn_norm, NORM_RMS);
    return ggml_add(g->ctx,
                    blk_network(g, l, cur, il, &(struct form_opts){.moe = {.gate = GATE_SIGMOID, .scale_input = true}}), x);
}

const struct arch arch_llama4 = {
    .name = "llama4",
    .flags = ARCH_HF_PERMUTED,
    .rope = LLAMA_ROPE_TYPE_NORM,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
