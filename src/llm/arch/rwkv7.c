// rwkv7: Goose: a state per head that is corrected along one direction of its own choosing (arXiv 2503.14456).
#include "arch/arch.h"

static const struct arch_key keys[] = {
    {"attention.layer_norm_epsilon", HP_eps, "0", 0},
    {"wkv.head_size", HP_wkv_head, REQ, 0},
    {"attention.decay_lora_rank", HP_lora_decay, REQ, 0},
    {"attention.iclr_lora_rank", HP_lora_iclr, REQ, 0},
    {"attention.value_residual_mix_lora_rank", HP_lora_value_mix, REQ, 0},
    {"attention.gate_lora_rank", HP_lora_gate, REQ, 0},
    {"token_shift_count", HP_token_shift, "2", 0},
    {NULL, 0, NULL, 0},
};

// In layer 0 there is no earlier value to mix in: v0, v1, v2 are there, but unused.
#define VR "(i==0)*lri+(i>0)*lrv"

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_NORM_B(token_embd_norm),
    T_OUT_NORM_B,
    T_OUT_OWN,
    T_NORM_B(attn_norm),
    T_NORM_B(attn_norm_2),
    T_NORM(time_mix_w0),
    {SLOT_time_mix_w1, "E,lrd", 0, 0, 0, 0, 0},
    {SLOT_time_mix_w2, "lrd,E", 0, 0, 0, 0, 0},
    T_NORM(time_mix_a0),
    {SLOT_time_mix_a1, "E,lri", 0, 0, 0, 0, 0},
    {SLOT_time_mix_a2, "lri,E", 0, 0, 0, 0, 0},
    T_NORM(time_mix_v0),
    {SLOT_time_mix_v1, "E," VR, 0, 0, 0, 0, 0},
    {SLOT_time_mix_v2, VR ",E", 0, 0, 0, 0, 0},
    {SLOT_time_mix_g1, "E,lrg", 0, 0, 0, 0, 0},
    {SLOT_time_mix_g2, "lrg,E", 0, 0, 0, 0, 0},
    {SLOT_time_mix_lerp_fused, "E,1,1,6", 0, 0, 0, 0, 0},
    T_NORM(time_mix_k_k),
    T_NORM(time_mix_k_a),
    T_NORM(time_mix_r_k),
    {SLOT_time_mix_key, "E,E", 0, 0, 0, 0, 0},
    {SLOT_time_mix_value, "E,E", 0, 0, 0, 0, 0},
    {SLOT_time_mix_receptance, "E,E", 0, 0, 0, 0, 0},
    {SLOT_time_mix_output, "E,E", 0, 0, 0, 0, 0},
    {SLOT_time_mix_ln, "E", T_BIAS, 0, 0, 0, 0},
    T_NORM(channel_mix_lerp_k),
    {SLOT_channel_mix_key, "E,F", 0, 0, 0, 0, 0},
    {SLOT_channel_mix_value, "F,E", 0, 0, 0, 0, 0},
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

// The mixed values: layer 0 sets them, later layers lean towards them.
static struct ggml_tensor *values(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_context *c = g->ctx;
    struct ggml_tensor *v = blk_linear(g, &l->time_mix_value, x);
    if (il == 0) return g->arch_state = v;
    struct ggml_tensor *m = blk_linear(g, &l->time_mix_v2, blk_linear(g, &l->time_mix_v1, x));
    m = ggml_sigmoid(c, ggml_add(c, m, l->time_mix_v0.w));
    return ggml_add(c, v, ggml_mul(c, ggml_sub(c, g->arch_state, v), m));
}

static struct ggml_tensor *time_mix(struct graph *g, const struct layer *l, struct ggml_tensor *h, int il) {
    struct ggml_context *c = g->ctx;
    const int64_t e = g->hp->n_embd, s = g->hp->wkv_head, n_head = e / s, t = h->ne[1];
    struct ggml_tensor *dx = shift(g, h, il, 0), *x[6], *fused = l->time_mix_lerp_fused.w;
    for (int i = 0; i < 6; i++)
        x[i] = ggml_add(c, h, ggml_mul(c, dx, ggml_view_1d(c, fused, e, (size_t) i * fused->nb[3])));  // r, w, k, v, a, g
    struct ggml_tensor *r = blk_linear(g, &l->time_mix_receptance, x[0]), *k = blk_linear(g, &l->time_mix_key, x[2]),
                       *v = values(g, l, x[3], il);
    struct ggml_tensor *w = blk_linear(g, &l->time_mix_w2, ggml_tanh(c, blk_linear(g, &l->time_mix_w1, x[1])));
    w = ggml_exp(c, ggml_scale(c, ggml_sigmoid(c, ggml_add(c, w, l->time_mix_w0.w)), -0.606531f));
    struct ggml_tensor *a =
        ggml_add(c, blk_linear(g, &l->time_mix_a2, blk_linear(g, &l->time_mix_a1, x[4])), l->time_mix_a0.w);
    a = ggml_sigmoid(c, a);
    struct ggml_tensor *gate = blk_linear(g, &l->time_mix_g2, ggml_sigmoid(c, blk_linear(g, &l->time_mix_g1, x[5])));
    // the direction kk in which the state is corrected, by the rate a, which also tempers the key
    struct ggml_tensor *kk =
        blk_norm_eps(g, ggml_reshape_3d(c, ggml_mul(c, k, l->time_mix_k_k.w), s, n_head, t), NULL, NORM_L2, 1e-12f);
    struct ggml_tensor *ka = ggml_mul(c, k, l->time_mix_k_a.w);
    k = ggml_add(c, k, ggml_sub(c, ggml_mul(c, a, ka), ka));
    k = ggml_reshape_3d(c, k, s, n_head, t);
    r = ggml_reshape_3d(c, r, s, n_head, t);
    v = ggml_reshape_3d(c, v, s, n_head, t);
    struct ggml_tensor *o = ggml_rwkv_wkv7(c, r, ggml_reshape_3d(c, w, s, n_head, t), k, v, ggml_neg(c, kk),
                                           ggml_mul(c, kk, ggml_reshape_3d(c, a, s, n_head, t)), blk_wkv_state(g, il));
    o = ggml_reshape_2d(c, ggml_norm(c, blk_wkv_result(g, o, s, il), 64e-5f), e, t);
    o = ggml_add(c, ggml_mul(c, o, l->time_mix_ln.w), l->time_mix_ln.b);
    struct ggml_tensor *own =
        ggml_sum_rows(c, ggml_mul(c, ggml_mul(c, k, r), ggml_reshape_2d(c, l->time_mix_r_k.w, s, n_head)));
    o = ggml_add(c, o, ggml_reshape_2d(c, ggml_mul(c, v, own), e, t));
    return blk_linear(g, &l->time_mix_output, ggml_mul(c, o, gate));
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_context *c = g->ctx;
    x = ggml_add(c, time_mix(g, l, blk_norm(g, x, &l->attn_norm, NORM_LN), il), x);
    struct ggml_tensor *h = blk_norm(g, x, &l->attn_norm_2, NORM_LN), *dx = shift(g, h, il, g->hp->n_embd);
    blk_select3(g, il, &h, &dx, &x);
    struct ggml_tensor *k = blk_linear(g, &l->channel_mix_key, ggml_add(c, h, ggml_mul(c, dx, l->channel_mix_lerp_k.w)));
    return ggml_add(c, x, blk_linear(g, &l->channel_mix_value, ggml_sqr(c, ggml_relu(c, k))));
}

static struct ggml_tensor *embed(struct graph *g) { return blk_norm(g, blk_embed(g, 0), &g->w->token_embd_norm, NORM_LN); }

const struct arch arch_rwkv7 = {
    .name = "rwkv7",
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
