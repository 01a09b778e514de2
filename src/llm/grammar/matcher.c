// Matching: see grammar.h for the idea. Everything is bounded: places on stacks, sets, and remembered transitions; when the
// memory for them is full, all but the present state is forgotten and found again when needed.
#include "grammar/grammar_int.h"
#include <stdlib.h>
#include <string.h>

#define MAX_NODES ((uint32_t) 1 << 20)
#define MAX_SETS 16384u
#define MAX_SET_NODES 65536u               // of one set
#define MAX_LOOKED_AT (2 * MAX_SET_NODES)  // on the way to one set: a bound of its time
#define MAX_SPENT (1u << 23)               // places looked at in all between two tokens
#define MAX_POOL ((size_t) 1 << 22)
#define N_MASK 32
#define UNKNOWN UINT32_MAX
#define DONE 0  // node: the end of the root rule
#define DEAD 0  // set: nothing fits

struct node {
    uint32_t at, parent;  // element to match next; the node to go on with when its alternative ends
    uint32_t mark;
};

// Sorted nodes at which something is to be matched (or DONE).
struct set {
    uint32_t first, n;
    bool done, tokens;  // holds DONE; holds token elements
};

struct mask {
    uint32_t set, used;
    uint8_t *bits;
};

struct matcher {
    struct grammar *g;
    const struct llama_vocab *vocab;
    struct node *nodes;
    uint32_t n_node, cap_node, epoch;
    uint32_t *node_slots, node_mask;
    struct set *sets;
    uint32_t n_set;
    uint32_t *pool;  // the sets' nodes
    size_t n_pool, cap_pool;
    uint32_t *set_slots;  // MAX_SETS * 2
    uint32_t *next;       // [MAX_SETS][n_class], UNKNOWN where not tried
    uint32_t *work;       // (at, parent) pairs still to look at
    size_t n_work, cap_work;
    uint32_t *found;  // nodes of the set being made
    size_t n_found, cap_found;
    uint32_t now;
    uint32_t n_looked_at, spent;
    bool full;                // a limit was hit
    bool deep;                // that of one set, which forgetting does not help
    uint64_t *token_classes;  // per token: the classes of its bytes; NULL if not made or more than 64 classes
    struct mask masks[N_MASK];
    uint32_t clock;
};

// ---- nodes

static uint32_t hash2(uint32_t a, uint32_t b) {
    uint64_t h = ((uint64_t) a << 32 | b) * 0x9e3779b97f4a7c15u;
    return (uint32_t) (h >> 32);
}

static bool grow_nodes(struct matcher *m) {
    uint32_t cap = m->cap_node ? m->cap_node * 2 : 1024;
    struct node *nodes = cap <= MAX_NODES ? realloc(m->nodes, cap * sizeof *nodes) : NULL;
    if (!nodes) return false;
    m->nodes = nodes;
    uint32_t *slots = calloc((size_t) cap * 2, sizeof *slots);
    if (!slots) return false;
    free(m->node_slots);
    m->node_slots = slots;
    m->node_mask = cap * 2 - 1;
    m->cap_node = cap;
    for (uint32_t i = 1; i < m->n_node; i++) {
        uint32_t k = hash2(nodes[i].at, nodes[i].parent) & m->node_mask;
        while (slots[k]) k = (k + 1) & m->node_mask;
        slots[k] = i;
    }
    return true;
}

// The node of a place; UNKNOWN if there is no room.
static uint32_t node_of(struct matcher *m, uint32_t at, uint32_t parent) {
    if (m->n_node == m->cap_node && !grow_nodes(m)) {
        m->full = true;
        return UNKNOWN;
    }
    uint32_t k = hash2(at, parent) & m->node_mask;
    for (; m->node_slots[k]; k = (k + 1) & m->node_mask) {
        const struct node *n = &m->nodes[m->node_slots[k]];
        if (n->at == at && n->parent == parent) return m->node_slots[k];
    }
    m->nodes[m->n_node] = (struct node){at, parent, 0};
    m->node_slots[k] = m->n_node;
    return m->n_node++;
}

// ---- sets

static bool grow(void *array, size_t *cap, size_t n, size_t most) {
    void **p = array;
    if (n < *cap) return true;
    size_t c = *cap ? *cap * 2 : 256;
    void *q = c <= most ? realloc(*p, c * sizeof(uint32_t)) : NULL;
    if (!q) return false;
    *p = q;
    *cap = c;
    return true;
}

static void look_at(struct matcher *m, uint32_t at, uint32_t parent) {
    if (!grow(&m->work, &m->cap_work, m->n_work + 1, 2 * MAX_SET_NODES)) {
        m->full = true;
        return;
    }
    m->work[m->n_work++] = at;
    m->work[m->n_work++] = parent;
}

static void find_node(struct matcher *m, uint32_t node) {
    if (!grow(&m->found, &m->cap_found, m->n_found, MAX_SET_NODES)) {
        m->full = true;
        return;
    }
    m->found[m->n_found++] = node;
}

// Follows rules and ends of rules from the places in work until something is to be matched.
static void close_work(struct matcher *m) {
    const struct grammar *g = m->g;
    while (m->n_work > 0 && !m->full) {
        uint32_t parent = m->work[--m->n_work], at = m->work[--m->n_work];
        if (g->elems[at].kind == ELEM_END) {
            if (parent == DONE) {
                if (m->nodes[DONE].mark != m->epoch) find_node(m, DONE);
                m->nodes[DONE].mark = m->epoch;
            } else {
                look_at(m, m->nodes[parent].at, m->nodes[parent].parent);
            }
            continue;
        }
        uint32_t node = node_of(m, at, parent);
        if (node == UNKNOWN || m->nodes[node].mark == m->epoch) continue;
        m->nodes[node].mark = m->epoch;
        if (++m->n_looked_at > MAX_LOOKED_AT) m->full = m->deep = true;
        if (g->elems[at].kind != ELEM_RULE) {
            find_node(m, node);
            continue;
        }
        // a call at the end of an alternative returns to where that one would return: stacks stay short
        uint32_t back = g->elems[at + 1].kind == ELEM_END ? parent : node_of(m, at + 1, parent);
        const struct rule *r = &g->rules[g->elems[at].value];
        for (uint32_t a = 0; a < r->n && back != UNKNOWN; a++) look_at(m, g->alts[r->first + a], back);
    }
}

static int by_number(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
    return (x > y) - (x < y);
}

// The number of the set of the nodes found; UNKNOWN if there is no room.
static uint32_t set_of(struct matcher *m) {
    if (m->full) return UNKNOWN;
    if (m->n_found == 0) return DEAD;
    if (m->n_found > 1) qsort(m->found, m->n_found, sizeof *m->found, by_number);
    uint32_t h = 0;
    for (size_t i = 0; i < m->n_found; i++) h = hash2(h, m->found[i]);
    uint32_t k = h & (MAX_SETS * 2 - 1);
    for (; m->set_slots[k]; k = (k + 1) & (MAX_SETS * 2 - 1)) {
        const struct set *s = &m->sets[m->set_slots[k]];
        if (s->n == m->n_found && memcmp(m->pool + s->first, m->found, s->n * sizeof *m->found) == 0) return m->set_slots[k];
    }
    bool room = m->n_set < MAX_SETS;
    while (room && m->n_pool + m->n_found > m->cap_pool) room = grow(&m->pool, &m->cap_pool, m->cap_pool, MAX_POOL);
    if (!room) {
        m->full = true;
        return UNKNOWN;
    }
    struct set s = {(uint32_t) m->n_pool, (uint32_t) m->n_found, m->found[0] == DONE, false};
    for (size_t i = 0; i < m->n_found; i++) {
        enum elem_kind kind = m->found[i] == DONE ? ELEM_BYTES : m->g->elems[m->nodes[m->found[i]].at].kind;
        s.tokens = s.tokens || kind == ELEM_TOKEN || kind == ELEM_NOT_TOKEN;
        m->pool[m->n_pool++] = m->found[i];
    }
    m->sets[m->n_set] = s;
    uint32_t *next = m->next + (size_t) m->n_set * (size_t) m->g->n_class;
    for (int c = 0; c < m->g->n_class; c++) next[c] = UNKNOWN;
    m->set_slots[k] = m->n_set;
    return m->n_set++;
}

static void begin_set(struct matcher *m) {
    m->epoch++;
    m->n_work = m->n_found = m->n_looked_at = 0;
    m->deep = false;
}

// Where the elements that `fits` lead; UNKNOWN if there is no room.
static uint32_t try_class(struct matcher *m, uint32_t set, int class) {
    const struct grammar *g = m->g;
    begin_set(m);
    for (uint32_t i = 0; i < m->sets[set].n; i++) {
        uint32_t node = m->pool[m->sets[set].first + i];
        if (node == DONE) continue;
        const struct elem *e = &g->elems[m->nodes[node].at];
        if (e->kind == ELEM_BYTES && byte_set_has(&g->sets[e->value], g->class_byte[class])) {
            look_at(m, m->nodes[node].at + 1, m->nodes[node].parent);
            close_work(m);
        }
    }
    return set_of(m);
}

static uint32_t try_token(struct matcher *m, uint32_t set, llama_token token) {
    const struct grammar *g = m->g;
    begin_set(m);
    for (uint32_t i = 0; i < m->sets[set].n; i++) {
        uint32_t node = m->pool[m->sets[set].first + i];
        if (node == DONE) continue;
        const struct elem *e = &g->elems[m->nodes[node].at];
        bool same = e->value == (uint32_t) token;
        if ((e->kind == ELEM_TOKEN && same) || (e->kind == ELEM_NOT_TOKEN && !same)) {
            look_at(m, m->nodes[node].at + 1, m->nodes[node].parent);
            close_work(m);
        }
    }
    return set_of(m);
}

static uint32_t too_much(void) {
    err_set(ERR_UNSUPPORTED, "grammar: too many ways to read the text, or nested too deep, to go on");
    return DEAD;
}

static inline uint32_t step(struct matcher *m, uint32_t set, uint8_t byte) {
    if (set == DEAD) return DEAD;
    int class = m->g->byte_class[byte];
    size_t at = (size_t) set * (size_t) m->g->n_class + (size_t) class;
    if (m->next[at] == UNKNOWN) {
        if (m->spent > MAX_SPENT) return m->now = too_much();
        m->next[at] = try_class(m, set, class);
        m->spent += m->sets[set].n + m->n_looked_at;
    }
    if (m->next[at] == UNKNOWN && m->deep) {
        m->full = false;
        m->next[at] = too_much();  // remembered: it would take as long for every token
    }
    return m->next[at];
}

static uint32_t walk(struct matcher *m, uint32_t set, const char *p, size_t len) {
    for (size_t i = 0; i < len && set != DEAD && set != UNKNOWN; i++) set = step(m, set, (uint8_t) p[i]);
    return set;
}

// ---- forgetting

static void forget_masks(struct matcher *m) {
    for (int i = 0; i < N_MASK; i++) m->masks[i].set = UNKNOWN;
}

static void clear(struct matcher *m) {
    m->n_node = 1;
    m->nodes[DONE] = (struct node){0, 0, 0};
    memset(m->node_slots, 0, ((size_t) m->node_mask + 1) * sizeof *m->node_slots);
    m->n_set = 1;
    m->sets[DEAD] = (struct set){0, 0, false, false};
    m->n_pool = 0;
    memset(m->set_slots, 0, 2 * MAX_SETS * sizeof *m->set_slots);
    m->full = false;
    forget_masks(m);
}

// Makes a state of other numbers the present one: the nodes of its set and the tails of their stacks. m is cleared first.
// False: no room or no memory.
static bool adopt(struct matcher *m, const struct node *nodes, uint32_t n_node, const uint32_t *set, uint32_t n) {
    uint32_t *to = calloc((size_t) n_node + 1, sizeof *to);
    if (!to) return false;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = set[i]; k != DONE && !to[k]; k = nodes[k].parent) to[k] = UNKNOWN;
    }
    clear(m);
    begin_set(m);
    for (uint32_t i = 1; i < n_node; i++) {  // a parent's number is below its children's
        if (to[i]) to[i] = node_of(m, nodes[i].at, nodes[i].parent == DONE ? DONE : to[nodes[i].parent]);
    }
    for (uint32_t i = 0; i < n; i++) find_node(m, set[i] == DONE ? DONE : to[set[i]]);
    free(to);
    uint32_t now = set_of(m);
    m->now = now == UNKNOWN ? DEAD : now;
    return now != UNKNOWN;
}

// Keeps only the present state.
static bool forget(struct matcher *m) {
    uint32_t n = m->sets[m->now].n, n_node = m->n_node;
    struct node *nodes = malloc(n_node * sizeof *nodes);
    uint32_t *set = malloc(((size_t) n + 1) * sizeof *set);
    bool ok = nodes && set;
    if (ok) {
        memcpy(nodes, m->nodes, n_node * sizeof *nodes);
        if (n) memcpy(set, m->pool + m->sets[m->now].first, n * sizeof *set);
        ok = adopt(m, nodes, n_node, set, n);
    }
    free(nodes);
    free(set);
    return ok;
}

// From the present state, with a second try after forgetting.
static uint32_t walk_on(struct matcher *m, const char *p, size_t len) {
    uint32_t to = walk(m, m->now, p, len);
    if (to != UNKNOWN) return to;
    if (forget(m)) to = walk(m, m->now, p, len);
    return to == UNKNOWN ? too_much() : to;
}

// ---- tokens

static const char *text_of(const struct matcher *m, llama_token token, size_t *len) {
    *len = 0;
    if (!m->vocab || token < 0 || token >= llama_vocab_n_tokens(m->vocab)) return NULL;
    if (llama_vocab_get_attr(m->vocab, token) & (LLAMA_TOKEN_ATTR_UNKNOWN | LLAMA_TOKEN_ATTR_UNUSED)) return NULL;
    return vocab_piece(m->vocab, token, len);
}

static bool is_end(const struct matcher *m, llama_token token) { return m->vocab && llama_vocab_is_eog(m->vocab, token); }

// Whether a token element of the set takes the token as a whole.
static bool fits_token(const struct matcher *m, uint32_t set, llama_token token) {
    if (!m->sets[set].tokens) return false;
    bool end = is_end(m, token);
    for (uint32_t i = 0; i < m->sets[set].n; i++) {
        uint32_t node = m->pool[m->sets[set].first + i];
        if (node == DONE) continue;
        const struct elem *e = &m->g->elems[m->nodes[node].at];
        if (e->kind == ELEM_TOKEN && e->value == (uint32_t) token) return true;
        if (e->kind == ELEM_NOT_TOKEN && e->value != (uint32_t) token && !end) return true;
    }
    return false;
}

bool matcher_allows(struct matcher *m, llama_token token) {
    if (is_end(m, token) && (m->now == DEAD || m->sets[m->now].done)) return true;
    if (fits_token(m, m->now, token)) return true;
    if (is_end(m, token)) return false;
    size_t len;
    const char *p = text_of(m, token, &len);
    return p && len > 0 && walk_on(m, p, len) != DEAD;
}

static uint32_t unite(struct matcher *m, uint32_t a, uint32_t b) {
    begin_set(m);
    const uint32_t both[2] = {a, b};
    for (int k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < m->sets[both[k]].n; i++) {
            uint32_t node = m->pool[m->sets[both[k]].first + i];
            if (m->nodes[node].mark != m->epoch) find_node(m, node);
            m->nodes[node].mark = m->epoch;
        }
    }
    return set_of(m);
}

bool matcher_accept(struct matcher *m, llama_token token) {
    m->spent = 0;
    if (m->now == DEAD) return false;
    if (is_end(m, token) && m->sets[m->now].done) return true;
    size_t len;
    const char *p = text_of(m, token, &len);
    uint32_t by_bytes = p && len > 0 && !is_end(m, token) ? walk_on(m, p, len) : DEAD;
    uint32_t by_token = fits_token(m, m->now, token) ? try_token(m, m->now, token) : DEAD;
    uint32_t to = by_bytes == DEAD ? by_token : by_token == DEAD ? by_bytes : unite(m, by_bytes, by_token);
    m->now = to == UNKNOWN ? too_much() : to;
    return m->now != DEAD;
}

bool matcher_accept_bytes(struct matcher *m, const char *p, size_t len) {
    while (len > 0 && m->now != DEAD) {  // in parts, so that a long text may be forgotten on the way
        size_t n = len < 1024 ? len : 1024;
        m->spent = 0;
        m->now = walk_on(m, p, n);
        p += n;
        len -= n;
    }
    return m->now != DEAD;
}

bool matcher_done(const struct matcher *m) { return m->sets[m->now].done; }

bool matcher_dead(const struct matcher *m) { return m->now == DEAD; }

// ---- masks

// Which classes the bytes of each token are of (in the order of vocab_sorted), so that a state that some classes lead back to
// passes whole tokens by one test.
static void make_token_classes(struct matcher *m, const struct vocab_order *order) {
    if (m->token_classes || m->g->n_class > 64) return;
    m->token_classes = malloc(((size_t) order->n + 1) * sizeof *m->token_classes);
    for (uint32_t i = 0; m->token_classes && i < order->n; i++) {
        size_t len;
        const char *p = vocab_piece(m->vocab, order->ids[i], &len);
        uint64_t bits = 0;
        for (size_t k = 0; k < len; k++) bits |= (uint64_t) 1 << m->g->byte_class[(uint8_t) p[k]];
        m->token_classes[i] = bits;
    }
}

// Classes that lead from the present state back to it.
static uint64_t loops(struct matcher *m) {
    uint64_t bits = 0;
    if (!m->token_classes || m->now == DEAD) return 0;
    for (int c = 0; c < m->g->n_class; c++) {
        if (step(m, m->now, m->g->class_byte[c]) == m->now) bits |= (uint64_t) 1 << c;
    }
    return bits;
}

static inline void set_bit(uint8_t *bits, llama_token t) { bits[t >> 3] |= (uint8_t) (1u << (t & 7)); }

// All tokens in byte order, each from the state that the bytes it shares with its neighbour led to; what begins with bytes
// that do not fit is passed over. False: a limit was hit.
static bool fill_by_bytes(struct matcher *m, const struct vocab_order *order, uint8_t *bits) {
    uint32_t states[257], now = m->now;  // states[d]: after the first d bytes
    size_t n_state = 0, n_flat = 0;      // states[0..n_state] are known; up to n_flat they are `now`
    uint64_t back = loops(m);
    states[0] = now;
    for (uint32_t i = 0; i < order->n; i++) {
        size_t same = order->same[i], len;
        if (m->token_classes && !(m->token_classes[i] & ~back)) {
            set_bit(bits, order->ids[i]);
            vocab_piece(m->vocab, order->ids[i], &len);
            n_flat = n_state = len < 256 ? len : 256;
            continue;
        }
        if (same < n_flat) n_flat = same;
        if (same < n_state) n_state = same;
        const char *p = vocab_piece(m->vocab, order->ids[i], &len);
        size_t d = n_state;
        uint32_t s = d <= n_flat ? now : states[d];
        while (d < len && s != DEAD) {
            s = step(m, s, (uint8_t) p[d++]);
            if (s == UNKNOWN) return false;
            if (d <= 256) states[n_state = d] = s;
        }
        if (s != DEAD) {
            set_bit(bits, order->ids[i]);
            continue;
        }
        // d bytes are one too many: so they are for all that share them
        while (i + 1 < order->n && order->same[i + 1] >= d && d <= 255) i++;
        if (n_state >= d) n_state = d - 1;
    }
    return true;
}

static void fill_mask(struct matcher *m, uint8_t *bits) {
    int32_t n = llama_vocab_n_tokens(m->vocab);
    const struct vocab_order *order = vocab_sorted(m->vocab);
    memset(bits, 0, (size_t) n / 8 + 1);
    if (order) make_token_classes(m, order);
    bool ok = order && m->now != DEAD && fill_by_bytes(m, order, bits);
    if (!ok && order && m->now != DEAD && forget(m)) ok = fill_by_bytes(m, order, bits);
    for (llama_token t = 0; !ok && m->now != DEAD && t < n; t++) {  // one after the other, with forgetting in between
        bits[t >> 3] &= (uint8_t) ~(1u << (t & 7));
        if (matcher_allows(m, t)) set_bit(bits, t);
    }
    if (m->now == DEAD) memset(bits, 0, (size_t) n / 8 + 1);  // also where it took too long
    for (llama_token t = 0; m->sets[m->now].tokens && t < n; t++) {
        if (fits_token(m, m->now, t)) set_bit(bits, t);
    }
    for (uint32_t i = 0; order && i < order->n_end && (m->now == DEAD || m->sets[m->now].done); i++)
        set_bit(bits, order->ends[i]);
}

const uint8_t *matcher_mask(struct matcher *m) {
    struct mask *oldest = &m->masks[0];
    m->clock++;
    for (int i = 0; i < N_MASK; i++) {
        if (m->masks[i].bits && m->masks[i].set == m->now) {
            m->masks[i].used = m->clock;
            return m->masks[i].bits;
        }
        if (m->masks[i].used < oldest->used) oldest = &m->masks[i];
    }
    if (!oldest->bits) oldest->bits = malloc((size_t) llama_vocab_n_tokens(m->vocab) / 8 + 1);
    if (!oldest->bits) {
        err_set(ERR_NOMEM, "grammar: no memory for a mask of %d tokens", (int) llama_vocab_n_tokens(m->vocab));
        return NULL;
    }
    fill_mask(m, oldest->bits);
    oldest->set = m->now;  // as it is numbered now: the walk may have forgotten the rest
    oldest->used = m->clock;
    return oldest->bits;
}

// ---- making and freeing

void matcher_free(struct matcher *m) {
    if (!m) return;
    grammar_free(m->g);
    for (int i = 0; i < N_MASK; i++) free(m->masks[i].bits);
    free(m->nodes);
    free(m->node_slots);
    free(m->sets);
    free(m->pool);
    free(m->set_slots);
    free(m->next);
    free(m->work);
    free(m->found);
    free(m->token_classes);
    free(m);
}

void matcher_reset(struct matcher *m) {
    const struct rule *root = &m->g->rules[m->g->root];
    clear(m);
    begin_set(m);
    for (uint32_t a = 0; a < root->n; a++) look_at(m, m->g->alts[root->first + a], DONE);
    close_work(m);
    uint32_t now = set_of(m);
    m->now = now == UNKNOWN ? too_much() : now;
}

static enum err make(struct matcher **out, struct grammar *g, const struct llama_vocab *vocab) {
    struct matcher *m = calloc(1, sizeof *m);
    if (!m) return err_set(ERR_NOMEM, "grammar: no memory for a matcher");
    m->g = grammar_ref(g);
    m->vocab = vocab;
    m->n_node = 1;
    m->sets = malloc(MAX_SETS * sizeof *m->sets);
    m->set_slots = malloc(2 * MAX_SETS * sizeof *m->set_slots);
    m->next = malloc((size_t) MAX_SETS * (size_t) g->n_class * sizeof *m->next);
    if (!m->sets || !m->set_slots || !m->next || !grow_nodes(m)) {
        matcher_free(m);
        return err_set(ERR_NOMEM, "grammar: no memory for a matcher");
    }
    *out = m;
    return ERR_OK;
}

enum err matcher_new(struct matcher **out, struct grammar *g, const struct llama_vocab *vocab) {
    TRY(make(out, g, vocab));
    matcher_reset(*out);
    return ERR_OK;
}

enum err matcher_clone(struct matcher **out, const struct matcher *m) {
    TRY(make(out, m->g, m->vocab));
    const struct set *s = &m->sets[m->now];
    if (adopt(*out, m->nodes, m->n_node, s->n ? m->pool + s->first : NULL, s->n)) return ERR_OK;
    matcher_free(*out);
    return err_set(ERR_NOMEM, "grammar: no memory to copy a matcher");
}
