// kimi-k3: kimi-linear whose layers read a learned mixture of earlier residuals; experts work in a narrower space.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS,
    K_Q_LORA("0"),
    K_MLA_ABSORBED,
    K_KDA,
    K_LEAD,
    K_FX(REQ),
    K_NSH(REQ),
    K_WSCALE,
    K_WNORM,
    K_GATING(REQ),
    {"expert_latent_length", HP_n_expert_latent, "0", 0},
    {"attn_res.block_size", HP_res_block, REQ, 0},
    {"activation.situ_beta", HP_situ_beta, REQ, 0},
    {"activation.situ_linear_beta", HP_situ_linear_beta, REQ, 0},
    {"kda.gate_lower_bound", HP_kda_gate_lower, "0", 0},
    {NULL, 0, NULL, 0},
};

#define EXPERTS "i>=lead"

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_OWN,
    {SLOT_output_res_score, "E", 0, "rblk>0", 0, 0, 0},
    {SLOT_attn_res_score, "E", 0, "rblk>0", 0, 0, 0},
    {SLOT_ffn_res_score, "E", 0, "rblk>0", 0, 0, 0},
    T_NORM(attn_norm),
    T_MLA_ABSORBED(0, "!rec"),
    {SLOT_attn_gate, "E,H*vd", T_OPT, "!rec", 0, 0, 0},
    T_KDA,
    {SLOT_ssm_f_a, "E,kdad", 0, "rec", 0, 0, 0},
    {SLOT_ssm_f_b, "kdad,H*kdad", 0, "rec", 0, 0, 0},
    {SLOT_ssm_g, "E,H*kdad", 0, "rec", 0, 0, 0},
    T_NORM(ffn_norm),
    T_FFN_WHEN("i<lead"),
    T_ROUTER(EXPERTS),
    T_EXP_PROBS_B(0, EXPERTS),
    {SLOT_ffn_gate_exps, "m+(m==0)*E,Fx,X", 0, EXPERTS, 0, 0, 0},
    {SLOT_ffn_up_exps, "m+(m==0)*E,Fx,X", 0, EXPERTS, 0, 0, 0},
    {SLOT_ffn_down_exps, "Fx,m+(m==0)*E,X", 0, EXPERTS, 0, 0, 0},
    {SLOT_ffn_routed_down, "E,m", 0, EXPERTS "&&m>0", 0, 0, 0},
    {SLOT_ffn_routed_up, "m,E", 0, EXPERTS "&&m>0", 0, 0, 0},
    {SLOT_ffn_routed_norm, "m", T_OPT, EXPERTS "&&m>0", 0, 0, 0},
    T_SHEXP("Fx*max(1,nsh)", T_OPT, EXPERTS),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

// The bank of earlier residuals [E, n, T] (arch_state) and c, weighed by what their scores say, the rows themselves unnormed.
static struct ggml_tensor *mixture(struct graph *g, struct ggml_tensor *x, const struct weight *score) {
    struct ggml_context *c = g->ctx;
    struct ggml_tensor *bank = g->arch_state;
    if (!bank) return x;
    const int64_t e = x->ne[0], t = x->ne[1], n = bank->ne[1] + 1;
    struct ggml_tensor *all = ggml_concat(c, bank, ggml_reshape_3d(c, x, e, 1, t), 1);
    struct ggml_tensor *s =
        ggml_mul_mat(c, ggml_reshape_2d(c, score->w, e, 1), ggml_reshape_2d(c, ggml_rms_norm(c, all, g->hp->eps), e, n * t));
    return ggml_dsv4_hc_pre(c, all, ggml_soft_max(c, ggml_reshape_2d(c, s, n, t)));
}

static void remember(struct graph *g, struct ggml_tensor *x) {
    struct ggml_tensor *one = ggml_reshape_3d(g->ctx, x, x->ne[0], 1, x->ne[1]);
    g->arch_state = g->arch_state ? ggml_concat(g->ctx, g->arch_state, one, 1) : one;
}

static struct ggml_tensor *mixer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    if (!g->hp->is_recr[il]) return blk_mla(g, l, x, il, &(struct mla_opts){.no_rope = true, .gate = &l->attn_gate});
    return blk_kda(g, l, x, il, &(struct kda_opts){.gate = blk_linear(g, &l->ssm_g, x), .lower = g->hp->kda_gate_lower});
}

static struct ggml_tensor *network(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    const struct hparams *hp = g->hp;
    const struct act_opts act = {.act = ACT_SITU};
    if (!l->ffn_gate_inp.w) return blk_ffn_layer(g, l, x, ACT_SITU);
    const struct moe_opts o = {
        .norm = hp->expert_weights_norm, .wscale = hp->expert_weights_scale, .router_x = x, .act = act};
    struct ggml_tensor *y = blk_moe(g, l, l->ffn_routed_down.w ? blk_linear(g, &l->ffn_routed_down, x) : x, il, &o);
    if (l->ffn_routed_norm.w) y = blk_norm(g, y, &l->ffn_routed_norm, NORM_RMS);
    if (l->ffn_routed_up.w) y = blk_linear(g, &l->ffn_routed_up, y);
    return l->ffn_up_shexp.w ? ggml_add(g->ctx, y, blk_shared_expert(g, l, x, &act)) : y;
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_context *c = g->ctx;
    const struct hparams *hp = g->hp;
    if (il == 0) g->arch_state = NULL;
    struct ggml_tensor *cur = mixture(g, x, &l->attn_res_score);
    const bool kept = hp->res_block > 0 && il % hp->res_block == 0;
    if (kept) remember(g, x);
    cur = mixer(g, l, blk_norm(g, cur, &l->attn_norm, NORM_RMS), il);
    struct ggml_tensor *bank = g->arch_state,
                       *rows = bank ? ggml_reshape_2d(c, bank, bank->ne[0] * bank->ne[1], bank->ne[2]) : NULL;
    blk_select3(g, il, &cur, &x, &rows);
    if (rows) g->arch_state = ggml_reshape_3d(c, rows, bank->ne[0], bank->ne[1], rows->ne[1]);
    x = kept ? cur : ggml_add(c, cur, x);
    cur = blk_norm(g, mixture(g, x, &l->ffn_res_score), &l->ffn_norm, NORM_RMS);
    return ggml_add(c, network(g, l, cur, il), x);
}

static void head(struct graph *g, struct ggml_tensor *x) {
    blk_head(g, mixture(g, x, &g->w->output_res_score), &(struct head_opts){.norm = NORM_RMS});
}

const struct arch arch_kimi_k3 = {
    .name = "kimi-k3",
    .flags = ARCH_HYBRID,
    .rope = LLAMA_ROPE_TYPE_NONE,
    .keys = keys,
    .tensors = tensors,
    .setup = arch_kda,
    .cache_k = "(rec==0)*(r+R)",
    .cache_v = "0",
    .state_r = "3*(k-1)*H*kdad",
    .state_s = "H*kdad*kdad",
    .nodes = 192,
    .layer = layer,
    .head_fn = head,
};
