// bert: the encoder of sentence embeddings and rerankers: learned positions, norms after each branch.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_LN,
    {"tokenizer.ggml.token_type_count", HP_n_token_types, REQ, KEY_GLOBAL},
    {"classifier.output_labels", HP_n_cls_out, "1", 0},
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    {SLOT_token_embd, "E,V", 0, 0, 0, 0, "embeddings.word_embeddings"}, {SLOT_token_types, "E,ntt", T_OPT, 0, 0, 0, "embeddings.token_type_embeddings"},
    {SLOT_position_embd, "E,C", 0, 0, 0, 0, "embeddings.position_embeddings"}, {SLOT_token_embd_norm, "E", T_BIAS, 0, 0, 0, "embeddings.LayerNorm"},
    {SLOT_cls, "E,E", T_OPT | T_BIAS_OPT, 0, 0, 0, 0}, {SLOT_cls_out, "E,ncls", T_OPT | T_BIAS_OPT, 0, 0, 0, 0},
    {SLOT_attn_qkv, "E,H*D+K*D+K*Dv", T_OPT | T_BIAS_OPT | T_SCALE, 0, 0, 0, 0},
    {SLOT_attn_q, "E,H*D", T_BIAS_OPT | T_SCALE, 0, SLOT_attn_qkv, 0, "attention.self.query"},
    {SLOT_attn_k, "E,K*D", T_BIAS_OPT | T_SCALE, 0, SLOT_attn_qkv, 0, "attention.self.key"},
    {SLOT_attn_v, "E,K*Dv", T_BIAS_OPT | T_SCALE, 0, SLOT_attn_qkv, 0, "attention.self.value"},
    {SLOT_attn_output, "E,E", T_BIAS_OPT | T_SCALE, 0, 0, 0, "attention.output.dense"},
    {SLOT_attn_output_norm, "E", T_BIAS, 0, 0, 0, "attention.output.LayerNorm"},
    {SLOT_ffn_up, "E,F", T_BIAS_OPT, 0, 0, 0, "intermediate.dense"}, {SLOT_ffn_down, "F,E", T_BIAS_OPT, 0, 0, 0, "output.dense"},
    {SLOT_layer_output_norm, "E", T_BIAS, 0, 0, 0, "output.LayerNorm"},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    return arch_require(hp->n_token_types > 0, b, "it must have token types");
}

static struct ggml_tensor *embed(struct graph *g) {
    struct ggml_context *c = g->ctx;
    struct ggml_tensor *x = blk_embed(g, 0), *types = g->w->token_types.w;
    if (types) x = ggml_add(c, x, ggml_view_1d(c, types, types->ne[0], 0));  // every token is of type 0
    x = ggml_add(c, x, blk_pos_rows(g, g->w->position_embd.w));
    return blk_norm(g, x, &g->w->token_embd_norm, NORM_LN);
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *cur = blk_self_attn(g, l, x, il, &(struct attn_opts){0});
    blk_select(g, il, &cur, &x);
    x = blk_norm(g, ggml_add(g->ctx, cur, x), &l->attn_output_norm, NORM_LN);
    cur = blk_ffn_layer(g, l, x, ACT_GELU);
    return blk_norm(g, ggml_add(g->ctx, cur, x), &l->layer_output_norm, NORM_LN);
}

static void head(struct graph *g, struct ggml_tensor *x) {
    blk_head(g, x, &(struct head_opts){.no_norm = true});
}

static struct ggml_tensor *pooled(struct graph *g, struct ggml_tensor *x, enum llama_pooling_type kind) {
    if (kind != LLAMA_POOLING_TYPE_RANK) return blk_pool(g, x, kind);
    // shipped files say that attention isn't causal; where that is missing, the last token stands for the text
    x = blk_pool(g, x, g->hp->rank_last ? LLAMA_POOLING_TYPE_LAST : LLAMA_POOLING_TYPE_CLS);
    if (g->w->cls.w) x = ggml_tanh(g->ctx, blk_linear(g, &g->w->cls, x));
    return g->w->cls_out.w ? blk_linear(g, &g->w->cls_out, x) : x;
}

const struct arch arch_bert = {
    .name = "bert",
    .flags = ARCH_ENCODER,
    .rope = LLAMA_ROPE_TYPE_NONE,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .embed = embed,
    .layer = layer,
    .head_fn = head,
    .pooled = pooled,
};
