// qwen2: Qwen 1.5, 2 and 2.5; like llama, with biases on q, k and v and the other pairing of rotary dimensions.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    {SLOT_output, "E,V", T_OPT | T_BIAS_OPT, 0, 0, 0, 0},
    T_NORM(attn_norm),
    T_QKV,
    T_O,
    T_NORM(ffn_norm),
    T_FFN,
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    return arch_require(hp->n_rot[0] == hp->n_embd_head_k[0], b, "its rotary dimensions must be the whole head");
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *cur = blk_norm(g, x, &l->attn_norm, NORM_RMS);
    cur = blk_self_attn(g, l, cur, il, &(struct attn_opts){0});
    blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, cur, x);
    cur = blk_ffn_layer(g, l, blk_norm(g, x, &l->ffn_norm, NORM_RMS), ACT_SILU);
    return ggml_add(g->ctx, cur, x);
}

const struct arch arch_qwen2 = {
    .name = "qwen2",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
