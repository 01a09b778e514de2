// Growing a grammar: elements, rules, and characters as bytes.
#include "grammar/grammar_int.h"
#include <stdlib.h>
#include <string.h>

static enum err reserve(void *array, size_t *cap, size_t n, size_t size) {
    void **p = array;
    if (n < *cap) return ERR_OK;
    size_t c = *cap ? *cap * 2 : 64;
    void *q = realloc(*p, c * size);
    if (!q) return err_set(ERR_NOMEM, "grammar: no memory for %zu entries", c);
    *p = q;
    *cap = c;
    return ERR_OK;
}

enum err grammar_add_elem(struct grammar *g, struct elem e) {
    if (g->n_elem >= GRAMMAR_MAX_ELEMS) return ERR_FORMAT;
    TRY(reserve(&g->elems, &g->cap_elem, g->n_elem, sizeof *g->elems));
    g->elems[g->n_elem++] = e;
    return ERR_OK;
}

enum err grammar_add_alt(struct grammar *g, uint32_t start) {
    TRY(reserve(&g->alts, &g->cap_alt, g->n_alt, sizeof *g->alts));
    g->alts[g->n_alt++] = start;
    return ERR_OK;
}

enum err grammar_add_rule(struct grammar *g, uint32_t *rule) {
    if (g->n_rule >= GRAMMAR_MAX_ELEMS) return ERR_FORMAT;
    TRY(reserve(&g->rules, &g->cap_rule, g->n_rule, sizeof *g->rules));
    *rule = (uint32_t) g->n_rule;
    g->rules[g->n_rule++] = (struct rule){0, 0};
    return ERR_OK;
}

enum err grammar_add_set(struct grammar *g, struct byte_set s, uint32_t *set) {
    for (size_t i = 0; i < g->n_set; i++) {  // there are few: grammars use the same characters again and again
        if (memcmp(&g->sets[i], &s, sizeof s) == 0) {
            *set = (uint32_t) i;
            return ERR_OK;
        }
    }
    if (g->n_set >= 4096) return ERR_FORMAT;
    TRY(reserve(&g->sets, &g->cap_set, g->n_set, sizeof *g->sets));
    *set = (uint32_t) g->n_set;
    g->sets[g->n_set++] = s;
    return ERR_OK;
}

static int spell(uint32_t c, uint8_t out[4]) {
    if (c < 0x80) {
        out[0] = (uint8_t) c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (uint8_t) (0xc0 | c >> 6);
        out[1] = (uint8_t) (0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (uint8_t) (0xe0 | c >> 12);
        out[1] = (uint8_t) (0x80 | (c >> 6 & 63));
        out[2] = (uint8_t) (0x80 | (c & 63));
        return 3;
    }
    out[0] = (uint8_t) (0xf0 | c >> 18);
    out[1] = (uint8_t) (0x80 | (c >> 12 & 63));
    out[2] = (uint8_t) (0x80 | (c >> 6 & 63));
    out[3] = (uint8_t) (0x80 | (c & 63));
    return 4;
}

// A range whose ends have the same number of bytes and differ such that each byte runs over a range of its own.
static enum err add_spelled(struct grammar *g, struct range r) {
    uint8_t lo[4], hi[4];
    int n = spell(r.lo, lo);
    spell(r.hi, hi);
    TRY(grammar_add_alt(g, (uint32_t) g->n_elem));
    for (int i = 0; i < n; i++) {
        struct byte_set s = {{0}};
        struct elem e = {ELEM_BYTES, 0};
        byte_set_add(&s, lo[i], hi[i]);
        TRY(grammar_add_set(g, s, &e.value));
        TRY(grammar_add_elem(g, e));
    }
    return grammar_add_elem(g, (struct elem){ELEM_END, 0});
}

// Cuts a range at the borders of UTF-8's lengths and where a byte would not run over all its values. Method: Thompson's.
static enum err add_range(struct grammar *g, struct range r) {
    static const uint32_t borders[] = {0x7f, 0x7ff, 0xd7ff, 0xdfff, 0xffff, 0x10ffff};
    struct range todo[64];
    int n = 0;
    todo[n++] = r;
    while (n > 0) {
        r = todo[--n];
        uint32_t cut = r.hi;  // last of the first part
        for (size_t i = 0; i < sizeof borders / sizeof *borders && cut == r.hi; i++) {
            if (r.lo <= borders[i] && r.hi > borders[i]) cut = borders[i];
        }
        for (int k = 1; k < 4 && cut == r.hi; k++) {
            uint32_t mask = (1u << (6 * k)) - 1;
            if ((r.lo & ~mask) == (r.hi & ~mask) || r.hi < 0x80) continue;
            if (r.lo & mask) {
                cut = r.lo | mask;
            } else if ((r.hi & mask) != mask) {
                cut = (r.hi & ~mask) - 1;
            }
        }
        if (cut < r.hi) {
            todo[n++] = (struct range){cut + 1, r.hi};
            todo[n++] = (struct range){r.lo, cut};
        } else if (r.lo < 0xd800 || r.hi > 0xdfff) {  // halves of surrogate pairs can't be spelled
            TRY(add_spelled(g, r));
        }
    }
    return ERR_OK;
}

enum err grammar_char_elem(struct grammar *g, const struct range *ranges, size_t n, struct elem *e) {
    struct byte_set ascii = {{0}};
    bool wide = false;
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].lo < 0x80) byte_set_add(&ascii, ranges[i].lo, ranges[i].hi < 0x80 ? ranges[i].hi : 0x7f);
        wide = wide || ranges[i].hi >= 0x80;
    }
    *e = (struct elem){ELEM_BYTES, 0};
    if (!wide) return grammar_add_set(g, ascii, &e->value);
    uint32_t rule;
    TRY(grammar_add_rule(g, &rule));
    uint32_t first = (uint32_t) g->n_alt;
    if (ascii.bits[0] | ascii.bits[1]) {
        TRY(grammar_add_alt(g, (uint32_t) g->n_elem));
        TRY(grammar_add_set(g, ascii, &e->value));
        TRY(grammar_add_elem(g, *e));
        TRY(grammar_add_elem(g, (struct elem){ELEM_END, 0}));
    }
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].hi < 0x80) continue;
        TRY(add_range(g, (struct range){ranges[i].lo < 0x80 ? 0x80 : ranges[i].lo, ranges[i].hi}));
    }
    g->rules[rule] = (struct rule){first, (uint32_t) g->n_alt - first};
    *e = (struct elem){ELEM_RULE, rule};
    return ERR_OK;
}

void grammar_make_classes(struct grammar *g) {
    // split classes by one set after the other
    uint8_t of[256] = {0};
    int n = 1;
    for (size_t i = 0; i < g->n_set && n < 256; i++) {
        int16_t in[256], any_out[256];
        for (int k = 0; k < 256; k++) in[k] = any_out[k] = -1;
        for (int b = 0; b < 256; b++) {
            if (!byte_set_has(&g->sets[i], (uint8_t) b)) any_out[of[b]] = 1;
        }
        for (int b = 0; b < 256; b++) {
            if (!byte_set_has(&g->sets[i], (uint8_t) b) || any_out[of[b]] < 0) continue;
            int old = of[b];
            if (in[old] < 0) in[old] = (int16_t) n++;
            of[b] = (uint8_t) in[old];
        }
    }
    for (int b = 255; b >= 0; b--) {
        g->byte_class[b] = of[b];
        g->class_byte[of[b]] = (uint8_t) b;
    }
    g->n_class = n;
}

// ---- left recursion: rule A reaches rule B if B stands in A behind nothing but what may be empty

struct walk {
    const struct grammar *g;
    uint8_t *nullable, *begins, *color;  // color: marks on components
};

static bool alt_nullable(const struct grammar *g, uint32_t at, const uint8_t *nullable) {
    for (const struct elem *e = &g->elems[at]; e->kind != ELEM_END; e++) {
        if (e->kind != ELEM_RULE || !nullable[e->value]) return false;
    }
    return true;
}

// Whether an alternative has a first character or none at all: `a ::= b`, `b ::= a` have neither.
static bool alt_begins(const struct grammar *g, uint32_t at, const uint8_t *begins) {
    const struct elem *e = &g->elems[at];
    return e->kind != ELEM_RULE || begins[e->value];
}

// Which rules have a property that one of their alternatives has, given the rules that have it: rounds until nothing changes would be
// quadratic for long chains, so a rule that turns out to have it wakes only those that use it.
static enum err find_rules(const struct walk *w, uint8_t *has,
                           bool (*alt)(const struct grammar *g, uint32_t at, const uint8_t *has)) {
    const struct grammar *g = w->g;
    size_t n_use = 0;
    for (size_t i = 0; i < g->n_elem; i++) n_use += g->elems[i].kind == ELEM_RULE;
    uint32_t *start = calloc(g->n_rule + 2, sizeof *start), *users = malloc((n_use + 1) * sizeof *users);
    uint32_t *todo = malloc((g->n_rule + n_use + 1) * sizeof *todo);
    if (!start || !users || !todo) {
        free(start);
        free(users);
        free(todo);
        return err_set(ERR_NOMEM, "grammar: no memory for %zu rules", g->n_rule);
    }
    for (int pass = 0; pass < 2; pass++) {  // count, then fill backwards
        for (size_t r = 0; r < g->n_rule; r++) {
            for (uint32_t a = 0; a < g->rules[r].n; a++) {
                const struct elem *e = &g->elems[g->alts[g->rules[r].first + a]];
                for (; e->kind != ELEM_END; e++) {
                    if (e->kind != ELEM_RULE) continue;
                    if (pass == 0) {
                        start[e->value]++;
                    } else {
                        users[--start[e->value]] = (uint32_t) r;
                    }
                }
            }
        }
        for (size_t r = 1; pass == 0 && r <= g->n_rule; r++) start[r] += start[r - 1];
    }
    size_t n_todo = 0;
    for (size_t r = 0; r < g->n_rule; r++) todo[n_todo++] = (uint32_t) r;
    while (n_todo > 0) {
        uint32_t r = todo[--n_todo];
        if (has[r]) continue;
        for (uint32_t a = 0; a < g->rules[r].n && !has[r]; a++) has[r] = alt(g, g->alts[g->rules[r].first + a], has);
        if (!has[r]) continue;
        for (uint32_t i = start[r]; i < start[r + 1]; i++) todo[n_todo++] = users[i];
    }
    free(start);
    free(users);
    free(todo);
    return ERR_OK;
}

// Strongly connected rules by Tarjan's method, on a stack of our own.
struct frame {
    uint32_t rule, alt, at;  // at: element within the alternative
};

struct tarjan {
    uint32_t *order, *low, *comp, *path;  // order 0: not seen; comp 0: not finished
    struct frame *frames;
    size_t n_frame, n_path;
    uint32_t n_order, n_comp;
};

// The next rule that stands leftmost in f's rule, or false. *tail: nothing stands behind it.
static bool next_edge(const struct walk *w, struct frame *f, uint32_t *to, bool *tail) {
    const struct grammar *g = w->g;
    for (; f->alt < g->rules[f->rule].n; f->alt++, f->at = 0) {
        const struct elem *x = &g->elems[g->alts[g->rules[f->rule].first + f->alt] + f->at];
        if (x->kind != ELEM_RULE) continue;
        *to = x->value;
        *tail = x[1].kind == ELEM_END;
        if (w->nullable[*to]) {
            f->at++;
        } else {
            f->alt++;
            f->at = 0;
        }
        return true;
    }
    return false;
}

static void enter(struct tarjan *t, uint32_t rule) {
    t->order[rule] = t->low[rule] = ++t->n_order;
    t->path[t->n_path++] = rule;
    t->frames[t->n_frame++] = (struct frame){rule, 0, 0};
}

static void leave(struct tarjan *t) {
    uint32_t rule = t->frames[--t->n_frame].rule;
    if (t->low[rule] == t->order[rule]) {
        t->n_comp++;
        do {
            t->comp[t->path[--t->n_path]] = t->n_comp;
        } while (t->path[t->n_path] != rule);
    }
    if (t->n_frame == 0) return;
    uint32_t below = t->frames[t->n_frame - 1].rule;
    if (t->low[rule] < t->low[below]) t->low[below] = t->low[rule];
}

static void find_components(const struct walk *w, struct tarjan *t) {
    for (uint32_t r = 0; r < w->g->n_rule; r++) {
        if (t->order[r]) continue;
        enter(t, r);
        while (t->n_frame > 0) {
            struct frame *f = &t->frames[t->n_frame - 1];
            uint32_t to;
            bool tail;
            if (!next_edge(w, f, &to, &tail)) {
                leave(t);
            } else if (!t->order[to]) {
                enter(t, to);
            } else if (!t->comp[to] && t->order[to] < t->low[f->rule]) {
                t->low[f->rule] = t->order[to];
            }
        }
    }
}

// A rule that calls itself leftmost is harmful only if something is left to do behind one of the calls: then each turn makes
// the stack longer. Otherwise (repeats of what may be empty) a turn comes back to a state that is there already.
static void mark_harmful(const struct walk *w, const struct tarjan *t, uint8_t *bad, bool *found) {
    const struct grammar *g = w->g;
    uint8_t *bad_comp = w->color;
    for (uint32_t r = 0; r < g->n_rule; r++) {
        struct frame f = {r, 0, 0};
        uint32_t to;
        bool tail;
        while (next_edge(w, &f, &to, &tail)) {
            if (!tail && t->comp[to] == t->comp[r]) bad_comp[t->comp[r] - 1] = 1;
        }
    }
    for (uint32_t r = 0; r < g->n_rule; r++) {
        bad[r] = bad_comp[t->comp[r] - 1] || !w->begins[r];
        *found = *found || bad[r];
    }
}

enum err grammar_left_recursive(const struct grammar *g, uint8_t *bad, bool *found) {
    size_t n = g->n_rule + 1;
    struct walk w = {g, calloc(n, 1), calloc(n, 1), calloc(n, 1)};
    uint32_t *numbers = calloc(n, 4 * sizeof *numbers);
    struct tarjan t = {.frames = malloc(n * sizeof(struct frame))};
    enum err e = ERR_OK;
    if (!w.nullable || !w.begins || !w.color || !numbers || !t.frames)
        e = err_set(ERR_NOMEM, "grammar: no memory for %zu rules", g->n_rule);
    if (e == ERR_OK) e = find_rules(&w, w.nullable, alt_nullable);
    if (e == ERR_OK) e = find_rules(&w, w.begins, alt_begins);
    if (e == ERR_OK) {
        t.order = numbers;
        t.low = numbers + n;
        t.comp = numbers + 2 * n;
        t.path = numbers + 3 * n;
        *found = false;
        find_components(&w, &t);
        mark_harmful(&w, &t, bad, found);
    }
    free(w.nullable);
    free(w.begins);
    free(w.color);
    free(numbers);
    free(t.frames);
    return e;
}
