// The second half of a mixture of experts: down of the chosen experts, their biases, their weights, and the sum.
//   y[token] = sum over slots s, in order, of w[s, token] * (D[e] x[s, token] + d[e]),   e = ids[s, token]
// A piece of work is a run of rows of the result: every expert's part of them is computed for all its tokens into a tile in cache,
// which is weighted and added up slot by slot, in the order of the nodes.
#include "backend/cpu/fuse/experts_int.h"
#include "kern/binary.h"
#include "kern/unary.h"
#include "ops/row.h"

#include <string.h>

enum { MOST_SLOTS = 16, TILE_FLOATS = 131072, LEAST_ROWS = 16 };

struct pattern {
    struct ggml_tensor *product, *bias, *weighted;  // bias: NULL for none
    struct ggml_tensor *sum[MOST_SLOTS];            // sum[s]: slots 0 to s, s from 1 on
    int n_sums;
};

// A view of one slot of the weighted results; -1 if it is none.
static int64_t slot_of(const struct pattern *p, const struct ggml_tensor *v) {
    const struct ggml_tensor *y = p->weighted;
    if (v->view_src != y || v->type != y->type || v->ne[0] != y->ne[0] || v->ne[1] != y->ne[2] || v->ne[2] != 1 ||
        v->ne[3] != 1 || v->nb[0] != y->nb[0] || (v->ne[1] > 1 && v->nb[1] != y->nb[2]) || v->view_offs % y->nb[1] != 0)
        return -1;
    const size_t slot = v->view_offs / y->nb[1];
    return slot < (size_t) y->ne[1] ? (int64_t) slot : -1;
}

static bool add(struct pattern *p, struct ggml_tensor *t) {
    if (t->view_src || t->type != GGML_TYPE_F32) return false;
    if (!p->product) {
        if (t->op != GGML_OP_MUL_MAT_ID || t->src[1]->ne[1] != t->ne[1] || t->ne[1] < 2 || t->ne[1] > MOST_SLOTS)
            return false;
        p->product = t;
        return true;
    }
    const struct ggml_tensor *head = p->bias ? p->bias : p->product;
    if (!p->weighted) {
        if (t->src[0] != head) return false;
        const struct ggml_tensor *b = t->src[1];
        if (!p->bias && experts_is_bias(t, p->product)) {
            p->bias = t;
            return true;
        }
        if (t->op != GGML_OP_MUL || b->type != GGML_TYPE_F32 || b->ne[0] != 1 || b->ne[1] != t->ne[1] ||
            b->ne[2] != t->ne[2] || b->view_src == head)
            return false;
        p->weighted = t;
        return true;
    }
    const int s = p->n_sums + 1;
    if (t->op != GGML_OP_ADD || s >= p->weighted->ne[1] || slot_of(p, t->src[1]) != s) return false;
    if (s == 1 ? slot_of(p, t->src[0]) != 0 : t->src[0] != p->sum[s - 1]) return false;
    p->sum[s] = t;
    p->n_sums++;
    return true;
}

static int parse(struct pattern *p, struct ggml_tensor *const *nodes, int n) {
    int span = 0;
    *p = (struct pattern){0};
    for (int i = 0; i < n; i++) {
        if (fuse_is_view(nodes[i])) continue;
        if (!cpu_node_runs(op_get(nodes[i]->op), nodes[i]) || !add(p, nodes[i])) break;
        span = i + 1;
    }
    return p->n_sums > 0 && p->n_sums + 1 == p->weighted->ne[1] ? span : 0;
}

static int match(const struct ggml_cgraph *g, int i) {
    struct pattern p;
    return parse(&p, &g->nodes[i], g->n_nodes - i < 2 * FUSE_MAX ? g->n_nodes - i : 2 * FUSE_MAX);
}

// ---- memory: that of the product, then for each thread the lists of tokens and a tile -----------------------------------

struct layout {
    struct pattern p;
    struct mm_plan plan;
    size_t groups_at, groups_bytes, tile_at, tile_bytes, total;
    int64_t rows;  // of a piece
};

static bool lay_out(struct layout *l, struct ggml_tensor *const *nodes, int n, int n_threads) {
    if (parse(&l->p, nodes, n) != n) return false;
    const struct ggml_tensor *t = l->p.product, *a = t->src[0];
    const int64_t n_result = t->ne[1] * t->ne[2], typical = mm_plan_id(&l->plan, t, n_threads);
    const int64_t step = l->plan.path->row_step > LEAST_ROWS ? l->plan.path->row_step : LEAST_ROWS;
    l->rows = mm_row_block(&l->plan, a, typical, 1, n_threads);
    const int64_t fit = TILE_FLOATS / n_result / step * step;
    if (l->rows > fit) l->rows = fit > step ? fit : step;
    if (l->rows > t->ne[0]) l->rows = t->ne[0];
    l->groups_at = mm_align(l->plan.total);
    l->groups_bytes = mm_groups_bytes(t);
    l->tile_at = l->groups_at + l->groups_bytes * (size_t) n_threads;
    l->tile_bytes = mm_align((size_t) (l->rows * n_result) * sizeof(float));
    l->total = l->tile_at + l->tile_bytes * (size_t) n_threads;
    return true;
}

static size_t scratch(struct ggml_tensor *const *nodes, int n, int n_threads) {
    struct layout l;
    return lay_out(&l, nodes, n, n_threads) ? l.total : 0;
}

// ---- run ------------------------------------------------------------------------------------------------------------

static void multiply(const struct layout *l, const struct task *k, const struct mm_groups *g, int64_t r0, int64_t r1,
                     float *tile) {
    const struct ggml_tensor *t = l->p.product, *a = t->src[0];
    struct mm_job j = experts_job(&l->plan, k, t, r1 - r0, tile);
    j.n_row = t->ne[0] - r0;
    for (int64_t e = 0; e < a->ne[2]; e++) {
        const int32_t first = g->first[e];
        j.n_col = g->first[e + 1] - first;
        if (j.n_col == 0) continue;
        j.a = (const uint8_t *) a->data + (size_t) e * a->nb[2] + (size_t) r0 * a->nb[1];
        j.act_idx = g->col + first;
        j.dst_idx = g->out + first;
        l->plan.path->run(&j);
        if (!l->p.bias) continue;
        const float *bias = (const float *) (const void *) row_at(l->p.bias->src[1], e, 0, 0) + r0;
        for (int64_t c = 0; c < j.n_col; c++) {
            const int64_t i = j.dst_idx[c];
            float *y = tile + i * (r1 - r0);
            if (t->data)
                memcpy(row_at(t, i % t->ne[1], i / t->ne[1], 0) + (size_t) r0 * sizeof(float), y,
                       (size_t) (r1 - r0) * sizeof(float));
            kern_binary()->add(r1 - r0, y, y, bias);
        }
    }
}

// Rows of a tile [rows, slots, tokens] or [rows, tokens] to t, if it has memory.
static void copy_out(const struct ggml_tensor *t, const struct ggml_tensor *tile, int64_t r0) {
    if (!t->data) return;
    for (int64_t i2 = 0; i2 < t->ne[2]; i2++)
        for (int64_t i1 = 0; i1 < t->ne[1]; i1++)
            memcpy(row_at(t, i1, i2, 0) + (size_t) r0 * sizeof(float), row_at(tile, i1, i2, 0), tile->nb[1]);
}

// Every slot of every token times its weight, which is one rounding, as in a product with the weight repeated.
static void weigh(const struct pattern *p, const struct ggml_tensor *tile) {
    const struct ggml_tensor *w = p->weighted->src[1];
    const kern_unary_fn scale = kern_unary()->scale;
    for (int64_t i2 = 0; i2 < tile->ne[2]; i2++) {
        for (int64_t i1 = 0; i1 < tile->ne[1]; i1++) {
            float *y = (float *) (void *) row_at(tile, i1, i2, 0);
            scale(tile->ne[0], y, y, (const float *) (const void *) row_at(w, i1, i2, 0));
        }
    }
}

// The sum of a token's slots, in order; the sum so far is kept in slot 0 and written where it has memory.
static void add_up(const struct pattern *p, const struct ggml_tensor *tile, int64_t r0) {
    const kern_binary_fn plus = kern_binary()->add;
    const size_t at = (size_t) r0 * sizeof(float);
    for (int64_t i = 0; i < tile->ne[2]; i++) {
        float *sum = (float *) (void *) row_at(tile, 0, i, 0);
        for (int s = 1; s <= p->n_sums; s++) {
            const struct ggml_tensor *t = p->sum[s];
            float *to = s < p->n_sums ? sum : (float *) (void *) (row_at(t, i, 0, 0) + at);
            plus(tile->ne[0], to, sum, (const float *) (const void *) row_at(tile, s, i, 0));
            if (s < p->n_sums && t->data) memcpy(row_at(t, i, 0, 0) + at, sum, tile->nb[1]);
        }
    }
}

static void run_rows(const struct layout *l, const struct task *k, const struct mm_groups *g, int64_t r0, int64_t r1) {
    const struct pattern *p = &l->p;
    float *data = (float *) ((uint8_t *) k->work + l->tile_at + l->tile_bytes * (size_t) k->ith);
    struct ggml_tensor tile = fuse_tile(data, r1 - r0, p->product->ne[1]);
    tile.ne[2] = p->product->ne[2];
    tile.nb[3] = tile.nb[2] * (size_t) tile.ne[2];
    multiply(l, k, g, r0, r1, data);
    copy_out(p->bias ? p->bias : p->product, &tile, r0);
    weigh(p, &tile);
    copy_out(p->weighted, &tile, r0);
    add_up(p, &tile, r0);
}

static void run(struct task *k, struct ggml_tensor **nodes, int n) {
    struct layout l;
    struct mm_groups g;
    if (!lay_out(&l, nodes, n, k->nth)) return;
    const struct ggml_tensor *t = l.p.product;
    if (!mm_groups_make(&g, k, t, (uint8_t *) k->work + l.groups_at + l.groups_bytes * (size_t) k->ith)) return;
    mm_encode(&l.plan, k, t->src[1]);
    const int64_t n_piece = mm_ceil(t->ne[0], l.rows);
    for (int64_t i = task_next(k); i < n_piece; i = task_next(k))
        run_rows(&l, k, &g, i * l.rows, (i + 1) * l.rows < t->ne[0] ? (i + 1) * l.rows : t->ne[0]);
}

const struct fuse fuse_experts_out = {.name = "experts_out",
                                      .planned = true,
                                      .begins = {GGML_OP_MUL_MAT_ID},
                                      .match = match,
                                      .threads = experts_threads,
                                      .scratch = scratch,
                                      .run = run};
