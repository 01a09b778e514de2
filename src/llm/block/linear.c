// Linear maps with their biases, scales and low-rank adapters.
#include "block/block.h"

static const struct lora_pair *find_pair(const struct lora *lo, const struct ggml_tensor *w) {
    if (!lo->n_slots) return NULL;
    const uint32_t mask = lo->n_slots - 1;
    for (uint32_t i = (uint32_t) ((uintptr_t) w >> 5) & mask;; i = (i + 1) & mask) {
        if (!lo->pairs[i].w) return NULL;
        if (lo->pairs[i].w == w) return &lo->pairs[i];
    }
}

static struct ggml_tensor *add_loras(struct graph *g, struct ggml_tensor *w, struct ggml_tensor *x, struct ggml_tensor *ids,
                                     struct ggml_tensor *y) {
    for (int i = 0; g->loras && i < g->loras->n; i++) {
        const struct lora_pair *p = find_pair(g->loras->lora[i], w);
        if (!p) continue;
        struct ggml_tensor *d = ids ? ggml_mul_mat_id(g->ctx, p->b, ggml_mul_mat_id(g->ctx, p->a, x, ids), ids)
                                    : ggml_mul_mat(g->ctx, p->b, ggml_mul_mat(g->ctx, p->a, x));
        y = ggml_add(g->ctx, y, ggml_scale(g->ctx, d, p->scale * g->loras->scale[i]));
    }
    return y;
}

struct ggml_tensor *blk_f32(struct graph *g, struct ggml_tensor *t) {
    return t && t->type != GGML_TYPE_F32 ? ggml_cast(g->ctx, t, GGML_TYPE_F32) : t;
}

struct ggml_tensor *blk_matmul(struct graph *g, struct ggml_tensor *w, struct ggml_tensor *x) {
    return add_loras(g, w, x, NULL, ggml_mul_mat(g->ctx, w, x));
}

struct ggml_tensor *blk_linear(struct graph *g, const struct weight *w, struct ggml_tensor *x) {
    struct ggml_tensor *y = blk_matmul(g, w->w, x);
    if (w->s) y = ggml_mul(g->ctx, y, w->s);
    if (w->b) y = ggml_add(g->ctx, y, w->b);
    return y;
}

struct ggml_tensor *blk_linear_id(struct graph *g, const struct weight *w, struct ggml_tensor *x, struct ggml_tensor *ids) {
    struct ggml_tensor *y = add_loras(g, w->w, x, ids, ggml_mul_mat_id(g->ctx, w->w, x, ids));
    if (w->s) {
        // the scale of the expert in each place: [1, X] -> [1, U, T]
        const int64_t n_expert = ggml_nelements(w->s), n_used = ids->ne[0], n_tok = ids->ne[1];
        struct ggml_tensor *s = ggml_repeat_4d(g->ctx, ggml_reshape_3d(g->ctx, w->s, 1, n_expert, 1), 1, n_expert, n_tok, 1);
        y = ggml_mul(g->ctx, y, ggml_reshape_3d(g->ctx, ggml_get_rows(g->ctx, s, ids), 1, n_used, n_tok));
    }
    if (w->b) y = ggml_add_id(g->ctx, y, w->b, ids);
    return y;
}
