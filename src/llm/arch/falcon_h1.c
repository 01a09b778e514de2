// falcon-h1: in every layer attention and a Mamba-2 mixer side by side on the same input.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, K_SSM, K_SSM_GROUP, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_QKV,
    T_O,
    {SLOT_ssm_in, "E,2*I+2*ng*N+nh", T_SCALE, 0, 0, 0, 0},
    {SLOT_ssm_conv1d, "k,I+2*ng*N", T_BIAS_OPT, 0, 0, 0, 0},
    {SLOT_ssm_dt, "1,nh", T_BIAS_ONLY, 0, 0, 0, 0},
    {SLOT_ssm_a, "1,nh", T_NO_SUFFIX, 0, 0, 0, 0},
    {SLOT_ssm_d, "1,nh", T_NO_SUFFIX, 0, 0, 0, 0},
    {SLOT_ssm_norm, "I/ng,ng", T_OPT, 0, 0, 0, 0},
    {SLOT_ssm_out, "I,E", T_SCALE, 0, 0, 0, 0},
    {SLOT_ffn_norm, "E", T_NO_SUFFIX, 0, 0, 0, 0},
    T_FFN_ANY(T_BIAS_OPT, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    hparams_set(hp, HP_is_recr, -1, 1);
    return arch_require(hp->ssm_group > 0 && hp->ssm_dt_rank % hp->ssm_group == 0 && hp->ssm_inner % hp->ssm_dt_rank == 0, b,
                        "heads must divide the inner size and groups the heads");
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *h = blk_norm(g, x, &l->attn_norm, NORM_RMS);
    struct ggml_tensor *cur = ggml_add(g->ctx, blk_self_attn(g, l, h, il, &(struct attn_opts){0}), blk_mamba2(g, l, h, il));
    blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, cur, x);
    cur = blk_ffn_layer(g, l, blk_norm(g, x, &l->ffn_norm, NORM_RMS), ACT_SILU);
    return ggml_add(g->ctx, cur, x);
}

const struct arch arch_falcon_h1 = {
    .name = "falcon-h1",
    .flags = ARCH_HYBRID,
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .cache_k = "K*D",
    .state_r = "(k-1)*(I+2*ng*N)",
    .state_s = "N*I",
    .nodes = 96,
    .layer = layer,
};
