// maple: clamped experts in every layer; only windowed layers turn.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS, K_FX(REQ), K_SWA_REQ, {"swiglu_clamp_exp", HP_swiglu_clamp_exp, REQ, 0}, K_ROPE_SWA("b"), {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_OWN,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    T_QK_NORM,
    T_NORM(ffn_norm),
    T_ROUTER(0),
    T_EXPERTS("Fx", 0, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    TRY(arch_require(arch_has_key(b, "attention.sliding_window_pattern"), b, "attention.sliding_window_pattern is missing"));
    TRY(arch_windows(hp, b, WINDOW_STANDARD, 1, false));
    hp->rope_swa = SWA_ROPE_OWN;
    for (int i = 0; i < hp->n_block; i++) hp->rope_layers[i] = hp->is_swa[i] != 0;
    return ERR_OK;
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(
        g, l, x, il,
        &(struct form_opts){.attn = {.qk_norm = QK_NORM_HEAD},
                            .moe = {.gate = GATE_SOFTMAX, .norm = true, .act = {.clamp = g->hp->swiglu_clamp_exp[il]}}});
}

const struct arch arch_maple = {
    .name = "maple",
    .flags = ARCH_SWA_ROT,
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
