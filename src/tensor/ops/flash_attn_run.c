// How FLASH_ATTN_EXT is cut into work, and the walk over key blocks. The arithmetic is in kern/attn.c.
//
// Query heads that share a K and a V head form a unit; the queries of a unit are taken in runs (neighbouring rows with the same keys),
// so that a block of keys, unpacked to F32 and transposed once, serves every row of the run. Each row gets blocks merged in position
// order within a stripe of 4 blocks, and stripes merged in position order: an order given by the positions alone. So it makes no
// difference to any bit whether one thread walks all stripes of a run (prefill), or threads take single stripes and the parts are
// merged afterwards (decode).
#include "ops/flash_attn_int.h"

#include <math.h>
#include <string.h>

#include "kern/attn.h"
#include "type/type.h"

enum {
    STRIPE = 4,           // blocks merged among themselves before they are merged with what came before
    RUN_ROWS = 192,       // rows that share an unpacked block, as a goal
    GROUP_MAX = 128,      // heads of a unit
    ITEMS_PER_THREAD = 4, // fewer work items than this per thread: split along positions too
    PART_BYTES = 1 << 20, // per thread, for the parts of stripes
};

struct plan {
    const struct ggml_tensor *q, *k, *v, *mask, *sinks, *query, *table;
    struct ggml_tensor *dst;
    const struct kern_attn *kern;
    const struct type *k_type, *v_type;
    int64_t d, dv, dvp, ld;          // ld: d padded, floats of an unpacked row of keys
    int64_t n_q, n_head, n_kv, n_3;
    int64_t group, n_unit;           // heads per unit, units
    int64_t per_run, n_run;          // queries per run at most, runs per unit
    int64_t n_row;                   // all rows of the node
    int64_t stripe0, stripe1;        // stripes that any query can see
    int64_t window;                  // stripes per pass when split along positions, 0 when not
    float scale, max_bias, cap;
    int tiles;                       // register tiles per run at most
};

static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        const int64_t c = a % b;
        a = b;
        b = c;
    }
    return a;
}

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Positions of a row of keys: of the slot's table, or of k itself.
static int64_t positions(const struct plan *p) { return p->table ? p->table->ne[1] * ATTN_BLOCK : p->n_kv; }

static int64_t part_floats(const struct plan *p) { return p->dvp + ATTN_PAD; }  // o, then m and l

static int64_t round16(int64_t n) { return ceil_div(n, ATTN_PAD) * ATTN_PAD; }

// Rows of a run, whole register tiles.
static int64_t rows_max(const struct plan *p) { return (int64_t) p->tiles * ATTN_TILE; }

// Everything that follows from shapes and the number of threads. per_run is refined by the data in plan_queries.
static struct plan plan_shapes(const struct ggml_tensor *t, int n_threads) {
    struct plan p = {.q = t->src[FA_Q], .k = t->src[FA_K], .v = t->src[FA_V], .mask = t->src[FA_MASK], .sinks = t->src[FA_SINKS],
                     .query = t->src[FA_QUERY], .table = t->src[FA_TABLE]};
    p.d = p.q->ne[0], p.dv = p.v->ne[0], p.dvp = round16(p.dv);
    p.ld = round16(p.d);
    p.n_q = p.q->ne[1], p.n_head = p.q->ne[2], p.n_kv = p.k->ne[1], p.n_3 = p.q->ne[3];
    p.group = gcd(p.n_head / p.k->ne[2], p.n_head / p.v->ne[2]);
    for (int64_t n = p.group; p.group > GROUP_MAX; n--)
        if (p.group % n == 0 && n <= GROUP_MAX) p.group = n;
    p.n_unit = p.n_head / p.group;
    p.n_row = p.n_q * p.n_head * p.n_3;
    const int64_t enough = (int64_t) ITEMS_PER_THREAD * n_threads;
    p.per_run = max64(1, min64(p.n_q, RUN_ROWS / p.group));
    if (p.n_unit * ceil_div(p.n_q, p.per_run) * p.n_3 < enough) p.per_run = ceil_div(p.per_run, 2);
    p.n_run = ceil_div(p.n_q, p.per_run);
    p.tiles = (int) ceil_div(p.per_run * p.group, ATTN_TILE);
    p.stripe1 = ceil_div(positions(&p), STRIPE * ATTN_BLOCK);
    p.scale = tensor_param_f32(t, FA_SCALE), p.max_bias = tensor_param_f32(t, FA_MAX_BIAS), p.cap = tensor_param_f32(t, FA_SOFTCAP);
    if (p.cap != 0.0f) p.scale /= p.cap;
    if (p.n_unit * p.n_run * p.n_3 < enough && p.stripe1 > 1) {
        const int64_t stripe_bytes = p.n_row * part_floats(&p) * (int64_t) sizeof(float);
        p.window = min64(p.stripe1, (int64_t) PART_BYTES * n_threads / max64(stripe_bytes, 1));
        if (p.window < 2) p.window = 0;
    }
    return p;
}

static const int32_t *query_row(const struct plan *p, int64_t i) { return (const int32_t *) p->query->data + 4 * i; }

// What the data says about runs and positions: where neighbours rarely share a slot, shorter runs give more to share out.
static void plan_queries(struct plan *p) {
    if (!p->table) return;
    int64_t n_change = 1, lo = INT64_MAX, hi = 0;
    for (int64_t i = 0; i < p->n_q; i++) {
        const int32_t *row = query_row(p, i);
        if (i && row[0] != row[-4]) n_change++;
        if (row[2] >= row[3]) continue;
        lo = min64(lo, max64(row[2], 0));
        hi = max64(hi, row[3]);
    }
    const int64_t width = STRIPE * ATTN_BLOCK;
    p->stripe0 = lo < hi ? min64(lo / width, p->stripe1) : 0;
    p->stripe1 = lo < hi ? min64(ceil_div(hi, width), p->stripe1) : 0;
    p->per_run = max64(1, min64(p->per_run, p->n_q / n_change));
    p->n_run = ceil_div(p->n_q, p->per_run);
}

// ---- one run ------------------------------------------------------------------------------------------------------------------

struct run {
    const struct plan *p;
    struct task *task;
    int64_t unit, i3, q0, n_q;      // unit, queries q0 .. q0 + n_q
    int n_row;                      // n_q * group; row = query * group + head in the unit
    int tiles;
    float *q, *raw, *k, *v, *work;  // packed queries, unpacked rows, keys transposed, values
    float *bias;                    // [n_row][64]
    const float **row_bias;         // [n_row], or NULL for none
    float *slope;                   // [n_row]
    uint64_t *visible;              // [n_row]
    struct attn_state stripe, total;
};

static float slope_of(const struct plan *p, int64_t head) {
    if (p->max_bias <= 0.0f) return 1.0f;
    const int n2 = 1 << (int) floor(log2((double) p->n_head));
    if (head < n2) return exp2f(-p->max_bias * (float) (head + 1) / (float) n2);
    return exp2f(-p->max_bias * 0.5f * (float) (2 * (head - n2) + 1) / (float) n2);
}

// Next n floats of scratch, from a multiple of 64 bytes on. With base NULL it only counts.
static float *take(float *base, int64_t *used, int64_t n) {
    float *at = base ? base + *used : NULL;
    *used += round16(n);
    return at;
}

// A thread's run laid out in mem; mem NULL: only *n_float, what it takes, is of use.
static struct run run_begin(const struct plan *p, struct task *task, float *mem, int64_t *n_float) {
    struct run r = {.p = p, .task = task};
    const int64_t rows = rows_max(p);
    int64_t n = 0;
    r.q = take(mem, &n, rows * p->d);
    r.raw = take(mem, &n, ATTN_PAD * p->ld);
    r.k = take(mem, &n, ATTN_BLOCK * p->d);
    r.v = take(mem, &n, ATTN_BLOCK * p->dvp);
    r.work = take(mem, &n, ATTN_TILE * ATTN_BLOCK);
    r.stripe.o = take(mem, &n, rows * p->dvp);
    r.total.o = take(mem, &n, rows * p->dvp);
    r.bias = take(mem, &n, rows * ATTN_BLOCK);
    r.visible = (uint64_t *) (void *) take(mem, &n, 2 * rows);
    r.row_bias = (const float **) (void *) take(mem, &n, 2 * rows);
    r.slope = take(mem, &n, rows);
    r.stripe.m = take(mem, &n, rows);
    r.stripe.l = take(mem, &n, rows);
    r.total.m = take(mem, &n, rows);
    r.total.l = take(mem, &n, rows);
    *n_float = n;
    return r;
}

static void state_clear(struct attn_state *s, int n, int64_t dvp) {
    for (int i = 0; i < n; i++) s->m[i] = -INFINITY, s->l[i] = 0.0f;
    memset(s->o, 0, (size_t) (n * dvp) * sizeof(float));
}

static int64_t head_of(const struct run *r, int row) { return r->unit * r->p->group + row % r->p->group; }
static int64_t query_of(const struct run *r, int row) { return r->q0 + row / r->p->group; }

static void run_set(struct run *r, int64_t unit, int64_t i3, int64_t q0, int64_t n_q) {
    const struct plan *p = r->p;
    r->unit = unit, r->i3 = i3, r->q0 = q0, r->n_q = n_q;
    r->n_row = (int) (n_q * p->group);
    r->tiles = (r->n_row + ATTN_TILE - 1) / ATTN_TILE;
    for (int row = 0; row < r->n_row; row++) {
        const struct ggml_tensor *q = p->q;
        const float *src = (const float *) ((const char *) q->data + query_of(r, row) * (int64_t) q->nb[1] +
                                            head_of(r, row) * (int64_t) q->nb[2] + i3 * (int64_t) q->nb[3]);
        float *to = r->q + (row / ATTN_ROWS) * ATTN_ROWS * p->d + row % ATTN_ROWS;
        for (int64_t i = 0; i < p->d; i++) to[i * ATTN_ROWS] = src[i] * p->scale;
        r->slope[row] = slope_of(p, head_of(r, row));
    }
    state_clear(&r->total, r->n_row, p->dvp);
}

// Visible sets of the rows for positions b * 64 .., by the mask; biases too. Gives the union.
static uint64_t see_mask(struct run *r, int64_t b) {
    const struct plan *p = r->p;
    const struct ggml_tensor *m = p->mask;
    const int n = (int) min64(ATTN_BLOCK, p->n_kv - b * ATTN_BLOCK);
    uint64_t all = 0;
    for (int row = 0; row < r->n_row; row++) {
        if (m->ne[2] == 1 && row % p->group != 0) {  // the same for all heads
            r->visible[row] = r->visible[row - 1];
            r->row_bias[row] = r->row_bias[row - 1];
            continue;
        }
        const char *src = (const char *) m->data + query_of(r, row) * (int64_t) m->nb[1] +
                          head_of(r, row) % m->ne[2] * (int64_t) m->nb[2] + r->i3 % m->ne[3] * (int64_t) m->nb[3] +
                          b * ATTN_BLOCK * (int64_t) m->nb[0];
        bool some;
        float *bias = r->bias + row * ATTN_BLOCK;
        r->visible[row] = m->type == GGML_TYPE_F16 ? p->kern->mask_f16((const uint16_t *) (const void *) src, n, bias, &some)
                                                   : p->kern->mask_f32((const float *) (const void *) src, n, bias, &some);
        r->row_bias[row] = some ? bias : NULL;
        all |= r->visible[row];
    }
    return all;
}

static uint64_t bits_below(int64_t n) { return n <= 0 ? 0 : n >= 64 ? ~0ull : (1ull << n) - 1; }

// ALiBi without a mask: minus the distance between the query's position and those from `at` on.
static const float *distances(struct run *r, int row, int64_t position, int64_t at) {
    float *bias = r->bias + row * ATTN_BLOCK;
    for (int j = 0; j < ATTN_BLOCK; j++) bias[j] = -fabsf((float) (position - (at + j)));
    return bias;
}

// The same without a mask: positions lo .. hi of those that exist.
static uint64_t see_range(struct run *r, int64_t b, uint64_t exist) {
    const struct plan *p = r->p;
    const int64_t at = b * ATTN_BLOCK;
    uint64_t all = 0;
    for (int64_t i = 0; i < r->n_q; i++) {
        const int32_t *query = p->table ? query_row(p, r->q0 + i) : NULL;
        const int row = (int) (i * p->group);
        const uint64_t seen = query ? exist & bits_below(query[3] - at) & ~bits_below(query[2] - at) : exist;
        const float *bias = NULL;
        if (p->max_bias > 0.0f && seen) bias = distances(r, row, query ? query[1] : p->n_kv - p->n_q + r->q0 + i, at);
        for (int h = 0; h < p->group; h++) {
            r->visible[row + h] = seen;
            r->row_bias[row + h] = bias;
        }
        all |= seen;
    }
    return all;
}

// First cell of block b, and the rows' visible sets. Gives their union; 0 when there is nothing to do.
static uint64_t see_block(struct run *r, int64_t b, int64_t *cell) {
    const struct plan *p = r->p;
    *cell = b * ATTN_BLOCK;
    if (!p->table) return p->mask ? see_mask(r, b) : see_range(r, b, bits_below(p->n_kv - *cell));
    const int32_t slot = query_row(p, r->q0)[0];
    const int32_t *entry = (const int32_t *) p->table->data + 3 * (slot * p->table->ne[1] + b);
    const uint64_t all = see_range(r, b, (uint32_t) entry[1] | (uint64_t) (uint32_t) entry[2] << 32);
    if (entry[0] == -1 || !all) return 0;
    *cell = (int64_t) entry[0] * ATTN_BLOCK;
    const int64_t room = p->n_kv - *cell;
    if (entry[0] < 0 || (all & ~bits_below(room))) {
        task_fail(r->task, p->dst, "flash_attn_ext: slot %d, block %lld: physical block %d lies outside the cache of %lld cells", slot,
                  (long long) b, entry[0], (long long) p->n_kv);
        return 0;
    }
    return all;
}

// Some rows of K or V from one cell on.
struct rows {
    const struct ggml_tensor *x;
    const struct type *type;
    const char *data;
};

static struct rows rows_at(const struct run *r, const struct ggml_tensor *x, const struct type *type, int64_t cell) {
    const struct plan *p = r->p;
    const int64_t head = r->unit * p->group / (p->n_head / x->ne[2]), i3 = r->i3 / (p->n_3 / x->ne[3]);
    return (struct rows) {x, type, (const char *) x->data + cell * (int64_t) x->nb[1] + head * (int64_t) x->nb[2] + i3 * (int64_t) x->nb[3]};
}

static enum attn_form form_of(enum ggml_type type) {
    switch (type) {
        case GGML_TYPE_F32: return ATTN_F32;
        case GGML_TYPE_F16: return ATTN_F16;
        case GGML_TYPE_BF16: return ATTN_BF16;
        case GGML_TYPE_Q8_0: return ATTN_Q8_0;
        default: return ATTN_OTHER;
    }
}

// Rows j0 .. j0 + n_row as F32 at out [n_row][ld], zeros for those not in `set` and beyond a row's end.
static void unpack(const struct plan *p, const struct rows *rows, int j0, int n_row, uint64_t set, float *out, int64_t ld) {
    const enum attn_form form = form_of(rows->x->type);
    const int64_t n = rows->x->ne[0], stride = (int64_t) rows->x->nb[1];
    const char *src = rows->data + j0 * stride;
    set >>= j0;
    if (form != ATTN_OTHER) {
        p->kern->unpack(form, src, (size_t) stride, set, n_row, n, out, ld);
        return;
    }
    for (int j = 0; j < n_row; j++, out += ld, src += stride) {
        const bool there = set >> j & 1;
        if (there) rows->type->decode(src, out, n);
        const int64_t from = there ? n : 0;
        memset(out + from, 0, (size_t) (ld - from) * sizeof(float));
    }
}

static bool careful(const struct run *r, uint64_t all) {
    for (int row = 0; row < r->n_row; row++)
        if (r->visible[row] != all) return !r->p->kern->finite(r->v, ATTN_BLOCK * r->p->dvp);
    return false;
}

// Asks for part i of n of the next block's rows while this one is computed. The block may not be needed; that costs little.
static void prefetch(const struct rows *rows, int i, int n) {
    const size_t bytes = ggml_row_size(rows->x->type, rows->x->ne[0]), stride = rows->x->nb[1];
    for (int j = ATTN_BLOCK * i / n; j < ATTN_BLOCK * (i + 1) / n; j++)
        for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(rows->data + (size_t) j * stride + at, 0, 2);
}

// First cell of block b, or -1 if there is none or not all of it lies in the cache.
static int64_t block_cell(const struct run *r, int64_t b) {
    const struct plan *p = r->p;
    int64_t block = b;
    if (p->table) block = b < p->table->ne[1] ? ((const int32_t *) p->table->data)[3 * (query_row(p, r->q0)[0] * p->table->ne[1] + b)] : -1;
    return block >= 0 && (block + 1) * ATTN_BLOCK <= p->n_kv ? block * ATTN_BLOCK : -1;
}

static void run_tiles(struct run *r, struct attn_block *x, int64_t b) {
    const struct plan *p = r->p;
    const int64_t next = block_cell(r, b + 1);
    const struct rows k = rows_at(r, p->k, p->k_type, next), v = rows_at(r, p->v, p->v_type, next);
    for (int i = 0; i < r->tiles; i++) {
        const int row = i * ATTN_TILE;
        if (next >= 0) prefetch(&k, i, r->tiles), prefetch(&v, i, r->tiles);
        x->n_row = r->n_row - row < ATTN_TILE ? r->n_row - row : ATTN_TILE;
        x->q = r->q + row * p->d;
        x->visible = r->visible + row, x->bias = r->row_bias + row, x->slope = r->slope + row;
        x->state = (struct attn_state) {r->stripe.m + row, r->stripe.l + row, r->stripe.o + row * p->dvp};
        p->kern->block(x);
    }
}

static void run_block(struct run *r, int64_t b) {
    const struct plan *p = r->p;
    int64_t cell;
    const uint64_t all = see_block(r, b, &cell);
    if (!all) return;
    const struct rows k = rows_at(r, p->k, p->k_type, cell), v = rows_at(r, p->v, p->v_type, cell);
    for (int j = 0; j < ATTN_BLOCK; j += ATTN_PAD) {
        unpack(p, &k, j, ATTN_PAD, all, r->raw, p->ld);
        p->kern->transpose(r->raw, p->ld, p->d, r->k + j);
    }
    unpack(p, &v, 0, ATTN_BLOCK, all, r->v, p->dvp);
    struct attn_block x = {.k = r->k, .v = r->v, .d = p->d, .dvp = p->dvp, .cap = p->cap, .work = r->work, .careful = careful(r, all)};
    run_tiles(r, &x, b);
}

static void run_stripe(struct run *r, int64_t stripe) {
    const int64_t end = min64((stripe + 1) * STRIPE, ceil_div(positions(r->p), ATTN_BLOCK));
    state_clear(&r->stripe, r->n_row, r->p->dvp);
    for (int64_t b = stripe * STRIPE; b < end; b++) run_block(r, b);
}

static float *row_out(const struct plan *p, int64_t i3, int64_t i, int64_t head) {
    return (float *) p->dst->data + ((i3 * p->n_q + i) * p->n_head + head) * p->dv;
}

static void finish_row(const struct plan *p, float m, float l, const float *o, int64_t i3, int64_t i, int64_t head) {
    const float sink = p->sinks ? ((const float *) p->sinks->data)[head] : -INFINITY;
    p->kern->finish(m, l, o, sink, row_out(p, i3, i, head), p->dv);
}

// ---- items of work ----------------------------------------------------------------------------------------------------------

struct item {
    int64_t unit, i3, q0, q1;
};

// Item i of n_unit * n_run * n_3; neighbours differ in the unit.
static struct item item_of(const struct plan *p, int64_t i) {
    struct item x;
    x.unit = i % p->n_unit;
    x.q0 = i / p->n_unit % p->n_run * p->per_run;
    x.q1 = min64(x.q0 + p->per_run, p->n_q);
    x.i3 = i / p->n_unit / p->n_run;
    return x;
}

// Queries from q on that share their keys: all, or those of one slot. False if the slot is not in the table.
static bool same_keys(const struct run *r, int64_t q, int64_t end, int64_t *next) {
    const struct plan *p = r->p;
    *next = end;
    if (!p->table) return true;
    const int32_t slot = query_row(p, q)[0];
    for (int64_t i = q + 1; i < end; i++) {
        if (query_row(p, i)[0] == slot) continue;
        *next = i;
        break;
    }
    if (slot >= 0 && slot < p->table->ne[2]) return true;
    task_fail(r->task, p->dst, "flash_attn_ext: query row %lld names slot %d; the table has %lld", (long long) q, slot,
              (long long) p->table->ne[2]);
    return false;
}

// Stripes that the run can see.
static void run_range(const struct run *r, int64_t *s0, int64_t *s1) {
    const struct plan *p = r->p;
    *s0 = p->stripe0, *s1 = p->stripe1;
    if (!p->table) return;
    int64_t lo = INT64_MAX, hi = 0;
    for (int64_t i = r->q0; i < r->q0 + r->n_q; i++) {
        const int32_t *row = query_row(p, i);
        if (row[2] >= row[3]) continue;
        lo = min64(lo, max64(row[2], 0));
        hi = max64(hi, row[3]);
    }
    if (lo >= hi) {
        *s1 = *s0;
        return;
    }
    *s0 = max64(*s0, lo / (STRIPE * ATTN_BLOCK));
    *s1 = min64(*s1, ceil_div(hi, STRIPE * ATTN_BLOCK));
}

// Prefill: a thread walks all stripes of a run.
static void walk_runs(struct run *r) {
    const struct plan *p = r->p;
    const int64_t n = p->n_unit * p->n_run * p->n_3;
    for (int64_t i = task_next(r->task); i < n; i = task_next(r->task)) {
        const struct item x = item_of(p, i);
        for (int64_t q = x.q0, next; q < x.q1; q = next) {
            if (!same_keys(r, q, x.q1, &next)) continue;
            run_set(r, x.unit, x.i3, q, next - q);
            int64_t s0, s1;
            run_range(r, &s0, &s1);
            for (int64_t s = s0; s < s1; s++) {
                run_stripe(r, s);
                for (int row = 0; row < r->n_row; row++)
                    p->kern->merge(&r->total.m[row], &r->total.l[row], r->total.o + row * p->dvp, r->stripe.m[row], r->stripe.l[row],
                                   r->stripe.o + row * p->dvp, p->dvp);
            }
            for (int row = 0; row < r->n_row; row++)
                finish_row(p, r->total.m[row], r->total.l[row], r->total.o + row * p->dvp, x.i3, query_of(r, row), head_of(r, row));
        }
    }
}

// One stripe of one item: each row's part goes to parts[row][at].
static void walk_stripe(struct run *r, const struct item *x, int64_t s, float *parts, int64_t at) {
    const struct plan *p = r->p;
    const int64_t part = part_floats(p);
    for (int64_t q = x->q0, next; q < x->q1; q = next) {
        const bool known = same_keys(r, q, x->q1, &next);
        run_set(r, x->unit, x->i3, q, next - q);
        int64_t s0 = 0, s1 = 0;
        if (known) run_range(r, &s0, &s1);
        if (s >= s0 && s < s1) run_stripe(r, s);
        else state_clear(&r->stripe, r->n_row, p->dvp);
        for (int row = 0; row < r->n_row; row++) {
            const int64_t global = (x->i3 * p->n_q + query_of(r, row)) * p->n_head + head_of(r, row);
            float *to = parts + (global * p->window + at) * part;
            to[p->dvp] = r->stripe.m[row], to[p->dvp + 1] = r->stripe.l[row];
            if (r->stripe.m[row] != -INFINITY) memcpy(to, r->stripe.o + row * p->dvp, (size_t) p->dvp * sizeof(float));
        }
    }
}

// Decode: threads take stripes. All units of a stripe in one piece where there are enough of them, because the heads of a cell mostly
// lie beside each other in memory.
static void walk_stripes(struct run *r, float *parts, int64_t first, int64_t n_stripe) {
    const struct plan *p = r->p;
    const int64_t n_rest = p->n_run * p->n_3 * n_stripe;
    const int64_t together = n_rest >= (int64_t) ITEMS_PER_THREAD * r->task->nth ? p->n_unit : 1;
    const int64_t n_item = p->n_unit * p->n_run * p->n_3, n_piece = n_item / together;
    for (int64_t i = task_next(r->task); i < n_piece * n_stripe; i = task_next(r->task)) {
        const int64_t at = i / n_piece;
        for (int64_t k = 0; k < together; k++) {
            const struct item x = item_of(p, i % n_piece * together + k);
            walk_stripe(r, &x, first + at, parts, at);
        }
    }
}

// Merge the parts of a window into the rows' totals, and after the last window give the results.
static void merge_parts(const struct run *r, float *total, const float *parts, int64_t n_stripe, bool first, bool last) {
    const struct plan *p = r->p;
    const int64_t part = part_floats(p);
    int64_t i0, i1;
    task_range(r->task, p->n_row, &i0, &i1);
    for (int64_t i = i0; i < i1; i++) {
        float *t = total + i * part;
        if (first) state_clear(&(struct attn_state) {&t[p->dvp], &t[p->dvp + 1], t}, 1, p->dvp);
        for (int64_t s = 0; s < n_stripe; s++) {
            const float *x = parts + (i * p->window + s) * part;
            p->kern->merge(&t[p->dvp], &t[p->dvp + 1], t, x[p->dvp], x[p->dvp + 1], x, p->dvp);
        }
        if (last) finish_row(p, t[p->dvp], t[p->dvp + 1], t, i / (p->n_q * p->n_head), i / p->n_head % p->n_q, i % p->n_head);
    }
}

static void walk_windows(struct run *r, float *shared) {
    const struct plan *p = r->p;
    float *total = shared, *parts = shared + p->n_row * part_floats(p);
    int64_t s = p->stripe0;
    do {
        const int64_t n = min64(p->window, p->stripe1 - s);
        walk_stripes(r, parts, s, n);
        task_barrier(r->task);
        merge_parts(r, total, parts, n, s == p->stripe0, s + n >= p->stripe1);
        s += n;
        if (s < p->stripe1) task_rewind(r->task);
    } while (s < p->stripe1);
}

size_t flash_attn_scratch(const struct ggml_tensor *t, int n_threads) {
    const struct plan p = plan_shapes(t, n_threads);
    int64_t n;
    (void) run_begin(&p, NULL, NULL, &n);
    n *= n_threads;
    if (p.window) n += (p.window + 1) * p.n_row * part_floats(&p);
    return (size_t) n * sizeof(float);
}

void flash_attn_run(struct task *k, struct ggml_tensor *t) {
    struct plan p = plan_shapes(t, k->nth);
    if (p.n_row == 0 || p.dv == 0) return;
    p.dst = t;
    p.kern = kern_attn();
    p.k_type = type_get(p.k->type), p.v_type = type_get(p.v->type);
    plan_queries(&p);
    int64_t n;
    (void) run_begin(&p, k, NULL, &n);
    float *shared = (float *) k->work, *mem = shared + n * k->ith;
    if (p.window) mem += (p.window + 1) * p.n_row * part_floats(&p);
    struct run r = run_begin(&p, k, mem, &n);
    if (p.window) walk_windows(&r, shared);
    else walk_runs(&r);
}
