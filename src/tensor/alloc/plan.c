// Packing of blocks (bytes x time) at offsets. See plan.h for the method.
#include "alloc/plan_int.h"

#include <stdlib.h>
#include <string.h>

#define UNPLACED SIZE_MAX
enum {
    N_ORDERS = 5,
    N_CHOICES = 3,
    FEW_REPAIRS = 2,
    MANY_REPAIRS = 40,
    FEW_NEIGHBOURS = 48,
    LEAST_WORK = 300000,
    RISE_WORK = 1000000,
    N_HEIGHTS = 5
};

// ---- scratch ------------------------------------------------------------------------------------------------------

static size_t carve(char **at, size_t bytes) {
    const size_t n = (bytes + 63) & ~(size_t) 63;
    if (at) *at += n;
    return n;
}

static size_t scratch_bytes(size_t n, size_t n_steps) {
    return carve(NULL, n * sizeof(struct block)) + carve(NULL, n * sizeof(struct part)) +
           5 * carve(NULL, n * sizeof(uint32_t)) + 2 * carve(NULL, n * sizeof(struct key)) +
           carve(NULL, (n_steps + 2) * sizeof(size_t)) + carve(NULL, n * sizeof(size_t)) + carve(NULL, n * sizeof(int32_t));
}

static enum err edges_reserve(struct plan_scratch *s, size_t room) {
    if (room <= s->edge_room) return ERR_OK;
    if (room > NONE / 2) return err_set(ERR_NOMEM, "memory plan: %zu conflicts are too many", room);
    uint32_t *to = realloc(s->edge_to, room * sizeof(uint32_t));
    if (to) s->edge_to = to;
    uint32_t *next = realloc(s->edge_next, room * sizeof(uint32_t));
    if (next) s->edge_next = next;
    if (!to || !next) return err_set(ERR_NOMEM, "memory plan: no memory for %zu conflicts", room);
    s->edge_room = room;
    return ERR_OK;
}

enum err plan_scratch_reserve(struct plan_scratch *s, int n, int n_steps) {
    if (scratch_bytes((size_t) n, (size_t) n_steps) > s->bytes) {  // graphs that come later may have a few nodes more
        const size_t bytes = scratch_bytes((size_t) n + (size_t) n / 8 + 64, (size_t) n_steps + (size_t) n_steps / 8 + 64);
        void *p = realloc(s->memory, bytes);
        if (!p) return err_set(ERR_NOMEM, "memory plan: no memory for %d tensors", n);
        s->memory = p;
        s->bytes = bytes;
    }
    const size_t per_item = (size_t) n * 40 + 64;
    return s->edge_room < per_item ? edges_reserve(s, per_item + per_item / 8) : ERR_OK;
}

void plan_scratch_free(struct plan_scratch *s) {
    free(s->memory);
    free(s->edge_to);
    free(s->edge_next);
    free(s->rise);
    memset(s, 0, sizeof(*s));
}

static void lay_out(struct packer *p) {
    const size_t n = (size_t) p->n;
    char *at = p->s->memory;
    p->blocks = (void *) at, carve(&at, n * sizeof(struct block));
    p->parts = (void *) at, carve(&at, n * sizeof(struct part));
    p->active = (void *) at, carve(&at, n * sizeof(uint32_t));
    p->order = (void *) at, carve(&at, n * sizeof(uint32_t));
    p->moved = (void *) at, carve(&at, n * sizeof(uint32_t));
    p->by_offset = (void *) at, carve(&at, n * sizeof(uint32_t));
    p->near = (void *) at, carve(&at, n * sizeof(uint32_t));
    p->keys = (void *) at, carve(&at, n * sizeof(struct key));
    p->spare = (void *) at, carve(&at, n * sizeof(struct key));
    p->live = (void *) at, carve(&at, ((size_t) p->n_steps + 2) * sizeof(size_t));
    p->best = (void *) at, carve(&at, n * sizeof(size_t));
    p->best_over = (void *) at;
}

// ---- blocks and their neighbours ------------------------------------------------------------------------------------

// Which of two blocks to take over. Keeping the older one leaves the residual stream at one address through the whole
// graph, so that it cuts no holes; the other choices are for repair.
static int32_t choose(const struct packer *p, const struct plan_item *it, int choice) {
    const int32_t a = it->take[0], b = it->take[1];
    if (a < 0 || b < 0) return a < 0 ? b : a;
    const int32_t born_a = p->blocks[p->items[a].block].first, born_b = p->blocks[p->items[b].block].first;
    if (choice == 2 || born_a == born_b) return a;
    return (born_a < born_b) == (choice == 0) ? a : b;
}

// The result takes over the block, which goes on with as many bytes as the result has.
static void carry_on(struct packer *p, struct block *b, const struct plan_item *it) {
    if (it->last > b->last) b->last = it->last;
    if (it->bytes == b->bytes_last) return;
    const uint32_t k = p->n_parts++;
    p->parts[k] = (struct part){it->bytes, it->first + 1, NONE};
    if (b->part == NONE)
        b->part = k;
    else
        p->parts[b->part_last].next = k;
    b->part_last = k;
    b->bytes_last = it->bytes;
}

static void form_blocks(struct packer *p, int choice) {
    p->n_blocks = p->n_parts = 0;
    for (int i = 0; i < p->n; i++) {
        struct plan_item *it = &p->items[i];
        it->over = it->bytes ? choose(p, it, choice) : -1;
        if (it->over >= 0) {
            it->block = p->items[it->over].block;
            carry_on(p, &p->blocks[it->block], it);
            continue;
        }
        it->block = (int32_t) p->n_blocks;
        p->has_fixed = p->has_fixed || it->fixed;
        p->blocks[p->n_blocks++] = (struct block){.bytes = it->bytes,
                                                  .offset = it->fixed ? it->offset : UNPLACED,
                                                  .bytes_last = it->bytes,
                                                  .first = it->first,
                                                  .last = it->last,
                                                  .edges = NONE,
                                                  .part = NONE,
                                                  .fixed = it->fixed};
    }
}

static void measure(struct packer *p) {
    memset(p->live, 0, ((size_t) p->n_steps + 2) * sizeof(size_t));
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        const struct block *b = &p->blocks[i];
        p->live[b->first] += b->bytes;
        p->live[b->last + 1] -= b->bytes_last;
        size_t bytes = b->bytes;
        for (uint32_t k = b->part; k != NONE; k = p->parts[k].next) {
            p->live[p->parts[k].from] -= bytes - p->parts[k].bytes;
            bytes = p->parts[k].bytes;
        }
    }
    size_t now = 0;
    p->bound = 0;
    for (int t = 0; t <= p->n_steps; t++) {
        now += p->live[t];
        p->live[t] = now;
        if (now > p->bound) p->bound = now;
    }
}

static void add_edge(struct packer *p, uint32_t from, uint32_t to) {
    const uint32_t e = p->n_edges++;
    p->s->edge_to[e] = to;
    p->s->edge_next[e] = p->blocks[from].edges;
    p->blocks[from].edges = e;
    p->blocks[from].n_edges++;
}

// Blocks arrive in ascending order of first: each meets the ones still alive.
static enum err find_neighbours(struct packer *p) {
    uint32_t n_active = 0;
    p->n_edges = p->most_edges = 0;
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        if (p->blocks[i].bytes == 0) continue;
        uint32_t kept = 0;
        if (p->n_edges + 2 * (size_t) n_active > p->s->edge_room)
            TRY(edges_reserve(p->s, 2 * p->s->edge_room + 2 * n_active));
        for (uint32_t k = 0; k < n_active; k++) {
            const uint32_t j = p->active[k];
            if (p->blocks[j].last < p->blocks[i].first) continue;
            p->active[kept++] = j;
            add_edge(p, i, j);
            add_edge(p, j, i);
        }
        p->active[kept++] = i;
        n_active = kept;
    }
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        if (p->blocks[i].n_edges > p->most_edges) p->most_edges = p->blocks[i].n_edges;
    }
    return ERR_OK;
}

// ---- orders ---------------------------------------------------------------------------------------------------------

// Stable merge sort, so that ties stay in order of execution.
static void sort_keys(struct key *a, struct key *spare, uint32_t n) {
    for (uint32_t i = 1; i < n; i++) {  // short runs by insertion
        if (i % 8 == 0) continue;
        const struct key k = a[i];
        uint32_t j = i;
        while (j % 8 != 0 && a[j - 1].value > k.value) a[j] = a[j - 1], j--;
        a[j] = k;
    }
    for (uint32_t run = 8; run < n; run *= 2) {
        for (uint32_t lo = 0; lo < n; lo += 2 * run) {
            const uint32_t mid = lo + run < n ? lo + run : n, hi = lo + 2 * run < n ? lo + 2 * run : n;
            uint32_t i = lo, j = mid, k = lo;
            while (i < mid && j < hi) spare[k++] = a[j].value < a[i].value ? a[j++] : a[i++];
            while (i < mid) spare[k++] = a[i++];
            while (j < hi) spare[k++] = a[j++];
        }
        memcpy(a, spare, n * sizeof(*a));
    }
}

// The most bytes live at once during the block's life: how little room it leaves there.
static uint64_t crowd(const struct packer *p, const struct block *b) {
    size_t most = 0;
    for (int t = b->first; t <= b->last; t++) {
        if (p->live[t] > most) most = p->live[t];
    }
    return most;
}

enum rank { BY_SIZE, BY_CROWD, BY_AREA, LONG_THEN_SIZE, BY_LENGTH };

// Smaller comes first.
static uint64_t rank(const struct packer *p, const struct block *b, enum rank by) {
    if (b->fixed) return 0;
    switch (by) {
        case BY_SIZE: return ~plan_units(b);
        case BY_CROWD: return ~crowd(p, b);
        case BY_AREA: return ~(plan_units(b) > (UINT64_MAX >> 20) ? UINT64_MAX : plan_units(b) * plan_steps(b));
        case LONG_THEN_SIZE: return ~(plan_units(b) + (b->last - b->first > p->n_steps / 4 ? (uint64_t) 1 << 60 : 0));
        default: return ~plan_steps(b);
    }
}

// Sorts what is there by one more rank; ties keep their order.
static void sort_by(struct packer *p, uint32_t n, enum rank by) {
    for (uint32_t i = 0; i < n; i++) p->keys[i].value = rank(p, &p->blocks[p->keys[i].block], by);
    sort_keys(p->keys, p->spare, n);
}

// Order 0 is by size, which is nearly always enough. Order 1 begins where memory is scarcest: the blocks of the fullest
// step, the largest and the longest-lived of them first.
static void make_order(struct packer *p, int order) {
    static const enum rank ranks[N_ORDERS][3] = {{BY_SIZE, BY_SIZE, BY_SIZE},
                                                 {BY_LENGTH, BY_SIZE, BY_CROWD},
                                                 {BY_AREA, BY_AREA, BY_AREA},
                                                 {LONG_THEN_SIZE, LONG_THEN_SIZE, LONG_THEN_SIZE},
                                                 {BY_SIZE, BY_SIZE, BY_LENGTH}};
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        if (p->blocks[i].bytes) p->keys[n++].block = i;
    }
    for (int k = 0; k < 3; k++) {
        if (k == 0 || ranks[order][k] != ranks[order][k - 1]) sort_by(p, n, ranks[order][k]);
    }
    for (uint32_t i = 0; i < n; i++) p->order[i] = p->keys[i].block;
}

// ---- placing --------------------------------------------------------------------------------------------------------

// Lowest offset >= at where bytes fit without straddling a chunk.
static size_t in_chunk(const struct packer *p, size_t at, size_t bytes) {
    if (p->max_chunk == SIZE_MAX) return at;
    const size_t room = p->max_chunk - at % p->max_chunk;
    return bytes <= room ? at : at + room;
}

// Where the memory of a placed neighbour ends for b: it has the bytes that it has from the step on at which both live.
static size_t end_beside(const struct packer *p, const struct block *o, const struct block *b) {
    if (o->part == NONE) return o->offset + o->bytes;
    return o->offset + plan_bytes_at(p, o, o->first > b->first ? o->first : b->first);
}

// One step of walking placed neighbours in ascending order of offset: true when the gap before `used` is large enough.
static bool gap_before(const struct packer *p, const struct block *used, const struct block *b, size_t *at) {
    if (used->offset >= *at + b->bytes) return true;
    const size_t end = end_beside(p, used, b);
    if (end > *at) *at = in_chunk(p, end, b->bytes);
    return false;
}

static void place_among_few(struct packer *p, struct block *b) {
    uint32_t n = 0;
    for (uint32_t e = b->edges; e != NONE; e = p->s->edge_next[e]) {
        const uint32_t other = p->s->edge_to[e];
        const size_t offset = p->blocks[other].offset;
        if (offset == UNPLACED) continue;
        uint32_t k = n++;
        while (k > 0 && p->blocks[p->near[k - 1]].offset > offset) p->near[k] = p->near[k - 1], k--;
        p->near[k] = other;
    }
    size_t at = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (gap_before(p, &p->blocks[p->near[k]], b, &at)) break;
    }
    b->offset = at;
    p->work += b->n_edges + 8;
}

// A block that shrinks: neighbours by the offset at which it would have to end, were it as large as at first all the time.
static void place_shrinking(struct packer *p, struct block *b) {
    uint32_t n = 0;
    for (uint32_t e = b->edges; e != NONE; e = p->s->edge_next[e]) {
        const struct block *o = &p->blocks[p->s->edge_to[e]];
        if (o->offset == UNPLACED) continue;
        const size_t gone = b->bytes - plan_bytes_at(p, b, o->first > b->first ? o->first : b->first);
        p->keys[n++] = (struct key){o->offset + gone, p->s->edge_to[e]};
    }
    sort_keys(p->keys, p->spare, n);
    size_t at = 0;
    for (uint32_t k = 0; k < n && p->keys[k].value < at + b->bytes; k++) {
        const size_t end = end_beside(p, &p->blocks[p->keys[k].block], b);
        if (end > at) at = in_chunk(p, end, b->bytes);
    }
    b->offset = at;
    p->work += 2 * (size_t) b->n_edges + 8;
}

static void place_among_many(struct packer *p, struct block *b) {
    size_t at = 0;
    for (uint32_t k = 0; k < p->n_placed; k++) {
        const struct block *o = &p->blocks[p->by_offset[k]];
        if (o->last < b->first || o->first > b->last) continue;
        if (gap_before(p, o, b, &at)) break;
    }
    b->offset = at;
    p->work += p->n_placed / 2 + 8;
}

static void note_placed(struct packer *p, uint32_t i) {
    uint32_t lo = 0, hi = p->n_placed;
    const size_t offset = p->blocks[i].offset;
    while (lo < hi) {
        const uint32_t mid = (lo + hi) / 2;
        if (p->blocks[p->by_offset[mid]].offset <= offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    memmove(&p->by_offset[lo + 1], &p->by_offset[lo], (p->n_placed - lo) * sizeof(uint32_t));
    p->by_offset[lo] = i;
    p->n_placed++;
}

static size_t place_all(struct packer *p, uint32_t n) {
    size_t peak = 0;
    p->n_placed = 0;
    for (uint32_t k = 0; k < p->n_blocks; k++) {
        if (!p->blocks[k].fixed) p->blocks[k].offset = p->blocks[k].bytes ? UNPLACED : 0;
    }
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t i = p->order[k];
        struct block *b = &p->blocks[i];
        if (b->fixed)
            p->work++;
        else if (b->part != NONE)
            place_shrinking(p, b);
        else if (b->n_edges <= FEW_NEIGHBOURS)
            place_among_few(p, b);
        else
            place_among_many(p, b);
        if (p->most_edges > FEW_NEIGHBOURS) note_placed(p, i);
        if (b->offset + b->bytes > peak) peak = b->offset + b->bytes;
    }
    return peak;
}

// ---- the search -----------------------------------------------------------------------------------------------------

void plan_keep(struct packer *p, struct plan_result *r, size_t peak) {
    r->tries++;
    if (peak >= r->peak) return;
    r->peak = peak;
    for (int i = 0; i < p->n; i++) {
        p->best[i] = p->blocks[p->items[i].block].offset;
        p->best_over[i] = p->items[i].over;
    }
}

// Blocks that end above the bound go to the front, in their present order.
static void lift(struct packer *p, uint32_t n) {
    uint32_t out = 0, rest = 0;
    for (uint32_t k = 0; k < n; k++) {
        const struct block *b = &p->blocks[p->order[k]];
        if (b->fixed || b->offset + b->bytes > p->bound)
            p->order[out++] = p->order[k];
        else
            p->moved[rest++] = p->order[k];
    }
    memcpy(&p->order[out], p->moved, rest * sizeof(uint32_t));
}

// Blocks that end above the bound go just before the last of their neighbours that was placed before them: gentler than the
// front.
static void nudge(struct packer *p, uint32_t n) {
    uint32_t *const at = p->moved;  // place of each block in the order
    for (uint32_t k = 0; k < n; k++) at[p->order[k]] = k;
    for (uint32_t k = 0; k < n; k++) {
        const struct block *b = &p->blocks[p->order[k]];
        uint32_t before = 0;
        p->keys[k] = (struct key){2 * (uint64_t) k + 1, p->order[k]};
        if (b->fixed || b->offset + b->bytes <= p->bound) continue;
        for (uint32_t e = b->edges; e != NONE; e = p->s->edge_next[e]) {
            const uint32_t other = at[p->s->edge_to[e]];
            if (other < k && other > before) before = other;
        }
        p->keys[k].value = 2 * (uint64_t) before;
    }
    sort_keys(p->keys, p->spare, n);
    for (uint32_t k = 0; k < n; k++) p->order[k] = p->keys[k].block;
}

static bool done(const struct packer *p, const struct plan_result *r) { return r->peak <= p->bound || p->work > p->limit; }

static void search_order(struct packer *p, struct plan_result *r, int order, bool gentle, int repairs) {
    make_order(p, order);
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_blocks; i++) n += p->blocks[i].bytes != 0;
    for (int k = 0; k <= repairs; k++) {
        const size_t peak = place_all(p, n);
        plan_keep(p, r, peak);
        if (done(p, r)) return;
        if (gentle)
            nudge(p, n);
        else
            lift(p, n);
    }
}

static void search_orders(struct packer *p, struct plan_result *r, int repairs) {
    for (int order = 0; order < N_ORDERS && !done(p, r); order++) {
        search_order(p, r, order, true, repairs);
        if (!done(p, r)) search_order(p, r, order, false, repairs);
    }
}

static enum err search_choice(struct packer *p, struct plan_result *r, int choice, int repairs) {
    form_blocks(p, choice);
    TRY(find_neighbours(p));
    search_orders(p, r, repairs);
    return ERR_OK;
}

// By size, but each block counts for up to twice as large as it is: blocks of nearly one size change places, small ones come first
// now and then. The same numbers each time, so that a graph has one plan.
static void make_loose_order(struct packer *p, uint64_t *state) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        const struct block *b = &p->blocks[i];
        if (!b->bytes) continue;
        const uint64_t r = plan_random(state), u = plan_units(b) + 1;
        p->keys[n].block = i;
        p->keys[n++].value = b->fixed ? 0 : r % 16 == 0 ? r : ~(u > (UINT64_MAX >> 40) ? UINT64_MAX : u * (256 + r % 256));
    }
    sort_keys(p->keys, p->spare, n);
    for (uint32_t i = 0; i < n; i++) p->order[i] = p->keys[i].block;
}

static enum err search_loosely(struct packer *p, struct plan_result *r, int choice) {
    uint64_t state = (uint64_t) choice;
    uint32_t n = 0;
    p->limit = p->work + LEAST_WORK;
    form_blocks(p, choice);
    TRY(find_neighbours(p));
    for (uint32_t i = 0; i < p->n_blocks; i++) n += p->blocks[i].bytes != 0;
    while (!done(p, r)) {
        make_loose_order(p, &state);
        p->work += n;
        for (int k = 0; k <= FEW_REPAIRS && !done(p, r); k++) {
            plan_keep(p, r, place_all(p, n));
            lift(p, n);
        }
    }
    return ERR_OK;
}

// Whether another choice of what to take over makes other blocks.
static bool has_choices(const struct packer *p) {
    for (int i = 0; i < p->n; i++) {
        if (p->items[i].take[0] >= 0 && p->items[i].take[1] >= 0) return true;
    }
    return false;
}

// Below the bound, or else as near above it as can be found.
static enum err rise(struct packer *p, struct plan_result *r, int n_choices) {
    bool found = false;
    for (int choice = 0; choice < n_choices && !found; choice++) {
        form_blocks(p, choice);
        TRY(find_neighbours(p));
        TRY(plan_rise(p, r, p->bound, RISE_WORK / (size_t) n_choices, &found));
    }
    size_t low = p->bound;
    for (int k = 0; k < N_HEIGHTS && !found && r->peak - low > 32; k++) {
        const size_t height = low + (r->peak - low) / 2;
        bool better;
        TRY(plan_rise(p, r, height, RISE_WORK / 8, &better));
        if (!better) low = height;
    }
    return ERR_OK;
}

// Repairs that help do so soon: first a few on every order; then from below; then a few on every choice, then many; at last orders
// with some chance in them.
static enum err search(struct packer *p, struct plan_result *r, int effort) {
    form_blocks(p, 0);
    measure(p);
    r->bound = p->bound;
    TRY(find_neighbours(p));
    p->limit = (size_t) effort * ((size_t) p->n_edges + 8 * (size_t) p->n_blocks);
    if (effort > 0 && p->limit < LEAST_WORK) p->limit = LEAST_WORK;
    search_orders(p, r, FEW_REPAIRS);
    if (effort == 0 || r->peak <= p->bound) return ERR_OK;
    const int n_choices = has_choices(p) ? N_CHOICES : 1;
    const size_t work = p->work;
    TRY(rise(p, r, n_choices));
    p->work = work;
    for (int choice = 1; choice < N_CHOICES && !done(p, r); choice++) TRY(search_choice(p, r, choice, FEW_REPAIRS));
    for (int choice = 0; choice < N_CHOICES && !done(p, r); choice++) TRY(search_choice(p, r, choice, MANY_REPAIRS));
    for (int choice = 0; choice < N_CHOICES && r->peak > p->bound; choice++) TRY(search_loosely(p, r, choice));
    return ERR_OK;
}

enum err plan_solve(struct plan_scratch *s, struct plan_item *items, int n, int n_steps, size_t max_chunk, int effort,
                    struct plan_result *result) {
    *result = (struct plan_result){.peak = SIZE_MAX};
    for (int i = 0; i < n; i++) {
        if (items[i].bytes <= max_chunk) continue;
        return err_set(ERR_INVALID, "memory plan: a tensor of %zu bytes exceeds the largest buffer of %zu bytes",
                       items[i].bytes, max_chunk);
    }
    TRY(plan_scratch_reserve(s, n, n_steps));
    struct packer p = {.s = s, .items = items, .n = n, .n_steps = n_steps, .max_chunk = max_chunk};
    lay_out(&p);
    TRY(search(&p, result, effort));
    for (int i = 0; i < n; i++) {
        items[i].offset = p.best[i];
        items[i].over = p.best_over[i];
    }
    if (effort > 0) TRY(plan_rise_reserve(&p, RISE_WORK));
    // Twice what this plan took, once it comes near the room: another graph of nearly the same shape then allocates nothing.
    return p.n_edges + p.n_edges / 8 > s->edge_room ? edges_reserve(s, 2 * (size_t) p.n_edges) : ERR_OK;
}
