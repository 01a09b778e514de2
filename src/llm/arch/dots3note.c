// dots3note: latent attention of two geometries: full layers attend to what an indexer selects, the others to a window.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS,
    K_LEAD,
    K_Q_LORA(REQ),
    K_MLA_ABSORBED,
    {"attention.kv_lora_rank_swa", HP_n_lora_kv_swa, REQ, 0},
    {"attention.key_length_mla_swa", HP_n_head_k_mla_swa, REQ, 0},
    {"attention.value_length_mla_swa", HP_n_head_v_mla_swa, REQ, 0},
    K_SWA_REQ,
    K_ROPE_SWA(REQ),
    K_FX(REQ),
    K_NSH(REQ),
    K_WSCALE,
    K_WNORM,
    K_GATING(REQ),
    {"attention.indexer.head_count", HP_idx_head, REQ, 0},
    {"attention.indexer.key_length", HP_idx_dim, REQ, 0},
    {"attention.indexer.top_k", HP_idx_top_k, REQ, 0},
    {NULL, 0, NULL, 0},
};

#define GEOMETRY(r, kd, vd, cond)                                                                                           \
    {SLOT_attn_q_b, "ql,H*" kd, 0, cond, 0, 0, 0}, {SLOT_attn_kv_a_mqa, "E," r "+R", 0, cond, 0, 0, 0},                     \
        {SLOT_attn_kv_a_norm, r, 0, cond, 0, 0, 0}, {SLOT_attn_k_b, kd "-R," r ",H", 0, cond, 0, 0, 0},                     \
        {SLOT_attn_v_b, r "," vd ",H", 0, cond, 0, 0, 0}, {                                                                 \
        SLOT_attn_output, "H*" vd ",E", T_SCALE, cond, 0, 0, 0                                                              \
    }

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    {SLOT_attn_q_a, "E,ql", 0, 0, 0, 0, 0},
    {SLOT_attn_q_a_norm, "ql", 0, 0, 0, 0, 0},
    GEOMETRY("r", "kd", "vd", "!swa"),
    GEOMETRY("rw", "kdw", "vdw", "swa"),
    {SLOT_attn_k_norm, "R", 0, 0, 0, 0, 0},
    {SLOT_attn_gate, "E,H", 0, 0, 0, 0, 0},
    {SLOT_idx_q_b, "ql,ni*di", 0, "!swa", 0, 0, 0},
    {SLOT_idx_k, "E,di", 0, "!swa", 0, 0, 0},
    {SLOT_idx_k_norm, "di", T_BIAS, "!swa", 0, 0, 0},
    {SLOT_idx_proj, "E,ni", 0, "!swa", 0, 0, 0},
    T_NORM(ffn_norm),
    T_FFN_ANY(T_SCALE, "i<lead"),
    T_ROUTER("i>=lead"),
    T_EXP_PROBS_B(0, "i>=lead"),
    T_EXPERTS("Fx", T_SCALE, "i>=lead"),
    T_SHEXP("Fx*nsh", T_SCALE, "i>=lead"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    const int rot = hp->n_rot[0];
    TRY(arch_require(hp->n_lora_q > 0 && hp->n_swa > 0, b, "a rank of its queries and a window are needed"));
    TRY(arch_require(hp->n_head_k_mla > rot && hp->n_head_k_mla_swa > rot && hp->idx_dim >= rot, b,
                     "its heads must hold the rotary part"));
    hp->idx_rope = IDX_ROPE_NEOX;
    hp->rope_swa = SWA_ROPE_OWN;
    int64_t v[MAX_LAYERS];
    int n;
    TRY(arch_key_ints(b, "attention.sliding_window_pattern", v, MAX_LAYERS, &n));
    TRY(arch_require(n == hp->n_block, b, "attention.sliding_window_pattern needs an entry for each layer"));
    TRY(arch_windows(hp, b, WINDOW_STANDARD, 1, false));
    TRY(arch_key_ints(b, "attention.indexer.types", v, MAX_LAYERS, &n));
    TRY(arch_require(n == hp->n_block, b, "attention.indexer.types needs an entry for each layer"));
    for (int i = 0; i < hp->n_block; i++) {
        TRY(arch_require(hp->is_swa[i] || v[i] == 1, b, "every full layer needs an indexer of its own"));
        TRY(arch_require(hp->n_head_kv[i] == 1, b, "its latent attention must be in the absorbed form"));
        hp->n_embd_head_k[i] = (hp->is_swa[i] ? hp->n_lora_kv_swa : hp->n_lora_kv) + rot;  // what the cache holds
    }
    hp->n_embd_head_k_swa = 0;
    return ERR_OK;
}

static struct ggml_tensor *mixer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct mla_opts o = {.k_norm = &l->attn_k_norm, .gate = &l->attn_gate, .swa = g->hp->is_swa[il] != 0};
    if (!o.swa) o.keep = blk_mla_select(g, l, x, il, 1e-6f);
    return blk_mla(g, l, x, il, &o);
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){.mixer = mixer, .moe = moe_of_file(g)});
}

const struct arch arch_dots3note = {
    .name = "dots3note",
    .rope = LLAMA_ROPE_TYPE_NORM,
    .cache_k = "swa*rw+(1-swa)*r+R",
    .cache_v = "0",
    .cache_x = "(1-swa)*di",
    .nodes = 160,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
