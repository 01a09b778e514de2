// qwen4exp: gated delta nets and gated attention over chosen blocks of positions, a residual of several streams, experts everywhere, and in one
// layer embeddings of n-grams.
#include "arch/arch.h"

#include <math.h>

static const struct arch_key keys[] = {
    K_RMS,
    K_SECTIONS(REQ),
    K_FX_OR("F/U"),
    K_FS("F"),
    K_SSM,
    K_SSM_GROUP,
    {"hyper_connection.count", HP_n_hc, REQ, 0},
    {"hyper_connection.low_rank", HP_hc_low_rank, REQ, 0},
    {"attention.indexer.head_count", HP_idx_head, REQ, 0},
    {"attention.indexer.key_length", HP_idx_dim, REQ, 0},
    {"attention.indexer.top_k", HP_idx_top_k, REQ, 0},
    {"attention.compress_ratios", HP_compress_ratio, "0", 0},
    {"ple.ngram_size", HP_ple_ngram, "0", 0},
    {"ple.heads_per_ngram", HP_ple_heads, "0", 0},
    {"ple.conv_kernel", HP_ple_conv, "0", 0},
    {"ple.eos_token_id", HP_ple_eos, "0", 0},
    {"embedding_length_per_layer_input", HP_n_embd_per_layer, "0", 0},
    {NULL, 0, NULL, 0},
};

#define SELECTS "!rec&&cr>0"
#define PLE "i==plel"
#define HC(slot)                                                                                                            \
    {SLOT_##slot##_norm, "E,hc", 0, 0, 0, 0, 0}, {SLOT_##slot##_down, "hc*E,hclr", 0, 0, 0, 0, 0}, {                        \
        SLOT_##slot##_up, "hclr,hc*E", 0, 0, 0, 0, 0                                                                        \
    }

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_TIED,
    HC(output_hc),
    HC(hc_attn),
    {SLOT_hc_attn_inject, "hc*E,hc", 0, 0, 0, 0, 0},
    HC(hc_ffn),
    {SLOT_hc_ffn_inject, "hc*E,hc", 0, 0, 0, 0, 0},
    {SLOT_per_layer_token_embd, "Ep,?", 0, "plel>=0", 0, 0, 0},
    {SLOT_attn_qkv, "E,2*H*D+2*K*D", T_OPT | T_SCALE, "!rec", 0, 0, 0},
    {SLOT_attn_q, "E,2*H*D", T_SCALE, "!rec", SLOT_attn_qkv, 0, 0},
    {SLOT_attn_k, "E,K*D", T_SCALE, "!rec", SLOT_attn_qkv, 0, 0},
    {SLOT_attn_v, "E,K*D", T_SCALE, "!rec", SLOT_attn_qkv, 0, 0},
    {SLOT_attn_output, "H*D,E", T_SCALE, "!rec", 0, 0, 0},
    {SLOT_attn_q_norm, "D", 0, "!rec", 0, 0, 0},
    {SLOT_attn_k_norm, "D", 0, "!rec", 0, 0, 0},
    {SLOT_idx_q_proj, "E,ni*di", 0, SELECTS, 0, 0, 0},
    {SLOT_idx_k_proj, "E,di", 0, SELECTS, 0, 0, 0},
    {SLOT_idx_q_norm, "di", 0, SELECTS, 0, 0, 0},
    {SLOT_idx_k_norm, "di", 0, SELECTS, 0, 0, 0},
    T_GATED_DELTA,
    {SLOT_ple_key, "E,hc*E", 0, PLE, 0, 0, 0},
    {SLOT_ple_value, "E,E", 0, PLE, 0, 0, 0},
    {SLOT_ple_norm_key, "E,hc", 0, PLE, 0, 0, 0},
    {SLOT_ple_norm_query, "E,hc", 0, PLE, 0, 0, 0},
    {SLOT_ple_norm_conv, "E,hc", 0, PLE, 0, 0, 0},
    {SLOT_ple_conv1d, "plek,hc*E", 0, PLE, 0, 0, 0},
    T_ROUTER(0),
    T_EXPERTS_MERGED("Fx", T_SCALE, 0),
    {SLOT_ffn_gate_inp_shexp, "E", 0, 0, 0, 0, 0},
    T_SHEXP("Fs", T_SCALE, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

// ---- keys -------------------------------------------------------------------------------------------------------------

static enum err read_exactly(const struct model_build *b, const char *key, int64_t *out, int n) {
    int got;
    TRY(arch_key_ints(b, key, out, n, &got));
    return got == n
               ? ERR_OK
               : err_set(ERR_FORMAT, "key %s.%s has %d entries instead of %d", b->arch->name, key, got < 0 ? 0 : got, n);
}

static enum err read_ngrams(struct hparams *hp, const struct model_build *b) {
    hp->ple_layer = -1;
    if (!arch_has_key(b, "ple.layers")) return ERR_OK;
    int64_t layer, mul[PLE_MAX_NGRAM];
    TRY(read_exactly(b, "ple.layers", &layer, 1));
    TRY(arch_require(layer >= 0 && layer < hp->n_layer && hp->is_recr[layer], b,
                     "its n-gram embeddings don't belong to a recurrent layer"));
    const int n = hp->ple_ngram, n_head = (n - 1) * hp->ple_heads;
    TRY(arch_require(n >= 2 && n <= PLE_MAX_NGRAM && hp->ple_heads > 0 && hp->ple_heads <= PLE_MAX_HEADS &&
                         n_head <= PLE_MAX_HEADS,
                     b, "its n-grams are of less than 2 or more than 8 tokens, or have more than 64 tables"));
    TRY(arch_require(hp->ple_conv > 0 && (int64_t) n_head * hp->n_embd_per_layer == hp->n_embd, b,
                     "its n-gram embeddings don't make up one row"));
    TRY(read_exactly(b, "ple.layer_multipliers", mul, n));
    TRY(read_exactly(b, "ple.head_offsets", hp->ple_offset, n_head));
    TRY(read_exactly(b, "ple.head_vocab_sizes", hp->ple_rows, n_head));
    for (int i = 0; i < n; i++) hp->ple_mul[i] = (uint64_t) mul[i];
    for (int i = 0; i < n_head; i++)
        TRY(arch_require(hp->ple_rows[i] > 0 && hp->ple_offset[i] >= 0 && hp->ple_offset[i] + hp->ple_rows[i] <= INT32_MAX,
                         b, "a table of n-grams is empty or too far"));
    hp->ple_layer = (int32_t) layer;
    return ERR_OK;
}

static enum err setup(struct hparams *hp, const struct model_build *b) {
    TRY(arch_require(hp->ssm_group > 0 && hp->ssm_dt_rank % hp->ssm_group == 0 &&
                         hp->ssm_inner == hp->ssm_dt_rank * hp->ssm_state,
                     b, "key heads must divide the value heads, which make up the inner size"));
    TRY(arch_require(hp->n_hc > 1 && hp->hc_low_rank > 0, b, "its residual has one stream, or no mixture"));
    TRY(arch_recurrent_by_key(hp, b, 4));
    int c = 0;
    for (int i = 0; i < hp->n_layer; i++) {
        const int r = hp->compress_ratio[i];
        TRY(arch_require(r == 0 || (r > 1 && (c == 0 || r == c)), b, "blocks of positions differ in size"));
        if (r) c = r;
    }
    TRY(arch_require(c == 0 || (CELL_BLOCK % c == 0 && hp->idx_top_k > 0 && hp->idx_top_k % c == 0), b,
                     "blocks of positions don't divide those that are chosen, or the blocks of the cache"));
    return read_ngrams(hp, b);
}

// ---- streams ----------------------------------------------------------------------------------------------------------

static struct ggml_tensor *streams(struct graph *g, struct ggml_tensor *x) {
    return ggml_reshape_3d(g->ctx, x, x->ne[0] / g->hp->n_hc, g->hp->n_hc, x->ne[1]);
}

static struct ggml_tensor *normed(struct graph *g, struct ggml_tensor *x, const struct weight *w) {
    return ggml_mul(g->ctx, ggml_rms_norm(g->ctx, x, g->hp->eps), w->w);
}

// The mean of the streams, each gated channel by channel by what a low-rank map of all of them says. *flat: their normed rows [hc * E, T].
static struct ggml_tensor *mixture(struct graph *g, struct ggml_tensor *x, const struct weight *norm,
                                   const struct weight *down, const struct weight *up, struct ggml_tensor **flat) {
    struct ggml_context *c = g->ctx;
    const float hc = (float) g->hp->n_hc;
    struct ggml_tensor *n = normed(g, streams(g, x), norm), *f = ggml_reshape_2d(c, n, x->ne[0], x->ne[1]);
    struct ggml_tensor *gate = blk_linear(g, up, ggml_silu(c, ggml_scale(c, blk_linear(g, down, f), 1.0f / hc)));
    if (flat) *flat = f;
    return ggml_dsv4_hc_pre_gated(c, n, gate, 1.0f / hc);
}

// x_s += 2 sigmoid(inject_s / hc) y
static struct ggml_tensor *inject(struct graph *g, struct ggml_tensor *x, struct ggml_tensor *y,
                                  struct ggml_tensor *logits) {
    struct ggml_context *c = g->ctx;
    const int64_t n = g->hp->n_hc, e = y->ne[0], t = y->ne[1];
    struct ggml_tensor *w = ggml_scale(c, ggml_sigmoid(c, ggml_scale(c, logits, 1.0f / (float) n)), 2.0f);
    y = ggml_mul(c, ggml_repeat_4d(c, ggml_reshape_3d(c, y, e, 1, t), e, n, t, 1), ggml_reshape_3d(c, w, 1, n, t));
    return ggml_add(c, x, ggml_reshape_2d(c, y, e * n, t));
}

// ---- attention to chosen blocks -----------------------------------------------------------------------------------------

// Keys of blocks [di, n_block]: the normed mean of their members' raw keys, rotated to where the block begins.
static struct ggml_tensor *block_keys(struct graph *g, const struct layer *l, struct ggml_tensor *rows, int il) {
    struct ggml_context *c = g->ctx;
    const int64_t d = rows->ne[0], n = g->hp->compress_ratio[il], n_block = rows->ne[1] / n;
    struct ggml_tensor *sum = NULL;
    for (int64_t i = 0; i < n; i++) {
        struct ggml_tensor *v = ggml_view_2d(c, rows, d, n_block, rows->nb[1] * (size_t) n, (size_t) i * rows->nb[1]);
        sum = sum ? ggml_add(c, sum, v) : v;
    }
    struct ggml_tensor *k = blk_norm(g, ggml_scale(c, sum, 1.0f / (float) n), &l->idx_k_norm, NORM_RMS);
    struct rope_opts r = rope_layer(g, il);
    r.pos = in_pool_pos(g, il, (int) n);
    return blk_f16_rounded(g, ggml_reshape_2d(c, blk_rope_ext(g, ggml_reshape_3d(c, k, d, 1, n_block), &r), d, n_block));
}

static struct ggml_tensor *choose(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_context *c = g->ctx;
    const struct hparams *hp = g->hp;
    const int64_t d = hp->idx_dim, n = hp->idx_head, t = x->ne[1];
    struct ggml_tensor *rows = blk_cache_extra(g, blk_f16_rounded(g, blk_linear(g, &l->idx_k_proj, x)), il);
    struct ggml_tensor *q =
        blk_norm(g, ggml_reshape_3d(c, blk_linear(g, &l->idx_q_proj, x), d, n, t), &l->idx_q_norm, NORM_RMS);
    struct ggml_tensor *s = attn_index_scores(g, blk_rope(g, q, il), block_keys(g, l, rows, il), NULL);
    const int ratio = hp->compress_ratio[il];
    return attn_keep_pools(g, ggml_scale(c, s, 1.0f / sqrtf((float) d)), il, ratio, hp->idx_top_k / ratio, true);
}

static struct ggml_tensor *mixer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    if (g->hp->is_recr[il]) return blk_gated_delta(g, l, x, il, true);
    struct ggml_tensor *keep = l->idx_k_proj.w ? choose(g, l, x, il) : NULL;
    return blk_self_attn(g, l, x, il, &(struct attn_opts){.qk_norm = QK_NORM_HEAD, .q_gated = true, .keep = keep});
}

// ---- embeddings of n-grams ----------------------------------------------------------------------------------------------

// Tokens as numbers from 1 on, because 0 (a fresh state, an embedded image) means that there is none.
static void fill_numbers(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    (void) in;
    (void) g;
    for (int i = 0; i < ub->n.n_tokens; i++) ((float *) dst)[i] = ub->token ? (float) (ub->token[i] + 1) : 0.0f;
}

// dst [tables, T]: rows of all tables. src: numbers [n - 1 + t, 1, S], the earlier tokens in front. Whatever lies before an end of text counts as one.
static void hash_ngrams(struct ggml_tensor *dst, int ith, int nth, void *ud) {
    const struct hparams *hp = ud;
    const struct ggml_tensor *num = dst->src[0];
    const int n = hp->ple_ngram, heads = hp->ple_heads;
    const int64_t t = num->ne[0] - (n - 1);
    for (int64_t i = ith; i < dst->ne[1]; i += nth) {
        const float *at =
            (const float *) (const void *) ((const char *) num->data + (size_t) (i / t) * num->nb[2]) + i % t + n - 1;
        int32_t *out = (int32_t *) (void *) ((char *) dst->data + (size_t) i * dst->nb[1]);
        const int32_t own = at[0] > 0 ? (int32_t) at[0] - 1 : hp->ple_eos;
        uint64_t mix = (uint64_t) own * hp->ple_mul[0];
        bool ended = false;
        for (int k = 1; k < n; k++) {
            const int32_t tok = at[-k] > 0 ? (int32_t) at[-k] - 1 : hp->ple_eos;
            ended |= tok == hp->ple_eos;
            mix ^= (uint64_t) (ended ? hp->ple_eos : tok) * hp->ple_mul[k];
            for (int h = (k - 1) * heads; h < k * heads; h++)
                out[h] = (int32_t) (mix % (uint64_t) hp->ple_rows[h]) + (int32_t) hp->ple_offset[h];
        }
    }
}

// Causal convolution whose taps lie ple_ngram tokens apart; z [hc * E, t, S].
static struct ggml_tensor *dilated_conv(struct graph *g, const struct layer *l, struct ggml_tensor *z, int il,
                                        int state_off) {
    struct ggml_context *c = g->ctx;
    const int64_t k = g->hp->ple_conv, step = g->hp->ple_ngram, n_ch = z->ne[0], t = z->ne[1], n = z->ne[2];
    struct ggml_tensor *sx = blk_conv_input(g, z, (k - 1) * step, il, state_off), *w = blk_f32(g, l->ple_conv1d.w),
                       *sum = NULL;
    for (int64_t i = 0; i < k; i++) {
        struct ggml_tensor *v = ggml_view_3d(c, sx, t, n_ch, n, sx->nb[1], sx->nb[2], (size_t) (i * step) * sizeof(float));
        v = ggml_mul(c, v, ggml_cont(c, ggml_view_2d(c, w, 1, n_ch, w->nb[1], (size_t) i * sizeof(float))));
        sum = sum ? ggml_add(c, sum, v) : v;
    }
    return ggml_cont(c, ggml_permute(c, ggml_silu(c, sum), 1, 0, 2, 3));
}

static struct ggml_tensor *add_ngrams(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_context *c = g->ctx;
    const struct hparams *hp = g->hp;
    const int64_t e = hp->n_embd, hc = hp->n_hc, t = x->ne[1], n_table = (hp->ple_ngram - 1) * hp->ple_heads;
    const int off = (hp->ssm_conv - 1) * (2 * hp->ssm_group + hp->ssm_dt_rank) * hp->ssm_state,
              off_num = off + (hp->ple_conv - 1) * hp->ple_ngram * (int) (hc * e);
    struct ggml_tensor *num = graph_input(g, GGML_TYPE_F32, 1, t, fill_numbers, 0, 0, 0)->t;
    struct ggml_tensor *args[1] = {blk_conv_input(g, blk_by_seq(g, num), hp->ple_ngram - 1, il, off_num)};
    struct ggml_tensor *ids =
        ggml_custom_4d(c, GGML_TYPE_I32, n_table, t, 1, 1, args, 1, hash_ngrams, GGML_N_TASKS_MAX, (void *) (uintptr_t) hp);
    struct ggml_tensor *emb = ggml_get_rows(c, g->w->per_layer_token_embd.w, ggml_reshape_1d(c, ids, n_table * t));
    emb = ggml_reshape_2d(c, emb, e, t);
    // how well a stream fits its key says how much of the value it takes
    struct ggml_tensor *key = normed(g, streams(g, blk_linear(g, &l->ple_key, emb)), &l->ple_norm_key);
    struct ggml_tensor *fit = ggml_sum_rows(c, ggml_mul(c, key, normed(g, streams(g, x), &l->ple_norm_query)));
    fit = ggml_scale(c, fit, 1.0f / sqrtf((float) e));
    struct ggml_tensor *gate = ggml_sqrt(c, ggml_clamp(c, ggml_abs(c, fit), 1e-6f, INFINITY));
    gate = ggml_sigmoid(c, ggml_mul(c, ggml_sgn(c, fit), gate));
    struct ggml_tensor *v = ggml_repeat_4d(c, ggml_reshape_3d(c, blk_linear(g, &l->ple_value, emb), e, 1, t), e, hc, t, 1);
    v = ggml_mul(c, v, gate);
    struct ggml_tensor *z = ggml_reshape_2d(c, normed(g, v, &l->ple_norm_conv), e * hc, t);
    struct ggml_tensor *y = ggml_reshape_2d(c, dilated_conv(g, l, blk_by_seq(g, z), il, off), e * hc, t);
    return ggml_add(c, x, ggml_add(c, ggml_reshape_2d(c, v, e * hc, t), y));
}

// ---- the way through ----------------------------------------------------------------------------------------------------

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    if (il == g->hp->ple_layer) x = add_ngrams(g, l, x, il);
    struct ggml_tensor *flat, *cur = mixture(g, x, &l->hc_attn_norm, &l->hc_attn_down, &l->hc_attn_up, &flat);
    struct ggml_tensor *logits = blk_linear(g, &l->hc_attn_inject, flat);
    cur = mixer(g, l, cur, il);
    blk_select3(g, il, &cur, &x, &logits);
    x = inject(g, x, cur, logits);
    cur = mixture(g, x, &l->hc_ffn_norm, &l->hc_ffn_down, &l->hc_ffn_up, &flat);
    logits = blk_linear(g, &l->hc_ffn_inject, flat);
    return inject(g, x, blk_network(g, l, cur, il, &(struct form_opts){.moe = {.gate = GATE_SOFTMAX, .norm = true}}),
                  logits);
}

static struct ggml_tensor *embed(struct graph *g) { return blk_hc_begin(g, blk_embed(g, 0)); }

static void head(struct graph *g, struct ggml_tensor *x) {
    x = mixture(g, x, &g->w->output_hc_norm, &g->w->output_hc_down, &g->w->output_hc_up, NULL);
    blk_head(g, x, &(struct head_opts){.no_norm = true});
}

const struct arch arch_qwen4exp = {
    .name = "qwen4exp",
    .flags = ARCH_HYBRID,
    .rope = LLAMA_ROPE_TYPE_IMROPE,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .cache_k = "(rec==0)*K*D",
    .cache_v = "(rec==0)*K*D",
    .cache_x = "(rec==0&&cr>0)*di",
    .state_r = "(k-1)*(2*ng*N+nh*N)+(i==plel)*((plek-1)*pleg*hc*E+pleg-1)",
    .state_s = "nh*N*N",
    .nodes = 256,
    .embed = embed,
    .layer = layer,
    .head_fn = head,
};
