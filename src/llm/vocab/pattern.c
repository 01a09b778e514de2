// See pattern.h.
#include "vocab/pattern.h"
#include "vocab/charset.h"
#include "vocab/regex.h"
#include "vocab/utf8.h"
#include <stdlib.h>
#include <string.h>

#define MAX_ITEMS 12
#define MAX_ALTS 48

struct item {
    int8_t set;  // index of its set, or -1: one of the alternatives of a group, at most once
    uint8_t group, n_group;
    uint32_t min, max;
};

struct alt {
    uint32_t first;  // sets one of which the first character must be in; 0: anything goes
    uint8_t n;
    bool not_before_text;  // (?!\S) at its end
    bool at_end;           // $ at its end
    struct item items[MAX_ITEMS];
};

enum kind { ITEMS, GENERAL, DIGITS_3, DIGITS_3_WORD, SPLIT_3 };

struct pattern {
    enum kind kind;
    struct regex *regex;
    struct alt *alts;  // top-level ones first, then those of groups
    int n_top, n_alt;
    struct charset *sets;
    int n_set;
    struct charset minus[CHARSET_MAX_SETS];
    int n_minus;
    uint32_t first;  // union over the alternatives, 0: anything goes
    int8_t space;    // set of \s, for (?!\S)
    struct charmap *map;
};

// ---- reading patterns

struct parse {
    struct pattern *p;
    const char *at, *end;
};

static bool eat(struct parse *s, const char *text) {
    size_t n = strlen(text);
    if ((size_t) (s->end - s->at) < n || memcmp(s->at, text, n) != 0) return false;
    s->at += n;
    return true;
}

static int add_set(struct pattern *p, const struct charset *set) {
    for (int i = 0; i < p->n_set; i++) {
        if (memcmp(&p->sets[i], set, sizeof *set) == 0) return i;
    }
    if (p->n_set == CHARSET_MAX_SETS) return -1;
    p->sets[p->n_set] = *set;
    return p->n_set++;
}

// ((?=[X])([^Y])): characters of X that are not in Y.
static bool parse_difference(struct parse *s, int8_t *set) {
    struct charset x, y;
    if (!eat(s, "((?=") || !charset_parse(&x, &s->at, s->end) || !eat(s, ")(")) return false;
    if (!charset_parse(&y, &s->at, s->end) || !y.negated || !eat(s, "))")) return false;
    y.negated = false;
    struct pattern *p = s->p;
    int k = 0;
    while (k < p->n_minus && memcmp(&p->minus[k], &y, sizeof y) != 0) k++;
    if (k == CHARSET_MAX_SETS) return false;
    if (k == p->n_minus) p->minus[p->n_minus++] = y;
    x.minus = &p->minus[k];
    *set = (int8_t) add_set(p, &x);
    return *set >= 0;
}

static bool parse_number(struct parse *s, uint32_t *n) {
    if (s->at == s->end || *s->at < '0' || *s->at > '9') return false;
    for (*n = 0; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++) *n = *n * 10 + (uint32_t) (*s->at - '0');
    return true;
}

static bool parse_count(struct parse *s, struct item *it) {
    it->min = it->max = 1;
    if (eat(s, "?")) {
        it->min = 0;
    } else if (eat(s, "*")) {
        it->min = 0;
        it->max = UINT32_MAX;
    } else if (eat(s, "+")) {
        it->max = UINT32_MAX;
    } else if (eat(s, "{")) {
        if (!parse_number(s, &it->min)) return false;
        it->max = it->min;
        if (eat(s, ",") && !parse_number(s, &it->max)) return false;
        if (!eat(s, "}")) return false;
    }
    return true;
}

static bool parse_alt(struct parse *s, struct alt *alt, bool in_group);

// (?:a|b|c) or (?:a|b|c)?: the last item, or the whole of an alternative. Its alternatives go behind the top-level ones.
static bool parse_group(struct parse *s, struct item *it, struct alt *extra, int *n_extra) {
    it->set = -1;
    it->group = (uint8_t) *n_extra;
    do {
        if (*n_extra == MAX_ALTS) return false;
        struct alt a = {0};
        if (!parse_alt(s, &a, true)) return false;
        extra[(*n_extra)++] = a;
    } while (eat(s, "|"));
    it->n_group = (uint8_t) (*n_extra - it->group);
    return eat(s, ")") && parse_count(s, it) && it->max == 1;
}

static bool parse_item(struct parse *s, struct item *it) {
    if (s->end - s->at > 4 && memcmp(s->at, "((?=", 4) == 0) {
        if (!parse_difference(s, &it->set)) return false;
    } else {
        struct charset set;
        if (!charset_parse(&set, &s->at, s->end)) return false;
        it->set = (int8_t) add_set(s->p, &set);
        if (it->set < 0) return false;
    }
    return parse_count(s, it);
}

static bool parse_alt(struct parse *s, struct alt *alt, bool in_group) {
    while (s->at < s->end && *s->at != '|' && !(in_group && *s->at == ')')) {
        if (eat(s, "(?!\\S)")) {
            alt->not_before_text = true;
            return s->at == s->end || *s->at == '|';
        }
        if (eat(s, "$")) {
            alt->at_end = true;
            return s->at == s->end || *s->at == '|';
        }
        if (alt->n == MAX_ITEMS || !parse_item(s, &alt->items[alt->n])) return false;
        alt->n++;
    }
    return alt->n > 0;
}

// What the first character of an alternative must be in; 0 if it might match nothing or begin with a group.
static uint32_t first_of(const struct alt *alt) {
    uint32_t first = 0;
    for (int i = 0; i < alt->n; i++) {
        if (alt->items[i].set < 0) return 0;
        first |= 1u << alt->items[i].set;
        if (alt->items[i].min) return first;
    }
    return 0;
}

static bool parse_all(struct pattern *p, const char *text) {
    struct parse s = {p, text, text + strlen(text)};
    struct alt *top = calloc(2 * MAX_ALTS, sizeof *top), *extra = top ? top + MAX_ALTS : NULL;
    if (!top) return false;
    int n_top = 0, n_extra = 0;
    bool ok = true;
    do {
        struct alt a = {0};
        struct item group;
        if (eat(&s, "(?:")) {  // a group in front: its alternatives are top-level ones if nothing follows
            ok = parse_group(&s, &group, extra, &n_extra) && group.min == 1 && n_top + group.n_group <= MAX_ALTS &&
                 (s.at == s.end || *s.at == '|');
            for (int i = 0; ok && i < group.n_group; i++) top[n_top++] = extra[group.group + i];
            continue;
        }
        while (ok && s.at < s.end && *s.at != '|') {
            if (eat(&s, "(?:")) {
                ok = a.n < MAX_ITEMS && parse_group(&s, &a.items[a.n], extra, &n_extra) && (s.at == s.end || *s.at == '|');
                a.n++;
            } else if (eat(&s, "(?!\\S)")) {
                a.not_before_text = true;
                ok = s.at == s.end || *s.at == '|';
            } else if (eat(&s, "$")) {
                a.at_end = true;
                ok = s.at == s.end || *s.at == '|';
            } else {
                ok = a.n < MAX_ITEMS && parse_item(&s, &a.items[a.n]);
                a.n++;
            }
        }
        ok = ok && n_top < MAX_ALTS && a.n > 0;
        if (ok) top[n_top++] = a;
    } while (ok && eat(&s, "|"));
    ok = ok && s.at == s.end && n_top > 0;
    // every alternative must eat something, so that a match is never empty
    for (int i = 0; ok && i < n_top; i++) {
        uint32_t least = 0;
        for (int k = 0; k < top[i].n; k++) least |= top[i].items[k].min;
        ok = least > 0;
    }
    if (!ok) {
        free(top);
        return false;
    }
    memmove(top + n_top, extra, (size_t) n_extra * sizeof *top);
    for (int i = 0; i < n_top; i++) {
        for (int k = 0; k < top[i].n; k++) top[i].items[k].group = (uint8_t) (top[i].items[k].group + n_top);
    }
    p->alts = top;
    p->n_top = n_top;
    p->n_alt = n_top + n_extra;
    return true;
}

static enum err build(struct pattern *p, const char *text) {
    p->sets = calloc(CHARSET_MAX_SETS, sizeof *p->sets);
    if (!p->sets) return err_set(ERR_NOMEM, "vocab: no memory for a pattern");
    static const char space[] = "\\s";
    const char *at = space;
    struct charset set;
    if (!charset_parse(&set, &at, space + 2)) return ERR_FAILED;
    p->space = (int8_t) add_set(p, &set);
    if (!parse_all(p, text)) {
        p->kind = GENERAL;
        return regex_new(&p->regex, text);
    }
    p->kind = ITEMS;
    bool any = false;
    for (int i = 0; i < p->n_alt; i++) {
        p->alts[i].first = first_of(&p->alts[i]);
        if (i >= p->n_top) continue;
        any = any || p->alts[i].first == 0;
        p->first |= p->alts[i].first;
    }
    if (any) p->first = 0;
    p->map = charmap_new(p->sets, p->n_set);
    return p->map ? ERR_OK : err_set(ERR_NOMEM, "vocab: no memory for a pattern");
}

enum err pattern_new(struct pattern **out, const char *text) {
    struct pattern *p = calloc(1, sizeof *p);
    if (!p) return err_set(ERR_NOMEM, "vocab: no memory for a pattern");
    enum err e = ERR_OK;
    // digits (AFMoE: numbers of any script and kind) in groups of three, counted from the right
    if (strcmp(text, "\\p{AFMoE_digits}") == 0) {
        p->kind = DIGITS_3;
    } else if (strcmp(text, "\\d{1,3}(?=(?:\\d{3})*\\b)") == 0) {
        p->kind = DIGITS_3_WORD;
    } else if (strcmp(text, "(?=(\\d{3})+(?!\\d))") == 0) {
        p->kind = SPLIT_3;
    } else {
        e = build(p, text);
    }
    if (e == ERR_OK && p->kind != ITEMS && p->kind != GENERAL) {
        const char *digit = p->kind == DIGITS_3 ? "\\p{N}" : "\\d", *at = digit;
        p->sets = calloc(1, sizeof *p->sets);
        if (!p->sets || !charset_parse(p->sets, &at, digit + strlen(digit)))
            e = err_set(ERR_NOMEM, "vocab: no memory for a pattern");
    }
    if (e != ERR_OK) {
        pattern_free(p);
        return e;
    }
    *out = p;
    return ERR_OK;
}

enum err pattern_new_general(struct pattern **out, const char *text) {
    struct pattern *p = calloc(1, sizeof *p);
    if (!p) return err_set(ERR_NOMEM, "vocab: no memory for a pattern");
    p->kind = GENERAL;
    enum err e = regex_new(&p->regex, text);
    if (e != ERR_OK) {
        pattern_free(p);
        return e;
    }
    *out = p;
    return ERR_OK;
}

bool pattern_is_general(const struct pattern *p) { return p->kind == GENERAL; }

void pattern_free(struct pattern *p) {
    if (!p) return;
    regex_free(p->regex);
    charmap_free(p->map);
    free(p->alts);
    free(p->sets);
    free(p);
}

size_t pattern_memory(const struct pattern *p) {
    size_t n = sizeof *p;
    if (p->sets) n += (p->kind == ITEMS || p->kind == GENERAL ? CHARSET_MAX_SETS : 1) * sizeof *p->sets;
    if (p->alts) n += 2 * MAX_ALTS * sizeof *p->alts;
    return n + (p->map ? sizeof *p->map : 0) + (p->regex ? regex_bytes() : 0);
}

// ---- matching

static inline uint32_t sets_at(const struct pattern *p, const char *at, const char *end, int *len) {
    if ((uint8_t) *at < 128) {
        *len = 1;
        return p->map->ascii[(uint8_t) *at];
    }
    uint32_t c = utf8_decode(at, end, len);
    return charmap_get(p->map, c);
}

// Greedy run of a set; at most max characters. *n: how many.
static inline const char *run(const struct pattern *p, uint32_t set, uint32_t max, const char *at, const char *end,
                              uint32_t *n) {
    uint32_t k = 0;
    while (k < max && at < end) {
        int len;
        if (!(sets_at(p, at, end, &len) & set)) break;
        at += len;
        k++;
    }
    *n = k;
    return at;
}

static const char *match_alt(const struct pattern *p, const struct alt *alt, const char *at, const char *end);

static const char *match_group(const struct pattern *p, const struct item *it, const char *at, const char *end) {
    for (int i = 0; i < it->n_group; i++) {
        const char *to = match_alt(p, &p->alts[it->group + i], at, end);
        if (to) return to;
    }
    return it->min == 0 ? at : NULL;
}

static bool ends_well(const struct pattern *p, const struct alt *alt, const char *at, const char *end) {
    int len;
    if (alt->not_before_text && at < end && !(sets_at(p, at, end, &len) >> p->space & 1)) return false;
    return !alt->at_end || at == end || (end - at == 1 && *at == '\n');
}

// End of the match of one alternative at `at`, NULL if it does not match. Groups hold literals and stand last, so they
// nest one deep and need no way back.
static const char *match_alt(const struct pattern *p, const struct alt *alt, const char *at, const char *end) {
    const char *from[MAX_ITEMS], *to[MAX_ITEMS];
    uint32_t count[MAX_ITEMS];
    int i = 0;
    for (;;) {
        bool ok = true;
        for (; i < alt->n; i++) {
            const struct item *it = &alt->items[i];
            if (it->set < 0) {
                const char *e = match_group(p, it, at, end);
                if (!e) {
                    ok = false;
                    break;
                }
                from[i] = to[i] = at = e;
                count[i] = 0;
                continue;
            }
            from[i] = at;
            at = run(p, 1u << it->set, it->max, at, end, &count[i]);
            to[i] = at;
            if (count[i] < it->min) {
                ok = false;
                break;
            }
        }
        if (ok && ends_well(p, alt, at, end)) return at;
        // give back one character of the last item that has one to spare
        int k = (ok ? alt->n : i) - 1;
        while (k >= 0 && (alt->items[k].set < 0 || count[k] <= alt->items[k].min)) k--;
        if (k < 0) return NULL;
        to[k] = utf8_back(from[k], to[k]);
        count[k]--;
        at = to[k];
        i = k + 1;
    }
}

static const char *run_end(const struct pattern *p, const struct alt *alt, const char *at, const char *end) {
    uint32_t n;
    return run(p, 1u << alt->items[0].set, UINT32_MAX, at, end, &n);
}

static bool find_items(const struct pattern *p, const char *from, const char *end, const char **at, const char **to) {
    const char *dead = from;  // X+$ failed before here, and so it would anywhere in the same run of X
    while (from < end) {
        int len;
        uint32_t sets = sets_at(p, from, end, &len);
        for (int i = 0; i < p->n_top && (p->first == 0 || sets & p->first); i++) {
            const struct alt *alt = &p->alts[i];
            if (alt->first && !(sets & alt->first)) continue;
            if (alt->at_end && from < dead) continue;
            const char *e = match_alt(p, alt, from, end);
            if (!e && alt->at_end && alt->n == 1) dead = run_end(p, alt, from, end);
            if (!e) continue;
            *at = from;
            *to = e;
            return true;
        }
        from += len;
    }
    return false;
}

static bool is_digit(const struct pattern *p, const char *at, const char *end, int *len) {
    uint32_t c = utf8_decode(at, end, len);
    return c < 0x80 ? c >= '0' && c <= '9' : charset_has(p->sets, c);
}

// The run of digits at or behind from: *at, *to, number of digits. 0: none.
static size_t find_digits(const struct pattern *p, const char *from, const char *end, const char **at, const char **to) {
    int len;
    while (from < end && !is_digit(p, from, end, &len)) from += len;
    size_t n = 0;
    *at = from;
    for (; from < end && is_digit(p, from, end, &len); from += len) n++;
    *to = from;
    return n;
}

static const char *skip_digits(const char *at, size_t n) {
    while (n--) at += utf8_len((uint8_t) *at);
    return at;
}

// Whether `from` lies inside a run of digits: then we cut there, and a multiple of three is left.
static bool inside_run(const struct pattern *p, const char *start, const char *from, const char *end) {
    int len;
    return from > start && is_digit(p, from, end, &len) && is_digit(p, utf8_back(start, from), from, &len);
}

static bool is_word(uint32_t c) { return c == '_' || charset_is_letter_or_number(c); }

// Groups of three, counted from the right of each run, as matches.
static bool find_groups(const struct pattern *p, const char *start, const char *from, const char *end, const char **at,
                        const char **to) {
    if (inside_run(p, start, from, end)) {
        *at = from;
        *to = skip_digits(from, 3);
        return true;
    }
    for (size_t n; (n = find_digits(p, from, end, at, to)) > 0; from = *to) {
        int len;
        if (p->kind == DIGITS_3_WORD && *to < end && is_word(utf8_decode(*to, end, &len))) continue;
        *to = skip_digits(*at, n % 3 ? n % 3 : 3);
        return true;
    }
    return false;
}

// The same as empty matches between the groups, and before a run that starts with a whole one.
static bool find_cuts(const struct pattern *p, const char *start, const char *from, const char *end, const char **at,
                      const char **to) {
    int len;
    if (inside_run(p, start, from, end)) {
        from = skip_digits(from, 3);
        *at = *to = from;
        if (from < end && is_digit(p, from, end, &len)) return true;
    }
    for (size_t n; (n = find_digits(p, from, end, at, to)) > 0; from = *to) {
        const char *cut = *at;
        if (n % 3) cut = skip_digits(cut, n % 3);
        if (cut == from && n > 3) cut = skip_digits(cut, 3);
        if (cut == from || cut == *to) continue;
        *at = *to = cut;
        return true;
    }
    return false;
}

bool pattern_find(const struct pattern *p, const char *start, const char *from, const char *end, const char **at,
                  const char **to) {
    switch (p->kind) {
        case ITEMS: return find_items(p, from, end, at, to);
        case GENERAL: return regex_find(p->regex, start, from, end, at, to);
        case SPLIT_3: return find_cuts(p, start, from, end, at, to);
        default: return find_groups(p, start, from, end, at, to);
    }
}

// ---- cutting by several patterns

static void enter(struct pattern_cut *cut, int depth, const char *text, const char *end) {
    cut->level[depth].start = cut->level[depth].pos = text;
    cut->level[depth].end = end;
    cut->level[depth].match_at = NULL;
    cut->depth = depth;
}

void pattern_cut_begin(struct pattern_cut *cut, struct pattern *const *patterns, int n, const char *text, const char *end) {
    cut->patterns = patterns;
    cut->n = n;
    enter(cut, 0, text, end);
}

// The next piece of one level: a match or the stretch before one.
static bool next_of(struct pattern_cut *cut, int d, const char **piece, const char **piece_end) {
    const char *pos = cut->level[d].pos, *end = cut->level[d].end;
    if (pos == end) return false;
    const char *at = cut->level[d].match_at, *to = cut->level[d].match_to;
    cut->level[d].match_at = NULL;
    if (!at && !pattern_find(cut->patterns[d], cut->level[d].start, pos, end, &at, &to)) at = to = end;
    *piece = pos;
    if (at > pos) {  // the stretch first; the match is kept for the next call
        *piece_end = at;
        if (to > at) {
            cut->level[d].match_at = at;
            cut->level[d].match_to = to;
        }
    } else {
        *piece_end = to;
    }
    cut->level[d].pos = *piece_end;
    return true;
}

bool pattern_cut_next(struct pattern_cut *cut, const char **piece, const char **piece_end) {
    while (cut->depth >= 0) {
        if (cut->n == 0) {  // no patterns: all of it
            *piece = cut->level[0].pos;
            *piece_end = cut->level[0].end;
            cut->depth = -1;
            return *piece < *piece_end;
        }
        if (!next_of(cut, cut->depth, piece, piece_end)) {
            cut->depth--;
        } else if (cut->depth == cut->n - 1) {
            return true;
        } else {
            enter(cut, cut->depth + 1, *piece, *piece_end);
        }
    }
    return false;
}
