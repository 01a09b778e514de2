// glm5-next: Kimi delta attention and latent attention over pools of positions, chosen by an indexer; the residual is several streams.
#include "arch/arch.h"

#include <math.h>

static const struct arch_key keys[] = {
    K_RMS,
    {"attention.layer_norm_epsilon", HP_eps_ln, "0", 0},
    K_Q_LORA(REQ),
    K_MLA_ABSORBED,
    K_KDA,
    K_LEAD,
    {"expert_feed_forward_length", HP_n_ff_exp, REQ, 0},
    K_NSH(REQ),
    K_WSCALE,
    K_WNORM,
    K_GATING("2"),
    {"kda.gate_lower_bound", HP_kda_gate_lower, "0", 0},
    {"swiglu_clamp_exp", HP_swiglu_clamp_exp, "0", 0},
    {"swiglu_clamp_shexp", HP_swiglu_clamp_shexp, "clexp", 0},
    {"attention.indexer.head_count", HP_idx_head, REQ, 0},
    {"attention.indexer.key_length", HP_idx_dim, REQ, 0},
    {"attention.indexer.top_k", HP_idx_top_k, REQ, 0},
    {"attention.indexer.kpool", HP_idx_pool, REQ, 0},
    {"attention.indexer.kpool_select_tail", HP_idx_pool_tail, "1", 0},
    {"attention.indexer.types", HP_idx_full, "1", 0},
    {"hyper_connection.count", HP_n_hc, REQ, 0},
    {"hyper_connection.epsilon", HP_hc_eps, REQ, 0},
    {"hyper_connection.sinkhorn_iterations", HP_hc_iter, REQ, 0},
    {NULL, 0, NULL, 0},
};

#define SELECTS "!rec&&idx"
#define HC(slot)                                                                                                            \
    {SLOT_##slot##_fn, "hc*E,(2+hc)*hc", 0, 0, 0, 0, 0}, {SLOT_##slot##_base, "(2+hc)*hc", 0, 0, 0, 0, 0}, {                \
        SLOT_##slot##_scale, "3", 0, 0, 0, 0, 0                                                                             \
    }

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_OWN,
    T_NORM(attn_norm),
    T_MLA_ABSORBED(0, "!rec"),
    T_KDA,
    {SLOT_ssm_f_a, "E,kdad", 0, "rec", 0, 0, 0},
    {SLOT_ssm_f_b, "kdad,H*kdad", 0, "rec", 0, 0, 0},
    {SLOT_ssm_g_a, "E,kdad", 0, "rec", 0, 0, 0},
    {SLOT_ssm_g_b, "kdad,H*kdad", 0, "rec", 0, 0, 0},
    {SLOT_idx_q_b, "ql,ni*di", 0, SELECTS, 0, 0, 0},
    {SLOT_idx_k, "E,di", 0, SELECTS, 0, 0, 0},
    {SLOT_idx_k_norm, "di", T_BIAS, SELECTS, 0, 0, 0},
    {SLOT_idx_proj, "E,ni", 0, SELECTS, 0, 0, 0},
    {SLOT_idx_compressor_gate, "E,di", 0, SELECTS, 0, 0, 0},
    {SLOT_idx_compressor_ape, "di,kp", 0, SELECTS, 0, 0, 0},
    HC(hc_attn),
    HC(hc_ffn),
    T_NORM(ffn_norm),
    T_FFN_WHEN("i<lead"),
    T_ROUTER("i>=lead"),
    T_EXP_PROBS_B(0, "i>=lead"),
    T_EXPERTS("Fx", 0, "i>=lead"),
    T_SHEXP("Fx*nsh", 0, "i>=lead&&nsh>0"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    TRY(arch_kda(hp, b));
    TRY(arch_require(hp->n_rot[0] == 0, b, "it has rotary dimensions"));
    TRY(arch_require(hp->n_hc == 4 && hp->hc_iter > 0, b, "the residual's streams aren't four, or are never balanced"));
    TRY(arch_require(hp->idx_pool > 1 && hp->idx_top_k % hp->idx_pool == 0 && hp->idx_top_k > 0, b,
                     "pools don't divide the positions that are chosen"));
    TRY(arch_require(CELL_BLOCK % hp->idx_pool == 0, b, "pools don't divide the blocks of the cache"));
    bool selected = false;
    for (int i = 0; i < hp->n_layer; i++) {
        if (hp->is_recr[i]) continue;
        selected |= hp->idx_full[i] != 0;
        TRY(arch_require(selected, b, "a layer is to reuse a choice of positions that none made before it"));
    }
    return ERR_OK;
}

// Keys of all pools [di, n_pool] from the cached rows [key | gate] of their members: per channel a softmax over members.
static struct ggml_tensor *pool_keys(struct graph *g, struct ggml_tensor *rows, struct ggml_tensor *ape) {
    struct ggml_context *c = g->ctx;
    const int64_t d = ape->ne[0], n = ape->ne[1], n_pool = rows->ne[1] / n;
    struct ggml_tensor *half[2];
    for (int i = 0; i < 2; i++)
        half[i] =
            ggml_view_3d(c, rows, d, n, n_pool, rows->nb[1], rows->nb[1] * (size_t) n, (size_t) (i * d) * sizeof(float));
    struct ggml_tensor *w = ggml_cont(c, ggml_permute(c, ggml_add(c, half[1], ape), 1, 0, 2, 3));  // [n, di, n_pool]
    w = ggml_mul(c, ggml_soft_max(c, w), ggml_cont(c, ggml_permute(c, half[0], 1, 0, 2, 3)));
    return blk_f16_rounded(g, ggml_reshape_2d(c, ggml_sum_rows(c, w), d, n_pool));
}

// Which positions the layer looks at; low: the compressed query.
static struct ggml_tensor *choose(struct graph *g, const struct layer *l, struct ggml_tensor *x, struct ggml_tensor *low,
                                  int il) {
    struct ggml_context *c = g->ctx;
    const struct hparams *hp = g->hp;
    const int64_t d = hp->idx_dim, n = hp->idx_head, t = x->ne[1];
    struct ggml_tensor *key = blk_norm_eps(g, blk_linear(g, &l->idx_k, x), &l->idx_k_norm, NORM_LN, hp->eps_ln);
    struct ggml_tensor *rows = ggml_concat(c, key, blk_linear(g, &l->idx_compressor_gate, x), 0);
    rows = blk_cache_extra(g, blk_f16_rounded(g, rows), il);
    struct ggml_tensor *q = ggml_reshape_3d(c, blk_linear(g, &l->idx_q_b, low), d, n, t);
    struct ggml_tensor *w = ggml_scale(c, blk_linear(g, &l->idx_proj, x), 1.0f / sqrtf((float) (d * n)));
    struct ggml_tensor *s = attn_index_scores(g, q, pool_keys(g, rows, l->idx_compressor_ape.w), w);
    return attn_keep_pools(g, s, il, hp->idx_pool, hp->idx_top_k / hp->idx_pool, hp->idx_pool_tail != 0);
}

static struct ggml_tensor *mixer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    const struct hparams *hp = g->hp;
    if (hp->is_recr[il]) {
        const struct kda_opts o = {
            .gate = blk_linear(g, &l->ssm_g_b, blk_linear(g, &l->ssm_g_a, x)),
            .lower = hp->kda_gate_lower,
            .l2_eps = 1e-6f,
        };
        return blk_kda(g, l, x, il, &o);
    }
    if (l->idx_k.w) g->sel = choose(g, l, x, blk_norm(g, blk_linear(g, &l->attn_q_a, x), &l->attn_q_a_norm, NORM_RMS), il);
    return blk_mla(g, l, x, il, &(struct mla_opts){.no_rope = true, .keep = g->sel});
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    const struct hparams *hp = g->hp;
    const struct hc_weights attn = {&l->hc_attn_fn, &l->hc_attn_base, &l->hc_attn_scale},
                            ffn = {&l->hc_ffn_fn, &l->hc_ffn_base, &l->hc_ffn_scale};
    struct ggml_tensor *mix, *cur = blk_hc_in(g, x, &attn, &mix);
    cur = mixer(g, l, blk_norm(g, cur, &l->attn_norm, NORM_RMS), il);
    blk_select3(g, il, &cur, &x, &mix);
    x = blk_hc_out(g, x, cur, mix, &attn);
    cur = blk_norm(g, blk_hc_in(g, x, &ffn, &mix), &l->ffn_norm, NORM_RMS);
    const struct form_opts o = {
        .act = {.clamp = hp->swiglu_clamp_shexp[il]},
        .moe = {.norm = hp->expert_weights_norm,
                .wscale = hp->expert_weights_scale,
                .act = {.clamp = hp->swiglu_clamp_exp[il]}},
    };
    return blk_hc_out(g, x, blk_network(g, l, cur, il, &o), mix, &ffn);
}

static struct ggml_tensor *embed(struct graph *g) { return blk_hc_begin(g, blk_embed(g, 0)); }

static void head(struct graph *g, struct ggml_tensor *x) {
    blk_head(g, blk_hc_mean(g, x), &(struct head_opts){.norm = NORM_RMS});
}

const struct arch arch_glm5_next = {
    .name = "glm5-next",
    .flags = ARCH_HYBRID,
    .rope = LLAMA_ROPE_TYPE_NONE,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .cache_k = "(rec==0)*r",
    .cache_v = "0",
    .cache_x = "(rec==0&&idx)*2*di",
    .state_r = "3*(k-1)*H*kdad",
    .state_s = "H*kdad*kdad",
    .nodes = 256,
    .embed = embed,
    .layer = layer,
    .head_fn = head,
};
