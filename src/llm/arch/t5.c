// t5: an encoder whose states a decoder attends to; positions are learned biases on buckets of distance (arXiv 1910.10683).
// t5encoder is its first half.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS,
    {"attention.relative_buckets_count", HP_n_rel_buckets, REQ, 0},
    {"decoder_block_count", HP_n_dec_layer, "L", 0},
    {"decoder_start_token_id", HP_dec_start_token, "-1", 0},
    {NULL, 0, NULL, 0},
};

static const struct arch_key keys_encoder[] = {
    K_RMS, {"attention.relative_buckets_count", HP_n_rel_buckets, REQ, 0}, {NULL, 0, NULL, 0}};

#define SIDE(fl)                                                                                                            \
    {SLOT_attn_norm, "E", fl, 0, 0, 0, 0}, {SLOT_attn_q, "E,H*D", fl, 0, 0, 0, 0}, {SLOT_attn_k, "E,H*D", fl, 0, 0, 0, 0},  \
        {SLOT_attn_v, "E,H*D", fl, 0, 0, 0, 0}, {SLOT_attn_output, "H*D,E", fl, 0, 0, "attn_o", 0},                         \
        {SLOT_attn_rel_b, "H,nb", fl, "i==0", 0, 0, 0}, {SLOT_attn_rel_b, "H,nb", fl | T_OPT, "i>0", 0, 0, 0},              \
        {SLOT_ffn_norm, "E", fl, 0, 0, 0, 0}, {SLOT_ffn_gate, "E,F", fl | T_OPT, 0, 0, 0, 0},                               \
        {SLOT_ffn_up, "E,F", fl, 0, 0, 0, 0}, {                                                                             \
        SLOT_ffn_down, "F,E", fl, 0, 0, 0, 0                                                                                \
    }

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_TIED,
    {SLOT_enc_output_norm, "E", 0, 0, 0, 0, 0},
    {SLOT_dec_output_norm, "E", 0, 0, 0, 0, 0},
    SIDE(T_ENC),
    SIDE(T_DEC),
    {SLOT_cross_attn_norm, "E", T_DEC, 0, 0, 0, 0},
    {SLOT_cross_attn_q, "E,H*D", T_DEC, 0, 0, 0, 0},
    {SLOT_cross_attn_k, "E,H*D", T_DEC, 0, 0, 0, 0},
    {SLOT_cross_attn_v, "E,H*D", T_DEC, 0, 0, 0, 0},
    {SLOT_cross_attn_o, "H*D,E", T_DEC, 0, 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static const struct arch_tensor tensors_encoder[] = {
    T_EMBD, {SLOT_enc_output_norm, "E", 0, 0, 0, 0, 0}, SIDE(T_ENC), {SLOT_NONE, NULL, 0, 0, 0, 0, 0}};

static enum err setup_encoder(struct hparams *hp, const struct model_build *b) {
    for (int i = 0; i < hp->n_block; i++)
        TRY(arch_require(hp->n_head_kv[i] == hp->n_head[i], b, "every head must have keys of its own"));
    return arch_require(hp->n_rel_buckets >= 4, b, "it must have at least 4 buckets of distance");
}

static enum err setup(struct hparams *hp, const struct model_build *b) {
    TRY(arch_require(hp->n_dec_layer >= 1 && hp->n_dec_layer <= MAX_LAYERS, b, "it must have 1 to 512 decoder layers"));
    TRY(setup_encoder(hp, b));
    hp->n_layer = hp->n_dec_layer;
    for (int i = hp->n_block; i < hp->n_layer; i++) {  // the decoder's layers are like the encoder's
        hp->n_head[i] = hp->n_head[0];
        hp->n_head_kv[i] = hp->n_head_kv[0];
        hp->n_ff[i] = hp->n_ff[0];
    }
    return ERR_OK;
}

// [n_cell, T, H]: the bias of every query and key, from this layer's table or the first one's.
static struct ggml_tensor *rel_bias(struct graph *g, const struct layer *l, const struct layer *first, int il, bool both) {
    struct ggml_context *c = g->ctx;
    struct ggml_tensor *table = l->attn_rel_b.w ? l->attn_rel_b.w : first->attn_rel_b.w;
    struct ggml_tensor *buckets = in_rel_buckets(g, il, g->hp->n_rel_buckets, both);
    struct ggml_tensor *b = ggml_get_rows(c, table, buckets);  // [H, n_cell * T]
    b = ggml_reshape_3d(c, b, table->ne[0], buckets->ne[0] / g->n.n_tokens, g->n.n_tokens);
    return ggml_cont(c, ggml_permute(c, b, 2, 0, 1, 3));
}

static struct ggml_tensor *self_attention(struct graph *g, const struct layer *l, const struct layer *first,
                                          struct ggml_tensor *x, int il, bool both) {
    struct ggml_tensor *cur = blk_norm(g, x, &l->attn_norm, NORM_RMS);
    const struct attn_opts o = {.scale = 1.0f, .no_rope = true, .bias = rel_bias(g, l, first, il, both)};
    return ggml_add(g->ctx, blk_self_attn(g, l, cur, il, &o), x);
}

static struct ggml_tensor *ffn(struct graph *g, const struct layer *l, struct ggml_tensor *x) {
    struct ggml_tensor *cur = blk_norm(g, x, &l->ffn_norm, NORM_RMS);
    return ggml_add(g->ctx, blk_ffn_layer(g, l, cur, l->ffn_gate.w ? ACT_GELU : ACT_RELU), x);
}

static struct ggml_tensor *encoder(struct graph *g) {
    struct ggml_tensor *x = blk_embed(g, 0);
    for (int il = 0; il < g->hp->n_block; il++)
        x = ffn(g, &g->enc_layers[il], self_attention(g, &g->enc_layers[il], &g->enc_layers[0], x, il, true));
    return blk_norm(g, x, &g->w->enc_output_norm, NORM_RMS);
}

static struct ggml_tensor *cross(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_context *c = g->ctx;
    const int64_t d = g->hp->n_embd_head_k[il], h = g->hp->n_head[il];
    struct ggml_tensor *states = in_cross(g), *cur = blk_norm(g, x, &l->cross_attn_norm, NORM_RMS);
    struct ggml_tensor *q = ggml_reshape_3d(c, blk_linear(g, &l->cross_attn_q, cur), d, h, cur->ne[1]);
    struct ggml_tensor *k = ggml_reshape_3d(c, blk_linear(g, &l->cross_attn_k, states), d, h, states->ne[1]);
    struct ggml_tensor *v = ggml_reshape_3d(c, blk_linear(g, &l->cross_attn_v, states), d, h, states->ne[1]);
    return ggml_add(c, blk_linear(g, &l->cross_attn_o, blk_cross_attend(g, q, k, v, 1.0f)), x);
}

static void build(struct graph *g) {
    if (g->n.encode) {
        g->enc_out = g->embd = blk_name(encoder(g), "result_norm", -1);
        return;
    }
    struct ggml_tensor *x = blk_embed(g, 0);
    for (int il = 0; il < g->hp->n_layer; il++) {
        const struct layer *l = &g->layers[il];
        x = cross(g, l, self_attention(g, l, &g->layers[0], x, il, false), il);
        blk_select(g, il, &x, NULL);
        x = ffn(g, l, x);
    }
    if (g->n.n_outputs > 0) blk_head(g, x, &(struct head_opts){.norm_w = &g->w->dec_output_norm});
}

static void build_encoder(struct graph *g) {
    struct ggml_tensor *x = encoder(g);
    blk_head(g, x, &(struct head_opts){.no_norm = true});
}

const struct arch arch_t5 = {
    .name = "t5",
    .flags = ARCH_ENCODER_DECODER,
    .rope = LLAMA_ROPE_TYPE_NONE,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .cache_k = "H*D",
    .cache_v = "H*D",
    .build = build,
};

const struct arch arch_t5encoder = {
    .name = "t5encoder",
    .flags = ARCH_ENCODER,
    .rope = LLAMA_ROPE_TYPE_NONE,
    .keys = keys_encoder,
    .tensors = tensors_encoder,
    .setup = setup_encoder,
    .build = build_encoder,
};
