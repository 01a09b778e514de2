// hy_v4: latent attention with sinks, gates and shared selections, experts, and residual streams that don't mix.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS,
    K_LEAD,
    K_Q_LORA(REQ),
    K_MLA_ABSORBED,
    K_FX(REQ),
    K_NSH(REQ),
    K_WSCALE,
    K_WNORM,
    K_GATING(REQ),
    {"swiglu_clamp_exp", HP_swiglu_clamp_exp, "0", 0},
    {"hyper_connection.count", HP_n_hc, REQ, 0},
    {"hyper_connection.epsilon", HP_hc_eps, REQ, 0},
    {"hyper_connection.magnitude", HP_hc_magnitude, REQ, 0},
    {"attention.indexer.head_count", HP_idx_head, "0", 0},
    {"attention.indexer.key_length", HP_idx_dim, "0", 0},
    {"attention.indexer.top_k", HP_idx_top_k, "0", 0},
    {NULL, 0, NULL, 0},
};

#define T_HYPER(branch)                                                                                                     \
    {SLOT_hc_##branch##_fn, "hc*E,2*hc", 0, 0, 0, 0, 0}, {SLOT_hc_##branch##_base, "2*hc", 0, 0, 0, 0, 0}, {                \
        SLOT_hc_##branch##_scale, "2", 0, 0, 0, 0, 0                                                                        \
    }

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_OWN,
    {SLOT_output_hc_fn, "hc*E,hc", 0, 0, 0, 0, 0},
    {SLOT_output_hc_base, "hc", 0, 0, 0, 0, 0},
    {SLOT_output_hc_scale, "1", 0, 0, 0, 0, 0},
    T_HYPER(attn),
    T_HYPER(ffn),
    T_NORM(attn_norm),
    T_MLA_ABSORBED(0, "1"),
    {SLOT_attn_gate, "E,H*vd", 0, 0, 0, 0, 0},
    {SLOT_attn_sinks, "H", 0, 0, 0, 0, 0},
    {SLOT_idx_q_b, "ql,ni*di", 0, "idx", 0, 0, 0},
    {SLOT_idx_k, "E,di", 0, "idx", 0, 0, 0},
    {SLOT_idx_k_norm, "di", T_BIAS, "idx", 0, 0, 0},
    {SLOT_idx_proj, "E,ni", 0, "idx", 0, 0, 0},
    T_NORM(ffn_norm),
    T_FFN_WHEN("i<lead"),
    T_ROUTER("i>=lead"),
    T_EXP_PROBS_B(T_OPT, "i>=lead"),
    T_EXPERTS("Fx", 0, "i>=lead"),
    T_SHEXP("Fx*nsh", 0, "i>=lead"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    TRY(arch_require(hp->n_hc >= 1, b, "its residual has no streams"));
    TRY(arch_require(hp->n_lora_q > 0 && hp->n_head_kv[0] == 1 && hp->n_head_k_mla > hp->n_rot[0], b,
                     "its latent attention must be in the absorbed form"));
    hp->idx_rope = IDX_ROPE_NORMAL_LAST;
    if (hp->idx_top_k <= 0) return ERR_OK;  // no selection: all layers attend to everything
    TRY(arch_require(hp->idx_head > 0 && hp->idx_dim > hp->n_rot[0], b,
                     "the indexer's keys must be larger than their rotary part"));
    int64_t types[MAX_LAYERS];
    int n;
    TRY(arch_key_ints(b, "attention.indexer.types", types, MAX_LAYERS, &n));
    TRY(arch_require((n == 1 || n == hp->n_block) && types[0] == 1, b,
                     "attention.indexer.types must say which layers select, the first one among them"));
    for (int i = 0; i < hp->n_block; i++) hp->idx_full[i] = types[n == 1 ? 0 : i] != 0;
    return ERR_OK;
}

static struct ggml_tensor *embed(struct graph *g) { return blk_hc_begin(g, blk_embed(g, 0)); }

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    const struct hparams *hp = g->hp;
    const struct hc_weights attn = {&l->hc_attn_fn, &l->hc_attn_base, &l->hc_attn_scale},
                            ffn = {&l->hc_ffn_fn, &l->hc_ffn_base, &l->hc_ffn_scale};
    struct ggml_tensor *mix, *n = blk_norm(g, blk_hc_in(g, x, &attn, &mix), &l->attn_norm, NORM_RMS);
    if (hp->idx_full[il]) g->sel = blk_mla_select(g, l, n, il, hp->eps);
    struct ggml_tensor *cur =
        blk_mla(g, l, n, il, &(struct mla_opts){.gate = &l->attn_gate, .sinks = l->attn_sinks.w, .keep = g->sel});
    blk_select3(g, il, &cur, &x, &mix);
    x = blk_hc_out(g, x, cur, mix, &attn);
    n = blk_norm(g, blk_hc_in(g, x, &ffn, &mix), &l->ffn_norm, NORM_RMS);
    const struct moe_opts moe = {
        .norm = hp->expert_weights_norm, .wscale = hp->expert_weights_scale, .act = {.clamp = hp->swiglu_clamp_exp[il]}};
    return blk_hc_out(g, x, blk_network(g, l, n, il, &(struct form_opts){.moe = moe}), mix, &ffn);
}

static void head(struct graph *g, struct ggml_tensor *x) { blk_head(g, blk_hc_end(g, x), &(struct head_opts){0}); }

const struct arch arch_hy_v4 = {
    .name = "hy_v4",
    .rope = LLAMA_ROPE_TYPE_NORM,
    .cache_k = "r+R",
    .cache_v = "0",
    .cache_x = "idx*di",
    .nodes = 200,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .embed = embed,
    .layer = layer,
    .head_fn = head,
};
