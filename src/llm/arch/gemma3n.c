// gemma3n: four residual streams of which one is computed and the others are predicted and corrected (AltUp, arXiv 2301.13310), a
// low-rank branch beside attention (LAuReL, arXiv 2411.07501), sparse activations in the first layers, inputs per layer, and late
// layers that share the caches of earlier ones.
#include "arch/arch.h"

#include <math.h>

enum { N_STREAM = 4, N_OWN_KV = 20, N_SPARSE = 10 };  // what no key says

static const struct arch_key keys[] = {K_RMS, K_SWA_REQ, K_ROPE_SWA("10000"), {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    {SLOT_altup_proj, "E,E,3", 0, 0, 0, 0, 0},
    {SLOT_altup_unembd_proj, "E,E,3", 0, 0, 0, 0, 0},
    T_PER_LAYER,
    T_NORM(attn_norm),
    T_QKV_WHEN("i<20"),
    {SLOT_attn_q, "E,H*D", 0, "i>=20", 0, 0, 0},
    {SLOT_attn_k, "E,K*D", T_OPT, "i>=20", 0, 0, 0},
    {SLOT_attn_v, "E,K*Dv", T_OPT, "i>=20", 0, 0, 0},
    T_O,
    {SLOT_attn_q_norm, "D", 0, 0, 0, 0, 0},
    {SLOT_attn_k_norm, "D", 0, "i<20", 0, 0, 0},
    {SLOT_attn_k_norm, "D", T_OPT, "i>=20", 0, 0, 0},
    T_NORM(post_attn_norm),
    T_NORM(ffn_norm),
    T_FFN,
    T_NORM(post_ffw_norm),
    {SLOT_altup_correct_coef, "4,4", 0, 0, 0, 0, 0},
    {SLOT_altup_correct_scale, "E", 0, 0, 0, 0, 0},
    {SLOT_altup_predict_coef, "4,16", 0, 0, 0, 0, 0},
    {SLOT_altup_router, "E,4", 0, 0, 0, 0, 0},
    T_NORM(altup_router_norm),
    {SLOT_laurel_l, "E,64", 0, 0, 0, 0, 0},
    {SLOT_laurel_r, "64,E", 0, 0, 0, 0, 0},
    T_NORM(laurel_post_norm),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    hp->n_embd_per_layer = 256;
    hp->f_embd_scale = sqrtf((float) hp->n_embd);
    hp->f_attn_scale = 1.0f;
    hp->rope_swa = SWA_ROPE_OWN;
    hp->rope_f_swa = 1;
    TRY(arch_require(hp->n_swa > 0, b, "its window must not be empty"));
    TRY(arch_windows(hp, b, WINDOW_STANDARD, 5, false));
    return arch_share_kv(hp, b, N_OWN_KV);
}

// Length of each row: [1, T].
static struct ggml_tensor *length(struct graph *g, struct ggml_tensor *x) {
    return ggml_sqrt(g->ctx, ggml_sum_rows(g->ctx, ggml_sqr(g->ctx, x)));
}

// w_j x (slice j of w), made as long as x's row len says.
static struct ggml_tensor *project(struct graph *g, struct ggml_tensor *w, int j, struct ggml_tensor *x,
                                   struct ggml_tensor *len) {
    struct ggml_context *c = g->ctx;
    struct ggml_tensor *y = ggml_mul_mat(c, ggml_view_2d(c, w, w->ne[0], w->ne[1], w->nb[1], (size_t) j * w->nb[2]), x);
    return ggml_mul(c, y, ggml_div(c, len, ggml_clamp(c, length(g, y), 1e-12f, INFINITY)));
}

static struct ggml_tensor *embed(struct graph *g) {
    struct ggml_tensor *x = blk_embed(g, g->hp->f_embd_scale), *s = x, *len = length(g, x);
    g->arch_state = blk_per_layer_inputs(g, x);
    for (int j = 0; j < N_STREAM - 1; j++) s = ggml_concat(g->ctx, s, project(g, g->w->altup_proj.w, j, x, len), 0);
    return s;
}

static struct ggml_tensor *stream(struct graph *g, struct ggml_tensor *s, int j) {
    return ggml_view_2d(g->ctx, s, s->ne[0], s->ne[2], s->nb[2], (size_t) j * s->nb[1]);
}

static struct ggml_tensor *modalities(struct graph *g, const struct layer *l, struct ggml_tensor *z) {
    z = ggml_scale(g->ctx, blk_norm(g, z, &l->altup_router_norm, NORM_RMS), 1.0f / (float) g->hp->n_embd);
    return ggml_tanh(g->ctx, blk_linear(g, &l->altup_router, z));
}

static struct ggml_tensor *attention(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    const struct attn_opts o = {.scale = 1.0f};
    struct qkv a;
    if (il < N_OWN_KV) {
        a = blk_qkv(g, l, x, il, &o);
        a.v = blk_norm(g, a.v, NULL, NORM_RMS);
        a.k = blk_rope(g, blk_norm(g, a.k, &l->attn_k_norm, NORM_RMS), il);
    } else {
        struct ggml_tensor *q = blk_linear(g, &l->attn_q, x);
        a = (struct qkv){.q = ggml_reshape_3d(g->ctx, q, g->hp->n_embd_head_k[il], g->hp->n_head[il], x->ne[1])};
    }
    a.q = blk_rope(g, blk_norm(g, a.q, &l->attn_q_norm, NORM_RMS), il);
    return blk_linear(g, &l->attn_output, blk_attend(g, a.q, a.k, a.v, il, &o));
}

// Keeps what exceeds the 95th percentile of a normal distribution with the row's mean and deviation.
static struct ggml_tensor *sparse(struct graph *g, struct ggml_tensor *z) {
    struct ggml_context *c = g->ctx;
    struct ggml_tensor *d = ggml_sub(c, z, ggml_mean(c, z));
    struct ggml_tensor *dev = ggml_sqrt(c, ggml_scale(c, ggml_sum_rows(c, ggml_sqr(c, d)), 1.0f / (float) (z->ne[0] - 1)));
    return ggml_relu(c, ggml_sub(c, d, ggml_scale(c, dev, 1.6448533535003662f)));
}

static struct ggml_tensor *network(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *z = blk_linear(g, &l->ffn_gate, x), *up = blk_linear(g, &l->ffn_up, x);
    if (il < N_SPARSE) z = sparse(g, z);
    return blk_linear(g, &l->ffn_down, blk_act(g, z, up, &(struct act_opts){.act = ACT_GELU}));
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_context *c = g->ctx;
    const int64_t e = g->hp->n_embd;
    struct ggml_tensor *s = ggml_reshape_3d(c, x, e, N_STREAM, x->ne[1]), *all = g->arch_state;
    struct ggml_tensor *own = ggml_view_2d(c, all, all->ne[0], all->ne[2], all->nb[2], (size_t) il * all->nb[1]);
    // predict all streams from the active one
    struct ggml_tensor *m = ggml_mul_mat(c, l->altup_predict_coef.w, modalities(g, l, stream(g, s, 0)));
    struct ggml_tensor *p = ggml_add(c, blk_mix_streams(g, s, ggml_reshape_3d(c, m, N_STREAM, N_STREAM, x->ne[1])), s);
    struct ggml_tensor *n = blk_norm(g, stream(g, p, 0), &l->attn_norm, NORM_RMS);
    struct ggml_tensor *low = blk_linear(g, &l->laurel_r, blk_linear(g, &l->laurel_l, n));
    low = ggml_add(c, n, blk_norm(g, low, &l->laurel_post_norm, NORM_RMS));
    struct ggml_tensor *cur = attention(g, l, n, il);
    p = ggml_reshape_2d(c, p, e * N_STREAM, x->ne[1]);
    blk_select3(g, il, &cur, &p, &low);
    if (cur->ne[1] != own->ne[1]) own = ggml_get_rows(c, own, in_out_rows(g));
    const int64_t t = cur->ne[1];
    p = ggml_reshape_3d(c, p, e, N_STREAM, t);
    struct ggml_tensor *active = stream(g, p, 0);
    cur = ggml_add(c, ggml_add(c, blk_norm(g, cur, &l->post_attn_norm, NORM_RMS), active), low);
    cur = ggml_scale(c, cur, 1.0f / sqrtf(2.0f));
    struct ggml_tensor *y = network(g, l, blk_norm(g, cur, &l->ffn_norm, NORM_RMS), il);
    y = ggml_add(c, blk_norm(g, y, &l->post_ffw_norm, NORM_RMS), cur);
    // correct all streams by what the active one turned out to be
    struct ggml_tensor *cc = ggml_scale_bias(c, ggml_mul_mat(c, l->altup_correct_coef.w, modalities(g, l, y)), 1.0f, 1.0f);
    struct ggml_tensor *miss = ggml_repeat_4d(c, ggml_reshape_3d(c, ggml_sub(c, y, active), e, 1, t), e, N_STREAM, t, 1);
    s = ggml_add(c, ggml_mul(c, miss, ggml_reshape_3d(c, cc, 1, N_STREAM, t)), p);
    // the layer's own input goes to the others
    struct ggml_tensor *first = stream(g, s, 0);
    struct ggml_tensor *f = blk_per_layer_branch(g, l, ggml_mul(c, first, l->altup_correct_scale.w), own);
    struct ggml_tensor *rest = ggml_view_3d(c, s, e, N_STREAM - 1, t, s->nb[1], s->nb[2], s->nb[1]);
    rest = ggml_add(c, rest, ggml_repeat_4d(c, ggml_reshape_3d(c, f, e, 1, t), e, N_STREAM - 1, t, 1));
    s = ggml_concat(c, ggml_view_3d(c, s, e, 1, t, s->nb[1], s->nb[2], 0), rest, 1);
    return ggml_reshape_2d(c, s, e * N_STREAM, t);
}

static void head(struct graph *g, struct ggml_tensor *x) {
    struct ggml_tensor *s = ggml_reshape_3d(g->ctx, x, g->hp->n_embd, N_STREAM, x->ne[1]);
    struct ggml_tensor *first = stream(g, s, 0), *len = length(g, first), *sum = first;
    for (int j = 1; j < N_STREAM; j++)
        sum = ggml_add(g->ctx, sum, project(g, g->w->altup_unembd_proj.w, j - 1, stream(g, s, j), len));
    blk_head(g, ggml_scale(g->ctx, sum, 1.0f / N_STREAM), &(struct head_opts){.softcap = 30.0f});
}

const struct arch arch_gemma3n = {
    .name = "gemma3n",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .nodes = 160,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .embed = embed,
    .layer = layer,
    .head_fn = head,
};
