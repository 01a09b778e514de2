// refact: linear biases by distance. With experts in the file its network is the activation alone.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    T_NORM(ffn_norm),
    T_FFN_WHEN("X==0"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    (void) b;
    hp->f_alibi = 8.0f;
    return ERR_OK;
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *cur = blk_self_attn(g, l, blk_norm(g, x, &l->attn_norm, NORM_RMS), il,
                                            &(struct attn_opts){.no_rope = true, .alibi = 8.0f});
    blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, cur, x);
    cur = blk_norm(g, x, &l->ffn_norm, NORM_RMS);
    cur = l->ffn_up.w ? blk_ffn_layer(g, l, cur, ACT_SILU) : ggml_silu(g->ctx, cur);
    return ggml_add(g->ctx, cur, x);
}

const struct arch arch_refact = {
    .name = "refact",
    .rope = LLAMA_ROPE_TYPE_NONE,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
