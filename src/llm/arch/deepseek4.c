// deepseek4: every layer attends to a window; some also to compressed keys of all that came before, 4 or 128 positions each, of which an
// indexer selects. One vector is key and value of all heads; its rotary part is turned back in the result. Four residual streams.
#include "arch/arch.h"

#include <math.h>
#include <stdio.h>

static const struct arch_key keys[] = {
    K_RMS,
    K_Q_LORA(REQ),
    K_SWA_REQ,
    K_FX(REQ),
    K_NSH(REQ),
    K_GATING(REQ),
    {"expert_weights_scale", HP_expert_weights_scale, REQ, 0},
    {"expert_weights_norm", HP_expert_weights_norm, REQ, 0},
    {"swiglu_clamp_exp", HP_swiglu_clamp_exp, REQ, 0},
    {"swiglu_clamp_shexp", HP_swiglu_clamp_shexp, "clexp", 0},
    {"attention.indexer.head_count", HP_idx_head, REQ, 0},
    {"attention.indexer.key_length", HP_idx_dim, REQ, 0},
    {"attention.indexer.top_k", HP_idx_top_k, REQ, 0},
    {"attention.output_group_count", HP_n_out_group, REQ, 0},
    {"attention.output_lora_rank", HP_n_out_lora, REQ, 0},
    {"attention.compress_rope_freq_base", HP_rope_base_compress, REQ, 0},
    {"hyper_connection.count", HP_n_hc, REQ, 0},
    {"hyper_connection.epsilon", HP_hc_eps, REQ, 0},
    {"hyper_connection.sinkhorn_iterations", HP_hc_iter, REQ, 0},
    {"hash_layer_count", HP_n_hash_layer, REQ, 0},
    {NULL, 0, NULL, 0},
};

#define HC(slot)                                                                                                            \
    {SLOT_##slot##_fn, "hc*E,(2+hc)*hc", 0, 0, 0, 0, 0}, {SLOT_##slot##_base, "(2+hc)*hc", 0, 0, 0, 0, 0}, {                \
        SLOT_##slot##_scale, "3", 0, 0, 0, 0, 0                                                                             \
    }
#define COMPRESSOR(slot, d, m, c, cond)                                                                                     \
    {SLOT_##slot##_kv, "E," m d, 0, cond, 0, 0, 0}, {SLOT_##slot##_gate, "E," m d, 0, cond, 0, 0, 0},                       \
        {SLOT_##slot##_ape, m d "," c, 0, cond, 0, 0, 0}, {                                                                 \
        SLOT_##slot##_norm, d, 0, cond, 0, 0, 0                                                                             \
    }

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_OWN,
    {SLOT_output_hc_fn, "hc*E,hc", 0, 0, 0, 0, 0},
    {SLOT_output_hc_base, "hc", 0, 0, 0, 0, 0},
    {SLOT_output_hc_scale, "1", 0, 0, 0, 0, 0},
    HC(hc_attn),
    HC(hc_ffn),
    T_NORM(attn_norm),
    {SLOT_attn_q_a, "E,ql", 0, 0, 0, 0, 0},
    {SLOT_attn_q_a_norm, "ql", 0, 0, 0, 0, 0},
    {SLOT_attn_q_b, "ql,H*D", 0, 0, 0, 0, 0},
    {SLOT_attn_kv, "E,D", 0, 0, 0, 0, 0},
    {SLOT_attn_kv_a_norm, "D", 0, 0, 0, 0, 0},
    {SLOT_attn_sinks, "H", 0, 0, 0, 0, 0},
    {SLOT_attn_output_a, "H*D/og,?,?", 0, 0, 0, 0, 0},  // [.., ol, og] or [.., ol * og]
    {SLOT_attn_output_b, "og*ol,E", 0, 0, 0, 0, 0},
    COMPRESSOR(attn_compressor, "D", "2*", "4", "cr==4"),
    COMPRESSOR(attn_compressor, "D", "", "128", "cr==128"),
    COMPRESSOR(idx_compressor, "di", "2*", "4", "cr==4"),
    {SLOT_idx_proj, "E,ni", 0, "cr==4", 0, 0, 0},
    {SLOT_idx_q_b, "ql,ni*di", 0, "cr==4", 0, 0, 0},
    T_NORM(ffn_norm),
    T_ROUTER("1"),
    T_EXP_PROBS_B(0, "i>=nhl"),
    {SLOT_ffn_tid2eid, "U,V", 0, "i<nhl", 0, 0, 0},
    {SLOT_exp_probs_b_vl, "X", T_BIAS_ONLY | T_OPT, 0, 0, 0, 0},  // images only
    T_EXPERTS("Fx", 0, "1"),
    T_SHEXP("Fx*nsh", 0, "1"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

// Layers with compressed keys have a second cache; it stands at a place after all layers, so that it isn't a windowed one.
static enum err plan_caches(struct hparams *hp, const struct model_build *b) {
    int64_t ratio[MAX_LAYERS];
    int n;
    TRY(arch_key_ints(b, "attention.compress_ratios", ratio, MAX_LAYERS, &n));
    TRY(arch_require(n >= hp->n_block, b, "attention.compress_ratios needs an entry for each layer"));
    hp->n_cache = hp->n_layer;
    for (int i = 0; i < hp->n_layer; i++) {
        TRY(arch_require(ratio[i] == 0 || ratio[i] == 4 || ratio[i] == 128, b,
                         "a layer compresses 0, 4 or 128 positions into one"));
        hp->compress_ratio[i] = (int32_t) ratio[i];
        hp->cache_layer[i] = hp->kv_cache[i] = i;
        hp->is_recr[i] = ratio[i] != 0;  // the members of the open block are a state
        if (!ratio[i]) continue;
        const int at = hp->n_block + hp->n_cache - hp->n_layer;
        TRY(arch_require(at < MAX_LAYERS, b, "its layers and their compressed keys are more than 512"));
        hp->compress_cache[at] = (int32_t) ratio[i];
        hp->rope_layers[at] = 0;
        hp->is_swa[at] = 0;
        hp->cache_layer[hp->n_cache++] = at;
    }
    return ERR_OK;
}

static enum err setup(struct hparams *hp, const struct model_build *b) {
    hp->n_embd_out = hp->n_embd;
    char name[64];
    snprintf(name, sizeof name, "blk.%d.nextn.eh_proj.weight", hp->n_layer);
    if (hp->n_layer < hp->n_block && !b->has_tensor(b, name)) hp->n_layer = hp->n_layer_weights = hp->n_block;
    TRY(arch_require(hp->expert_gating == GATE_SQRT_SOFTPLUS, b, "expert_gating_func must be 4"));
    TRY(arch_require(hp->n_swa > 0 && hp->n_lora_q > 0, b, "its window and the rank of its queries must not be zero"));
    TRY(arch_require(hp->n_hc == 4 && hp->hc_iter > 0, b, "the residual's streams aren't four, or are never balanced"));
    TRY(arch_require(hp->n_embd_head_k[0] == hp->n_embd_head_v[0] && hp->n_head_kv[0] == 1, b,
                     "one vector must be key and value of all heads"));
    TRY(arch_require(hp->n_out_group > 0 && hp->n_out_lora > 0 && hp->n_head[0] % hp->n_out_group == 0, b,
                     "its heads can't be grouped for the output"));
    TRY(arch_require(hp->idx_head > 0 && hp->idx_dim >= hp->n_rot[0] && hp->n_embd_head_k[0] >= hp->n_rot[0], b,
                     "its heads must hold the rotary part"));
    hp->swa_kind = WINDOW_STANDARD;
    hparams_set(hp, HP_is_swa, -1, 1);
    return plan_caches(hp, b);
}

// How the last dims of vectors of d values turn in this layer; never with a magnitude.
static struct rope_opts turning(struct graph *g, int il, int d) {
    const struct cparams *cp = g->cp;
    const int n = g->hp->n_rot[il];
    struct rope_opts o = {.n_rot = n,
                          .offset = d - n,
                          .mode = GGML_ROPE_TYPE_NORMAL,
                          .base = cp->rope_base,
                          .freq_scale = 1.0f,
                          .mag = 1.0f,
                          .beta_fast = cp->rope_beta_fast,
                          .beta_slow = cp->rope_beta_slow};
    if (!g->hp->compress_ratio[il]) return o;
    o.base = g->hp->rope_base_compress;
    o.freq_scale = cp->rope_freq_scale;
    o.ext = cp->rope_ext;
    if (o.ext != 0) o.mag = 1.0f / (1.0f + 0.1f * logf(1.0f / o.freq_scale));
    return o;
}

static int second_cache(const struct hparams *hp, int il) {
    int n = hp->n_layer;
    for (int i = 0; i < il; i++) n += hp->compress_ratio[i] != 0;
    return n;
}

// Which of the compressed keys each query looks at: [n_row, T].
static struct ggml_tensor *choose(struct graph *g, const struct layer *l, struct ggml_tensor *x, struct ggml_tensor *low,
                                  int il) {
    struct ggml_context *c = g->ctx;
    const struct hparams *hp = g->hp;
    const int64_t d = hp->idx_dim, n = hp->idx_head, t = x->ne[1];
    const struct rope_opts r = turning(g, il, (int) d);
    const struct compress_opts o = {
        .kv = &l->idx_compressor_kv,
        .gate = &l->idx_compressor_gate,
        .ape = &l->idx_compressor_ape,
        .norm = &l->idx_compressor_norm,
        .n = 4,
        .state_off = 7 * 4 * hp->n_embd_head_k[il],
        .rope = &r,
    };
    struct ggml_tensor *keys_ =
        blk_block_ends(g, blk_cache_rows(g, blk_compress(g, x, il, &o), second_cache(hp, il), true), 4);
    struct ggml_tensor *q = blk_rope_ext(g, ggml_reshape_3d(c, blk_linear(g, &l->idx_q_b, low), d, n, t), &r);
    struct ggml_tensor *w = ggml_scale(c, blk_linear(g, &l->idx_proj, x), 1.0f / sqrtf((float) (d * n)));
    struct ggml_tensor *s = attn_index_scores(g, q, keys_, w);
    return attn_keep_top_at(g, s, in_block_ends(g, 4), hp->idx_top_k);
}

static struct ggml_tensor *attention(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_context *c = g->ctx;
    const struct hparams *hp = g->hp;
    const int64_t d = hp->n_embd_head_k[il], n_head = hp->n_head[il], t = x->ne[1], og = hp->n_out_group,
                  n = hp->compress_ratio[il];
    struct rope_opts r = turning(g, il, (int) d);
    struct ggml_tensor *low = blk_norm(g, blk_linear(g, &l->attn_q_a, x), &l->attn_q_a_norm, NORM_RMS);
    struct ggml_tensor *q = ggml_reshape_3d(c, blk_linear(g, &l->attn_q_b, low), d, n_head, t);
    q = blk_rope_ext(g, blk_norm(g, q, NULL, NORM_RMS), &r);
    struct ggml_tensor *kv = blk_norm(g, blk_linear(g, &l->attn_kv, x), &l->attn_kv_a_norm, NORM_RMS);
    kv = blk_rope_ext(g, ggml_reshape_3d(c, kv, d, 1, t), &r);
    struct attn_opts o = {.sinks = l->attn_sinks.w, .v_of_k = (int) d};
    if (n) {
        const struct compress_opts co = {
            .kv = &l->attn_compressor_kv,
            .gate = &l->attn_compressor_gate,
            .ape = &l->attn_compressor_ape,
            .norm = &l->attn_compressor_norm,
            .n = (int) n,
            .rope = &r,
        };
        o.more = blk_block_ends(g, blk_cache_rows(g, blk_compress(g, x, il, &co), second_cache(hp, il), false), (int) n);
        o.more_mask = n == 4 ? choose(g, l, x, low, il) : in_block_mask(g, (int) n);
    }
    struct ggml_tensor *y = ggml_reshape_3d(c, blk_attend(g, q, kv, kv, il, &o), d, n_head, t);
    r.back = true;
    y = ggml_reshape_3d(c, blk_rope_ext(g, y, &r), d * n_head / og, og, t);
    // each group of heads through its own matrix: [H D / og, ol, og] x [H D / og, T, og]
    struct ggml_tensor *a = ggml_reshape_3d(c, l->attn_output_a.w, d * n_head / og, hp->n_out_lora, og);
    y = ggml_mul_mat(c, a, ggml_permute(c, y, 0, 2, 1, 3));
    return blk_linear(g, &l->attn_output_b, ggml_cont_2d(c, ggml_permute(c, y, 0, 2, 1, 3), hp->n_out_lora * og, t));
}

static struct ggml_tensor *network(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    const struct hparams *hp = g->hp;
    struct form_opts o = {
        .act = {.clamp = hp->swiglu_clamp_shexp[il]},
        .moe = {.norm = hp->expert_weights_norm,
                .wscale = hp->expert_weights_scale,
                .act = {.clamp = hp->swiglu_clamp_exp[il]}},
    };
    if (l->ffn_tid2eid.w && g->n.has_token) {
        struct ggml_tensor *tokens = in_tokens(g);
        if (x->ne[1] != g->n.n_tokens)
            tokens = ggml_reshape_1d(
                g->ctx, ggml_get_rows(g->ctx, ggml_reshape_2d(g->ctx, tokens, 1, g->n.n_tokens), in_out_rows(g)), x->ne[1]);
        o.moe.ids = ggml_get_rows(g->ctx, l->ffn_tid2eid.w, tokens);
    }
    return blk_network(g, l, x, il, &o);
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    const struct hc_weights attn = {&l->hc_attn_fn, &l->hc_attn_base, &l->hc_attn_scale},
                            ffn = {&l->hc_ffn_fn, &l->hc_ffn_base, &l->hc_ffn_scale};
    struct ggml_tensor *mix, *cur = blk_norm(g, blk_hc_in(g, x, &attn, &mix), &l->attn_norm, NORM_RMS);
    cur = attention(g, l, cur, il);
    blk_select3(g, il, &cur, &x, &mix);
    x = blk_hc_out(g, x, cur, mix, &attn);
    cur = blk_norm(g, blk_hc_in(g, x, &ffn, &mix), &l->ffn_norm, NORM_RMS);
    return blk_hc_out(g, x, network(g, l, cur, il), mix, &ffn);
}

static struct ggml_tensor *embed(struct graph *g) { return blk_hc_begin(g, blk_embed(g, 0)); }

static void head(struct graph *g, struct ggml_tensor *x) { blk_head(g, blk_hc_end(g, x), &(struct head_opts){0}); }

const struct arch arch_deepseek4 = {
    .name = "deepseek4",
    .flags = ARCH_HYBRID,
    .rope = LLAMA_ROPE_TYPE_NORM,
    .cache_k = "D",
    .cache_v = "0",
    .cache_x = "(cc==4)*di",
    .state_r = "(cr==4)*7*4*(D+di)+(cr==128)*127*2*D",
    .nodes = 320,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .embed = embed,
    .layer = layer,
    .head_fn = head,
};
