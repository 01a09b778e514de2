// Norms.
#include "block/block.h"

#include <math.h>

// x / sqrt(sum x^2 + eps). ggml_l2_norm has max(length, eps) below the line, which differs where rows are short.
static struct ggml_tensor *l2(struct graph *g, struct ggml_tensor *x, float eps) {
    const float n = (float) x->ne[0];
    return ggml_scale(g->ctx, ggml_rms_norm(g->ctx, x, eps / n), 1.0f / sqrtf(n));
}

struct ggml_tensor *blk_norm_eps(struct graph *g, struct ggml_tensor *x, const struct weight *w, enum norm kind, float eps) {
    struct ggml_tensor *y = kind == NORM_RMS  ? ggml_rms_norm(g->ctx, x, eps)
                            : kind == NORM_LN ? ggml_norm(g->ctx, x, eps)
                                              : l2(g, x, eps);
    if (w && w->w) y = ggml_mul(g->ctx, y, w->w);
    if (w && w->b) y = ggml_add(g->ctx, y, w->b);
    return y;
}

struct ggml_tensor *blk_norm(struct graph *g, struct ggml_tensor *x, const struct weight *w, enum norm kind) {
    return blk_norm_eps(g, x, w, kind, g->hp->eps);
}

struct ggml_tensor *blk_row_norm(struct graph *g, struct ggml_tensor *x, const struct weight *w, enum norm kind) {
    const int64_t d = x->ne[0], h = x->ne[1], t = x->ne[2];
    return ggml_reshape_3d(g->ctx, blk_norm(g, blk_flat(g, x), w, kind), d, h, t);
}

struct ggml_tensor *blk_flat(struct graph *g, struct ggml_tensor *t) {
    if (ggml_is_contiguous(t)) return ggml_reshape_2d(g->ctx, t, t->ne[0] * t->ne[1], t->ne[2]);
    if (t->nb[1] == ggml_row_size(t->type, t->ne[0]) && !g->train)
        return ggml_view_2d(g->ctx, t, t->ne[0] * t->ne[1], t->ne[2], t->nb[2], 0);
    return ggml_cont_2d(g->ctx, t, t->ne[0] * t->ne[1], t->ne[2]);
}

struct ggml_tensor *blk_name(struct ggml_tensor *t, const char *name, int il) {
    if (!t || ggml_is_error(t)) return t;
    int n = 0;
    while (name[n] && n < GGML_MAX_NAME - 8) {
        t->name[n] = name[n];
        n++;
    }
    if (il >= 0) {
        char digits[8];
        int k = 0;
        do digits[k++] = (char) ('0' + il % 10);
        while ((il /= 10) && k < 6);
        t->name[n++] = '-';
        while (k) t->name[n++] = digits[--k];
    }
    t->name[n] = 0;
    return t;
}
