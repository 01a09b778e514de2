// cogvlm: images go through matrices of their own.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    {SLOT_attn_qkv, "E,3*H*D", 0, 0, 0, 0, 0},
    {SLOT_attn_output, "H*D,E", T_SCALE, 0, 0, 0, 0},
    {SLOT_vis_attn_qkv, "E,3*H*D", 0, 0, 0, 0, 0},
    {SLOT_vis_attn_output, "H*D,E", 0, 0, 0, 0, 0},
    T_NORM(ffn_norm),
    T_FFN,
    {SLOT_vis_gate, "E,F", 0, 0, 0, 0, 0},
    {SLOT_vis_up, "E,F", 0, 0, 0, 0, 0},
    {SLOT_vis_down, "F,E", 0, 0, 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    (void) b;
    hp->rope_base = 10000.0f;  // whatever the keys say
    hp->rope_f = 1.0f;
    hp->rope_scaling = LLAMA_ROPE_SCALING_TYPE_NONE;
    hp->rope_attn_factor = 1.0f;
    return ERR_OK;
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct layer m = *l;
    if (!g->n.has_token) {  // rows of an image
        m.attn_qkv = l->vis_attn_qkv, m.attn_output = l->vis_attn_output;
        m.ffn_gate = l->vis_gate, m.ffn_up = l->vis_up, m.ffn_down = l->vis_down;
    }
    return blk_pre_norm(g, &m, x, il, &(struct form_opts){0});
}

const struct arch arch_cogvlm = {
    .name = "cogvlm",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
