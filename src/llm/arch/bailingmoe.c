// bailingmoe: Ling; experts in every layer, heads as wide as their rotary dimensions.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, K_LEAD, K_FX(REQ), K_NSH(REQ), K_WSCALE, K_WNORM, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_OWN,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*R,E", T_SCALE, 0, 0, 0, 0},
    T_NORM(ffn_norm),
    T_ROUTER(0),
    T_EXPERTS("Fx", 0, 0),
    T_SHEXP("Fx*nsh", 0, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) { return arch_whole_rotary(hp, b); }

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(
        g, l, x, il,
        &(struct form_opts){
            .moe = {.gate = GATE_SOFTMAX, .norm = g->hp->expert_weights_norm, .wscale = g->hp->expert_weights_scale}});
}

const struct arch arch_bailingmoe = {
    .name = "bailingmoe",
    .rope = LLAMA_ROPE_TYPE_NORM,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
