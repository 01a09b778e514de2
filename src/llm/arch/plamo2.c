// plamo2: Mamba mixers, whose step sizes are per head, alternate with attention; norms on both sides of every branch.
#include "arch/arch.h"

#include <math.h>

static const struct arch_key keys[] = {K_RMS, K_SSM, {"ssm.group_count", HP_ssm_group, "0", 0}, {NULL, 0, NULL, 0}};

#define DT "max(64,floor(E/16))"

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_NORM(ffn_norm),
    {SLOT_post_attn_norm, "E", T_NO_SUFFIX, 0, 0, 0, 0},
    {SLOT_post_ffw_norm, "E", T_NO_SUFFIX, 0, 0, 0, 0},
    {SLOT_ffn_up, "E,2*F", 0, 0, 0, 0, 0},
    {SLOT_ffn_down, "F,E", 0, 0, 0, 0, 0},
    {SLOT_ssm_in, "E,2*I", 0, "rec", 0, 0, 0},
    {SLOT_ssm_conv1d, "k,I", 0, "rec", 0, 0, 0},
    {SLOT_ssm_x, "I," DT "+2*N", 0, "rec", 0, 0, 0},
    {SLOT_ssm_dt, DT ",nh", T_BIAS, "rec", 0, 0, 0},
    {SLOT_ssm_a, "nh", T_NO_SUFFIX, "rec", 0, 0, 0},
    {SLOT_ssm_d, "nh", T_NO_SUFFIX, "rec", 0, 0, 0},
    {SLOT_ssm_out, "I,E", 0, "rec", 0, 0, 0},
    {SLOT_ssm_dt_norm, DT, T_NO_SUFFIX, "rec", 0, 0, 0},
    {SLOT_ssm_b_norm, "N", T_NO_SUFFIX, "rec", 0, 0, 0},
    {SLOT_ssm_c_norm, "N", T_NO_SUFFIX, "rec", 0, 0, 0},
    {SLOT_attn_qkv, "E,H*D+K*D+K*Dv", 0, "!rec", 0, 0, 0},
    {SLOT_attn_q_norm, "D,H", 0, "!rec", 0, 0, 0},
    {SLOT_attn_k_norm, "D,K", 0, "!rec", 0, 0, 0},
    T_O_WHEN("!rec"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    arch_recurrent_by_kv(hp);
    TRY(arch_require(hp->ssm_group == 0, b, "its mixers have no groups"));
    return arch_require(hp->ssm_dt_rank > 0 && hp->ssm_inner % hp->ssm_dt_rank == 0, b, "heads must divide the inner size");
}

// Rows of ssm_in are [z, x] per head, those of ssm_x B, C, dt.
static struct ggml_tensor *mixer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_context *c = g->ctx;
    const struct hparams *hp = g->hp;
    const int64_t n_in = hp->ssm_inner, n = hp->ssm_state, nh = hp->ssm_dt_rank, hd = n_in / nh, t = x->ne[1];
    const int64_t n_dt = l->ssm_dt.w->ne[0];
    struct ggml_tensor *zx = ggml_reshape_3d(c, blk_linear(g, &l->ssm_in, x), 2 * hd, nh, t);
    struct ggml_tensor *z = ggml_cont_2d(c, ggml_view_3d(c, zx, hd, nh, t, zx->nb[1], zx->nb[2], 0), n_in, t);
    struct ggml_tensor *u =
        ggml_cont_2d(c, ggml_view_3d(c, zx, hd, nh, t, zx->nb[1], zx->nb[2], (size_t) hd * sizeof(float)), n_in, t);
    u = ggml_silu(c, blk_conv(g, blk_by_seq(g, u), l->ssm_conv1d.w, il, 0));
    u = ggml_reshape_2d(c, u, n_in, t);
    struct ggml_tensor *p = blk_linear(g, &l->ssm_x, u);
    struct ggml_tensor *b = blk_norm(g, blk_columns(g, p, n, 1, 0), &l->ssm_b_norm, NORM_RMS);
    struct ggml_tensor *cc = blk_norm(g, blk_columns(g, p, n, 1, n), &l->ssm_c_norm, NORM_RMS);
    struct ggml_tensor *dt = ggml_view_2d(c, p, n_dt, t, p->nb[1], (size_t) (2 * n) * sizeof(float));
    dt = blk_by_seq(g, blk_linear(g, &l->ssm_dt, blk_norm(g, dt, &l->ssm_dt_norm, NORM_RMS)));
    u = blk_columns(g, u, hd, nh, 0);
    struct ggml_tensor *y = blk_ssm_scan(g, il, u, dt, ggml_reshape_2d(c, l->ssm_a.w, 1, nh), b, cc);
    y = ggml_add(c, y, ggml_mul(c, u, ggml_reshape_2d(c, l->ssm_d.w, 1, nh)));
    return blk_linear(g, &l->ssm_out, ggml_swiglu_split(c, z, ggml_reshape_2d(c, y, n_in, t)));
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    const struct form_opts o = {
        .recurrent = mixer,
        .attn = {.qk_norm = QK_NORM_HEAD, .scale = 1.0f / sqrtf((float) g->hp->n_embd_head_v[il])},
    };
    return blk_sandwich(g, l, x, il, &o);
}

const struct arch arch_plamo2 = {
    .name = "plamo2",
    .flags = ARCH_HYBRID,
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .state_r = "(k-1)*I",
    .state_s = "N*I",
    .layer = layer,
};
