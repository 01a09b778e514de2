// Where the residual stream begins, and where rows that nobody wants leave it.
#include "block/block.h"

#include <math.h>

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

void blk_select(struct graph *g, int il, struct ggml_tensor **a, struct ggml_tensor **b) { blk_select3(g, il, a, b, NULL); }

struct ggml_tensor *blk_deep_slice(struct graph *g, int i) {
    struct ggml_tensor *e = in_embd(g);
    const int64_t n = g->hp->n_embd;
    return ggml_cont(g->ctx, ggml_view_2d(g->ctx, e, n, e->ne[1], e->nb[1], (size_t) i * (size_t) n * sizeof(float)));
}

struct ggml_tensor *blk_per_layer_inputs(struct graph *g, struct ggml_tensor *x) {
    struct ggml_context *c = g->ctx;
    const int64_t ep = g->hp->n_embd_per_layer, n_layer = g->hp->n_layer, t = x->ne[1];
    struct ggml_tensor *p =
        ggml_scale(c, blk_linear(g, &g->w->per_layer_model_proj, x), 1.0f / sqrtf((float) g->hp->n_embd));
    p = blk_norm(g, ggml_reshape_3d(c, p, ep, n_layer, t), &g->w->per_layer_proj_norm, NORM_RMS);
    if (g->n.has_token) {
        struct ggml_tensor *rows =
            ggml_scale(c, ggml_get_rows(c, g->w->per_layer_token_embd.w, in_tokens(g)), sqrtf((float) ep));
        p = ggml_add(c, p, ggml_reshape_3d(c, rows, ep, n_layer, t));
    }
    return ggml_scale(c, p, 1.0f / sqrtf(2.0f));
}

struct ggml_tensor *blk_per_layer_branch(struct graph *g, const struct layer *l, struct ggml_tensor *x,
                                         struct ggml_tensor *p) {
    struct ggml_tensor *y = ggml_mul(g->ctx, ggml_gelu(g->ctx, blk_linear(g, &l->inp_gate, x)), p);
    return blk_norm(g, blk_linear(g, &l->proj, y), &l->post_norm, NORM_RMS);
}
