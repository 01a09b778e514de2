// rwkv6: Finch: attention without attention, a state per head that decays by what the token says (arXiv 2404.05892).
#include "arch/arch.h"

static const struct arch_key keys[] = {
    {"attention.layer_norm_epsilon", HP_eps, "0", 0},
    {"wkv.head_size", HP_wkv_head, REQ, 0},
    {"time_mix_extra_dim", HP_time_mix_extra, REQ, 0},
    {"time_decay_extra_dim", HP_time_decay_extra, REQ, 0},
    {"rescale_every_n_layers", HP_rescale_every, "0", 0},
    {"token_shift_count", HP_token_shift, "2", 0},
    {NULL, 0, NULL, 0},
};

#define T_LERP(slot)                                                                                                        \
    { SLOT_time_mix_lerp_##slot, "E", 0, 0, SLOT_time_mix_lerp_fused, 0, 0 }

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_NORM_B(token_embd_norm),
    T_OUT_NORM_B,
    T_OUT_OWN,
    T_NORM_B(attn_norm),
    T_NORM_B(attn_norm_2),
    {SLOT_time_mix_w1, "E,5*tme", 0, 0, 0, 0, 0},
    {SLOT_time_mix_w2, "tme,E,5", 0, 0, 0, 0, 0},
    {SLOT_time_mix_lerp_x, "E", 0, 0, 0, 0, 0},
    {SLOT_time_mix_lerp_fused, "E,1,1,5", T_OPT, 0, 0, 0, 0},
    T_LERP(w),
    T_LERP(k),
    T_LERP(v),
    T_LERP(r),
    T_LERP(g),
    {SLOT_time_mix_first, "wkvs,E/wkvs", 0, 0, 0, 0, 0},
    {SLOT_time_mix_decay, "E", 0, 0, 0, 0, 0},
    {SLOT_time_mix_decay_w1, "E,tde", 0, 0, 0, 0, 0},
    {SLOT_time_mix_decay_w2, "tde,E", 0, 0, 0, 0, 0},
    {SLOT_time_mix_key, "E,E", 0, 0, 0, 0, 0},
    {SLOT_time_mix_value, "E,E", 0, 0, 0, 0, 0},
    {SLOT_time_mix_receptance, "E,E", 0, 0, 0, 0, 0},
    {SLOT_time_mix_gate, "E,E", 0, 0, 0, 0, 0},
    {SLOT_time_mix_output, "E,E", 0, 0, 0, 0, 0},
    {SLOT_time_mix_ln, "E", T_BIAS, 0, 0, 0, 0},
    {SLOT_channel_mix_lerp_k, "E", 0, 0, 0, 0, 0},
    {SLOT_channel_mix_lerp_r, "E", 0, 0, 0, 0, 0},
    {SLOT_channel_mix_key, "E,F", 0, 0, 0, 0, 0},
    {SLOT_channel_mix_value, "F,E", 0, 0, 0, 0, 0},
    {SLOT_channel_mix_receptance, "E,E", 0, 0, 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    hparams_set(hp, HP_is_recr, -1, 1);
    TRY(arch_require(hp->token_shift == 2, b, "it must shift tokens twice per layer"));
    return arch_require(hp->wkv_head > 0 && hp->n_embd % hp->wkv_head == 0, b, "the head size must divide the embedding's");
}

// What the previous token has more than this one.
static struct ggml_tensor *shift(struct graph *g, struct ggml_tensor *h, int il, int64_t state_off) {
    struct ggml_tensor *before = blk_token_shift(g, blk_by_seq(g, h), il, (int) state_off);
    return ggml_sub(g->ctx, ggml_reshape_2d(g->ctx, before, h->ne[0], h->ne[1]), h);
}

// h + dx * m
static struct ggml_tensor *lerp(struct graph *g, struct ggml_tensor *h, struct ggml_tensor *dx, struct ggml_tensor *m) {
    return ggml_add(g->ctx, h, ggml_mul(g->ctx, dx, m));
}

static struct ggml_tensor *time_mix(struct graph *g, const struct layer *l, struct ggml_tensor *h, int il) {
    struct ggml_context *c = g->ctx;
    const struct hparams *hp = g->hp;
    const int64_t e = hp->n_embd, s = hp->wkv_head, n_head = e / s, t = h->ne[1], a = hp->time_mix_extra;
    struct ggml_tensor *dx = shift(g, h, il, 0);
    // five mixtures w, k, v, r, g, each with weights of its own
    struct ggml_tensor *u = ggml_tanh(c, blk_linear(g, &l->time_mix_w1, lerp(g, h, dx, l->time_mix_lerp_x.w)));
    u = ggml_cont(c, ggml_permute(c, ggml_reshape_3d(c, u, a, 5, t), 0, 2, 1, 3));
    u = ggml_mul_mat(c, l->time_mix_w2.w, u);  // [E, T, 5]
    const struct weight *one[5] = {&l->time_mix_lerp_w, &l->time_mix_lerp_k, &l->time_mix_lerp_v, &l->time_mix_lerp_r,
                                   &l->time_mix_lerp_g};
    struct ggml_tensor *x[5], *fused = l->time_mix_lerp_fused.w;
    for (int i = 0; i < 5; i++) {
        struct ggml_tensor *m = ggml_view_2d(c, u, e, t, u->nb[1], (size_t) i * u->nb[2]);
        x[i] = lerp(g, h, dx, ggml_add(c, m, fused ? ggml_view_1d(c, fused, e, (size_t) i * fused->nb[3]) : one[i]->w));
    }
    struct ggml_tensor *w = blk_linear(g, &l->time_mix_decay_w2, ggml_tanh(c, blk_linear(g, &l->time_mix_decay_w1, x[0])));
    w = ggml_exp(c, ggml_neg(c, ggml_exp(c, ggml_add(c, w, l->time_mix_decay.w))));
    struct ggml_tensor *k = blk_linear(g, &l->time_mix_key, x[1]), *v = blk_linear(g, &l->time_mix_value, x[2]);
    struct ggml_tensor *r = blk_linear(g, &l->time_mix_receptance, x[3]), *gate = blk_linear(g, &l->time_mix_gate, x[4]);
    struct ggml_tensor *o = ggml_rwkv_wkv6(c, ggml_reshape_3d(c, k, s, n_head, t), ggml_reshape_3d(c, v, s, n_head, t),
                                           ggml_reshape_3d(c, r, s, n_head, t), blk_f32(g, l->time_mix_first.w),
                                           ggml_reshape_3d(c, w, s, n_head, t), blk_wkv_state(g, il));
    o = ggml_reshape_2d(c, ggml_norm(c, blk_wkv_result(g, o, s, il), 64e-5f), e, t);
    o = ggml_add(c, ggml_mul(c, o, l->time_mix_ln.w), l->time_mix_ln.b);
    return blk_linear(g, &l->time_mix_output, ggml_swiglu_split(c, gate, o));
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_context *c = g->ctx;
    const struct hparams *hp = g->hp;
    x = ggml_add(c, time_mix(g, l, blk_norm(g, x, &l->attn_norm, NORM_LN), il), x);
    struct ggml_tensor *h = blk_norm(g, x, &l->attn_norm_2, NORM_LN), *dx = shift(g, h, il, hp->n_embd);
    blk_select3(g, il, &h, &dx, &x);
    struct ggml_tensor *k = blk_linear(g, &l->channel_mix_key, lerp(g, h, dx, l->channel_mix_lerp_k.w));
    k = blk_linear(g, &l->channel_mix_value, ggml_sqr(c, ggml_relu(c, k)));
    struct ggml_tensor *r =
        ggml_sigmoid(c, blk_linear(g, &l->channel_mix_receptance, lerp(g, h, dx, l->channel_mix_lerp_r.w)));
    x = ggml_add(c, x, ggml_mul(c, k, r));
    return hp->rescale_every > 0 && (il + 1) % hp->rescale_every == 0 ? ggml_scale(c, x, 0.5f) : x;
}

static struct ggml_tensor *embed(struct graph *g) { return blk_norm(g, blk_embed(g, 0), &g->w->token_embd_norm, NORM_LN); }

const struct arch arch_rwkv6 = {
    .name = "rwkv6",
    .flags = ARCH_NO_SNAPSHOTS,
    .rope = LLAMA_ROPE_TYPE_NONE,
    .norm = NORM_LN,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .state_r = "2*E",
    .state_s = "E*wkvs",
    .nodes = 128,
    .embed = embed,
    .layer = layer,
};
