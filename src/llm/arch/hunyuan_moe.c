// hunyuan-moe: rotary positions first, then the norms of q and k; experts as wide as the key of the dense network.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS,
    {"expert_feed_forward_length", HP_n_ff_exp, REQ, KEY_FIRST},
    K_FS("F"),
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    T_QK_NORM,
    T_NORM(ffn_norm),
    T_ROUTER(0),
    T_EXPERTS("F", 0, 0),
    T_SHEXP("Fs", 0, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il,
                        &(struct form_opts){.attn = {.qk_norm = QK_NORM_HEAD, .norm_after_rope = true},
                                            .moe = {.gate = GATE_SOFTMAX, .norm = true}});
}

const struct arch arch_hunyuan_moe = {
    .name = "hunyuan-moe",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
};
