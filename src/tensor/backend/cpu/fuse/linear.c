// Linear maps with what stands around them, in one pass: a norm before, and element-wise operations after.
//   in = norm(x) [* w] [+ b]            the activation, normed as it is encoded
//   y  = W in                           one product or several
//   y  = f(y, ...)                      bias, scale, residual, activation; gate and up into their product
// A piece of work is a run of rows of the result times some columns. The kernels write it to a tile in cache, the element-wise
// operations run over the tile, and the last one writes to memory. They are the operations' own functions, called on tensors
// that are cut to the piece, so that the bits are theirs.
//
// A result that has memory although others of the step read it (it is an output, or somebody else reads it too) is also
// written there.
#include "backend/cpu/cpu.h"
#include "backend/cpu/fuse/fuse.h"
#include "kern/binary.h"
#include "kern/norm.h"
#include "ops/mul_mat.h"
#include "ops/row.h"

#include <string.h>

enum { TILES = 6, MEMBERS = 20, TILE_FLOATS = 65536 };

// A run of rows of a product that is computed into a tile of its own.
struct tile {
    struct ggml_tensor *product;
    int64_t row0, n_row;  // of the product
    int set;              // tiles that are joined are computed together
    int head;             // the member whose value it holds; -1: its value has gone into another tile
    bool copy;            // its encoded columns are those of an earlier tile
    struct mm_plan plan;
    size_t act_at;
};

struct member {
    struct ggml_tensor *t;
    int tile;        // where its value is
    int operand[2];  // tiles that it reads in place of its sources, -1: the source itself
    bool product;
};

struct linear {
    struct ggml_tensor *x, *in;  // before and after the norm; the same without one
    struct ggml_tensor *norm, *scale, *shift;
    struct tile tiles[TILES];
    struct member members[MEMBERS];
    int n_tiles, n_members, n_epilogues;
};

// ---- the pattern ----------------------------------------------------------------------------------------------------

static bool is_row(const struct ggml_tensor *t, int64_t n) {
    return t->type == GGML_TYPE_F32 && t->ne[0] == n && ggml_nrows(t) == 1 && t->nb[0] == sizeof(float);
}

static const struct ggml_tensor *root(const struct ggml_tensor *t) { return t->view_src ? t->view_src : t; }

// Whether t is, or is a view of, something that the step itself computes.
static bool is_ours(const struct linear *l, const struct ggml_tensor *t) {
    const struct ggml_tensor *r = root(t);
    if (r == l->norm || r == l->scale || r == l->shift) return r != NULL;
    for (int i = 0; i < l->n_members; i++) {
        if (l->members[i].t == r) return true;
    }
    return false;
}

static bool add_norm(struct linear *l, struct ggml_tensor *t) {
    if (l->n_members > 0 || t->view_src || t->type != GGML_TYPE_F32) return false;
    if (!l->norm) {
        struct ggml_tensor *x = t->src[0];
        if ((t->op != GGML_OP_RMS_NORM && t->op != GGML_OP_NORM) || !ggml_is_matrix(x) || !row_direct(x)) return false;
        l->x = x;
        l->norm = l->in = t;
        return true;
    }
    if (t->op != GGML_OP_MUL && t->op != GGML_OP_ADD) return false;
    if (t->src[0] != l->in || !is_row(t->src[1], t->ne[0]) || is_ours(l, t->src[1])) return false;
    // a weight: of one column, a residual looks like one, but may lie where the sum is to be
    if (root(t->src[1])->op != GGML_OP_NONE) return false;
    if (t->op == GGML_OP_MUL && !l->scale && !l->shift) {
        l->scale = l->in = t;
        return true;
    }
    if (t->op == GGML_OP_ADD && !l->shift) {
        l->shift = l->in = t;
        return true;
    }
    return false;
}

static int new_tile(struct linear *l, struct ggml_tensor *product, int64_t row0, int64_t n_row) {
    l->tiles[l->n_tiles] =
        (struct tile){.product = product, .row0 = row0, .n_row = n_row, .set = l->n_tiles, .head = l->n_members};
    return l->n_tiles++;
}

static bool add_product(struct linear *l, struct ggml_tensor *t) {
    if (t->op != GGML_OP_MUL_MAT || !ggml_is_matrix(t->src[0]) || !ggml_is_matrix(t->src[1])) return false;
    if (!l->in) l->x = l->in = t->src[1];
    if (t->src[1] != l->in || l->n_tiles == TILES || l->n_members == MEMBERS || is_ours(l, t->src[0])) return false;
    const int tile = new_tile(l, t, 0, t->ne[0]);
    l->members[l->n_members++] = (struct member){.t = t, .tile = tile, .operand = {-1, -1}, .product = true};
    return true;
}

// The tile whose present value is t, or -1.
static int tile_of(const struct linear *l, const struct ggml_tensor *t) {
    for (int i = 0; i < l->n_tiles; i++) {
        if (l->tiles[i].head >= 0 && l->members[l->tiles[i].head].t == t) return i;
    }
    return -1;
}

// A unit whose gate and value are the two halves of one product's rows: the halves become tiles of their own.
static bool add_halves(struct linear *l, struct ggml_tensor *t) {
    const int whole = tile_of(l, t->src[0]);
    if (whole < 0 || l->n_tiles == TILES || l->n_members == MEMBERS) return false;
    struct tile *a = &l->tiles[whole];
    if (!l->members[a->head].product || a->product->ne[0] % 2 != 0) return false;
    const int64_t half = a->product->ne[0] / 2;
    const int other = new_tile(l, a->product, half, half);
    a->n_row = half;
    l->tiles[other].set = a->set;
    l->members[l->n_members] = (struct member){.t = t, .tile = whole, .operand = {whole, other}};
    a->head = l->n_members++;
    l->tiles[other].head = -1;
    l->n_epilogues++;
    return true;
}

// A source that is not a tile: of the rows and columns of the result, or repeated to them by its only row or value.
static bool is_operand(const struct linear *l, const struct ggml_tensor *s, const struct ggml_tensor *t) {
    return (s->ne[0] == t->ne[0] || s->ne[0] == 1) && (s->ne[1] == t->ne[1] || s->ne[1] == 1) && ggml_is_matrix(s) &&
           !ggml_is_quantized(s->type) && !is_ours(l, s);
}

static bool add_epilogue(struct linear *l, struct ggml_tensor *t) {
    const struct op *op = op_get(t->op);
    if (!(op->flags & OP_ELEMENTWISE) || op->scratch || t->view_src || t->type != GGML_TYPE_F32) return false;
    if (t->op == GGML_OP_GLU && !t->src[1]) return add_halves(l, t);
    if (l->n_members == MEMBERS) return false;
    struct member m = {.t = t, .tile = -1, .operand = {-1, -1}};
    for (int i = 0; i < GGML_MAX_SRC; i++) {
        if (!t->src[i]) continue;
        if (i > 1) return false;
        m.operand[i] = tile_of(l, t->src[i]);
        if (m.operand[i] < 0 && !is_operand(l, t->src[i], t)) return false;
        if (m.operand[i] >= 0 && !ggml_are_same_shape(t->src[i], t)) return false;
    }
    if (m.operand[0] < 0 && m.operand[1] < 0) return false;
    m.tile = m.operand[0] >= 0 ? m.operand[0] : m.operand[1];
    if (m.operand[1] >= 0 && m.operand[1] != m.tile) {  // two tiles of the same rows become one
        const int set = l->tiles[m.operand[1]].set;
        for (int i = 0; i < l->n_tiles; i++) {
            if (l->tiles[i].set == set) l->tiles[i].set = l->tiles[m.tile].set;
        }
        l->tiles[m.operand[1]].head = -1;
    }
    l->tiles[m.tile].head = l->n_members;
    l->members[l->n_members++] = m;
    l->n_epilogues++;
    return true;
}

// Reads the pattern off the nodes; gives the number of nodes it spans, 0 if there is none.
static int parse(struct linear *l, struct ggml_tensor *const *nodes, int n) {
    int span = 0;
    l->x = l->in = l->norm = l->scale = l->shift = NULL;  // tiles and members are written as they come
    l->n_tiles = l->n_members = l->n_epilogues = 0;
    for (int i = 0; i < n; i++) {
        const struct op *op = op_get(nodes[i]->op);
        if (fuse_is_view(nodes[i])) continue;
        if (!op || !cpu_node_runs(op, nodes[i])) break;
        if (!add_norm(l, nodes[i]) && !add_product(l, nodes[i]) && !(l->n_members > 0 && add_epilogue(l, nodes[i]))) break;
        span = i + 1;
    }
    return l->n_members > 0 && (l->norm || l->n_epilogues > 0 || l->n_tiles > 1) ? span : 0;
}

static int match(const struct ggml_cgraph *g, int i) {
    struct linear l;
    return parse(&l, &g->nodes[i], g->n_nodes - i < FUSE_MAX ? g->n_nodes - i : FUSE_MAX);
}

// ---- memory ---------------------------------------------------------------------------------------------------------

struct layout {
    struct linear l;
    bool private_act;
    size_t shared;  // encoded columns that all threads read
    // of one thread: scratch of the kernels, a row of floats, its own encoded columns, tiles
    size_t kernel, act_at, tiles_at, tile_bytes, per_thread;
};

// The weights of a tile, as far as their cutting goes.
static struct ggml_tensor tile_weights(const struct tile *t) {
    const struct ggml_tensor *a = t->product->src[0];
    return (struct ggml_tensor){.ne = {a->ne[0], t->n_row}, .nb = {a->nb[0], a->nb[1]}};
}

// Whether each thread is to take the pieces of its own number from every set (mm_is_small).
static bool is_small(const struct layout *m, int n_threads) {
    for (int i = 0; i < m->l.n_tiles; i++) {
        const struct ggml_tensor rows = tile_weights(&m->l.tiles[i]);
        if (!mm_is_small(&rows, m->l.in->ne[1], n_threads)) return false;
    }
    return true;
}

// Pieces of a set of tiles. Of few columns every set is cut evenly by itself: they are of different sizes.
static void cut_set(const struct layout *m, int set, int n_threads, struct mm_cut *cut) {
    const struct tile *t = &m->l.tiles[set];
    const struct ggml_tensor rows = tile_weights(t);
    const int64_t n_col = t->product->ne[1];
    mm_cut(cut, &t->plan, &rows, n_col, n_col <= MM_FEW_COLUMNS ? 1 : m->l.n_tiles, n_threads);
    const int64_t least = mm_ceil(cut->rows * cut->n_col, TILE_FLOATS);
    if (cut->cols < least) {
        cut->n_piece = cut->n_piece / cut->cols * least;
        cut->cols = least;
    }
}

static size_t plan_tiles(struct layout *m, int n_threads) {
    size_t act = 0;
    for (int i = 0; i < m->l.n_tiles; i++) {
        struct tile *t = &m->l.tiles[i];
        struct mm_plan *p = &t->plan;
        mm_plan(p, t->product, t->product->ne[1], t->product->ne[1], n_threads);
        if (p->in_place && m->l.norm) {  // the normed rows lie nowhere else
            p->in_place = false;
            p->act_stride = mm_align(p->path->act_bytes(m->l.in->ne[0]));
            p->act_bytes = mm_columns_bytes(p->path, p->act_stride, p->n_act);
        }
        if (p->row_at > m->kernel) m->kernel = p->row_at;
        for (int j = 0; j < i && !t->copy; j++) {
            t->copy = mm_same_columns(p, &m->l.tiles[j].plan);
            if (t->copy) t->act_at = m->l.tiles[j].act_at;
        }
        if (t->copy || p->in_place) continue;
        t->act_at = act;
        act += p->act_bytes;
    }
    return act;
}

static bool lay_out(struct layout *m, struct ggml_tensor *const *nodes, int n, int n_threads) {
    m->kernel = m->tile_bytes = 0;
    if (parse(&m->l, nodes, n) != n) return false;
    const size_t act = plan_tiles(m, n_threads);
    const int64_t k = m->l.in->ne[0];
    m->private_act = m->l.in->ne[1] * k <= MM_PRIVATE_ELEMENTS;
    m->shared = m->private_act ? 0 : act;
    for (int set = 0; set < m->l.n_tiles; set++) {
        struct mm_cut cut;
        if (m->l.tiles[set].set != set) continue;
        cut_set(m, set, n_threads, &cut);
        const size_t bytes = mm_align((size_t) (cut.rows * mm_ceil(cut.n_col, cut.cols)) * sizeof(float));
        if (bytes > m->tile_bytes) m->tile_bytes = bytes;
    }
    m->act_at = m->kernel + mm_align((size_t) k * sizeof(float));
    m->tiles_at = m->act_at + (m->private_act ? act : 0);
    m->per_thread = m->tiles_at + m->tile_bytes * (size_t) m->l.n_tiles;
    return true;
}

static size_t scratch(struct ggml_tensor *const *nodes, int n, int n_threads) {
    struct layout m;
    return lay_out(&m, nodes, n, n_threads) ? m.shared + m.per_thread * (size_t) n_threads + 64 : 0;
}

static int threads(struct ggml_tensor *const *nodes, int n, int n_threads) {
    double work = 0;
    for (int i = 0; i < n; i++) {
        if (nodes[i]->op != GGML_OP_MUL_MAT) continue;
        const struct ggml_tensor *a = nodes[i]->src[0];
        work += (double) a->ne[0] * (double) a->ne[1] * (double) nodes[i]->src[1]->ne[1];
    }
    return mm_threads(work, n_threads);
}

// ---- the activation -------------------------------------------------------------------------------------------------

static uint8_t *own(const struct layout *m, const struct task *k) {
    return (uint8_t *) k->work + m->shared + m->per_thread * (size_t) k->ith;
}

static uint8_t *columns(const struct layout *m, const struct task *k, const struct tile *t) {
    return (m->private_act ? own(m, k) + m->act_at : (uint8_t *) k->work) + t->act_at;
}

static void store(const struct ggml_tensor *t, int64_t c, const float *y) {
    if (t && t->data) memcpy(row_at(t, c, 0, 0), y, (size_t) t->ne[0] * sizeof(float));
}

// Column c of the activation; what is computed on the way is kept where it has memory.
static const float *column(const struct linear *l, int64_t c, float *tmp, bool keep) {
    const int64_t n = l->in->ne[0];
    if (!l->norm) return mm_row(l->in, c, 0, 0, tmp);
    const float *x = (const float *) (const void *) row_at(l->x, c, 0, 0);
    const float eps = tensor_param_f32(l->norm, 0);
    if (l->norm->op == GGML_OP_NORM)
        kern_norm()->layer(n, tmp, x, eps);
    else
        kern_norm()->rms(n, tmp, x, NULL, eps);
    if (keep) store(l->norm, c, tmp);
    if (l->scale) {
        kern_binary()->mul(n, tmp, tmp, l->scale->src[1]->data);
        if (keep) store(l->scale, c, tmp);
    }
    if (l->shift) {
        kern_binary()->add(n, tmp, tmp, l->shift->src[1]->data);
        if (keep) store(l->shift, c, tmp);
    }
    return tmp;
}

// Whether the norm or what follows it has memory that x is in too.
static bool kept_over_x(const struct linear *l) {
    const struct ggml_tensor *kept[] = {l->norm, l->scale, l->shift};
    for (int i = 0; i < 3; i++) {
        if (kept[i] && kept[i]->data && !fuse_apart(kept[i], l->x)) return true;
    }
    return false;
}

static void encode(const struct layout *m, struct task *k) {
    const struct linear *l = &m->l;
    float *tmp = (float *) (own(m, k) + m->kernel);
    int64_t c0 = 0, c1 = l->in->ne[1];
    bool needed = l->norm != NULL;
    for (int i = 0; i < l->n_tiles; i++) needed = needed || !l->tiles[i].plan.in_place;
    if (!needed) return;
    if (!m->private_act) task_range(k, l->in->ne[1], &c0, &c1);
    // every thread reads all of x when it encodes for itself: what lies over it is kept when all have done so
    const bool late = m->private_act && k->nth > 1 && kept_over_x(l);
    for (int64_t c = c0; c < c1; c++) {
        const float *x = column(l, c, tmp, !late && (!m->private_act || k->ith == 0));
        for (int i = 0; i < l->n_tiles; i++) {
            const struct tile *t = &l->tiles[i];
            if (t->copy || t->plan.in_place) continue;
            mm_encode_column(t->plan.path, x, l->in->ne[0], columns(m, k, t), t->plan.act_stride, c);
        }
    }
    if (!m->private_act || late) task_barrier(k);
    for (int64_t c = 0; c < c1 && late && k->ith == 0; c++) column(l, c, tmp, true);
}

// ---- pieces ---------------------------------------------------------------------------------------------------------

// Rows [r0, r1) times columns [c0, c1) of the results of a set.
struct piece {
    int64_t r0, r1, c0, c1;
};

static float *tile_data(const struct layout *m, const struct task *k, int tile) {
    return (float *) (own(m, k) + m->tiles_at + m->tile_bytes * (size_t) tile);
}

// t cut to the piece: rows of the piece where t has rows, columns where it has columns.
static struct ggml_tensor cut_tensor(const struct ggml_tensor *t, const struct piece *p) {
    struct ggml_tensor v = *t;
    char *at = v.data;
    if (v.ne[0] > 1) {
        at += (size_t) p->r0 * v.nb[0];
        v.ne[0] = p->r1 - p->r0;
    }
    if (v.ne[1] > 1) {
        at += (size_t) p->c0 * v.nb[1];
        v.ne[1] = p->c1 - p->c0;
        v.nb[2] = v.nb[3] = v.nb[1] * (size_t) v.ne[1];
    }
    v.data = at;
    return v;
}

static struct ggml_tensor tile_tensor(const struct layout *m, const struct task *k, int tile, const struct piece *p) {
    return fuse_tile(tile_data(m, k, tile), p->r1 - p->r0, p->c1 - p->c0);
}

// Whether member i is the last to write its tile: then it writes to its memory and not to the tile.
static bool is_last(const struct linear *l, int i) { return l->tiles[l->members[i].tile].head == i; }

static void copy_out(const struct layout *m, const struct task *k, int tile, const struct ggml_tensor *t, int64_t row0,
                     const struct piece *p) {
    const struct ggml_tensor from = tile_tensor(m, k, tile, p);
    for (int64_t c = 0; c < from.ne[1]; c++)
        memcpy((float *) (void *) row_at(t, p->c0 + c, 0, 0) + row0 + p->r0, row_at(&from, c, 0, 0), from.nb[1]);
}

static void run_product(const struct layout *m, const struct task *k, int tile, bool direct, const struct piece *p) {
    const struct tile *t = &m->l.tiles[tile];
    const struct ggml_tensor *a = t->product->src[0], *b = m->l.in;
    struct mm_job j = {.a = (const uint8_t *) a->data + (size_t) t->row0 * a->nb[1],
                       .a_stride = a->nb[1],
                       .n_row = t->n_row,
                       .row0 = p->r0,
                       .row1 = p->r1,
                       .k = a->ne[0],
                       .type = a->type,
                       .n_col = p->c1 - p->c0,
                       .scratch = own(m, k),
                       .scratch_bytes = m->kernel};
    j.act_stride = t->plan.in_place ? b->nb[1] : t->plan.act_stride;
    j.act = t->plan.in_place ? (const uint8_t *) b->data : columns(m, k, t);
    j.col0 = p->c0;
    if (direct) {
        j.dst_stride = t->product->nb[1] / sizeof(float);
        j.dst = (float *) (void *) row_at(t->product, p->c0, 0, 0);
    } else {  // the kernel counts rows from the tile's first row
        j.dst_stride = (size_t) (p->r1 - p->r0);
        j.dst = tile_data(m, k, tile);
        j.a += (size_t) p->r0 * j.a_stride;
        j.n_row -= p->r0;
        j.row1 -= p->r0;
        j.row0 = 0;
    }
    t->plan.path->run(&j);
    if (!direct && t->product->data) copy_out(m, k, tile, t->product, t->row0, p);
}

// Sum or product of floats, column by column: where one of them is a tile and the other is not, rows are short, and what an
// operation does before it begins a row takes longer than the row.
static bool by_columns(const struct ggml_tensor *op, const struct ggml_tensor *y, const struct ggml_tensor *a,
                       const struct ggml_tensor *b) {
    if ((op->op != GGML_OP_ADD && op->op != GGML_OP_MUL) || !row_direct(a) || !row_direct(b)) return false;
    if (a->ne[0] != y->ne[0] || b->ne[0] != y->ne[0]) return false;
    const kern_binary_fn fn = op->op == GGML_OP_ADD ? kern_binary()->add : kern_binary()->mul;
    const size_t step_a = a->ne[1] == 1 ? 0 : a->nb[1], step_b = b->ne[1] == 1 ? 0 : b->nb[1];
    for (int64_t c = 0; c < y->ne[1]; c++) {
        fn(y->ne[0], (float *) (void *) row_at(y, c, 0, 0),
           (const float *) (const void *) ((char *) a->data + (size_t) c * step_a),
           (const float *) (const void *) ((char *) b->data + (size_t) c * step_b));
    }
    return true;
}

static void run_epilogue(const struct layout *m, const struct task *k, const struct member *e, bool last,
                         const struct piece *p) {
    struct ggml_tensor src[2], tile = tile_tensor(m, k, e->tile, p);
    const bool halves = e->t->op == GGML_OP_GLU && !e->t->src[1], two = halves || e->t->src[1];
    for (int i = 0; i < (two ? 2 : 1); i++)
        src[i] = e->operand[i] >= 0 ? tile_tensor(m, k, e->operand[i], p) : cut_tensor(e->t->src[i], p);
    if (two && !halves) {
        const struct ggml_tensor y = last ? cut_tensor(e->t, p) : tile;
        if (by_columns(e->t, &y, &src[0], &src[1])) {
            if (!last && e->t->data) copy_out(m, k, e->tile, e->t, 0, p);
            return;
        }
    }
    const int first = halves && tensor_param_i32(e->t, 1) != 0;  // of two halves, the gate
    fuse_apply(k, e->t, &tile, &src[first], two ? &src[!first] : NULL);
    if (e->t->data) copy_out(m, k, e->tile, e->t, 0, p);
}

static void run_piece(const struct layout *m, const struct task *k, int set, const struct piece *p) {
    const struct linear *l = &m->l;
    for (int i = 0; i < l->n_tiles; i++) {
        if (l->tiles[i].set != set) continue;
        const int head = l->tiles[i].head;
        run_product(m, k, i, head >= 0 && l->members[head].product, p);
    }
    for (int i = 0; i < l->n_members; i++) {
        const struct member *e = &l->members[i];
        if (!e->product && l->tiles[e->tile].set == set) run_epilogue(m, k, e, is_last(l, i), p);
    }
}

static void run(struct task *k, struct ggml_tensor **nodes, int n) {
    struct layout m;
    if (!lay_out(&m, nodes, n, k->nth)) return;  // cannot be: the step was made of the same nodes
    encode(&m, k);
    const bool small = is_small(&m, k->nth);
    int64_t next = small ? k->ith : task_next(k), before = 0;
    for (int set = 0; set < m.l.n_tiles; set++) {
        struct mm_cut cut;
        if (m.l.tiles[set].set != set) continue;
        cut_set(&m, set, k->nth, &cut);
        while (next < before + cut.n_piece) {
            struct piece p;
            mm_piece(&cut, next - before, &p.r0, &p.r1, &p.c0, &p.c1);
            run_piece(&m, k, set, &p);
            next = small ? next + k->nth : task_next(k);
        }
        before += cut.n_piece;
        if (small) next = before + k->ith;
    }
}

const struct fuse fuse_linear = {.name = "linear",
                                 .planned = true,
                                 .begins = {GGML_OP_MUL_MAT, GGML_OP_RMS_NORM, GGML_OP_NORM},
                                 .match = match,
                                 .threads = threads,
                                 .scratch = scratch,
                                 .run = run};
