// Sparse attention: which of its visible positions a query attends to. Selections are masks (0 or -inf) over the cells of the cache, added to
// attention's own mask.
#include <math.h>
#include <string.h>

#include "block/block.h"

// Ties at the border decide which positions count, so the order of choosing is part of the result: the first k candidates in order of
// position form a heap whose root is the smallest score; a later one that is strictly greater replaces the root. The moves are those
// of C++ libraries' partial_sort: the hole sinks to the bottom along the smaller children (the right one if equal), then the new
// element climbs up, no higher than where the hole began.
struct heap {
    const float *score;
    int32_t *item;
    int32_t n;
};

static void heap_sift(struct heap *h, int32_t from, int32_t item) {
    int32_t hole = from, child = hole;
    while (child < (h->n - 1) / 2) {
        child = 2 * (child + 1);
        if (h->score[h->item[child]] > h->score[h->item[child - 1]]) child--;
        h->item[hole] = h->item[child];
        hole = child;
    }
    if (h->n % 2 == 0 && child == (h->n - 2) / 2) {
        child = 2 * child + 1;
        h->item[hole] = h->item[child];
        hole = child;
    }
    while (hole > from) {
        const int32_t parent = (hole - 1) / 2;
        if (!(h->score[h->item[parent]] > h->score[item])) break;
        h->item[hole] = h->item[parent];
        hole = parent;
    }
    h->item[hole] = item;
}

// Candidates (cells) are in order of position; the chosen k end up in h->item.
static void heap_select(struct heap *h, const int32_t *cand, int32_t n, int32_t k) {
    h->n = k < n ? k : n;
    memcpy(h->item, cand, (size_t) h->n * 4);
    for (int32_t i = (h->n - 2) / 2; i >= 0 && h->n > 1; i--) heap_sift(h, i, h->item[i]);
    for (int32_t i = h->n; i < n; i++)
        if (h->score[cand[i]] > h->score[h->item[0]]) heap_sift(h, 0, cand[i]);
}

// dst [n_cell, T]: 0 in the chosen cells, else -inf. src: scores [n_cell, T], positions [n_cell, T] (-1: not visible), work [2 n_cell, T].
static void keep_top(struct ggml_tensor *dst, int ith, int nth, void *ud) {
    const struct ggml_tensor *score = dst->src[0], *pos = dst->src[1], *work = dst->src[2];
    const int64_t n = dst->ne[0];
    const int32_t k = (int32_t) (intptr_t) ud;
    for (int64_t t = ith; t < dst->ne[1]; t += nth) {
        float *out = (float *) (void *) ((char *) dst->data + (size_t) t * dst->nb[1]);
        const int32_t *p = (const int32_t *) (const void *) ((const char *) pos->data + (size_t) t * pos->nb[1]);
        int32_t *by_pos = (int32_t *) (void *) ((char *) work->data + (size_t) t * work->nb[1]), *item = by_pos + n;
        struct heap h = {.score = (const float *) (const void *) ((const char *) score->data + (size_t) t * score->nb[1]), .item = item};
        // cells in order of position: positions of one sequence are distinct and lie in 0 .. n_visible + gaps
        int32_t m = 0;
        for (int64_t c = 0; c < n; c++)
            if (p[c] >= 0) by_pos[m++] = (int32_t) c;
        // cells come in blocks of rising positions, so insertion moves whole runs at most
        for (int32_t i = 1; i < m; i++) {
            const int32_t c = by_pos[i];
            int32_t j = i;
            while (j > 0 && p[by_pos[j - 1]] > p[c]) {
                by_pos[j] = by_pos[j - 1];
                j--;
            }
            by_pos[j] = c;
        }
        for (int64_t c = 0; c < n; c++) out[c] = -INFINITY;
        heap_select(&h, by_pos, m, k);
        for (int32_t i = 0; i < h.n; i++) out[h.item[i]] = 0;
    }
}

static void fill_nothing(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    (void) in;
    (void) g;
    (void) ub;
    (void) dst;
}

struct ggml_tensor *attn_keep_top(struct graph *g, struct ggml_tensor *scores, int il, int k) {
    const int64_t n = scores->ne[0], t = scores->ne[1];
    struct ggml_tensor *work = graph_input(g, GGML_TYPE_I32, 2 * n, t, fill_nothing, 0, 0, 0)->t;
    struct ggml_tensor *args[3] = {scores, in_cell_pos(g, il), work};
    return ggml_custom_4d(g->ctx, GGML_TYPE_F32, n, t, 1, 1, args, 3, keep_top, GGML_N_TASKS_MAX, (void *) (intptr_t) k);
}

struct ggml_tensor *attn_index_scores(struct graph *g, struct ggml_tensor *q, struct ggml_tensor *keys, struct ggml_tensor *w) {
    struct ggml_context *c = g->ctx;
    const int64_t n_cell = keys->ne[1], t = q->ne[2];
    // products of every head with every key, [n_cell, heads, T]; no score below zero; heads weighed and added
    struct ggml_tensor *s = ggml_relu(c, ggml_mul_mat(c, keys, ggml_reshape_2d(c, q, q->ne[0], q->ne[1] * t)));
    s = ggml_mul(c, ggml_reshape_3d(c, s, n_cell, q->ne[1], t), ggml_reshape_3d(c, w, 1, q->ne[1], t));
    struct ggml_tensor *sum = NULL;
    for (int64_t h = 0; h < q->ne[1]; h++) {
        struct ggml_tensor *v = ggml_view_2d(c, s, n_cell, t, s->nb[2], (size_t) h * s->nb[1]);
        sum = sum ? ggml_add(c, sum, v) : v;
    }
    return q->ne[1] == 1 ? ggml_cont(c, sum) : sum;
}

struct ggml_tensor *blk_mla_select(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il, const struct mla_index_opts *o) {
    struct ggml_context *c = g->ctx;
    const struct hparams *hp = g->hp;
    const int64_t t = x->ne[1], heads = hp->idx_head, d = hp->idx_dim;
    struct rope_opts r = rope_layer(g, il);
    r.mode = o->mode;
    r.offset = o->rope_last ? (int) d - r.n_rot : 0;
    struct ggml_tensor *low = blk_norm(g, blk_linear(g, &l->attn_q_a, x), &l->attn_q_a_norm, NORM_RMS);
    struct ggml_tensor *q = ggml_reshape_3d(c, blk_linear(g, &l->idx_q_b, low), d, heads, t);
    struct ggml_tensor *k = blk_norm_eps(g, blk_linear(g, &l->idx_k, x), &l->idx_k_norm, NORM_LN, o->eps);
    q = blk_rope_ext(g, q, &r);
    k = blk_rope_ext(g, ggml_reshape_3d(c, k, d, 1, t), &r);
    struct ggml_tensor *w = ggml_scale(c, blk_linear(g, &l->idx_proj, x), 1.0f / sqrtf((float) (d * heads)));
    struct ggml_tensor *keys = blk_cache_extra(g, ggml_reshape_2d(c, k, d, t), il);
    return attn_keep_top(g, attn_index_scores(g, q, keys, w), il, hp->idx_top_k);
}
