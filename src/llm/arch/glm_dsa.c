// glm-dsa: GLM-5: as deepseek32, with layers that reuse the last selection.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS,
    K_LEAD,
    {"attention.q_lora_rank", HP_n_lora_q, REQ, 0},
    {"attention.kv_lora_rank", HP_n_lora_kv, REQ, 0},
    {"attention.key_length_mla", HP_n_head_k_mla, REQ, 0},
    {"attention.value_length_mla", HP_n_head_v_mla, REQ, 0},
    K_FX(REQ),
    K_NSH(REQ),
    K_WSCALE,
    K_WNORM,
    K_GATING("0"),
    {"attention.indexer.head_count", HP_idx_head, REQ, 0},
    {"attention.indexer.key_length", HP_idx_dim, REQ, 0},
    {"attention.indexer.top_k", HP_idx_top_k, REQ, 0},
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    {SLOT_attn_q_a, "E,ql", 0, "ql>0", 0, 0, 0},
    {SLOT_attn_q_a_norm, "ql", 0, "ql>0", 0, 0, 0},
    {SLOT_attn_q_b, "ql,H*kd", 0, 0, 0, 0, 0},
    {SLOT_attn_kv_a_mqa, "E,r+R", 0, 0, 0, 0, 0},
    {SLOT_attn_kv_a_norm, "r", 0, 0, 0, 0, 0},
    {SLOT_attn_k_b, "kd-R,r,H", 0, 0, 0, 0, 0},
    {SLOT_attn_v_b, "r,vd,H", 0, 0, 0, 0, 0},
    {SLOT_attn_output, "H*vd,E", T_SCALE, 0, 0, 0, 0},
    {SLOT_idx_q_b, "ql,ni*di", T_OPT, 0, 0, 0, 0},
    {SLOT_idx_k, "E,di", T_OPT, 0, 0, 0, 0},
    {SLOT_idx_k_norm, "di", T_BIAS_OPT | T_OPT, 0, 0, 0, 0},
    {SLOT_idx_proj, "E,ni", T_OPT, 0, 0, 0, 0},
    T_NORM(ffn_norm),
    T_FFN_ANY(T_SCALE, "i<lead"),
    T_ROUTER("i>=lead"),
    T_EXP_PROBS_B(T_OPT, "i>=lead"),
    T_EXPERTS("Fx", T_SCALE, "i>=lead"),
    T_SHEXP("Fx*nsh", T_SCALE, "i>=lead"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    TRY(arch_require(hp->n_head_k_mla > hp->n_rot[0] && hp->n_head_v_mla > 0 && hp->n_head_kv[0] == 1, b,
                     "its latent attention must be in the absorbed form"));
    TRY(arch_require(hp->idx_dim >= hp->n_rot[0], b, "the indexer's keys must hold the rotary part"));
    hp->idx_rope = IDX_ROPE_NORMAL;
    if (!hp->expert_gating) hp->expert_gating = GATE_SIGMOID;
    int64_t types[MAX_LAYERS];
    int n;
    TRY(arch_key_ints(b, "attention.indexer.types", types, MAX_LAYERS, &n));
    for (int i = 0; i < hp->n_block; i++)
        hp->idx_full[i] = n > 1    ? i < n && types[i] != 0
                          : n == 1 ? types[0] != 0
                                   : hp->n_ctx_train < 1048576 || i < 2 || (i - 2) % 4 == 0;
    return ERR_OK;
}

static struct ggml_tensor *mixer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct mla_opts o = {.yarn_scale = true};
    if (g->hp->idx_full[il] && l->idx_k.w) g->sel = blk_mla_select(g, l, x, il, 0.0f);
    o.keep = g->sel;
    return blk_mla(g, l, x, il, &o);
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){.mixer = mixer, .moe = moe_of_file(g)});
}

const struct arch arch_glm_dsa = {
    .name = "glm-dsa",
    .rope = LLAMA_ROPE_TYPE_NORM,
    .cache_k = "r+R",
    .cache_v = "0",
    .cache_x = "idx*di",
    .nodes = 160,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
