// exaone-moe: only windowed layers turn.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS, K_LEAD, K_FX(REQ), K_FS("Fx"), K_GATING(REQ), K_WSCALE, K_WNORM, K_SWA_REQ, {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_OWN,
    T_ROPE_FREQS,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    T_QK_NORM,
    T_NORM(ffn_norm),
    T_FFN_WHEN("i<lead"),
    T_ROUTER("i>=lead"),
    T_EXPERTS("Fx", 0, "i>=lead"),
    T_EXP_PROBS_B(T_OPT, "i>=lead"),
    T_SHEXP("Fs", 0, "i>=lead"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    TRY(arch_windows(hp, b, WINDOW_STANDARD, 4, false));
    for (int i = 0; i < hp->n_block; i++) hp->rope_layers[i] = hp->is_swa[i] != 0;
    return ERR_OK;
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){.attn = {.qk_norm = QK_NORM_HEAD}, .moe = moe_of_file(g)});
}

const struct arch arch_exaone_moe = {
    .name = "exaone-moe",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
