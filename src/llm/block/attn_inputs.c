// What attention is told about who sees what. The usual path needs per query only (sequence, place, first, end) and the memory's
// block tables; masks over all cells exist for what tables can't say (biases, selections).
#include <math.h>
#include <string.h>

#include "block/attn_int.h"

// Parameters of the fills: a = which cache (VIEW_*), b = kind of window, c = its width.
const struct cells *view_cells(const struct graph *g, int view) {
    const struct kv *kv = memory_kv(g->mem, view == VIEW_SMALL);
    return &kv->cells;
}

int32_t row_index(const struct ubatch *ub, int i, int view) {
    return view == VIEW_SMALL ? ub->rows[i].index_swa : ub->rows[i].index;
}

static int32_t row_cell(const struct ubatch *ub, int i, int view) {
    return view == VIEW_SMALL ? ub->rows[i].cell_swa : ub->rows[i].cell;
}

// One past the last index of row i's sequence.
static int32_t row_end(const struct graph *g, const struct ubatch *ub, int i, int view) {
    if (view != VIEW_SCRATCH) return view_cells(g, view)->idx_max[ub->rows[i].seq[0]] + 1;
    int32_t end = 0;
    for (int j = 0; j < ub->n.n_tokens; j++)
        if (ub->slot[j] == ub->slot[i] && ub->rows[j].index >= end) end = ub->rows[j].index + 1;
    return end;
}

// Row i sees indexes lo <= index < hi.
static void row_range(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, int i, int32_t *lo,
                      int32_t *hi) {
    const int32_t at = row_index(ub, i, in->a), w = in->c;
    *lo = 0;
    *hi = ub->n.causal ? at + 1 : row_end(g, ub, i, in->a);
    switch (in->b) {
        case WINDOW_STANDARD: *lo = at - w + 1; break;
        case WINDOW_CHUNKED: *lo = at / w * w; break;
        case WINDOW_SYMMETRIC:
            *lo = at - w / 2;
            if (*hi > at + w / 2 + 1) *hi = at + w / 2 + 1;
            break;
        default: break;
    }
    if (*lo < 0) *lo = 0;
}

void fill_query(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    int32_t *q = dst;
    for (int i = 0; i < ub->n.n_tokens; i++, q += 4) {
        int32_t lo, hi;
        row_range(in, g, ub, i, &lo, &hi);
        const int32_t base = in->a == VIEW_SCRATCH ? 0 : view_cells(g, in->a)->base[ub->rows[i].seq[0]] * CELL_BLOCK;
        q[0] = ub->slot[i];
        q[1] = row_index(ub, i, in->a) - base;
        q[2] = lo > base ? lo - base : 0;
        q[3] = hi - base;
    }
}

void fill_cells(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    (void) g;
    int64_t *out = dst;
    for (int i = 0; i < ub->n.n_tokens; i++) out[i] = row_cell(ub, i, in->a);
}

// Without a cache: which row of the micro-batch each cell of scratch holds (unused ones: row 0, which no table shows).
void fill_gather(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    (void) in;
    (void) g;
    int32_t *out = dst;
    memset(out, 0, (size_t) ub->n.n_scratch * CELL_BLOCK * 4);
    for (int i = 0; i < ub->n.n_tokens; i++) out[ub->rows[i].cell] = i;
}

void fill_scratch_table(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    (void) g;
    struct cell_entry *t = dst;
    const int32_t n_logical = in->b;
    for (int32_t i = 0; i < n_logical * ub->n.n_slots; i++) t[i] = (struct cell_entry){-1, 0, 0};
    for (int i = 0; i < ub->n.n_tokens; i++) {
        const int32_t at = ub->rows[i].index;
        struct cell_entry *e = &t[ub->slot[i] * n_logical + at / CELL_BLOCK];
        e->block = ub->rows[i].cell / CELL_BLOCK;
        if (at % CELL_BLOCK < 32)
            e->lo |= 1u << (at % CELL_BLOCK);
        else
            e->hi |= 1u << (at % CELL_BLOCK - 32);
    }
}

// Calls fn for every cell that row i sees.
static void each_visible(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, int i,
                         void (*fn)(void *ud, int32_t cell, int32_t index), void *ud) {
    int32_t lo, hi;
    row_range(in, g, ub, i, &lo, &hi);
    if (in->a == VIEW_SCRATCH) {
        for (int j = 0; j < ub->n.n_tokens; j++)
            if (ub->slot[j] == ub->slot[i] && ub->rows[j].index >= lo && ub->rows[j].index < hi)
                fn(ud, ub->rows[j].cell, ub->rows[j].index);
        return;
    }
    const struct cells *c = view_cells(g, in->a);
    const int32_t seq = ub->rows[i].seq[0];
    int32_t cell;
    for (int32_t k = cells_next(c, seq, lo, &cell, NULL); k >= 0 && k < hi; k = cells_next(c, seq, k + 1, &cell, NULL))
        fn(ud, cell, k);
}

int32_t row_sees(const struct graph *g, const struct ubatch *ub, int i, int view) {
    int32_t lo, hi;
    row_range(&(struct graph_input){.a = view, .b = WINDOW_NONE}, g, ub, i, &lo, &hi);
    return hi;
}

struct mask_row {
    float *out;
    int32_t *iout;
    int32_t at, n_buckets;
    bool alibi, both;
};

static void mask_one(void *ud, int32_t cell, int32_t index) {
    const struct mask_row *m = ud;
    const int32_t d = index - m->at;
    m->out[cell] = m->alibi ? (float) (d < 0 ? d : -d) : 0.0f;
}

void fill_mask(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    const int64_t n = in->t->ne[0];
    struct graph_input plain = *in;
    plain.a &= ~MASK_DISTANCES;
    for (int i = 0; i < ub->n.n_tokens; i++) {
        struct mask_row m = {
            .out = (float *) dst + n * i, .at = row_index(ub, i, plain.a), .alibi = (in->a & MASK_DISTANCES) != 0};
        for (int64_t k = 0; k < n; k++) m.out[k] = -INFINITY;
        each_visible(&plain, g, ub, i, mask_one, &m);
    }
}

// T5: half of the buckets are exact distances, the rest grow with the logarithm up to 128.
static int32_t bucket(int32_t r, int32_t n, bool both) {
    int32_t base = 0, d = r < 0 ? -r : r;
    if (both) {
        n /= 2;
        if (r > 0) base = n;
    } else if (r > 0) {
        d = 0;
    }
    const int32_t e = n / 2;
    if (d < e) return base + d;
    const int32_t b = (int32_t) floorf((float) e + logf((float) d / (float) e) * (float) (n - e) / logf(128.0f / (float) e));
    return base + (b < n - 1 ? b : n - 1);
}

static void bucket_one(void *ud, int32_t cell, int32_t index) {
    const struct mask_row *m = ud;
    m->iout[cell] = m->n_buckets ? bucket(index - m->at, m->n_buckets, m->both) : index;
}

void fill_buckets(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    const int64_t n = in->t->ne[0] / ub->n.n_tokens;
    for (int i = 0; i < ub->n.n_tokens; i++) {
        struct mask_row m = {.iout = (int32_t *) dst + n * i,
                             .at = row_index(ub, i, in->a),
                             .n_buckets = (int32_t) in->f,
                             .both = in->h != 0};
        memset(m.iout, 0, (size_t) n * 4);
        each_visible(in, g, ub, i, bucket_one, &m);
    }
}

void fill_cell_pos(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    const int64_t n = in->t->ne[0];
    for (int i = 0; i < ub->n.n_tokens; i++) {
        struct mask_row m = {.iout = (int32_t *) dst + n * i};
        for (int64_t k = 0; k < n; k++) m.iout[k] = -1;
        each_visible(in, g, ub, i, bucket_one, &m);
    }
}

// Positions of the first of each n cells (c), where those of one sequence lie side by side; what free cells say is never looked at.
void fill_pool_pos(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    const struct cells *c = view_cells(g, in->a);
    const int64_t n_pool = in->b, n = in->c;
    int32_t *out = dst;
    (void) ub;
    for (int64_t i = 0; i < n_pool; i++) out[i] = c->pos[i * n] > 0 ? c->pos[i * n] : 0;
    for (int64_t k = 1; g->hp->mrope && k < 4; k++)
        for (int64_t i = 0; i < n_pool; i++) out[k * n_pool + i] = k < 3 ? out[i] : 0;
}
