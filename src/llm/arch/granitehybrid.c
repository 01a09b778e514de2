// granitehybrid: Granite 4 H: granite whose layers are Mamba-2 mixers but for a few of attention; positions only if a key says so.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS,
    K_SSM,
    K_SSM_GROUP,
    {"logit_scale", HP_f_logit_scale, "0", 0},
    {"residual_scale", HP_f_residual_scale, "0", 0},
    {"embedding_scale", HP_f_embd_scale, "0", 0},
    {"attention.scale", HP_f_attn_scale, "0", 0},
    {"expert_shared_feed_forward_length", HP_n_ff_shexp, "0", 0},
    {"rope.scaling.finetuned", HP_rope_finetuned, "1", 0},
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_ROPE_FREQS,
    T_NORM(attn_norm),
    T_MAMBA2(T_SCALE, "rec"),
    T_QKV_WHEN("!rec"),
    {SLOT_attn_output, "H*Dv,E", T_BIAS_OPT | T_SCALE, "!rec", 0, 0, 0},
    T_NORM(ffn_norm),
    T_FFN_ANY(T_BIAS_OPT, "X==0"),
    T_ROUTER("X>0"),
    T_EXPERTS_MERGED("F", 0, "X>0"),
    T_SHEXP("Fs", 0, "X>0&&Fs>0"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    arch_recurrent_by_kv(hp);
    for (int i = 0; i < hp->n_block; i++) hp->rope_layers[i] = hp->rope_finetuned != 0;
    TRY(arch_require(hp->ssm_inner == 2 * hp->n_embd, b, "the inner size must be twice the embedding's"));
    return arch_require(hp->ssm_group > 0 && hp->ssm_dt_rank > 0 && hp->ssm_dt_rank % hp->ssm_group == 0 &&
                            hp->ssm_inner % hp->ssm_dt_rank == 0,
                        b, "heads must divide the inner size and groups the heads");
}

static struct ggml_tensor *embed(struct graph *g) { return blk_embed(g, g->hp->f_embd_scale); }

static void head(struct graph *g, struct ggml_tensor *x) {
    const float ls = g->hp->f_logit_scale;
    blk_head(g, x, &(struct head_opts){.scale = ls != 0 ? 1.0f / ls : 0});
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    const struct form_opts o = {
        .recurrent = blk_mamba2, .residual = g->hp->f_residual_scale, .moe = {.gate = GATE_SOFTMAX, .norm = true}};
    return blk_pre_norm(g, l, x, il, &o);
}

const struct arch arch_granitehybrid = {
    .name = "granitehybrid",
    .flags = ARCH_HYBRID | ARCH_HF_PERMUTED,
    .rope = LLAMA_ROPE_TYPE_NORM,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .state_r = "(k-1)*(I+2*ng*N)",
    .state_s = "N*I",
    .nodes = 96,
    .embed = embed,
    .layer = layer,
    .head_fn = head,
};
