// grovemoe: after the experts, shared smaller ones for groups of them.
#include "arch/arch.h"

#include <math.h>

static const struct arch_key keys[] = {
    K_RMS,
    K_FX_OR("F/U"),
    {"expert_chunk_feed_forward_length", HP_n_ff_chexp, "D", KEY_ZERO_ABSENT},
    {"expert_group_scale", HP_expert_group_scale, REQ, 0},
    {"experts_per_group", HP_n_experts_per_group, REQ, 0},
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    T_QK_NORM,
    T_NORM(ffn_norm),
    T_ROUTER(0),
    T_EXPERTS("Fx", 0, 0),
    {SLOT_ffn_gate_chexps, "E,Fc,X/epg", 0, 0, 0, 0, 0},
    {SLOT_ffn_up_chexps, "E,Fc,X/epg", 0, 0, 0, 0, 0},
    {SLOT_ffn_down_chexps, "Fc,E,X/epg", 0, 0, 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    return arch_require(hp->n_experts_per_group > 0, b, "experts_per_group must be positive");
}

// Weights of ids [U, T] out of probs [X, T], divided by their sum: [1, U, T].
static struct ggml_tensor *weights(struct graph *g, struct ggml_tensor *probs, struct ggml_tensor *ids) {
    struct ggml_context *c = g->ctx;
    const int64_t u = ids->ne[0], t = ids->ne[1];
    struct ggml_tensor *w = ggml_get_rows(c, ggml_reshape_3d(c, probs, 1, probs->ne[0], t), ids);
    w = ggml_reshape_2d(c, w, u, t);
    w = ggml_div(c, w, ggml_clamp(c, ggml_sum_rows(c, w), 6.103515625e-5f, INFINITY));
    return ggml_reshape_3d(c, w, 1, u, t);
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_context *c = g->ctx;
    const struct hparams *hp = g->hp;
    struct ggml_tensor *cur =
        blk_self_attn(g, l, blk_norm(g, x, &l->attn_norm, NORM_RMS), il, &(struct attn_opts){.qk_norm = QK_NORM_HEAD});
    blk_select(g, il, &cur, &x);
    x = ggml_add(c, cur, x);
    struct ggml_tensor *n = blk_norm(g, x, &l->ffn_norm, NORM_RMS);
    struct ggml_tensor *probs = ggml_soft_max(c, blk_linear(g, &l->ffn_gate_inp, n));
    struct ggml_tensor *ids = ggml_argsort_top_k(c, probs, hp->n_expert_used[il]);
    cur = blk_moe(g, l, n, il, &(struct moe_opts){.ids = ids, .w = weights(g, probs, ids)});
    // the second stage reads the first one's result; its weights are looked up by the group's own number
    const int per = hp->n_experts_per_group, n_chunk = hp->n_expert / per,
              n_used = hp->n_expert_used[il] < n_chunk ? hp->n_expert_used[il] : n_chunk;
    struct ggml_tensor *best = n_used == hp->n_expert_used[il] ? ids : ggml_argsort_top_k(c, probs, n_used);
    if (per > 1) {
        struct ggml_tensor *f = ggml_cast(c, best, GGML_TYPE_F32);
        best = ggml_cast(c, ggml_floor(c, ggml_scale_bias(c, f, 1.0f / (float) per, 0.25f / (float) per)), GGML_TYPE_I32);
    }
    struct ggml_tensor *chunk = blk_moe(g, l, cur, il,
                                        &(struct moe_opts){.ids = best,
                                                           .w = weights(g, probs, best),
                                                           .n_used = n_used,
                                                           .gate_e = &l->ffn_gate_chexps,
                                                           .up_e = &l->ffn_up_chexps,
                                                           .down_e = &l->ffn_down_chexps});
    cur = ggml_add(c, cur, ggml_scale(c, chunk, hp->expert_group_scale));
    return ggml_add(c, cur, x);
}

const struct arch arch_grovemoe = {
    .name = "grovemoe",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
