// gemma4: windowed and full layers with head sizes of their own, layers that share the cache of earlier ones, inputs per layer, and
// a mixture of experts beside the dense network where the layer has a router.
#include "arch/arch.h"

#include <math.h>
#include <stdio.h>

static const struct arch_key keys[] = {
    K_RMS,
    K_SWA_REQ,
    K_ROPE_SWA("10000"),
    K_FX("0"),
    {"attention.key_length_swa", HP_n_embd_head_k_swa, REQ, 0},
    {"attention.value_length_swa", HP_n_embd_head_v_swa, REQ, 0},
    {"embedding_length_per_layer_input", HP_n_embd_per_layer, REQ, 0},
    {"attention.shared_kv_layers", HP_n_layer_kv_shared, "0", 0},
    {"final_logit_softcapping", HP_f_final_softcap, "30", 0},
    {NULL, 0, NULL, 0},
};

#define OWN_KV "i<layers-nskv"

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    {SLOT_rope_freqs, "?", T_OPT, 0, 0, 0, 0},  // setup requires it where a full layer needs it
    T_PER_LAYER,
    T_NORM(attn_norm),
    T_NORM(post_attn_norm),
    T_NORM(ffn_norm),
    T_NORM(post_ffw_norm),
    {SLOT_attn_qkv, "E,(H+2*K)*D", T_OPT | T_SCALE, 0, 0, 0, 0},
    {SLOT_attn_q, "E,H*D", T_SCALE, 0, SLOT_attn_qkv, 0, 0},
    {SLOT_attn_k, "E,K*D", T_SCALE, OWN_KV, SLOT_attn_qkv, 0, 0},
    {SLOT_attn_v, "E,K*D", T_OPT | T_SCALE, OWN_KV, SLOT_attn_qkv, 0, 0},
    {SLOT_attn_q_norm, "D", 0, 0, 0, 0, 0},
    {SLOT_attn_k_norm, "D", 0, OWN_KV, 0, 0, 0},
    {SLOT_attn_output, "H*D,E", T_SCALE, 0, 0, 0, 0},
    T_FFN_ANY(T_SCALE, 0),
    T_ROUTER("U>0"),
    {SLOT_ffn_gate_inp_scale, "E", T_NO_SUFFIX, "U>0", 0, 0, 0},
    T_EXPERTS_MERGED("Fx", T_SCALE, "U>0"),
    {SLOT_pre_ffw_norm_2, "E", 0, "U>0", 0, 0, 0},
    {SLOT_post_ffw_norm_1, "E", 0, "U>0", 0, 0, 0},
    {SLOT_post_ffw_norm_2, "E", 0, "U>0", 0, 0, 0},
    {SLOT_layer_output_scale, "1", T_OPT, 0, 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    hp->f_attn_scale = 1.0f;
    hp->f_embd_scale = sqrtf((float) hp->n_embd);
    hp->rope_swa = SWA_ROPE_OWN | SWA_ROPE_NO_FACTORS;
    hp->rope_f_swa = 1;
    TRY(arch_require(hp->n_embd_head_k_swa == hp->n_embd_head_v_swa && hp->n_embd_head_k_swa > 0 &&
                         hp->n_embd_head_k[0] == hp->n_embd_head_v[0],
                     b, "keys and values must have heads of one size"));
    TRY(arch_require(hp->n_swa > 0 && hp->n_embd_per_layer >= 0, b, "its window must not be empty"));
    int64_t v[MAX_LAYERS];
    int n;
    TRY(arch_key_ints(b, "attention.sliding_window_pattern", v, MAX_LAYERS, &n));
    TRY(arch_require(n == hp->n_block, b, "attention.sliding_window_pattern needs an entry for each layer"));
    TRY(arch_windows(hp, b, WINDOW_STANDARD, 1, false));
    bool full = false;
    for (int i = 0; i < hp->n_layer; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.ffn_gate_inp.weight", i);
        if (!b->has_tensor(b, name)) hp->n_expert_used[i] = 0;  // a dense layer
        full |= !hp->is_swa[i];
    }
    TRY(arch_require(!full || b->has_tensor(b, "rope_freqs.weight"), b, "its full layers need rope_freqs.weight"));
    TRY(arch_require(hp->n_layer_kv_shared >= 0 && hp->n_layer_kv_shared < hp->n_layer, b,
                     "attention.shared_kv_layers leaves no layer with keys"));
    return arch_share_kv(hp, b, hp->n_layer - hp->n_layer_kv_shared);
}

static struct ggml_tensor *embed(struct graph *g) {
    struct ggml_tensor *x = blk_embed(g, g->hp->f_embd_scale);
    if (g->hp->n_embd_per_layer > 0) g->arch_state = blk_per_layer_inputs(g, x);
    return x;
}

static struct ggml_tensor *attention(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    const struct attn_opts o = {.scale = 1.0f};
    struct qkv a = blk_qkv(g, l, x, il, &o);
    a.q = blk_rope(g, blk_norm(g, a.q, &l->attn_q_norm, NORM_RMS), il);
    if (il >= g->hp->n_layer - g->hp->n_layer_kv_shared) a.k = a.v = NULL;
    if (a.k) {
        a.v = blk_norm(g, a.v, NULL, NORM_RMS);
        a.k = blk_rope(g, blk_norm(g, a.k, &l->attn_k_norm, NORM_RMS), il);
    }
    return blk_linear(g, &l->attn_output, blk_attend(g, a.q, a.k, a.v, il, &o));
}

// The dense network's result and the experts', each normed, added.
static struct ggml_tensor *with_experts(struct graph *g, const struct layer *l, struct ggml_tensor *x,
                                        struct ggml_tensor *dense, int il) {
    struct ggml_context *c = g->ctx;
    struct ggml_tensor *r = ggml_scale(c, blk_norm(g, x, NULL, NORM_RMS), 1.0f / sqrtf((float) g->hp->n_embd));
    const struct moe_opts o = {
        .gate = GATE_SOFTMAX, .norm = true, .act = {.act = ACT_GELU}, .router_x = ggml_mul(c, r, l->ffn_gate_inp_scale.w)};
    struct ggml_tensor *y = blk_moe(g, l, blk_norm(g, x, &l->pre_ffw_norm_2, NORM_RMS), il, &o);
    return ggml_add(c, blk_norm(g, dense, &l->post_ffw_norm_1, NORM_RMS), blk_norm(g, y, &l->post_ffw_norm_2, NORM_RMS));
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_context *c = g->ctx;
    struct ggml_tensor *all = g->arch_state, *p = NULL;
    if (all) p = ggml_view_2d(c, all, all->ne[0], all->ne[2], all->nb[2], (size_t) il * all->nb[1]);
    struct ggml_tensor *cur = attention(g, l, blk_norm(g, x, &l->attn_norm, NORM_RMS), il);
    blk_select3(g, il, &cur, &x, &p);
    x = ggml_add(c, blk_norm(g, cur, &l->post_attn_norm, NORM_RMS), x);
    cur = blk_ffn_layer(g, l, blk_norm(g, x, &l->ffn_norm, NORM_RMS), ACT_GELU);
    if (l->ffn_gate_inp.w) cur = with_experts(g, l, x, cur, il);
    x = ggml_add(c, blk_norm(g, cur, &l->post_ffw_norm, NORM_RMS), x);
    if (p) x = ggml_add(c, blk_per_layer_branch(g, l, x, p), x);
    return l->layer_output_scale.w ? ggml_mul(c, x, l->layer_output_scale.w) : x;
}

static void head(struct graph *g, struct ggml_tensor *x) {
    blk_head(g, x, &(struct head_opts){.softcap = g->hp->f_final_softcap});
}

const struct arch arch_gemma4 = {
    .name = "gemma4",
    .flags = ARCH_SWA_DIMS,
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .nodes = 128,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .embed = embed,
    .layer = layer,
    .head_fn = head,
};
