// Where the residual stream begins, and where rows that nobody wants leave it.
#include "block/block.h"

struct ggml_tensor *blk_embed(struct graph *g, float scale) {
    if (!g->n.has_token) return in_embd(g);
    struct ggml_tensor *x = ggml_get_rows(g->ctx, g->w->token_embd.w, in_tokens(g));
    if (scale != 0.0f && scale != 1.0f) x = ggml_scale(g->ctx, x, scale);
    return blk_name(x, "embd", -1);
}

struct ggml_tensor *blk_pos_rows(struct graph *g, struct ggml_tensor *table) {
    return ggml_get_rows(g->ctx, table, in_pos(g));
}

static void keep_rows(struct graph *g, struct ggml_tensor **t) {
    if (t && *t) *t = ggml_get_rows(g->ctx, *t, in_out_rows(g));
}

void blk_select3(struct graph *g, int il, struct ggml_tensor **a, struct ggml_tensor **b, struct ggml_tensor **c) {
    if (il != g->hp->n_layer - 1 || g->n_rows != g->n.n_tokens) return;
    if (g->n.n_outputs == g->n.n_tokens || g->n.n_outputs == 0) return;
    keep_rows(g, a);
    keep_rows(g, b);
    keep_rows(g, c);
    g->n_rows = g->n.n_outputs;
}

void blk_select(struct graph *g, int il, struct ggml_tensor **a, struct ggml_tensor **b) {
    blk_select3(g, il, a, b, NULL);
}

struct ggml_tensor *blk_deep_slice(struct graph *g, int i) {
    struct ggml_tensor *e = in_embd(g);
    const int64_t n = g->hp->n_embd;
    return ggml_cont(g->ctx, ggml_view_2d(g->ctx, e, n, e->ne[1], e->nb[1], (size_t) i * (size_t) n * sizeof(float)));
}
