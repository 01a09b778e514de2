// How FLASH_ATTN_EXT is cut into work, and the walk over key blocks. The arithmetic is in kern/attn.c.
//
// Query heads that share a K and a V head form a unit; the queries of a unit are taken in runs (neighbouring rows with the
// same keys), so that a block of keys, unpacked to F32 and transposed once, serves every row of the run. Each row gets
// blocks merged in position order within a stripe of 4 blocks, and stripes merged in position order: an order given by the
// positions alone. So it makes no difference to any bit whether one thread walks all stripes of a run (prefill), or threads
// take single stripes, or blocks where there are few stripes, and the parts are merged afterwards (decode).
#include "ops/flash_attn_int.h"

enum {
    STRIPE = GGML_ATTN_STRIPE,  // blocks merged among themselves before they are merged with what came before
    RUN_ROWS = 192,             // rows that share an unpacked block, as a goal
    GROUP_MAX = 128,            // heads of a unit
    ITEMS_PER_THREAD = 4,       // fewer work items than this per thread: split along positions too
    PART_BYTES = 1 << 20,       // per thread, for the parts of stripes
    BLOCK_PARTS = 8,            // blocks that are taken singly, at most
    BLOCK_BYTES = 1 << 18,      // for their parts
    SIDE_BYTES = 5 << 18,       // for the rows of units that go side by side
    SIDE_ROWS = 48,             // fewer rows per unit are not worth it
    SIDE_UNITS = 32,            // units that go side by side, at most
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
static int64_t positions(const struct attn_plan *p) { return p->table ? p->table->ne[1] * ATTN_BLOCK : p->n_kv; }

static int64_t part_floats(const struct attn_plan *p) { return p->dvp + ATTN_PAD; }  // o, then m and l

static int64_t round16(int64_t n) { return ceil_div(n, ATTN_PAD) * ATTN_PAD; }

static void set_per_run(struct attn_plan *p, int64_t n) {
    p->per_run = max64(1, n);
    p->n_run = ceil_div(p->n_q, p->per_run);
    p->row_max = ceil_div(p->per_run * p->group, ATTN_TILE) * ATTN_TILE;
}

static bool fits_beside(const struct attn_plan *p) {
    return p->n_unit <= SIDE_UNITS && p->n_unit * p->row_max * (p->d + 2 * p->dvp) * (int64_t) sizeof(float) <= SIDE_BYTES;
}

// How many queries a run has, whether units go side by side (the heads of a cell mostly lie beside each other, so memory is
// then read in its order), and whether the work is split along positions. All of it only changes who does what.
static void plan_runs(struct attn_plan *p, int n_threads) {
    const int64_t enough = (int64_t) ITEMS_PER_THREAD * n_threads, most = min64(p->n_q, max64(1, RUN_ROWS / p->group));
    set_per_run(p, most);
    while (p->n_unit <= SIDE_UNITS && !fits_beside(p) && p->per_run * p->group >= 2 * SIDE_ROWS)
        set_per_run(p, p->per_run / 2);
    p->together = fits_beside(p) ? p->n_unit : 1;
    if (p->n_run * p->n_3 >= enough) return;
    // Few rows: reading is what takes time, so rather stripes of all units than units. Many: the other way round.
    const bool units_do = ceil_div(p->n_q, most) * p->n_unit * p->n_3 >= enough;
    if (p->n_q * p->group <= SIDE_ROWS || !units_do) {
        const int64_t stripe_bytes = p->n_row * part_floats(p) * (int64_t) sizeof(float);
        p->window = min64(p->stripe1, (int64_t) PART_BYTES * n_threads / max64(stripe_bytes, 1));
        if (p->window >= 2) return;
    }
    p->window = 0, p->together = 1;
    if (units_do) set_per_run(p, most);
}

// Everything that follows from shapes and the number of threads. It is refined by the data in plan_queries.
static struct attn_plan plan_shapes(const struct ggml_tensor *t, int n_threads) {
    struct attn_plan p = {.q = t->src[FA_Q],
                          .k = t->src[FA_K],
                          .v = t->src[FA_V],
                          .mask = t->src[FA_MASK],
                          .sinks = t->src[FA_SINKS],
                          .query = t->src[FA_QUERY],
                          .table = t->src[FA_TABLE]};
    p.d = p.q->ne[0], p.dv = p.v->ne[0], p.dvp = round16(p.dv);
    p.ld = round16(p.d);
    p.n_q = p.q->ne[1], p.n_head = p.q->ne[2], p.n_kv = p.k->ne[1], p.n_3 = p.q->ne[3];
    p.group = gcd(p.n_head / p.k->ne[2], p.n_head / p.v->ne[2]);
    for (int64_t n = p.group; p.group > GROUP_MAX; n--)
        if (p.group % n == 0 && n <= GROUP_MAX) p.group = n;
    p.n_unit = p.n_head / p.group;
    p.n_row = p.n_q * p.n_head * p.n_3;
    p.stripe1 = ceil_div(positions(&p), STRIPE * ATTN_BLOCK);
    p.block1 = ceil_div(positions(&p), ATTN_BLOCK);
    p.scale = tensor_param_f32(t, FA_SCALE), p.max_bias = tensor_param_f32(t, FA_MAX_BIAS),
    p.cap = tensor_param_f32(t, FA_SOFTCAP);
    if (p.cap != 0.0f) p.scale /= p.cap;
    plan_runs(&p, n_threads);
    return p;
}

// Parts of a row that there is room for.
static int64_t part_room(const struct attn_plan *p) {
    if (!p->window) return 0;
    const bool blocks = p->n_row * part_floats(p) * (int64_t) sizeof(float) * BLOCK_PARTS <= BLOCK_BYTES;
    return blocks ? max64(p->window, BLOCK_PARTS) : p->window;
}

// Few stripes for many threads: they take blocks.
static void plan_blocks(struct attn_plan *p, int n_threads) {
    const int64_t n_item = p->n_unit * p->n_run * p->n_3, n = p->block1 - p->block0;
    p->by_block = n_threads > 1 && p->window && n_item * (p->stripe1 - p->stripe0) < 2 * n_threads && n <= BLOCK_PARTS &&
                  n <= part_room(p);
    if (p->by_block) p->together = 1;
}

// What the data says about runs and positions: where neighbours rarely share a slot, shorter runs give more to share out.
static void plan_slots(struct attn_plan *p, int n_threads) {
    int64_t n_change = 1, lo = INT64_MAX, hi = 0;
    for (int64_t i = 0; i < p->n_q; i++) {
        const int32_t *row = attn_query(p, i);
        if (i && row[0] != row[-4]) n_change++;
        if (row[2] >= row[3]) continue;
        lo = min64(lo, max64(row[2], 0));
        hi = max64(hi, row[3]);
    }
    const int64_t width = STRIPE * ATTN_BLOCK;
    p->stripe0 = lo < hi ? min64(lo / width, p->stripe1) : 0;
    p->stripe1 = lo < hi ? min64(ceil_div(hi, width), p->stripe1) : 0;
    p->block0 = lo < hi ? min64(lo / ATTN_BLOCK, p->block1) : 0;
    p->block1 = lo < hi ? min64(ceil_div(hi, ATTN_BLOCK), p->block1) : 0;
    p->per_run = max64(1, min64(p->per_run, p->n_q / n_change));
    p->n_run = ceil_div(p->n_q, p->per_run);
    if (p->window && p->n_run * p->n_3 * (p->stripe1 - p->stripe0) < (int64_t) ITEMS_PER_THREAD * n_threads) p->together = 1;
}

static void plan_queries(struct attn_plan *p, int n_threads) {
    if (p->table) plan_slots(p, n_threads);
    plan_blocks(p, n_threads);
}

// ---- one run
// ------------------------------------------------------------------------------------------------------------------

static float slope_of(const struct attn_plan *p, int64_t head) {
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

// A thread's run laid out in mem, with queries and states for `together` units; mem NULL: only *n_float, what it takes, is
// of use.
static struct attn_run run_begin(const struct attn_plan *p, struct task *task, float *mem, int64_t *n_float) {
    struct attn_run r = {.p = p, .task = task};
    const int64_t rows = p->row_max, all = rows * p->together;
    int64_t n = 0;
    r.q = take(mem, &n, all * p->d);
    r.raw = take(mem, &n, ATTN_PAD * p->ld);
    r.k = take(mem, &n, ATTN_BLOCK * p->d);
    r.v = take(mem, &n, ATTN_BLOCK * p->dvp);
    r.work = take(mem, &n, ATTN_TILE * ATTN_BLOCK);
    r.stripe.o = take(mem, &n, all * p->dvp);
    r.total.o = take(mem, &n, all * p->dvp);
    r.bias = take(mem, &n, rows * ATTN_BLOCK);
    r.visible = (uint64_t *) (void *) take(mem, &n, 2 * rows);
    r.row_bias = (const float **) (void *) take(mem, &n, 2 * rows);
    r.slope = take(mem, &n, all);
    r.stripe.m = take(mem, &n, all);
    r.stripe.l = take(mem, &n, all);
    r.total.m = take(mem, &n, all);
    r.total.l = take(mem, &n, all);
    *n_float = n;
    return r;
}

static void state_clear(struct attn_state *s, int n) {
    for (int i = 0; i < n; i++) s->m[i] = -INFINITY, s->l[i] = 0.0f;
}

// Queries q0 .. q0 + n_q of r->unit, packed and scaled.
static void run_set(struct attn_run *r) {
    const struct attn_plan *p = r->p;
    for (int row = 0; row < r->n_row; row++) {
        const struct ggml_tensor *q = p->q;
        const float *src = (const float *) ((const char *) q->data + attn_row_query(r, row) * (int64_t) q->nb[1] +
                                            attn_head(r, row) * (int64_t) q->nb[2] + r->i3 * (int64_t) q->nb[3]);
        float *to = r->q + (row / ATTN_ROWS) * ATTN_ROWS * p->d + row % ATTN_ROWS;
        for (int64_t i = 0; i < p->d; i++) to[i * ATTN_ROWS] = src[i] * p->scale;
        r->slope[row] = slope_of(p, attn_head(r, row));
    }
}

// The run of unit first + i among those that go side by side.
static struct attn_run run_beside(const struct attn_run *first, int64_t i) {
    const struct attn_plan *p = first->p;
    struct attn_run r = *first;
    const int64_t row = i * p->row_max;
    r.unit += i;
    r.q += row * p->d, r.slope += row;
    r.stripe.m += row, r.stripe.l += row, r.stripe.o += row * p->dvp;
    r.total.m += row, r.total.l += row, r.total.o += row * p->dvp;
    r.part = (int) i, r.n_part = (int) p->together;
    return r;
}

static float *row_out(const struct attn_plan *p, int64_t i3, int64_t i, int64_t head) {
    return (float *) p->dst->data + ((i3 * p->n_q + i) * p->n_head + head) * p->dv;
}

static void finish_row(const struct attn_plan *p, float m, float l, const float *o, int64_t i3, int64_t i, int64_t head) {
    const float sink = p->sinks ? ((const float *) p->sinks->data)[head] : -INFINITY;
    p->kern->finish(m, l, o, sink, row_out(p, i3, i, head), p->dv);
}

// ---- items of work
// ----------------------------------------------------------------------------------------------------------

struct item {
    int64_t unit, i3, q0, q1;
};

// Item i of n_unit * n_run * n_3; neighbours differ in the unit.
static struct item item_of(const struct attn_plan *p, int64_t i) {
    struct item x;
    x.unit = i % p->n_unit;
    x.q0 = i / p->n_unit % p->n_run * p->per_run;
    x.q1 = min64(x.q0 + p->per_run, p->n_q);
    x.i3 = i / p->n_unit / p->n_run;
    return x;
}

// Queries from q on that share their keys: all, or those of one slot. False if the slot is not in the table.
static bool same_keys(const struct attn_run *r, int64_t q, int64_t end, int64_t *next) {
    const struct attn_plan *p = r->p;
    *next = end;
    if (!p->table) return true;
    const int32_t slot = attn_query(p, q)[0];
    for (int64_t i = q + 1; i < end; i++) {
        if (attn_query(p, i)[0] == slot) continue;
        *next = i;
        break;
    }
    if (slot >= 0 && slot < p->table->ne[2]) return true;
    task_fail(r->task, p->dst, "flash_attn_ext: query row %lld names slot %d; the table has %lld", (long long) q, slot,
              (long long) p->table->ne[2]);
    return false;
}

// Stripes that the run can see.
static void run_range(const struct attn_run *r, int64_t *s0, int64_t *s1) {
    const struct attn_plan *p = r->p;
    *s0 = p->stripe0, *s1 = p->stripe1;
    if (!p->table) return;
    int64_t lo = INT64_MAX, hi = 0;
    for (int64_t i = r->q0; i < r->q0 + r->n_q; i++) {
        const int32_t *row = attn_query(p, i);
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

// Makes the runs of an item's units ready for queries q .. next: r->beside. Those that were there before are packed already.
static void set_beside(struct attn_run *r, const struct item *x, int64_t q, int64_t next) {
    const struct attn_plan *p = r->p;
    const bool same = r->n_row > 0 && r->unit == x->unit && r->i3 == x->i3 && r->q0 == q && r->n_q == next - q;
    r->unit = x->unit, r->i3 = x->i3, r->q0 = q, r->n_q = next - q;
    r->n_row = (int) (r->n_q * p->group);
    r->tiles = (r->n_row + ATTN_TILE - 1) / ATTN_TILE;
    for (int64_t u = 0; u < p->together; u++) {
        if (!same) {
            r->beside[u] = run_beside(r, u);
            run_set(&r->beside[u]);
        }
        state_clear(&r->beside[u].stripe, r->n_row);
    }
}

// Blocks b0 .. b1 for all units beside each other; `after` is the block that comes after them, or -1, `shift` leads to the unit that
// it is for.
static void walk_blocks(struct attn_run *r, int64_t b0, int64_t b1, int64_t after, int64_t shift) {
    const struct attn_plan *p = r->p;
    for (int64_t b = b0; b < b1; b++) {
        for (int64_t u = 0; u < p->together; u++) {
            struct attn_run *one = &r->beside[u];
            one->next = b + 1 < b1 ? b + 1 : after;
            one->shift = b + 1 < b1 ? 0 : shift;
            flash_attn_block(one, b);
        }
    }
}

static int64_t stripe_end(const struct attn_plan *p, int64_t stripe) {
    return min64((stripe + 1) * STRIPE, ceil_div(positions(p), ATTN_BLOCK));
}

static void merge_stripe(const struct attn_run *r) {
    const struct attn_plan *p = r->p;
    for (int row = 0; row < r->n_row; row++)
        p->kern->merge(&r->total.m[row], &r->total.l[row], r->total.o + row * p->dvp, r->stripe.m[row], r->stripe.l[row],
                       r->stripe.o + row * p->dvp, p->dvp);
}

static void walk_run(struct attn_run *r) {
    const struct attn_plan *p = r->p;
    int64_t s0, s1;
    run_range(r, &s0, &s1);
    for (int64_t u = 0; u < p->together; u++) state_clear(&r->beside[u].total, r->n_row);
    for (int64_t s = s0; s < s1; s++) {
        walk_blocks(r, s * STRIPE, stripe_end(p, s), s + 1 < s1 ? (s + 1) * STRIPE : -1, 0);
        for (int64_t u = 0; u < p->together; u++) {
            merge_stripe(&r->beside[u]);
            state_clear(&r->beside[u].stripe, r->n_row);
        }
    }
    for (int64_t u = 0; u < p->together; u++) {
        const struct attn_run *one = &r->beside[u];
        for (int row = 0; row < one->n_row; row++)
            finish_row(p, one->total.m[row], one->total.l[row], one->total.o + row * p->dvp, one->i3,
                       attn_row_query(one, row), attn_head(one, row));
    }
}

// Prefill: a thread walks all stripes of a run.
static void walk_runs(struct attn_run *r) {
    const struct attn_plan *p = r->p;
    const int64_t n = p->n_unit / p->together * p->n_run * p->n_3;
    for (int64_t i = task_next(r->task); i < n; i = task_next(r->task)) {
        const struct item x = item_of(p, i * p->together);
        for (int64_t q = x.q0, next; q < x.q1; q = next) {
            if (!same_keys(r, q, x.q1, &next)) continue;
            set_beside(r, &x, q, next);
            walk_run(r);
        }
    }
}

static void store_parts(const struct attn_run *r, float *parts, int64_t at) {
    const struct attn_plan *p = r->p;
    for (int row = 0; row < r->n_row; row++) {
        const int64_t global = (r->i3 * p->n_q + attn_row_query(r, row)) * p->n_head + attn_head(r, row);
        float *to = parts + (global * part_room(p) + at) * part_floats(p);
        to[p->dvp] = r->stripe.m[row], to[p->dvp + 1] = r->stripe.l[row];
        if (r->stripe.m[row] != -INFINITY) memcpy(to, r->stripe.o + row * p->dvp, (size_t) p->dvp * sizeof(float));
    }
}

// One part of an item: a stripe or a block. Each row's goes to parts[row][at]; `after` is the part that this thread takes next, or -1,
// and `shift` leads to its unit.
static void walk_part(struct attn_run *r, const struct item *x, int64_t part, int64_t after, int64_t shift, float *parts,
                      int64_t at) {
    const struct attn_plan *p = r->p;
    const int64_t grain = p->by_block ? 1 : STRIPE, stripe = part * grain / STRIPE;
    for (int64_t q = x->q0, next; q < x->q1; q = next) {
        const bool known = same_keys(r, q, x->q1, &next);
        int64_t s0 = 0, s1 = 0;
        set_beside(r, x, q, next);
        if (known) run_range(r, &s0, &s1);
        if (stripe >= s0 && stripe < s1)
            walk_blocks(r, part * grain, p->by_block ? part + 1 : stripe_end(p, stripe), after * grain, shift);
        for (int64_t u = 0; u < p->together; u++) store_parts(&r->beside[u], parts, at);
    }
}

// Decode: threads take parts, each asking for its next one while it computes.
static void walk_parts(struct attn_run *r, float *parts, int64_t first, int64_t n_part) {
    const struct attn_plan *p = r->p;
    const int64_t n_item = p->n_unit / p->together * p->n_run * p->n_3, n = n_item * n_part;
    for (int64_t i = task_next(r->task), next; i < n; i = next) {
        next = task_next(r->task);
        const struct item x = item_of(p, i % n_item * p->together), y = item_of(p, next % n_item * p->together);
        walk_part(r, &x, first + i / n_item, next < n ? first + next / n_item : -1, y.unit - x.unit, parts, i / n_item);
    }
}

// Merge the parts of a window into the rows' totals, and after the last window give the results.
static void merge_parts(const struct attn_run *r, float *total, const float *parts, int64_t n_stripe, bool first,
                        bool last) {
    const struct attn_plan *p = r->p;
    const int64_t part = part_floats(p);
    int64_t i0, i1;
    task_range(r->task, p->n_row, &i0, &i1);
    for (int64_t i = i0; i < i1; i++) {
        float *t = total + i * part;
        if (first) state_clear(&(struct attn_state){&t[p->dvp], &t[p->dvp + 1], t}, 1);
        for (int64_t s = 0; s < n_stripe; s++) {
            const float *x = parts + (i * part_room(p) + s) * part;
            p->kern->merge(&t[p->dvp], &t[p->dvp + 1], t, x[p->dvp], x[p->dvp + 1], x, p->dvp);
        }
        if (last)
            finish_row(p, t[p->dvp], t[p->dvp + 1], t, i / (p->n_q * p->n_head), i / p->n_head % p->n_q, i % p->n_head);
    }
}

// The same for parts of blocks: they are merged to stripes first.
static void merge_blocks(const struct attn_run *r, float *total, const float *parts) {
    const struct attn_plan *p = r->p;
    const int64_t part = part_floats(p);
    float *t = total + p->n_row * part * (1 + part_room(p)) + 2 * part * r->task->ith, *stripe = t + part;
    int64_t i0, i1;
    task_range(r->task, p->n_row, &i0, &i1);
    for (int64_t i = i0; i < i1; i++) {
        state_clear(&(struct attn_state){&t[p->dvp], &t[p->dvp + 1], t}, 1);
        for (int64_t b = p->block0; b < p->block1;) {
            const int64_t end = min64((b / STRIPE + 1) * STRIPE, p->block1);
            state_clear(&(struct attn_state){&stripe[p->dvp], &stripe[p->dvp + 1], stripe}, 1);
            for (; b < end; b++) {
                const float *x = parts + (i * part_room(p) + b - p->block0) * part;
                p->kern->merge(&stripe[p->dvp], &stripe[p->dvp + 1], stripe, x[p->dvp], x[p->dvp + 1], x, p->dvp);
            }
            p->kern->merge(&t[p->dvp], &t[p->dvp + 1], t, stripe[p->dvp], stripe[p->dvp + 1], stripe, p->dvp);
        }
        finish_row(p, t[p->dvp], t[p->dvp + 1], t, i / (p->n_q * p->n_head), i / p->n_head % p->n_q, i % p->n_head);
    }
}

static void walk_windows(struct attn_run *r, float *shared) {
    const struct attn_plan *p = r->p;
    float *total = shared, *parts = shared + p->n_row * part_floats(p);
    if (p->by_block) {
        walk_parts(r, parts, p->block0, p->block1 - p->block0);
        task_barrier(r->task);
        merge_blocks(r, total, parts);
        return;
    }
    int64_t s = p->stripe0;
    do {
        const int64_t n = min64(p->window, p->stripe1 - s);
        walk_parts(r, parts, s, n);
        task_barrier(r->task);
        merge_parts(r, total, parts, n, s == p->stripe0, s + n >= p->stripe1);
        s += n;
        if (s < p->stripe1) task_rewind(r->task);
    } while (s < p->stripe1);
}

// Totals and parts of all rows, and two states of each thread.
static int64_t shared_floats(const struct attn_plan *p, int n_threads) {
    return p->window ? ((1 + part_room(p)) * p->n_row + 2 * n_threads) * part_floats(p) : 0;
}

static int64_t scratch_floats(const struct ggml_tensor *t, int n_threads) {
    const struct attn_plan p = plan_shapes(t, n_threads);
    int64_t n;
    (void) run_begin(&p, NULL, NULL, &n);
    return n * n_threads + shared_floats(&p, n_threads);
}

// Fewer threads than planned may come, and for them the work is cut in another way: enough for any number.
size_t flash_attn_scratch(const struct ggml_tensor *t, int n_threads) {
    int64_t most = 0;
    for (int n = 1; n <= n_threads; n++) most = max64(most, scratch_floats(t, n));
    return (size_t) most * sizeof(float);
}

void flash_attn_run(struct task *k, struct ggml_tensor *t) {
    struct attn_plan p = plan_shapes(t, k->nth);
    if (p.n_row == 0 || p.dv == 0) return;
    p.dst = t;
    p.kern = kern_attn();
    p.k_type = type_get(p.k->type), p.v_type = type_get(p.v->type);
    plan_queries(&p, k->nth);
    int64_t n;
    (void) run_begin(&p, k, NULL, &n);
    float *shared = (float *) k->work, *mem = shared + n * k->ith;
    mem += shared_floats(&p, k->nth);
    struct attn_run r = run_begin(&p, k, mem, &n), beside[SIDE_UNITS];
    r.beside = beside;
    if (p.window)
        walk_windows(&r, shared);
    else
        walk_runs(&r);
}
