// Products of one activation (queries, keys and values; gate and up): it is encoded once, and the pieces of all products are
// handed out together, with no meeting of the threads between them. Every result is written where it belongs.
#include "backend/cpu/cpu.h"
#include "backend/cpu/fuse/fuse.h"
#include "ops/mul_mat.h"

enum { MOST = 4 };

static bool fits(const struct ggml_tensor *t) {
    return t->op == GGML_OP_MUL_MAT && ggml_is_matrix(t->src[0]) && ggml_is_matrix(t->src[1]);
}

static int match(const struct ggml_cgraph *g, int i) {
    const struct ggml_tensor *first = g->nodes[i];
    if (!fits(first) || !cpu_node_runs(op_get(first->op), first)) return 0;
    int count = 1, end = i;
    for (int j = fuse_next(g, i); j >= 0 && j - i < FUSE_MAX && count < MOST; j = fuse_next(g, j)) {
        if (!fits(g->nodes[j]) || g->nodes[j]->src[1] != first->src[1]) break;
        count++;
        end = j;
    }
    return count > 1 ? end - i + 1 : 0;
}

// ---- memory ---------------------------------------------------------------------------------------------------------

struct product {
    struct ggml_tensor *t;
    struct mm_plan plan;
    int same;       // the product whose encoded columns it reads, perhaps itself
    size_t act_at;  // where they are, in the part that all threads share or in a thread's own
};

struct layout {
    struct product p[MOST];
    int n;
    bool private_act;
    size_t shared;  // encoded columns that all threads read
    size_t kernel;  // of one thread: scratch of the kernels, then a row of floats, then its own columns
    size_t own_at;
    size_t per_thread;
};

static void lay_out(struct layout *l, struct ggml_tensor *const *nodes, int n, int n_threads) {
    size_t act = 0;
    l->n = 0;
    l->kernel = 0;
    for (int i = 0; i < n; i++) {
        if (fuse_is_view(nodes[i])) continue;
        struct product *p = &l->p[l->n];
        const int64_t n_col = nodes[i]->src[1]->ne[1];
        *p = (struct product){.t = nodes[i], .same = l->n};
        mm_plan(&p->plan, p->t, n_col, n_col, n_threads);
        if (p->plan.row_at > l->kernel) l->kernel = p->plan.row_at;
        for (int j = 0; j < l->n && p->same == l->n; j++) {
            if (mm_same_columns(&p->plan, &l->p[j].plan)) p->same = l->p[j].same;
        }
        p->act_at = p->same == l->n ? act : l->p[p->same].act_at;
        if (p->same == l->n && !p->plan.in_place) act += p->plan.act_bytes;
        l->n++;
    }
    l->private_act = l->p[0].plan.n_act * l->p[0].t->src[0]->ne[0] <= MM_PRIVATE_ELEMENTS;
    l->shared = l->private_act ? 0 : act;
    l->own_at = l->kernel + mm_align((size_t) l->p[0].t->src[0]->ne[0] * sizeof(float));
    l->per_thread = l->own_at + (l->private_act ? act : 0);
}

static size_t scratch(struct ggml_tensor *const *nodes, int n, int n_threads) {
    struct layout l;
    lay_out(&l, nodes, n, n_threads);
    const size_t together = l.shared + l.per_thread * (size_t) n_threads + 64;
    const size_t singly = fuse_singly_scratch(nodes, n, n_threads);
    return together > singly ? together : singly;
}

static int threads(struct ggml_tensor *const *nodes, int n, int n_threads) {
    double work = 0;
    for (int i = 0; i < n; i++) {
        if (fuse_is_view(nodes[i])) continue;
        const struct ggml_tensor *a = nodes[i]->src[0];
        work += (double) a->ne[0] * (double) a->ne[1] * (double) nodes[i]->src[1]->ne[1];
    }
    return mm_threads(work, n_threads);
}

// ---- run ------------------------------------------------------------------------------------------------------------

// One after the other is the rule where a result lies over something that another product reads or writes.
static bool independent(const struct layout *l) {
    for (int i = 0; i < l->n; i++) {
        if (!fuse_apart(l->p[i].t, l->p[i].t->src[1])) return false;
        for (int j = 0; j < l->n; j++) {
            if (i == j) continue;
            if (!fuse_apart(l->p[i].t, l->p[j].t) || !fuse_apart(l->p[i].t, l->p[j].t->src[0])) return false;
        }
    }
    return true;
}

static uint8_t *own(const struct layout *l, const struct task *k) {
    return (uint8_t *) k->work + l->shared + l->per_thread * (size_t) k->ith;
}

static uint8_t *columns(const struct layout *l, const struct task *k, const struct product *p) {
    return (l->private_act ? own(l, k) + l->own_at : (uint8_t *) k->work) + p->act_at;
}

static void encode(const struct layout *l, struct task *k) {
    const struct ggml_tensor *b = l->p[0].t->src[1];
    float *tmp = (float *) (own(l, k) + l->kernel);
    int64_t c0 = 0, c1 = b->ne[1];
    if (!l->private_act) task_range(k, b->ne[1], &c0, &c1);
    bool meet = false;
    for (int i = 0; i < l->n; i++) {
        const struct product *p = &l->p[i];
        if (p->same != i || p->plan.in_place) continue;
        for (int64_t c = c0; c < c1; c++) {
            mm_encode_column(p->plan.path, mm_row(b, c, 0, 0, tmp), b->ne[0], columns(l, k, p), p->plan.act_stride, c);
        }
        meet = meet || !l->private_act;
    }
    if (meet) task_barrier(k);
}

static void run_piece(const struct layout *l, const struct task *k, const struct product *p, const struct mm_cut *cut,
                      int64_t piece) {
    const struct ggml_tensor *t = p->t, *a = t->src[0], *b = t->src[1];
    int64_t c0, c1;
    struct mm_job j = {.a = a->data,
                       .a_stride = a->nb[1],
                       .n_row = a->ne[1],
                       .k = a->ne[0],
                       .type = a->type,
                       .dst_stride = t->nb[1] / sizeof(float),
                       .scratch = own(l, k),
                       .scratch_bytes = l->kernel};
    mm_piece(cut, piece, &j.row0, &j.row1, &c0, &c1);
    j.n_col = c1 - c0;
    j.dst = (float *) t->data + (size_t) c0 * j.dst_stride;
    j.act_stride = p->plan.in_place ? b->nb[1] : p->plan.act_stride;
    j.act = p->plan.in_place ? (const uint8_t *) b->data : columns(l, k, p);
    j.col0 = c0;
    p->plan.path->run(&j);
}

static void run(struct task *k, struct ggml_tensor **nodes, int n) {
    struct layout l;
    lay_out(&l, nodes, n, k->nth);
    if (!independent(&l)) {
        fuse_singly(k, nodes, n);
        return;
    }
    encode(&l, k);
    const int64_t n_col = l.p[0].t->src[1]->ne[1], together = n_col <= MM_FEW_COLUMNS ? 1 : l.n;
    bool small = true;
    for (int i = 0; i < l.n; i++) small = small && mm_is_small(l.p[i].t->src[0], n_col, k->nth);
    int64_t next = small ? 0 : task_next(k), before = 0;
    for (int i = 0; i < l.n; i++) {
        struct mm_cut cut;
        mm_cut(&cut, &l.p[i].plan, l.p[i].t->src[0], n_col, together, k->nth);
        if (small) {
            if (k->ith < cut.n_piece) run_piece(&l, k, &l.p[i], &cut, k->ith);
            continue;
        }
        for (; next < before + cut.n_piece; next = task_next(k)) run_piece(&l, k, &l.p[i], &cut, next - before);
        before += cut.n_piece;
    }
}

const struct fuse fuse_shared = {
    .name = "shared", .begins = {GGML_OP_MUL_MAT}, .match = match, .threads = threads, .scratch = scratch, .run = run};
