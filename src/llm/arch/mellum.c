// mellum: qwen3moe whose windowed layers turn without scaling.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, K_FX_OR("F/U"), K_SWA, {NULL, 0, NULL, 0}};

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
    T_EXPERTS("Fx", T_SCALE, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    hp->rope_swa = SWA_ROPE_SCALE | SWA_ROPE_NO_YARN;
    hp->rope_f_swa = 1;
    return arch_windows(hp, b, WINDOW_STANDARD, 4, false);
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il,
                        &(struct form_opts){.attn = {.qk_norm = QK_NORM_HEAD}, .moe = {.gate = GATE_SOFTMAX, .norm = true}});
}

const struct arch arch_mellum = {
    .name = "mellum",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
