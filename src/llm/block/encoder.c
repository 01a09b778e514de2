// What BERT-like encoders have in common around their layers.
#include "block/block.h"

struct ggml_tensor *blk_encoder_embed(struct graph *g) {
    struct ggml_context *c = g->ctx;
    struct ggml_tensor *x = blk_embed(g, 0), *types = g->w->token_types.w;
    if (types) x = ggml_add(c, x, ggml_view_1d(c, types, types->ne[0], 0));  // every token is of type 0
    if (g->w->position_embd.w) x = ggml_add(c, x, blk_pos_rows(g, g->w->position_embd.w));
    return blk_norm(g, x, &g->w->token_embd_norm, NORM_LN);
}

void blk_encoder_head(struct graph *g, struct ggml_tensor *x) { blk_head(g, x, &(struct head_opts){.no_norm = true}); }

struct ggml_tensor *blk_encoder_pooled(struct graph *g, struct ggml_tensor *x, enum llama_pooling_type kind) {
    if (kind != LLAMA_POOLING_TYPE_RANK) return blk_pool(g, x, kind);
    // shipped files say that attention isn't causal; where that is missing, the last token stands for the text
    x = blk_pool(g, x, g->hp->rank_last ? LLAMA_POOLING_TYPE_LAST : LLAMA_POOLING_TYPE_CLS);
    if (g->w->cls.w) x = ggml_tanh(g->ctx, blk_linear(g, &g->w->cls, x));
    return g->w->cls_out.w ? blk_linear(g, &g->w->cls_out, x) : x;
}
