// The first half of a mixture of experts: gate and up of the chosen experts, their biases, and the activation that joins them.
//   y = f(G[e] x + g[e], U[e] x + u[e])        or one product whose halves are gate and up, or f of one product
// A piece of work is an expert's rows times its tokens: the products go to tiles in cache, the rest runs over the tiles, and what
// comes of it is written to the tokens' places.
#include "backend/cpu/fuse/experts_int.h"
#include "kern/binary.h"
#include "ops/row.h"

#include <string.h>

enum { MEMBERS = 12, TILE_FLOATS = 65536 };

struct member {
    struct ggml_tensor *t;
    int tile, other;  // that it reads and writes; that it reads besides, or -1
};

struct pattern {
    struct ggml_tensor *product[2];
    struct member members[MEMBERS];
    int head[2];  // the member whose value is in the tile; -1: none
    int n_products, n_members, n_epilogues;
    bool halves;  // both tiles are of product 0
};

static bool add_product(struct pattern *p, struct ggml_tensor *t) {
    if (t->op != GGML_OP_MUL_MAT_ID || p->n_products == 2 || p->halves || p->n_members == MEMBERS) return false;
    const struct ggml_tensor *first = p->product[0];
    if (first && (t->src[1] != first->src[1] || t->src[2] != first->src[2] || !ggml_are_same_shape(t, first) ||
                  t->src[0]->type != first->src[0]->type ||
                  tensor_param_i32(t, MM_PARAM_SRC + 1) != tensor_param_i32(first, MM_PARAM_SRC + 1)))
        return false;
    p->head[p->n_products] = p->n_members;
    p->members[p->n_members++] = (struct member){t, p->n_products, -1};
    p->product[p->n_products++] = t;
    return true;
}

static int tile_of(const struct pattern *p, const struct ggml_tensor *t) {
    for (int i = 0; i < p->n_products; i++) {
        if (p->head[i] >= 0 && p->members[p->head[i]].t == t) return i;
    }
    return -1;
}

static bool add_epilogue(struct pattern *p, struct ggml_tensor *t) {
    const struct op *op = op_get(t->op);
    if (p->n_members == MEMBERS || t->view_src || t->type != GGML_TYPE_F32) return false;
    const int tile = tile_of(p, t->src[0]);
    if (tile < 0) return false;
    if (t->op == GGML_OP_ADD_ID) {
        if (p->halves || !experts_is_bias(t, p->product[0])) return false;
        p->members[p->n_members] = (struct member){t, tile, -1};
    } else {
        if (!(op->flags & OP_ELEMENTWISE) || op->scratch || t->src[2]) return false;
        const bool halves = t->op == GGML_OP_GLU && !t->src[1];
        const int other = t->src[1] ? tile_of(p, t->src[1]) : -1;
        if (t->src[1] && other < 0) return false;
        if (halves && (p->n_products > 1 || p->n_epilogues > 0 || p->product[0]->ne[0] % 2 != 0)) return false;
        p->members[p->n_members] = (struct member){t, tile, halves ? 1 : other};
        p->halves = p->halves || halves;
        if (other >= 0 && other != tile) p->head[other] = -1;
    }
    p->head[tile] = p->n_members++;
    p->n_epilogues++;
    return true;
}

static int parse(struct pattern *p, struct ggml_tensor *const *nodes, int n) {
    int span = 0;
    *p = (struct pattern){.head = {-1, -1}};
    for (int i = 0; i < n; i++) {
        if (fuse_is_view(nodes[i])) continue;
        if (!cpu_node_runs(op_get(nodes[i]->op), nodes[i])) break;
        if (!add_product(p, nodes[i]) && !(p->n_products > 0 && add_epilogue(p, nodes[i]))) break;
        span = i + 1;
    }
    return p->n_epilogues > 0 ? span : 0;
}

static int match(const struct ggml_cgraph *g, int i) {
    struct pattern p;
    return parse(&p, &g->nodes[i], g->n_nodes - i < FUSE_MAX ? g->n_nodes - i : FUSE_MAX);
}

// ---- memory: that of the product, then for each thread the lists of tokens and two tiles --------------------------------

struct layout {
    struct pattern p;
    struct mm_plan plan;
    size_t groups_at, groups_bytes, tiles_at, tile_bytes, total;
    int64_t n_row, rows, cols;  // of a tile: rows that there are; rows and columns of a piece
};

static bool lay_out(struct layout *l, struct ggml_tensor *const *nodes, int n, int n_threads) {
    if (parse(&l->p, nodes, n) != n) return false;
    const struct ggml_tensor *t = l->p.product[0], *a = t->src[0];
    const int64_t n_result = t->ne[1] * t->ne[2], used = a->ne[2] < n_result ? a->ne[2] : n_result;
    const int64_t typical = mm_plan_id(&l->plan, t, n_threads);
    l->n_row = l->p.halves ? t->ne[0] / 2 : t->ne[0];
    l->rows = mm_row_block(&l->plan, a, typical, used, n_threads);
    if (l->rows > l->n_row) l->rows = l->n_row;
    l->cols = TILE_FLOATS / l->rows > 16 ? TILE_FLOATS / l->rows : 16;
    if (l->cols > n_result) l->cols = n_result;
    l->groups_at = mm_align(l->plan.total);
    l->groups_bytes = mm_groups_bytes(t);
    l->tiles_at = l->groups_at + l->groups_bytes * (size_t) n_threads;
    l->tile_bytes = mm_align((size_t) (l->rows * l->cols) * sizeof(float));
    l->total = l->tiles_at + 2 * l->tile_bytes * (size_t) n_threads;
    return true;
}

static size_t scratch(struct ggml_tensor *const *nodes, int n, int n_threads) {
    struct layout l;
    return lay_out(&l, nodes, n, n_threads) ? l.total : 0;
}

// ---- run ------------------------------------------------------------------------------------------------------------

struct piece {
    int64_t expert, r0, r1;
    const int32_t *col, *out;  // where its columns are, and where their results go
    int64_t n_col;
};

static float *tile_data(const struct layout *l, const struct task *k, int tile) {
    return (float *) ((uint8_t *) k->work + l->tiles_at + l->tile_bytes * (size_t) (2 * k->ith + tile));
}

// Rows of a tile to their places in t, from row at on.
static void scatter(const struct ggml_tensor *t, int64_t at, const float *tile, const struct piece *p) {
    const size_t bytes = (size_t) (p->r1 - p->r0) * sizeof(float);
    for (int64_t c = 0; c < p->n_col; c++) {
        char *row = row_at(t, p->out[c] % t->ne[1], p->out[c] / t->ne[1], 0);
        memcpy(row + (size_t) at * sizeof(float), tile + c * (p->r1 - p->r0), bytes);
    }
}

static void run_product(const struct layout *l, const struct task *k, int tile, const struct piece *p) {
    const int64_t row0 = l->p.halves && tile == 1 ? l->n_row : 0;
    const struct ggml_tensor *t = l->p.product[l->p.halves ? 0 : tile], *a = t->src[0];
    struct mm_job j = experts_job(&l->plan, k, t, p->r1 - p->r0, tile_data(l, k, tile));
    j.a = (const uint8_t *) a->data + (size_t) p->expert * a->nb[2] + (size_t) (row0 + p->r0) * a->nb[1];
    j.n_row = l->n_row - p->r0;
    j.act_idx = p->col;
    j.n_col = p->n_col;
    l->plan.path->run(&j);
    if (t->data) scatter(t, row0 + p->r0, j.dst, p);
}

static void run_epilogue(const struct layout *l, const struct task *k, const struct member *m, const struct piece *p) {
    const int64_t rows = p->r1 - p->r0;
    const struct ggml_tensor tile = fuse_tile(tile_data(l, k, m->tile), rows, p->n_col);
    if (m->t->op == GGML_OP_ADD_ID) {
        const float *b = (const float *) (const void *) row_at(m->t->src[1], p->expert, 0, 0) + p->r0;
        for (int64_t c = 0; c < p->n_col; c++) {
            float *y = (float *) tile.data + c * rows;
            kern_binary()->add(rows, y, y, b);
        }
    } else if (l->p.halves && m->t->op == GGML_OP_GLU && !m->t->src[1]) {
        const struct ggml_tensor last = fuse_tile(tile_data(l, k, 1), rows, p->n_col);
        const bool swapped = tensor_param_i32(m->t, 1) != 0;
        fuse_apply(k, m->t, &tile, swapped ? &last : &tile, swapped ? &tile : &last);
    } else if (m->other >= 0) {
        const struct ggml_tensor other = fuse_tile(tile_data(l, k, m->other), rows, p->n_col);
        fuse_apply(k, m->t, &tile, &tile, &other);
    } else {
        fuse_apply(k, m->t, &tile, &tile, NULL);
    }
    if (m->t->data) scatter(m->t, p->r0, tile.data, p);
}

static void run_piece(const struct layout *l, const struct task *k, const struct piece *p) {
    for (int i = 0; i < (l->p.halves ? 2 : l->p.n_products); i++) run_product(l, k, i, p);
    for (int i = 0; i < l->p.n_members; i++) {
        if (l->p.members[i].t->op != GGML_OP_MUL_MAT_ID) run_epilogue(l, k, &l->p.members[i], p);
    }
}

static void run(struct task *k, struct ggml_tensor **nodes, int n) {
    struct layout l;
    struct mm_groups g;
    if (!lay_out(&l, nodes, n, k->nth)) return;
    const struct ggml_tensor *t = l.p.product[0];
    const int64_t n_expert = t->src[0]->ne[2], n_block = mm_ceil(l.n_row, l.rows);
    if (!mm_groups_make(&g, k, t, (uint8_t *) k->work + l.groups_at + l.groups_bytes * (size_t) k->ith)) return;
    mm_encode(&l.plan, k, t->src[1]);
    int64_t next = task_next(k), seen = 0;
    for (int64_t e = 0; e < n_expert; e++) {
        const int32_t first = g.first[e], count = g.first[e + 1] - first;
        if (count == 0) continue;
        for (; next < seen + n_block; next = task_next(k)) {
            struct piece p = {.expert = e, .r0 = (next - seen) * l.rows};
            p.r1 = p.r0 + l.rows < l.n_row ? p.r0 + l.rows : l.n_row;
            for (int64_t c = 0; c < count; c += l.cols) {
                p.col = g.col + first + c;
                p.out = g.out + first + c;
                p.n_col = count - c < l.cols ? count - c : l.cols;
                run_piece(&l, k, &p);
            }
        }
        seen += n_block;
    }
}

const struct fuse fuse_experts_in = {.name = "experts_in",
                                     .planned = true,
                                     .begins = {GGML_OP_MUL_MAT_ID},
                                     .match = match,
                                     .threads = experts_threads,
                                     .scratch = scratch,
                                     .run = run};
