// mamba: selective state spaces alone, no attention and no feed-forward network (Gu and Dao 2023, arXiv 2312.00752).
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, K_SSM, {"ssm.dt_b_c_rms", HP_ssm_dt_b_c_rms, "0", 0}, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    {SLOT_ssm_in, "E,2*I", T_SCALE, 0, 0, 0, 0},
    {SLOT_ssm_conv1d, "k,I", T_BIAS, 0, 0, 0, 0},
    {SLOT_ssm_x, "I,nh+2*N", 0, 0, 0, 0, 0},
    {SLOT_ssm_dt, "nh,I", T_BIAS, 0, 0, 0, 0},
    {SLOT_ssm_a, "N,I", T_NO_SUFFIX, 0, 0, 0, 0},
    {SLOT_ssm_d, "I", T_NO_SUFFIX, 0, 0, 0, 0},
    {SLOT_ssm_out, "I,E", T_SCALE, 0, 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    hparams_set(hp, HP_is_recr, -1, 1);
    return arch_require(hp->ssm_inner == 2 * hp->n_embd, b, "the inner size must be twice the embedding's");
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *cur = blk_mamba1(g, l, blk_norm(g, x, &l->attn_norm, NORM_RMS), il);
    blk_select(g, il, &cur, &x);
    return ggml_add(g->ctx, cur, x);
}

const struct arch arch_mamba = {
    .name = "mamba",
    .rope = LLAMA_ROPE_TYPE_NONE,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .state_r = "(k-1)*I",
    .state_s = "N*I",
    .layer = layer,
};
