// falcon: Falcon 7B, 40B and 180B; attention and network side by side, with one norm (7B) or two.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_LN, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM_B,
    T_OUT_TIED,
    T_NORM_B(attn_norm),
    {SLOT_attn_norm_2, "E", T_OPT | T_BIAS_OPT, 0, 0, 0, 0},
    {SLOT_attn_qkv, "E,E+2*K*D", T_SCALE, 0, 0, 0, 0},
    {SLOT_attn_output, "E,E", T_SCALE, 0, 0, 0, 0},
    {SLOT_ffn_up, "E,F", 0, 0, 0, 0, 0},
    {SLOT_ffn_down, "F,E", 0, 0, 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) { return arch_whole_rotary(hp, b); }

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *n = blk_norm(g, x, &l->attn_norm, NORM_LN);
    struct ggml_tensor *seen =
        l->attn_norm_2.w ? blk_norm(g, x, &l->attn_norm_2, NORM_LN) : n;  // the network takes the first norm
    struct ggml_tensor *cur = blk_self_attn(g, l, seen, il, &(struct attn_opts){0});
    blk_select3(g, il, &cur, &x, &n);
    struct ggml_tensor *ffn = blk_ffn_layer(g, l, n, ACT_GELU);
    return ggml_add(g->ctx, ggml_add(g->ctx, cur, x), ffn);
}

const struct arch arch_falcon = {
    .name = "falcon",
    .flags = ARCH_COARSE,
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .norm = NORM_LN,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
