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

// Visible cells in order of position into by_pos; how many. Positions of one sequence are distinct.
static int32_t order_cells(const int32_t *p, int64_t n, int32_t *by_pos) {
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
    return m;
}

static void *row_of(const struct ggml_tensor *t, int64_t i) { return (char *) t->data + (size_t) i * t->nb[1]; }

// dst [n_cell, T]: 0 in the chosen cells, else -inf. src: scores [n_cell, T], positions [n_cell, T] (-1: not visible), work [2 n_cell, T].
static void keep_top(struct ggml_tensor *dst, int ith, int nth, void *ud) {
    const int64_t n = dst->ne[0];
    const int32_t k = (int32_t) (intptr_t) ud;
    for (int64_t t = ith; t < dst->ne[1]; t += nth) {
        float *out = row_of(dst, t);
        int32_t *by_pos = row_of(dst->src[2], t);
        struct heap h = {.score = row_of(dst->src[0], t), .item = by_pos + n};
        const int32_t m = order_cells(row_of(dst->src[1], t), n, by_pos);
        for (int64_t c = 0; c < n; c++) out[c] = -INFINITY;
        heap_select(&h, by_pos, m, k);
        for (int32_t i = 0; i < h.n; i++) out[h.item[i]] = 0;
    }
}

// The same with scores [n_cell / n_pool, T]. A pool's members lie side by side, because cells are handed out in blocks whose places are those of
// the positions. ud: n_pool, k, tail.
static void keep_pools(struct ggml_tensor *dst, int ith, int nth, void *ud) {
    const uintptr_t arg = (uintptr_t) ud;
    const int32_t n_pool = (int32_t) (arg & 0xff), k = (int32_t) (arg >> 9);
    const bool tail = arg >> 8 & 1;
    const int64_t n = dst->ne[0];
    for (int64_t t = ith; t < dst->ne[1]; t += nth) {
        float *out = row_of(dst, t);
        const int32_t *p = row_of(dst->src[1], t);
        int32_t *by_pos = row_of(dst->src[2], t);
        struct heap h = {.score = row_of(dst->src[0], t), .item = by_pos + n};
        const int32_t m = order_cells(p, n, by_pos);
        for (int64_t c = 0; c < n; c++) out[c] = -INFINITY;
        const int32_t n_complete = m ? (p[by_pos[m - 1]] + 1) / n_pool * n_pool : 0;  // the last one is the query's own
        int32_t n_cand = 0;
        for (int32_t i = 0; i < m; i++) {
            const int32_t at = p[by_pos[i]];
            if (at >= n_complete) {
                if (tail) out[by_pos[i]] = 0;
                continue;
            }
            // a pool with holes (positions that were removed) is none
            if (at % n_pool == 0 && i + n_pool <= m && p[by_pos[i + n_pool - 1]] == at + n_pool - 1)
                by_pos[n_cand++] = by_pos[i] / n_pool;
        }
        heap_select(&h, by_pos, n_cand, k);
        for (int32_t i = 0; i < h.n; i++)
            for (int32_t j = 0; j < n_pool; j++) out[h.item[i] * n_pool + j] = 0;
    }
}

static void fill_nothing(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    (void) in;
    (void) g;
    (void) ub;
    (void) dst;
}

static struct ggml_tensor *keep_top_at(struct graph *g, struct ggml_tensor *scores, struct ggml_tensor *pos, int k,
                                       int work_id) {
    const int64_t n = scores->ne[0], t = scores->ne[1];
    struct ggml_tensor *work = graph_input(g, GGML_TYPE_I32, 2 * n, t, fill_nothing, work_id, 0, 0)->t;
    struct ggml_tensor *args[3] = {scores, pos, work};
    return ggml_custom_4d(g->ctx, GGML_TYPE_F32, n, t, 1, 1, args, 3, keep_top, GGML_N_TASKS_MAX, (void *) (intptr_t) k);
}

struct ggml_tensor *attn_keep_top(struct graph *g, struct ggml_tensor *scores, int il, int k) {
    return keep_top_at(g, scores, in_cell_pos(g, il), k, 0);
}

struct ggml_tensor *attn_keep_top_at(struct graph *g, struct ggml_tensor *scores, struct ggml_tensor *pos, int k) {
    return keep_top_at(g, scores, pos, k, 2);
}

struct ggml_tensor *attn_keep_pools(struct graph *g, struct ggml_tensor *scores, int il, int n, int k, bool tail) {
    const int64_t n_cell = scores->ne[0] * n, t = scores->ne[1];
    struct ggml_tensor *work = graph_input(g, GGML_TYPE_I32, 2 * n_cell, t, fill_nothing, 0, 0, 0)->t;
    struct ggml_tensor *args[3] = {scores, in_cell_pos(g, il), work};
    const uintptr_t arg = (uintptr_t) n | (uintptr_t) tail << 8 | (uintptr_t) k << 9;
    return ggml_custom_4d(g->ctx, GGML_TYPE_F32, n_cell, t, 1, 1, args, 3, keep_pools, GGML_N_TASKS_MAX, (void *) arg);
}

// ---- blocks of positions --------------------------------------------------------------------------------------------

// Blocks of one query: block i holds the cells by_pos[first[i]] .. by_pos[first[i + 1] - 1].
struct pos_blocks {
    int32_t *by_pos, *first, *taken, n;
    float *worth;
};

static void group_cells(struct pos_blocks *b, const int32_t *pos, int32_t m, int32_t size) {
    b->n = 0;
    for (int32_t i = 0; i < m; i++)
        if (i == 0 || pos[b->by_pos[i]] / size != pos[b->by_pos[i - 1]] / size) b->first[b->n++] = i;
    b->first[b->n] = m;
}

// Marks the last blocks, then the best of the others (of equal ones the earlier).
static void take_blocks(struct pos_blocks *b, const int32_t *pos, const float *score, const struct hparams *hp) {
    const int32_t own = b->n ? pos[b->by_pos[b->first[b->n - 1]]] / hp->idx_block : 0;
    int32_t left = hp->idx_top_k;
    for (int32_t i = b->n - 1; i >= 0; i--) {
        const int32_t at = pos[b->by_pos[b->first[i]]] / hp->idx_block;
        b->taken[i] = left > 0 && at > own - hp->idx_local;
        left -= b->taken[i];
        b->worth[i] = -INFINITY;
        for (int32_t k = b->first[i]; k < b->first[i + 1]; k++)
            if (score[b->by_pos[k]] > b->worth[i]) b->worth[i] = score[b->by_pos[k]];
    }
    for (; left > 0; left--) {
        int32_t best = -1;
        for (int32_t i = 0; i < b->n; i++)
            if (!b->taken[i] && (best < 0 || b->worth[i] > b->worth[best])) best = i;
        if (best < 0) return;
        b->taken[best] = 1;
    }
}

// dst [n_cell, T, H]: 0 in the cells of taken blocks, else -inf. src: scores [n_cell, groups, T], positions [n_cell, T], work [4 n_cell + 1, T].
static void keep_blocks(struct ggml_tensor *dst, int ith, int nth, void *ud) {
    const struct ggml_tensor *score = dst->src[0], *pos = dst->src[1], *work = dst->src[2];
    const struct hparams *hp = ud;
    const int64_t n = dst->ne[0], n_head = dst->ne[2], per = n_head / score->ne[1];
    for (int64_t t = ith; t < dst->ne[1]; t += nth) {
        const int32_t *p = (const int32_t *) (const void *) ((const char *) pos->data + (size_t) t * pos->nb[1]);
        int32_t *w = (int32_t *) (void *) ((char *) work->data + (size_t) t * work->nb[1]);
        struct pos_blocks b = {.by_pos = w, .taken = w + n, .worth = (float *) (void *) (w + 2 * n), .first = w + 3 * n};
        group_cells(&b, p, order_cells(p, n, b.by_pos), hp->idx_block);
        for (int64_t h = 0; h < n_head; h++) {
            if (h % per == 0)
                take_blocks(&b, p,
                            (const float *) (const void *) ((const char *) score->data + (size_t) t * score->nb[2] +
                                                            (size_t) (h / per) * score->nb[1]),
                            hp);
            float *out = (float *) (void *) ((char *) dst->data + (size_t) t * dst->nb[1] + (size_t) h * dst->nb[2]);
            for (int64_t c = 0; c < n; c++) out[c] = -INFINITY;
            for (int32_t i = 0; i < b.n; i++)
                for (int32_t k = b.first[i]; b.taken[i] && k < b.first[i + 1]; k++) out[b.by_pos[k]] = 0;
        }
    }
}

struct ggml_tensor *attn_keep_blocks(struct graph *g, struct ggml_tensor *scores, int il) {
    const int64_t n = scores->ne[0], t = scores->ne[2];
    struct ggml_tensor *work = graph_input(g, GGML_TYPE_I32, 4 * n + 1, t, fill_nothing, 1, 0, 0)->t;
    struct ggml_tensor *args[3] = {scores, in_cell_pos(g, il), work};
    return ggml_custom_4d(g->ctx, GGML_TYPE_F32, n, t, g->hp->n_head[il], 1, args, 3, keep_blocks, GGML_N_TASKS_MAX,
                          (void *) (uintptr_t) g->hp);
}

struct ggml_tensor *blk_f16_rounded(struct graph *g, struct ggml_tensor *x) {
    return ggml_cast(g->ctx, ggml_cast(g->ctx, x, GGML_TYPE_F16), GGML_TYPE_F32);
}

struct ggml_tensor *attn_index_scores(struct graph *g, struct ggml_tensor *q, struct ggml_tensor *keys,
                                      struct ggml_tensor *w) {
    struct ggml_context *c = g->ctx;
    const int64_t n_cell = keys->ne[1], t = q->ne[2];
    // products of every head with every key, [n_cell, heads, T]; no score below zero; heads weighed and added
    struct ggml_tensor *s = ggml_relu(c, ggml_mul_mat(c, keys, ggml_reshape_2d(c, q, q->ne[0], q->ne[1] * t)));
    s = ggml_reshape_3d(c, s, n_cell, q->ne[1], t);
    if (w) s = ggml_mul(c, s, ggml_reshape_3d(c, w, 1, q->ne[1], t));
    struct ggml_tensor *sum = NULL;
    for (int64_t h = 0; h < q->ne[1]; h++) {
        struct ggml_tensor *v = ggml_view_2d(c, s, n_cell, t, s->nb[2], (size_t) h * s->nb[1]);
        sum = sum ? ggml_add(c, sum, v) : v;
    }
    return q->ne[1] == 1 ? ggml_cont(c, sum) : sum;
}

struct ggml_tensor *blk_mla_select(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il, float eps) {
    struct ggml_context *c = g->ctx;
    const struct hparams *hp = g->hp;
    const int64_t t = x->ne[1], heads = hp->idx_head, d = hp->idx_dim;
    const struct rope_opts r = rope_index(g, il);
    struct ggml_tensor *low = blk_norm(g, blk_linear(g, &l->attn_q_a, x), &l->attn_q_a_norm, NORM_RMS);
    struct ggml_tensor *q = ggml_reshape_3d(c, blk_linear(g, &l->idx_q_b, low), d, heads, t);
    struct ggml_tensor *k = blk_norm_eps(g, blk_linear(g, &l->idx_k, x), &l->idx_k_norm, NORM_LN, eps);
    q = blk_rope_ext(g, q, &r);
    k = blk_rope_ext(g, ggml_reshape_3d(c, k, d, 1, t), &r);
    struct ggml_tensor *w = ggml_scale(c, blk_linear(g, &l->idx_proj, x), 1.0f / sqrtf((float) (d * heads)));
    struct ggml_tensor *keys = blk_cache_extra(g, ggml_reshape_2d(c, k, d, t), il);
    return attn_keep_top(g, attn_index_scores(g, q, keys, w), il, hp->idx_top_k);
}
