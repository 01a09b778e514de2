// See cells.h.
#include "memory/cells.h"

#include <stdlib.h>
#include <string.h>

static uint64_t bits_get(const struct cell_entry *e) { return (uint64_t) e->hi << 32 | e->lo; }

static void bits_set(struct cell_entry *e, uint64_t bits) {
    e->lo = (uint32_t) bits;
    e->hi = (uint32_t) (bits >> 32);
}

static struct cell_entry *row(const struct cells *c, int32_t seq) { return c->table + (size_t) seq * (size_t) c->n_logical; }

static int32_t floor_block(int32_t index) { return index / CELL_BLOCK; }

// The table entry of a logical block, NULL outside the table.
static struct cell_entry *entry(const struct cells *c, int32_t seq, int32_t lb) {
    const int64_t i = (int64_t) lb - c->base[seq];
    return i >= 0 && i < c->n_logical ? row(c, seq) + i : NULL;
}

// Neighbours join into one run; whoever executes it moves a run as memmove does.
void cell_copies_add(struct cell_copies *k, int32_t src, int32_t dst, int32_t n) {
    if (k->n) {
        struct cell_copy *l = &k->v[k->n - 1];
        if (src == l->src + l->n && dst == l->dst + l->n) {
            l->n += n;
            return;
        }
        if (src + n == l->src && dst + n == l->dst) {
            *l = (struct cell_copy){src, dst, l->n + n};
            return;
        }
    }
    if (k->n == k->cap) {
        const int32_t cap = k->cap ? 2 * k->cap : 64;
        struct cell_copy *v = realloc(k->v, (size_t) cap * sizeof *v);
        if (!v) {
            k->failed = true;
            return;
        }
        k->v = v;
        k->cap = cap;
    }
    k->v[k->n++] = (struct cell_copy){src, dst, n};
}

// ---- life ---------------------------------------------------------------------------------------------------------

enum err cells_init(struct cells *c, int n_seq, int n_block, int n_logical, bool track_shift, void *table) {
    *c = (struct cells){.n_seq = n_seq, .n_block = n_block, .n_logical = n_logical, .track_shift = track_shift};
    const size_t ns = (size_t) n_seq, nb = (size_t) n_block, nc = nb * CELL_BLOCK;
    c->owns_table = !table;
    c->table = table ? table : malloc(cells_table_bytes(n_seq, n_logical));
    c->base = malloc(ns * 4);
    c->pos_min = malloc(ns * 4);
    c->pos_max = malloc(ns * 4);
    c->idx_max = malloc(ns * 4);
    c->count = malloc(ns * 4);
    c->irregular = malloc(ns * sizeof(bool));
    c->ref = malloc(nb * 4 + 4);
    c->free = malloc(nb * 4 + 4);
    c->pos = malloc(nc * 4 + 4);
    c->shift = malloc(nc * 4 + 4);
    c->state_bytes = cells_table_bytes(n_seq, n_logical) + ns * (20 + sizeof(bool)) + nb * 8 + nc * 4;
    c->snapshot = malloc(c->state_bytes + 4);
    if (!c->table || !c->base || !c->pos_min || !c->pos_max || !c->idx_max || !c->count || !c->irregular || !c->ref ||
        !c->free || !c->pos || !c->shift || !c->snapshot) {
        cells_free(c);
        return err_set(ERR_NOMEM, "no memory for the tables of %d cache blocks and %d sequences", n_block, n_seq);
    }
    cells_clear(c);
    return ERR_OK;
}

size_t cells_bytes(const struct cells *c) {
    const size_t ns = (size_t) c->n_seq, nb = (size_t) c->n_block, nc = nb * CELL_BLOCK;
    return ns * (5 * 4 + sizeof(bool)) + 2 * (nb * 4 + 4) + 2 * (nc * 4 + 4) + c->state_bytes + 4;
}

void cells_free(struct cells *c) {
    if (c->owns_table) free(c->table);
    free(c->base);
    free(c->pos_min);
    free(c->pos_max);
    free(c->idx_max);
    free(c->count);
    free(c->irregular);
    free(c->ref);
    free(c->free);
    free(c->pos);
    free(c->shift);
    free(c->snapshot);
    memset(c, 0, sizeof *c);
}

static void seq_reset(struct cells *c, int32_t seq) {
    struct cell_entry *t = row(c, seq);
    for (int32_t i = 0; i < c->n_logical; i++) t[i] = (struct cell_entry){-1, 0, 0};
    c->base[seq] = 0;
    c->pos_min[seq] = c->pos_max[seq] = c->idx_max[seq] = -1;
    c->count[seq] = 0;
    c->irregular[seq] = false;
}

void cells_clear(struct cells *c) {
    for (int32_t s = 0; s < c->n_seq; s++) seq_reset(c, s);
    for (int32_t b = 0; b < c->n_block; b++) {
        c->ref[b] = 0;
        c->free[b] = c->n_block - 1 - b;  // lowest block on top
    }
    c->n_free = c->n_block;
    memset(c->shift, 0, (size_t) c->n_block * CELL_BLOCK * 4);
    memset(c->pos, 0, (size_t) c->n_block * CELL_BLOCK * 4);
    c->any_shift = false;
}

// The parts of the state, one after the other; of the tables only those of sequences that have something. The pending shifts are not
// among them: placing never changes them for cells that exist before.
static void each_part(struct cells *c, void (*fn)(char **, void *, size_t), char *at) {
    const size_t ns = (size_t) c->n_seq, nb = (size_t) c->n_block;
    fn(&at, c->base, ns * 4);
    fn(&at, c->pos_min, ns * 4);
    fn(&at, c->pos_max, ns * 4);
    fn(&at, c->idx_max, ns * 4);
    fn(&at, c->count, ns * 4);
    fn(&at, c->irregular, ns * sizeof(bool));
    fn(&at, c->ref, nb * 4);
    fn(&at, &c->n_free, 4);
    fn(&at, c->free, nb * 4);
    for (int32_t s = 0; s < c->n_seq; s++)  // idx_max is the saved one by now, in both directions
        if (c->idx_max[s] >= 0) fn(&at, row(c, s), (size_t) c->n_logical * sizeof(struct cell_entry));
}

static void part_out(char **at, void *p, size_t n) {
    memcpy(*at, p, n);
    *at += n;
}

static void part_in(char **at, void *p, size_t n) {
    memcpy(p, *at, n);
    *at += n;
}

void cells_save(struct cells *c) { each_part(c, part_out, c->snapshot); }

void cells_restore(struct cells *c) {
    // sequences that were empty get an empty table again; marked before their old idx_max comes back
    for (int32_t s = 0; s < c->n_seq; s++)
        if (c->idx_max[s] >= 0) {
            struct cell_entry *t = row(c, s);
            for (int32_t i = 0; i < c->n_logical; i++) t[i] = (struct cell_entry){-1, 0, 0};
        }
    each_part(c, part_in, c->snapshot);
}

// ---- blocks -------------------------------------------------------------------------------------------------------

static void block_drop(struct cells *c, struct cell_entry *e) {
    if (e->block >= 0 && --c->ref[e->block] == 0) c->free[c->n_free++] = e->block;
    *e = (struct cell_entry){-1, 0, 0};
}

static int32_t block_take(struct cells *c) {
    if (!c->n_free) return -1;
    const int32_t b = c->free[--c->n_free];
    c->ref[b] = 1;
    return b;
}

static void copy_meta(struct cells *c, int32_t src, int32_t dst, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        c->pos[dst + i] = c->pos[src + i];
        c->shift[dst + i] = c->shift[src + i];
    }
}

// Make the entry's block this sequence's own, copying it when shared. False if no block is free.
static bool block_own(struct cells *c, struct cell_entry *e, struct cell_copies *copies) {
    if (e->block >= 0 && c->ref[e->block] == 1) return true;
    const int32_t b = block_take(c);
    if (b < 0) return false;
    if (e->block >= 0) {
        if (bits_get(e)) {
            cell_copies_add(copies, e->block * CELL_BLOCK, b * CELL_BLOCK, CELL_BLOCK);
            copy_meta(c, e->block * CELL_BLOCK, b * CELL_BLOCK, CELL_BLOCK);
        }
        c->ref[e->block]--;
    }
    e->block = b;
    return true;
}

// First and last logical block in use; false if the sequence is empty.
static bool span(const struct cells *c, int32_t seq, int32_t *first, int32_t *last) {
    const struct cell_entry *t = row(c, seq);
    int32_t i = 0, j = c->n_logical - 1;
    while (i <= j && t[i].block < 0) i++;
    while (j >= i && t[j].block < 0) j--;
    *first = c->base[seq] + i;
    *last = c->base[seq] + j;
    return i <= j;
}

// Slide the table so that lb lies inside. False if lb and the blocks in use don't fit into one table.
static bool reach(struct cells *c, int32_t seq, int32_t lb) {
    if (entry(c, seq, lb)) return true;
    int32_t first, last;
    if (!span(c, seq, &first, &last)) {
        c->base[seq] = lb < c->n_logical ? 0 : lb / CELL_STRIPE * CELL_STRIPE;
        return true;
    }
    const int32_t lo = (lb < first ? lb : first) / CELL_STRIPE * CELL_STRIPE, hi = lb > last ? lb : last;
    if (hi - lo >= c->n_logical) return false;
    struct cell_entry *t = row(c, seq);
    const int32_t by = lo - c->base[seq];  // entries move down by this many places
    const size_t n = (size_t) (c->n_logical - (by < 0 ? -by : by));
    if (by > 0) {
        memmove(t, t + by, n * sizeof *t);
        for (size_t i = n; i < (size_t) c->n_logical; i++) t[i] = (struct cell_entry){-1, 0, 0};
    } else {
        memmove(t - by, t, n * sizeof *t);
        for (int32_t i = 0; i < -by; i++) t[i] = (struct cell_entry){-1, 0, 0};
    }
    c->base[seq] = lo;
    return true;
}

// ---- walking ------------------------------------------------------------------------------------------------------

int32_t cells_next(const struct cells *c, int32_t seq, int32_t from, int32_t *cell, int32_t *pos) {
    if (c->idx_max[seq] < 0 || from > c->idx_max[seq]) return -1;
    const int32_t start = c->base[seq] * CELL_BLOCK;
    if (from < start) from = start;
    for (int32_t lb = floor_block(from); lb - c->base[seq] < c->n_logical; lb++) {
        const struct cell_entry *e = entry(c, seq, lb);
        uint64_t bits = e->block >= 0 ? bits_get(e) : 0;
        if (lb == floor_block(from)) bits &= ~(uint64_t) 0 << (from % CELL_BLOCK);
        if (!bits) continue;
        const int32_t k = __builtin_ctzll(bits), at = e->block * CELL_BLOCK + k;
        if (cell) *cell = at;
        if (pos) *pos = c->pos[at];
        return lb * CELL_BLOCK + k;
    }
    return -1;
}

int32_t cells_count(const struct cells *c, int32_t seq) { return c->count[seq]; }

// After removals: forget empty blocks, find the ends again.
static void refresh(struct cells *c, int32_t seq) {
    struct cell_entry *t = row(c, seq);
    c->pos_min[seq] = c->pos_max[seq] = c->idx_max[seq] = -1;
    c->count[seq] = 0;
    for (int32_t i = 0; i < c->n_logical; i++) {
        if (t[i].block < 0) continue;
        const uint64_t bits = bits_get(&t[i]);
        if (!bits) {
            block_drop(c, &t[i]);
            continue;
        }
        const int32_t lb = (c->base[seq] + i) * CELL_BLOCK;
        c->idx_max[seq] = lb + 63 - __builtin_clzll(bits);
        c->count[seq] += __builtin_popcountll(bits);
        if (!c->irregular[seq]) {
            if (c->pos_min[seq] < 0) c->pos_min[seq] = lb + __builtin_ctzll(bits);
            c->pos_max[seq] = c->idx_max[seq];
            continue;
        }
        for (uint64_t b = bits; b; b &= b - 1) {
            const int32_t p = c->pos[t[i].block * CELL_BLOCK + __builtin_ctzll(b)];
            if (c->pos_min[seq] < 0 || p < c->pos_min[seq]) c->pos_min[seq] = p;
            if (p > c->pos_max[seq]) c->pos_max[seq] = p;
        }
    }
    if (c->idx_max[seq] < 0) seq_reset(c, seq);
}

bool cells_has(const struct cells *c, int32_t seq, int32_t pos) {
    if (pos < c->pos_min[seq] || pos > c->pos_max[seq]) return false;
    if (!c->irregular[seq]) {
        const struct cell_entry *e = entry(c, seq, floor_block(pos));
        return e && e->block >= 0 && (bits_get(e) >> (pos % CELL_BLOCK) & 1);
    }
    int32_t p;
    for (int32_t i = cells_next(c, seq, 0, NULL, &p); i >= 0; i = cells_next(c, seq, i + 1, NULL, &p))
        if (p == pos) return true;
    return false;
}

// ---- placing ------------------------------------------------------------------------------------------------------

static int32_t next_index(const struct cells *c, int32_t seq, int32_t pos) {
    if (c->irregular[seq] || cells_has(c, seq, pos)) return c->idx_max[seq] + 1;
    return pos;
}

int32_t cells_target(const struct cells *c, int32_t seq, int32_t pos, int32_t *index) {
    const int32_t i = next_index(c, seq, pos);
    if (index) *index = i;
    const struct cell_entry *e = entry(c, seq, floor_block(i));
    return e ? e->block : -1;
}

bool cells_place(struct cells *c, const int32_t *seq, int n_seq, int32_t pos, int32_t *cell, int32_t *index,
                 struct cell_copies *copies) {
    const int32_t idx = next_index(c, seq[0], pos), lb = floor_block(idx);
    for (int k = 0; k < n_seq; k++)
        if ((c->n_max && c->count[seq[k]] >= c->n_max) || !reach(c, seq[k], lb)) return false;
    struct cell_entry *e = entry(c, seq[0], lb);
    const int32_t old = e->block;
    if (old < 0 || c->ref[old] > n_seq) {
        // a new block for all of them
        const int32_t b = block_take(c);
        if (b < 0) return false;
        uint64_t any = 0;
        for (int k = 0; k < n_seq; k++) {
            e = entry(c, seq[k], lb);
            any |= bits_get(e);
            e->block = b;
        }
        c->ref[b] = n_seq;
        if (old >= 0) {
            c->ref[old] -= n_seq;
            if (any) {
                cell_copies_add(copies, old * CELL_BLOCK, b * CELL_BLOCK, CELL_BLOCK);
                copy_meta(c, old * CELL_BLOCK, b * CELL_BLOCK, CELL_BLOCK);
            }
        }
    }
    for (int k = 0; k < n_seq; k++) {
        const int32_t s = seq[k];
        e = entry(c, s, lb);
        bits_set(e, bits_get(e) | (uint64_t) 1 << (idx % CELL_BLOCK));
        c->count[s]++;
        if (idx != pos) c->irregular[s] = true;
        if (c->pos_min[s] < 0 || pos < c->pos_min[s]) c->pos_min[s] = pos;
        if (pos > c->pos_max[s]) c->pos_max[s] = pos;
        if (idx > c->idx_max[s]) c->idx_max[s] = idx;
    }
    *cell = entry(c, seq[0], lb)->block * CELL_BLOCK + idx % CELL_BLOCK;
    c->pos[*cell] = pos;
    c->shift[*cell] = 0;
    *index = idx;
    return true;
}

// ---- the calls of llama_memory --------------------------------------------------------------------------------------

static void range_fix(int32_t *p0, int32_t *p1) {
    if (*p0 < 0) *p0 = 0;
    if (*p1 < 0) *p1 = INT32_MAX;
}

// The bits of an entry whose positions lie in [p0, p1).
static uint64_t range_bits(const struct cells *c, int32_t seq, int32_t lb, const struct cell_entry *e, int32_t p0,
                           int32_t p1) {
    const uint64_t bits = bits_get(e);
    if (c->irregular[seq]) {
        uint64_t in = 0;
        for (uint64_t b = bits; b; b &= b - 1) {
            const int k = __builtin_ctzll(b);
            const int32_t p = c->pos[e->block * CELL_BLOCK + k];
            if (p >= p0 && p < p1) in |= (uint64_t) 1 << k;
        }
        return in;
    }
    const int64_t lo = (int64_t) p0 - (int64_t) lb * CELL_BLOCK, hi = (int64_t) p1 - (int64_t) lb * CELL_BLOCK;
    if (hi <= 0 || lo >= CELL_BLOCK) return 0;
    uint64_t mask = ~(uint64_t) 0;
    if (lo > 0) mask &= ~(uint64_t) 0 << lo;
    if (hi < CELL_BLOCK) mask &= ((uint64_t) 1 << hi) - 1;
    return bits & mask;
}

void cells_rm(struct cells *c, int32_t seq, int32_t p0, int32_t p1) {
    range_fix(&p0, &p1);
    if (c->idx_max[seq] < 0 || p0 >= p1 || p0 > c->pos_max[seq] || p1 <= c->pos_min[seq]) return;
    struct cell_entry *t = row(c, seq);
    for (int32_t i = 0; i < c->n_logical; i++)
        if (t[i].block >= 0) bits_set(&t[i], bits_get(&t[i]) & ~range_bits(c, seq, c->base[seq] + i, &t[i], p0, p1));
    refresh(c, seq);
}

// Copy single cells of the set `bits` from block src to block dst, in runs.
static void copy_bits(struct cells *c, int32_t src, int32_t dst, uint64_t bits, struct cell_copies *copies) {
    while (bits) {
        const int k = __builtin_ctzll(bits);
        const uint64_t rest = ~(bits >> k);
        const int n = rest ? __builtin_ctzll(rest) : CELL_BLOCK;
        const int run = n < CELL_BLOCK - k ? n : CELL_BLOCK - k;
        cell_copies_add(copies, src * CELL_BLOCK + k, dst * CELL_BLOCK + k, run);
        copy_meta(c, src * CELL_BLOCK + k, dst * CELL_BLOCK + k, run);
        bits &= run + k >= CELL_BLOCK ? 0 : ~(uint64_t) 0 << (k + run);
    }
}

void cells_cp(struct cells *c, int32_t src, int32_t dst, int32_t p0, int32_t p1, struct cell_copies *copies) {
    range_fix(&p0, &p1);
    if (src == dst || c->idx_max[src] < 0 || p0 >= p1) return;
    const bool was_empty = c->idx_max[dst] < 0;
    for (int32_t i = 0; i < c->n_logical; i++) {
        const int32_t lb = c->base[src] + i;
        struct cell_entry *s = row(c, src) + i;
        const uint64_t bits = s->block >= 0 ? range_bits(c, src, lb, s, p0, p1) : 0;
        if (!bits || !reach(c, dst, lb)) continue;
        struct cell_entry *d = entry(c, dst, lb);
        if (d->block < 0) {
            d->block = s->block;
            c->ref[s->block]++;
            bits_set(d, bits);
        } else if (d->block == s->block) {
            bits_set(d, bits_get(d) | bits);
        } else if (block_own(c, d, copies)) {
            copy_bits(c, s->block, d->block, bits, copies);
            bits_set(d, bits_get(d) | bits);
        }
    }
    if (c->irregular[src] || (!was_empty && c->irregular[dst])) c->irregular[dst] = true;
    refresh(c, dst);
}

void cells_keep(struct cells *c, int32_t seq) {
    for (int32_t s = 0; s < c->n_seq; s++) {
        if (s == seq || c->idx_max[s] < 0) continue;
        struct cell_entry *t = row(c, s);
        for (int32_t i = 0; i < c->n_logical; i++) block_drop(c, &t[i]);
        seq_reset(c, s);
    }
}

static void note_shift(struct cells *c, int32_t cell, int32_t delta) {
    if (!c->track_shift) return;
    c->shift[cell] += delta;
    c->any_shift = true;
}

// Move one index within a regular sequence; the destination is free or is overwritten.
static void move_one(struct cells *c, int32_t seq, int32_t from, int32_t to, struct cell_copies *copies) {
    struct cell_entry *s = entry(c, seq, floor_block(from));
    const uint64_t bit = (uint64_t) 1 << (from % CELL_BLOCK);
    const int32_t src = s->block * CELL_BLOCK + from % CELL_BLOCK;
    // A block that empties here and is ours alone may become the destination's block without a copy.
    if (reach(c, seq, floor_block(to))) {
        s = entry(c, seq, floor_block(from));
        struct cell_entry *d = entry(c, seq, floor_block(to));
        if (block_own(c, d, copies)) {
            const int32_t dst = d->block * CELL_BLOCK + to % CELL_BLOCK;
            cell_copies_add(copies, src, dst, 1);
            copy_meta(c, src, dst, 1);
            bits_set(d, bits_get(d) | (uint64_t) 1 << (to % CELL_BLOCK));
            c->pos[dst] = to;
            note_shift(c, dst, to - from);
        }
    }
    s = entry(c, seq, floor_block(from));
    bits_set(s, bits_get(s) & ~bit);
    if (!bits_get(s)) block_drop(c, s);
}

// Positions of an irregular sequence change in place; shared blocks are copied first.
static void add_irregular(struct cells *c, int32_t seq, int32_t p0, int32_t p1, int32_t delta, int32_t div,
                          struct cell_copies *copies) {
    struct cell_entry *t = row(c, seq);
    for (int32_t i = 0; i < c->n_logical; i++) {
        if (t[i].block < 0) continue;
        const uint64_t in = range_bits(c, seq, c->base[seq] + i, &t[i], p0, p1);
        if (!in || !block_own(c, &t[i], copies)) continue;
        for (uint64_t b = in; b; b &= b - 1) {
            const int k = __builtin_ctzll(b);
            const int32_t cell = t[i].block * CELL_BLOCK + k, p = c->pos[cell];
            const int64_t q = div ? p / div : (int64_t) p + delta;
            if (q < 0 || q > INT32_MAX) {
                bits_set(&t[i], bits_get(&t[i]) & ~((uint64_t) 1 << k));
                continue;
            }
            c->pos[cell] = (int32_t) q;
            note_shift(c, cell, (int32_t) q - p);
        }
    }
    refresh(c, seq);
}

void cells_add(struct cells *c, int32_t seq, int32_t p0, int32_t p1, int32_t delta, struct cell_copies *copies) {
    range_fix(&p0, &p1);
    if (!delta || c->idx_max[seq] < 0 || p0 >= p1) return;
    if (c->irregular[seq]) {
        add_irregular(c, seq, p0, p1, delta, 0, copies);
        return;
    }
    const int32_t first = p0 > c->pos_min[seq] ? p0 : c->pos_min[seq];
    const int32_t last = p1 - 1 < c->pos_max[seq] ? p1 - 1 : c->pos_max[seq];
    const int32_t step = delta < 0 ? 1 : -1, n = last - first + 1;
    for (int32_t k = 0; k < n; k++) {
        const int32_t p = step > 0 ? first + k : last - k;
        const struct cell_entry *e = entry(c, seq, floor_block(p));
        if (!e || e->block < 0 || !(bits_get(e) >> (p % CELL_BLOCK) & 1)) continue;
        const int64_t q = (int64_t) p + delta;
        if (q < 0 || q > INT32_MAX - CELL_BLOCK) {
            struct cell_entry *s = entry(c, seq, floor_block(p));
            bits_set(s, bits_get(s) & ~((uint64_t) 1 << (p % CELL_BLOCK)));
            if (!bits_get(s)) block_drop(c, s);
            continue;
        }
        move_one(c, seq, p, (int32_t) q, copies);
    }
    refresh(c, seq);
}

void cells_div(struct cells *c, int32_t seq, int32_t p0, int32_t p1, int32_t d, struct cell_copies *copies) {
    range_fix(&p0, &p1);
    if (d <= 1 || c->idx_max[seq] < 0 || p0 >= p1) return;
    c->irregular[seq] = true;
    add_irregular(c, seq, p0, p1, 0, d, copies);
}

void cells_prune(struct cells *c, int32_t seq, int32_t first) {
    if (c->idx_max[seq] < 0) return;
    struct cell_entry *t = row(c, seq);
    bool any = false;
    for (int32_t i = 0; i < c->n_logical && (int64_t) (c->base[seq] + i + 1) * CELL_BLOCK <= first; i++) {
        if (t[i].block < 0) continue;
        block_drop(c, &t[i]);
        any = true;
    }
    if (any) refresh(c, seq);
}
