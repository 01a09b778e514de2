// Placement from below, for what placing in a given order cannot pack: the height is given, and blocks are chosen, not offsets.
//
// Any placement can be pressed down until every block lies on another or on the ground, and be read in ascending order of offset. So
// blocks are placed in that order: of those that can lie lowest, one; then again. With what is left to place known for every moment,
// a dead end shows early: whatever comes later lies no lower, so the offset at hand plus all that still has to fit at some moment
// must not exceed the height. At a dead end the last choice is taken back (depth first); after some of them all of it is, and the
// next round begins with other priorities, where blocks that did not fit before weigh more (as "conflict weights" in constraint
// solvers: Boussemart et al., "Boosting systematic search by weighting constraints", 2004). That a rest must fit above the lowest
// offset is from Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning" (2023).
#include "alloc/plan_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEAD_ENDS = 30, FIRST_WEIGHT = 8, NOISE = 32, MOST_BLOCKS = 1 << 20 };

// A block to place.
struct piece {
    size_t bytes, low;  // low: what is placed leaves no lower offset
    uint64_t rank;      // smaller comes first; no two are equal
    uint32_t block;
    uint32_t weight;   // grows when it does not fit
    int32_t from, to;  // crowds
    bool placed;
};

// A choice that can be taken back.
struct choice {
    size_t offset;
    uint32_t piece;  // NONE: nothing was tried yet
    uint32_t raised;
};

struct raise {
    size_t low;
    uint32_t piece;
};

// Crowds: the moments that count, before something ends and after something began. At any other there is no more to hold.
struct riser {
    struct packer *p;
    struct piece *pieces;
    uint32_t *piece_of;  // of blocks
    struct choice *choices;
    struct raise *raises;
    int32_t *crowd_of;  // per step: the first crowd that is not before it
    int32_t *step_of;   // per crowd
    size_t *rest;       // per crowd: bytes still to place
    uint32_t n, n_raises;
    int32_t n_crowds;
    size_t height, stop;
};

// ---- room -----------------------------------------------------------------------------------------------------------

static void *carve(char *memory, size_t *at, size_t n, size_t size) {
    void *const here = memory ? memory + *at : NULL;
    *at += (n * size + 63) & ~(size_t) 63;
    return here;
}

// For n blocks with n_edges ends of conflicts among n_steps steps. Bytes that it takes; memory NULL: these alone.
static size_t lay_out(struct riser *u, char *memory, size_t n, size_t n_steps, size_t n_edges) {
    const size_t steps = n_steps + 2;
    size_t at = 0;
    u->pieces = carve(memory, &at, n, sizeof *u->pieces);
    u->piece_of = carve(memory, &at, n, sizeof *u->piece_of);
    u->choices = carve(memory, &at, n + 1, sizeof *u->choices);
    u->raises = carve(memory, &at, n_edges / 2 + 1, sizeof *u->raises);
    u->crowd_of = carve(memory, &at, steps, sizeof *u->crowd_of);
    u->step_of = carve(memory, &at, steps, sizeof *u->step_of);
    u->rest = carve(memory, &at, steps, sizeof *u->rest);
    return at;
}

// Room for that and for a graph of nearly the same shape, which then allocates nothing.
static enum err make_room(struct plan_scratch *s, size_t n, size_t n_steps, size_t n_edges) {
    struct riser u;
    if (lay_out(&u, NULL, n, n_steps, n_edges) <= s->rise_bytes) return ERR_OK;
    const size_t bytes = lay_out(&u, NULL, n + n / 8 + 64, n_steps + n_steps / 8 + 64, 2 * n_edges);
    void *p = realloc(s->rise, bytes);
    if (!p) return err_set(ERR_NOMEM, "memory plan: no memory for %zu blocks", n);
    s->rise = p;
    s->rise_bytes = bytes;
    return ERR_OK;
}

enum err plan_rise_reserve(const struct packer *p, size_t work) {
    if (p->has_fixed || p->max_chunk != SIZE_MAX) return ERR_OK;
    const size_t most = 2 * (size_t) sqrt((double) work);
    return make_room(p->s, p->n_blocks < most ? p->n_blocks : most, (size_t) p->n_steps,
                     p->n_edges < work ? p->n_edges : work);
}

// ---- what there is to place -----------------------------------------------------------------------------------------

enum { BEGINS = 1, ENDS = 2 };

static void find_crowds(struct riser *u) {
    const struct packer *p = u->p;
    int32_t *const mark = u->step_of;  // taken over in place: a crowd's number is never above its step
    memset(mark, 0, ((size_t) p->n_steps + 2) * sizeof *mark);
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        const struct block *b = &p->blocks[i];
        if (!b->bytes) continue;
        mark[b->first] |= BEGINS;
        mark[b->last] |= ENDS;
        for (uint32_t k = b->part; k != NONE; k = p->parts[k].next) mark[p->parts[k].from - 1] |= ENDS;
    }
    bool grown = false;
    u->n_crowds = 0;
    for (int32_t t = 0; t <= p->n_steps; t++) {
        const int32_t m = mark[t];
        u->crowd_of[t] = u->n_crowds;
        grown = grown || (m & BEGINS);
        if (!(m & ENDS) || !grown) continue;
        u->step_of[u->n_crowds++] = t;
        grown = false;
    }
}

static void find_pieces(struct riser *u) {
    const struct packer *p = u->p;
    u->n = 0;
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        const struct block *b = &p->blocks[i];
        if (!b->bytes) continue;
        int32_t to = u->crowd_of[b->last];  // the last crowd that it is in
        if (to == u->n_crowds || u->step_of[to] > b->last) to--;
        u->piece_of[i] = u->n;
        u->pieces[u->n++] =
            (struct piece){.bytes = b->bytes, .block = i, .weight = FIRST_WEIGHT, .from = u->crowd_of[b->first], .to = to};
    }
}

static void add_rest(struct riser *u, const struct piece *x, bool more) {
    const struct packer *p = u->p;
    const struct block *b = &p->blocks[x->block];
    size_t bytes = x->bytes;
    uint32_t k = b->part;
    for (int32_t c = x->from; c <= x->to; c++) {
        for (; k != NONE && p->parts[k].from <= u->step_of[c]; k = p->parts[k].next) bytes = p->parts[k].bytes;
        u->rest[c] += more ? bytes : -bytes;
    }
    u->p->work += (size_t) (x->to - x->from) / 4;
}

// ---- a round --------------------------------------------------------------------------------------------------------

static size_t lowest(const struct piece *x, size_t ground) { return x->low > ground ? x->low : ground; }

static uint32_t weigh_most(struct riser *u, size_t *most) {
    int32_t at = 0;
    for (int32_t c = 1; c < u->n_crowds; c++) {
        if (u->rest[c] > u->rest[at]) at = c;
    }
    *most = u->rest[at];
    u->p->work += (size_t) u->n_crowds / 8;
    return (uint32_t) at;
}

// The next block to try on this ground, after the one that was tried before: of those that can lie low enough for what is left to
// fit above, the lowest, the smallest rank first. What could lie wholly below another does not come after it. NONE: a dead end.
static uint32_t next_piece(struct riser *u, const struct choice *c, size_t ground) {
    size_t most, under = SIZE_MAX, low = 0;
    uint32_t best = NONE;
    const uint32_t crowd = weigh_most(u, &most);
    for (uint32_t i = 0; i < u->n; i++) {
        const struct piece *x = &u->pieces[i];
        if (!x->placed && lowest(x, ground) + x->bytes < under) under = lowest(x, ground) + x->bytes;
    }
    if (ground + most > u->height) under = 0;
    for (uint32_t i = 0; i < u->n; i++) {
        const struct piece *x = &u->pieces[i];
        if (x->placed) continue;
        const size_t at = lowest(x, ground);
        if (at >= under || at > u->height - most) continue;
        if (c->piece != NONE && (at < c->offset || (at == c->offset && x->rank <= u->pieces[c->piece].rank))) continue;
        if (best != NONE && (at > low || (at == low && x->rank > u->pieces[best].rank))) continue;
        best = i;
        low = at;
    }
    u->p->work += u->n / 2 + 4;
    if (best != NONE || c->piece != NONE) return best;
    for (uint32_t i = 0; i < u->n; i++) {  // nothing fits below what is left of the fullest crowd
        struct piece *x = &u->pieces[i];
        if (!x->placed && x->from <= (int32_t) crowd && (int32_t) crowd <= x->to) x->weight++;
    }
    return NONE;
}

// Whether what overlaps with it in time can still lie above it.
static bool put(struct riser *u, struct choice *c, uint32_t i, size_t offset) {
    struct packer *p = u->p;
    struct piece *x = &u->pieces[i];
    const struct block *b = &p->blocks[x->block];
    bool fits = true;
    *c = (struct choice){offset, i, u->n_raises};
    x->placed = true;
    add_rest(u, x, false);
    for (uint32_t e = b->edges; e != NONE; e = p->s->edge_next[e]) {
        struct piece *y = &u->pieces[u->piece_of[p->s->edge_to[e]]];
        if (y->placed) continue;
        const struct block *o = &p->blocks[y->block];
        const size_t end = offset + plan_bytes_at(p, b, o->first > b->first ? o->first : b->first);
        if (y->low >= end) continue;
        u->raises[u->n_raises++] = (struct raise){y->low, (uint32_t) (y - u->pieces)};
        y->low = end;
        if (end + y->bytes <= u->height) continue;
        y->weight++;
        fits = false;
    }
    p->work += b->n_edges;
    return fits;
}

static void take_back(struct riser *u, const struct choice *c) {
    struct piece *x = &u->pieces[c->piece];
    while (u->n_raises > c->raised) {
        const struct raise *r = &u->raises[--u->n_raises];
        u->pieces[r->piece].low = r->low;
    }
    x->placed = false;
    add_rest(u, x, true);
}

static bool round_of(struct riser *u) {
    uint32_t depth = 0;
    int dead_ends = 0;
    u->n_raises = 0;
    u->choices[0] = (struct choice){0, NONE, 0};
    while (depth < u->n) {
        struct choice *c = &u->choices[depth];
        const size_t ground = depth ? c[-1].offset : 0;
        const uint32_t i = next_piece(u, c, ground);
        if (i != NONE && put(u, c, i, lowest(&u->pieces[i], ground))) {
            u->choices[++depth] = (struct choice){0, NONE, 0};
            continue;
        }
        const bool give_up = ++dead_ends > DEAD_ENDS || u->p->work > u->stop;
        if (i != NONE) take_back(u, c);
        for (bool first = i == NONE; first || give_up; first = false) {
            if (depth == 0) return false;
            take_back(u, &u->choices[--depth]);
        }
    }
    return true;
}

// ---- rounds ---------------------------------------------------------------------------------------------------------

// Long-lived blocks come first, in some rounds large ones, or both; chance and what was learned multiply.
static void rank(struct riser *u, int round, uint64_t *state) {
    for (uint32_t i = 0; i < u->n; i++) {
        struct piece *x = &u->pieces[i];
        const uint64_t len = plan_steps(&u->p->blocks[x->block]) << 10;
        const uint64_t area = (uint64_t) ((double) len * ((double) x->bytes / (double) u->height) * 8);
        uint64_t v = round % 4 == 1 ? area : round % 4 == 3 ? len * area >> 20 : len;
        if (round >= 2) {
            v = v * (16 + plan_random(state) % NOISE) / 16 * x->weight;
            if (plan_random(state) % 16 < (uint64_t) (round / 2 % 4)) v <<= plan_random(state) % 8;
        }
        x->rank = ~(v < UINT64_MAX / MOST_BLOCKS ? v : UINT64_MAX / MOST_BLOCKS) * MOST_BLOCKS | i;
        x->low = 0;
    }
}

static size_t take_offsets(struct riser *u) {
    size_t peak = 0;
    for (uint32_t d = 0; d < u->n; d++) {
        struct block *b = &u->p->blocks[u->pieces[u->choices[d].piece].block];
        b->offset = u->choices[d].offset;
        if (b->offset + b->bytes > peak) peak = b->offset + b->bytes;
    }
    return peak;
}

enum err plan_rise(struct packer *p, struct plan_result *r, size_t height, size_t work, bool *found) {
    struct riser u = {.p = p, .height = height, .stop = p->work + work};
    uint64_t state = height;
    *found = false;
    const size_t n = p->n_blocks;
    if (p->has_fixed || p->max_chunk != SIZE_MAX || n >= MOST_BLOCKS || n * n / 4 + p->n_edges > work) return ERR_OK;
    TRY(make_room(p->s, n, (size_t) p->n_steps, p->n_edges));
    (void) lay_out(&u, p->s->rise, n, (size_t) p->n_steps, p->n_edges);
    find_crowds(&u);
    find_pieces(&u);
    memset(u.rest, 0, (size_t) u.n_crowds * sizeof *u.rest);
    for (uint32_t i = 0; i < u.n; i++) add_rest(&u, &u.pieces[i], true);
    for (int round = 0; p->work < u.stop && !*found; round++) {
        rank(&u, round, &state);
        *found = round_of(&u);
        r->tries += !*found;
    }
    if (*found) plan_keep(p, r, take_offsets(&u));
    return ERR_OK;
}
