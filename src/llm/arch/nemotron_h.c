// nemotron_h and nemotron_h_moe: every layer is one thing only: a Mamba-2 mixer, attention, or a network (arXiv 2504.03624). No positions.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    {"attention.layer_norm_epsilon", HP_eps_ln, REQ, 0},
    {"attention.layer_norm_rms_epsilon", HP_eps, "epsln", 0},
    K_SSM,
    K_SSM_GROUP,
    {"expert_used_count", HP_n_expert_used, "0", 0},
    {"expert_feed_forward_length", HP_n_ff_exp, "F/U", KEY_ZERO_ABSENT},
    {"expert_shared_feed_forward_length", HP_n_ff_shexp, "0", 0},
    {"moe_latent_size", HP_n_expert_latent, "0", 0},
    K_WNORM,
    K_WSCALE,
    {NULL, 0, NULL, 0},
};

#define ATTENDS "!rec&&F==0"
#define EXPERTS "F>0&&X>0"

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_MAMBA2(T_SCALE, "rec"),
    T_QKV_WHEN(ATTENDS),
    {SLOT_attn_output, "H*D,E", T_BIAS_OPT | T_SCALE, ATTENDS, 0, 0, 0},
    {SLOT_ffn_up, "E,F", T_BIAS_OPT | T_SCALE, "F>0&&X==0", 0, 0, 0},
    {SLOT_ffn_down, "F,E", T_BIAS_OPT | T_SCALE, "F>0&&X==0", 0, 0, 0},
    T_ROUTER(EXPERTS),
    T_EXP_PROBS_B(0, EXPERTS),
    {SLOT_ffn_up_exps, "m+(m==0)*E,Fx,X", T_SCALE, EXPERTS, 0, 0, 0},
    {SLOT_ffn_down_exps, "Fx,m+(m==0)*E,X", T_SCALE, EXPERTS, 0, 0, 0},
    {SLOT_ffn_up_shexp, "E,Fs", T_SCALE, EXPERTS "&&Fs>0", 0, 0, 0},
    {SLOT_ffn_down_shexp, "Fs,E", T_SCALE, EXPERTS "&&Fs>0", 0, 0, 0},
    {SLOT_ffn_latent_down, "E,m", 0, EXPERTS "&&m>0", 0, 0, 0},
    {SLOT_ffn_latent_up, "m,E", 0, EXPERTS "&&m>0", 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    for (int i = 0; i < hp->n_block; i++) hp->is_recr[i] = hp->n_ff[i] == 0 && hp->n_head_kv[i] == 0;
    return arch_require(hp->ssm_group > 0 && hp->ssm_dt_rank > 0 && hp->ssm_dt_rank % hp->ssm_group == 0 &&
                            hp->ssm_inner % hp->ssm_dt_rank == 0,
                        b, "heads must divide the inner size and groups the heads");
}

// The router sees the whole row, the experts its projection where the model has one.
static struct ggml_tensor *experts(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    const struct hparams *hp = g->hp;
    struct ggml_tensor *z = l->ffn_latent_down.w ? blk_linear(g, &l->ffn_latent_down, x) : x;
    struct ggml_tensor *y = blk_moe(g, l, z, il,
                                    &(struct moe_opts){.gate = GATE_SIGMOID,
                                                       .norm = hp->expert_weights_norm,
                                                       .router_x = x,
                                                       .wscale = hp->expert_weights_scale,
                                                       .act = {.act = ACT_RELU2}});
    if (l->ffn_latent_up.w) y = blk_linear(g, &l->ffn_latent_up, y);
    return l->ffn_up_shexp.w ? ggml_add(g->ctx, y, blk_shared_expert(g, l, x, &(struct act_opts){.act = ACT_RELU2})) : y;
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *cur = blk_norm(g, x, &l->attn_norm, NORM_RMS);
    const bool network = g->hp->n_ff[il] > 0;
    if (network) blk_select(g, il, &cur, &x);
    if (network)
        cur = l->ffn_gate_inp.w ? experts(g, l, cur, il) : blk_ffn_layer(g, l, cur, ACT_RELU2);
    else if (g->hp->is_recr[il])
        cur = blk_mamba2(g, l, cur, il);
    else
        cur = blk_self_attn(g, l, cur, il, &(struct attn_opts){0});
    blk_select(g, il, &cur, &x);
    return ggml_add(g->ctx, cur, x);
}

#define NEMOTRON_H(id)                                                                                                      \
    const struct arch arch_##id = {                                                                                         \
        .name = #id,                                                                                                        \
        .flags = ARCH_HYBRID,                                                                                               \
        .rope = LLAMA_ROPE_TYPE_NONE,                                                                                       \
        .keys = keys,                                                                                                       \
        .tensors = tensors,                                                                                                 \
        .setup = setup,                                                                                                     \
        .cache_k = "(F==0)*K*D",                                                                                            \
        .cache_v = "(F==0)*K*Dv",                                                                                           \
        .state_r = "(k-1)*(I+2*ng*N)",                                                                                      \
        .state_s = "N*I",                                                                                                   \
        .layer = layer,                                                                                                     \
    }

NEMOTRON_H(nemotron_h);
NEMOTRON_H(nemotron_h_moe);
