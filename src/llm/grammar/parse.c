// Reading GBNF. Parentheses nest on a stack of our own, names go through a table, and what a repetition would write out is
// counted before it is written; a mistake is answered with its line and column.
//
//   rule    name ::= alternatives           "::=" may be followed by newlines; a rule ends with its line
//   text    "..." with \n \t \r \\ \" \[ \] \xHH \uHHHH \UHHHHHHHH      [a-z] [^"\\] .      # comment
//   tokens  <name> or <[id]>, and !<...> for any other token
//   groups  ( ... | ... )      repeats * + ? {m} {m,} {m,n}
#include "grammar/grammar_int.h"
#include "vocab/utf8.h"
#include <stdlib.h>
#include <string.h>

struct name {
    const char *p;
    size_t len;
    uint32_t rule;
    const char *used_at;
};

// An open parenthesis, or the rule itself at the bottom.
struct group {
    uint32_t rule;
    size_t base;       // where its current alternative starts among the pending elements
    size_t first_alt;  // where its alternatives start among the pending ones
};

struct parser {
    struct grammar *g;
    const struct llama_vocab *vocab;
    const char *text, *at, *end;
    struct name *names;
    size_t n_name, cap_name;
    uint32_t *slots;  // index over names
    size_t n_slot;
    struct elem *pending;  // elements of unfinished alternatives, innermost last
    size_t n_pending, cap_pending;
    uint32_t *alts;  // finished alternatives of unfinished groups
    size_t n_alts, cap_alts;
    struct group groups[GRAMMAR_MAX_DEPTH + 1];
    int depth;
    struct range *ranges;
    size_t n_range, cap_range;
};

static enum err fail(const struct parser *s, const char *at, const char *what) {
    size_t line = 1, column = 1;
    for (const char *p = s->text; p < at; p++) {
        column = *p == '\n' ? 1 : column + 1;
        line += *p == '\n';
    }
    return err_set(ERR_FORMAT, "grammar: line %zu, column %zu: %s", line, column, what);
}

// ERR_FORMAT without a sentence means that the grammar grew too large.
static enum err sized(const struct parser *s, enum err e) {
    return e == ERR_FORMAT ? fail(s, s->at, "the grammar is too large") : e;
}

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

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static void skip(struct parser *s, bool newlines) {
    while (s->at < s->end) {
        char c = *s->at;
        if (c == '#') {
            while (s->at < s->end && *s->at != '\n' && *s->at != '\r') s->at++;
        } else if (c == ' ' || c == '\t' || (newlines && (c == '\n' || c == '\r'))) {
            s->at++;
        } else {
            break;
        }
    }
}

static bool looking_at(const struct parser *s, const char *text) {
    size_t n = strlen(text);
    return (size_t) (s->end - s->at) >= n && memcmp(s->at, text, n) == 0;
}

// ---- names

static size_t name_slot(const struct parser *s, const char *p, size_t len) {
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < len; i++) h = (h ^ (uint8_t) p[i]) * 1099511628211u;
    size_t i = (h ^ h >> 32) & (s->n_slot - 1);
    for (; s->slots[i]; i = (i + 1) & (s->n_slot - 1)) {
        const struct name *n = &s->names[s->slots[i] - 1];
        if (n->len == len && memcmp(n->p, p, len) == 0) break;
    }
    return i;
}

static enum err grow_slots(struct parser *s) {
    size_t n = s->n_slot ? s->n_slot * 2 : 128;
    uint32_t *slots = calloc(n, sizeof *slots);
    if (!slots) return err_set(ERR_NOMEM, "grammar: no memory for %zu names", n);
    free(s->slots);
    s->slots = slots;
    s->n_slot = n;
    for (size_t i = 0; i < s->n_name; i++) s->slots[name_slot(s, s->names[i].p, s->names[i].len)] = (uint32_t) i + 1;
    return ERR_OK;
}

static enum err rule_named(struct parser *s, const char *p, size_t len, uint32_t *rule) {
    if ((s->n_name + 1) * 2 > s->n_slot) TRY(grow_slots(s));
    size_t i = name_slot(s, p, len);
    if (!s->slots[i]) {
        TRY(reserve(&s->names, &s->cap_name, s->n_name, sizeof *s->names));
        TRY(sized(s, grammar_add_rule(s->g, rule)));
        s->names[s->n_name++] = (struct name){p, len, *rule, p};
        s->slots[i] = (uint32_t) s->n_name;
    }
    *rule = s->names[s->slots[i] - 1].rule;
    return ERR_OK;
}

static enum err parse_name(struct parser *s, const char **p, size_t *len) {
    *p = s->at;
    while (s->at < s->end && is_word(*s->at)) s->at++;
    *len = (size_t) (s->at - *p);
    return *len ? ERR_OK : fail(s, s->at, "a rule's name is expected");
}

// ---- characters

static enum err parse_hex(struct parser *s, int n, uint32_t *c) {
    *c = 0;
    for (int i = 0; i < n; i++) {
        char x = s->at < s->end ? *s->at : 0;
        int d = x >= '0' && x <= '9' ? x - '0' : (x | 32) >= 'a' && (x | 32) <= 'f' ? (x | 32) - 'a' + 10 : -1;
        if (d < 0) return fail(s, s->at, "a hexadecimal digit is expected");
        *c = *c << 4 | (uint32_t) d;
        s->at++;
    }
    return *c <= 0x10ffff && (*c < 0xd800 || *c > 0xdfff) ? ERR_OK : fail(s, s->at, "there is no such character");
}

static enum err parse_char(struct parser *s, uint32_t *c) {
    if (s->at == s->end) return fail(s, s->at, "the grammar ends inside a text or a set of characters");
    if (*s->at != '\\') {
        int len;
        const char *p = s->at;
        *c = utf8_decode(p, s->end, &len);
        s->at += len;
        return *c == UTF8_BAD && len == 1 ? fail(s, p, "this is not UTF-8") : ERR_OK;
    }
    s->at++;
    char e = s->at < s->end ? *s->at : 0;
    s->at++;
    switch (e) {
        case 'x': return parse_hex(s, 2, c);
        case 'u': return parse_hex(s, 4, c);
        case 'U': return parse_hex(s, 8, c);
        case 'n': *c = '\n'; return ERR_OK;
        case 't': *c = '\t'; return ERR_OK;
        case 'r': *c = '\r'; return ERR_OK;
        case '\\':
        case '"':
        case '[':
        case ']':
        case '-':
        case '^': *c = (uint8_t) e; return ERR_OK;
        default:
            s->at--;
            return fail(s, s->at, "an escape is expected: \\n \\t \\r \\\\ \\\" \\[ \\] \\xHH \\uHHHH \\UHHHHHHHH");
    }
}

static enum err push(struct parser *s, struct elem e) {
    if (s->n_pending >= GRAMMAR_MAX_ELEMS) return fail(s, s->at, "the grammar is too large");
    TRY(reserve(&s->pending, &s->cap_pending, s->n_pending, sizeof *s->pending));
    s->pending[s->n_pending++] = e;
    return ERR_OK;
}

static enum err push_byte(struct parser *s, uint8_t b) {
    struct byte_set set = {{0}};
    struct elem e = {ELEM_BYTES, 0};
    byte_set_add(&set, b, b);
    TRY(sized(s, grammar_add_set(s->g, set, &e.value)));
    return push(s, e);
}

static enum err parse_text(struct parser *s) {
    const char *open = s->at++;
    while (s->at < s->end && *s->at != '"') {
        if (*s->at == '\n') return fail(s, open, "this text has no end on its line");
        uint32_t c;
        char out[4];
        TRY(parse_char(s, &c));
        int n = utf8_encode(c, out);
        for (int i = 0; i < n; i++) TRY(push_byte(s, (uint8_t) out[i]));
    }
    if (s->at == s->end) return fail(s, open, "this text has no end");
    s->at++;
    return ERR_OK;
}

static int by_start(const void *a, const void *b) {
    uint32_t x = ((const struct range *) a)->lo, y = ((const struct range *) b)->lo;
    return (x > y) - (x < y);
}

// Sorted and joined; turned round if negated.
static void tidy_ranges(struct parser *s, bool negated) {
    if (s->n_range > 1) qsort(s->ranges, s->n_range, sizeof *s->ranges, by_start);
    size_t n = 0;
    for (size_t i = 0; i < s->n_range; i++) {
        struct range r = s->ranges[i];
        if (n > 0 && r.lo <= s->ranges[n - 1].hi + 1) {
            if (r.hi > s->ranges[n - 1].hi) s->ranges[n - 1].hi = r.hi;
        } else {
            s->ranges[n++] = r;
        }
    }
    s->n_range = n;
    if (!negated) return;
    uint32_t from = 0;
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        struct range r = s->ranges[i];
        if (r.lo > from) s->ranges[k++] = (struct range){from, r.lo - 1};
        from = r.hi + 1;
    }
    if (from <= 0x10ffff) s->ranges[k++] = (struct range){from, 0x10ffff};
    s->n_range = k;
}

static enum err push_ranges(struct parser *s, const char *open) {
    if (s->n_range == 0) return fail(s, open, "this set of characters is empty");
    struct elem e;
    TRY(sized(s, grammar_char_elem(s->g, s->ranges, s->n_range, &e)));
    return push(s, e);
}

static enum err parse_class(struct parser *s) {
    const char *open = s->at++;
    bool negated = s->at < s->end && *s->at == '^';
    if (negated) s->at++;
    s->n_range = 0;
    while (s->at < s->end && *s->at != ']') {
        struct range r;
        const char *from = s->at;
        TRY(parse_char(s, &r.lo));
        r.hi = r.lo;
        if (s->end - s->at > 1 && *s->at == '-' && s->at[1] != ']') {
            s->at++;
            TRY(parse_char(s, &r.hi));
        }
        if (r.hi < r.lo) return fail(s, from, "this range runs backwards");
        // one more than there are, for the rest behind the last when negated
        TRY(reserve(&s->ranges, &s->cap_range, s->n_range + 1, sizeof *s->ranges));
        s->ranges[s->n_range++] = r;
    }
    if (s->at == s->end) return fail(s, open, "this set of characters has no end");
    s->at++;
    TRY(reserve(&s->ranges, &s->cap_range, s->n_range + 1, sizeof *s->ranges));
    tidy_ranges(s, negated);
    return push_ranges(s, open);
}

static enum err parse_any(struct parser *s) {
    const char *open = s->at++;
    TRY(reserve(&s->ranges, &s->cap_range, 1, sizeof *s->ranges));
    s->ranges[0] = (struct range){0, 0x10ffff};
    s->n_range = 1;
    return push_ranges(s, open);
}

// ---- tokens

static enum err parse_token(struct parser *s, bool negated) {
    const char *open = s->at++;
    const char *close = memchr(s->at, '>', (size_t) (s->end - s->at));
    if (!close) return fail(s, open, "this token has no end");
    struct elem e = {negated ? ELEM_NOT_TOKEN : ELEM_TOKEN, 0};
    if (*s->at == '[') {
        uint64_t id = 0;
        const char *p = s->at + 1;
        while (p < close && *p >= '0' && *p <= '9' && id < INT32_MAX) id = id * 10 + (uint64_t) (*p++ - '0');
        if (p == s->at + 1 || p + 1 != close || *p != ']') return fail(s, p, "a token's number is expected: <[123]>");
        if (id >= INT32_MAX || (s->vocab && id >= (uint64_t) llama_vocab_n_tokens(s->vocab)))
            return fail(s, open, "there is no such token");
        e.value = (uint32_t) id;
    } else {
        llama_token t[2];
        size_t len = (size_t) (close + 1 - open);
        if (!s->vocab || len > 1024 || llama_tokenize(s->vocab, open, (int32_t) len, t, 2, false, true) != 1) {
            return fail(s, open, "this is not one token of the vocabulary");
        }
        e.value = (uint32_t) t[0];
    }
    s->g->has_tokens = true;
    s->at = close + 1;
    return push(s, e);
}

// ---- groups and repeats

static enum err open_group(struct parser *s, uint32_t rule) {
    if (s->depth == GRAMMAR_MAX_DEPTH) return fail(s, s->at, "parentheses nest too deep");
    s->groups[s->depth++] = (struct group){rule, s->n_pending, s->n_alts};
    return ERR_OK;
}

// Moves elements from `from` on into the grammar as one alternative.
static enum err store(struct parser *s, size_t from, uint32_t *start) {
    *start = (uint32_t) s->g->n_elem;
    for (size_t i = from; i < s->n_pending; i++) TRY(sized(s, grammar_add_elem(s->g, s->pending[i])));
    s->n_pending = from;
    return sized(s, grammar_add_elem(s->g, (struct elem){ELEM_END, 0}));
}

static enum err end_alternative(struct parser *s) {
    uint32_t start;
    TRY(store(s, s->groups[s->depth - 1].base, &start));
    TRY(reserve(&s->alts, &s->cap_alts, s->n_alts, sizeof *s->alts));
    s->alts[s->n_alts++] = start;
    return ERR_OK;
}

static enum err close_group(struct parser *s) {
    TRY(end_alternative(s));
    const struct group *gr = &s->groups[--s->depth];
    uint32_t first = (uint32_t) s->g->n_alt;
    for (size_t i = gr->first_alt; i < s->n_alts; i++) TRY(grammar_add_alt(s->g, s->alts[i]));
    s->g->rules[gr->rule] = (struct rule){first, (uint32_t) (s->n_alts - gr->first_alt)};
    s->n_alts = gr->first_alt;
    return ERR_OK;
}

// rule ::= x rest | (nothing), where rest UINT32_MAX is the rule itself and UINT32_MAX - 1 nothing.
static enum err add_optional(struct parser *s, struct elem x, uint32_t rest, uint32_t *rule) {
    struct grammar *g = s->g;
    TRY(sized(s, grammar_add_rule(g, rule)));
    uint32_t first = (uint32_t) g->n_alt;
    TRY(grammar_add_alt(g, (uint32_t) g->n_elem));
    TRY(sized(s, grammar_add_elem(g, x)));
    if (rest != UINT32_MAX - 1)
        TRY(sized(s, grammar_add_elem(g, (struct elem){ELEM_RULE, rest == UINT32_MAX ? *rule : rest})));
    TRY(sized(s, grammar_add_elem(g, (struct elem){ELEM_END, 0})));
    TRY(grammar_add_alt(g, (uint32_t) g->n_elem - 1));
    g->rules[*rule] = (struct rule){first, 2};
    return ERR_OK;
}

// What was pushed since `from` becomes one element.
static enum err fold(struct parser *s, size_t from, struct elem *x) {
    if (s->n_pending == from + 1) {
        *x = s->pending[--s->n_pending];
        return ERR_OK;
    }
    uint32_t start, rule;
    TRY(sized(s, grammar_add_rule(s->g, &rule)));
    TRY(store(s, from, &start));
    uint32_t first = (uint32_t) s->g->n_alt;
    TRY(grammar_add_alt(s->g, start));
    s->g->rules[rule] = (struct rule){first, 1};
    *x = (struct elem){ELEM_RULE, rule};
    return ERR_OK;
}

#define NO_MAX UINT64_MAX

static enum err repeat(struct parser *s, size_t from, uint64_t min, uint64_t max) {
    struct elem x;
    uint32_t rule = UINT32_MAX - 1;
    TRY(fold(s, from, &x));
    if (min > GRAMMAR_MAX_ELEMS || (max != NO_MAX && max - min > GRAMMAR_MAX_ELEMS))
        return fail(s, s->at, "the grammar is too large");
    for (uint64_t i = 0; i < min; i++) TRY(push(s, x));
    if (max == NO_MAX) {
        TRY(add_optional(s, x, UINT32_MAX, &rule));
    } else {
        for (uint64_t i = min; i < max; i++) TRY(add_optional(s, x, rule, &rule));
    }
    return rule == UINT32_MAX - 1 ? ERR_OK : push(s, (struct elem){ELEM_RULE, rule});
}

static bool parse_count(struct parser *s, uint64_t *n) {
    const char *from = s->at;
    for (*n = 0; s->at < s->end && *s->at >= '0' && *s->at <= '9' && *n < 1u << 30; s->at++)
        *n = *n * 10 + (uint64_t) (*s->at - '0');
    return s->at > from;
}

static enum err parse_braces(struct parser *s, uint64_t *min, uint64_t *max) {
    const char *open = s->at++;
    skip(s, false);
    bool has_min = parse_count(s, min), has_max;
    *max = *min;
    skip(s, false);
    if (s->at < s->end && *s->at == ',') {
        s->at++;
        skip(s, false);
        has_max = parse_count(s, max);
        if (!has_max) *max = NO_MAX;
        if (!has_min) *min = 0;
        has_min = has_min || has_max;
        skip(s, false);
    }
    if (!has_min || s->at == s->end || *s->at != '}') return fail(s, s->at, "a repetition is expected: {m}, {m,} or {m,n}");
    s->at++;
    return *max >= *min ? ERR_OK : fail(s, open, "this repetition has a maximum below its minimum");
}

static enum err parse_repeat(struct parser *s, size_t from) {
    uint64_t min = 0, max = NO_MAX;
    char c = s->at < s->end ? *s->at : 0;
    if (c != '*' && c != '+' && c != '?' && c != '{') return ERR_OK;
    if (c == '{') {
        TRY(parse_braces(s, &min, &max));
    } else {
        s->at++;
        if (c == '+') min = 1;
        if (c == '?') max = 1;
    }
    if (s->n_pending == from) return ERR_OK;  // an empty text, any number of times
    return repeat(s, from, min, max);
}

// ---- rules

static bool starts_rule(const struct parser *s) {
    struct parser ahead = *s;
    while (ahead.at < ahead.end && is_word(*ahead.at)) ahead.at++;
    if (ahead.at == s->at) return false;
    skip(&ahead, false);
    return looking_at(&ahead, "::=");
}

// One element with its repetition, or a parenthesis, or a bar. *more: whether the rule goes on.
static enum err parse_item(struct parser *s, bool *more) {
    size_t from = s->n_pending;
    char c = s->at < s->end ? *s->at : 0;
    bool inner = s->depth > 1;
    *more = true;
    if (c == '|') {
        s->at++;
        TRY(end_alternative(s));
        skip(s, true);
        return ERR_OK;
    }
    if (c == '(') {
        uint32_t rule;
        TRY(sized(s, grammar_add_rule(s->g, &rule)));
        TRY(open_group(s, rule));
        s->at++;
        skip(s, true);
        return ERR_OK;
    }
    if (c == ')' && inner) {
        uint32_t rule = s->groups[s->depth - 1].rule;
        s->at++;
        TRY(close_group(s));
        from = s->n_pending;
        TRY(push(s, (struct elem){ELEM_RULE, rule}));
    } else if (c == '"') {
        TRY(parse_text(s));
    } else if (c == '[') {
        TRY(parse_class(s));
    } else if (c == '.') {
        TRY(parse_any(s));
    } else if (c == '<') {
        TRY(parse_token(s, false));
    } else if (c == '!' && s->end - s->at > 1 && s->at[1] == '<') {
        s->at++;
        TRY(parse_token(s, true));
    } else if (is_word(c) && !(inner && starts_rule(s))) {
        const char *p;
        size_t len;
        struct elem e = {ELEM_RULE, 0};
        TRY(parse_name(s, &p, &len));
        TRY(rule_named(s, p, len, &e.value));
        TRY(push(s, e));
    } else {
        *more = false;
        return inner ? fail(s, s->at, "')' is missing") : ERR_OK;
    }
    inner = s->depth > 1;
    skip(s, inner);
    while (s->at < s->end && *s->at && strchr("*+?{", *s->at)) {
        TRY(parse_repeat(s, from));
        skip(s, inner);
    }
    return ERR_OK;
}

static enum err parse_rule(struct parser *s) {
    const char *p;
    size_t len;
    uint32_t rule;
    TRY(parse_name(s, &p, &len));
    TRY(rule_named(s, p, len, &rule));
    if (s->g->rules[rule].n) return fail(s, p, "this rule was defined before");
    skip(s, false);
    if (!looking_at(s, "::=")) return fail(s, s->at, "'::=' is expected");
    s->at += 3;
    skip(s, true);
    TRY(open_group(s, rule));
    for (bool more = true; more;) {
        TRY(parse_item(s, &more));
        if (s->depth == 1 && s->at < s->end && (*s->at == '\n' || *s->at == '\r')) break;
    }
    if (s->depth > 1) return fail(s, s->at, "')' is missing");
    TRY(close_group(s));
    if (s->at < s->end && *s->at != '\n' && *s->at != '\r') return fail(s, s->at, "the end of the line is expected");
    skip(s, true);
    return ERR_OK;
}

static enum err check(struct parser *s, const char *root) {
    char what[160];
    for (size_t i = 0; i < s->n_name; i++) {
        const struct name *n = &s->names[i];
        if (s->g->rules[n->rule].n) continue;
        snprintf(what, sizeof what, "rule '%.*s' is not defined", n->len < 80 ? (int) n->len : 80, n->p);
        return fail(s, n->used_at, what);
    }
    size_t i = s->n_slot ? name_slot(s, root, strlen(root)) : 0;
    if (!s->n_slot || !s->slots[i]) return err_set(ERR_FORMAT, "grammar: there is no rule '%s' to begin with", root);
    s->g->root = s->names[s->slots[i] - 1].rule;
    bool found = false;
    uint8_t *bad = calloc(s->g->n_rule, 1);
    if (!bad) return err_set(ERR_NOMEM, "grammar: no memory for %zu rules", s->g->n_rule);
    enum err e = grammar_left_recursive(s->g, bad, &found);
    for (size_t k = 0; e == ERR_OK && found && k < s->n_name; k++) {
        const struct name *n = &s->names[k];
        if (!bad[n->rule]) continue;
        snprintf(what, sizeof what, "rule '%.*s' comes to itself without any text between (left recursion)",
                 n->len < 60 ? (int) n->len : 60, n->p);
        e = fail(s, n->used_at, what);
    }
    free(bad);
    return e;
}

static enum err parse(struct parser *s, const char *root) {
    skip(s, true);
    while (s->at < s->end) TRY(parse_rule(s));
    TRY(check(s, root));
    grammar_make_classes(s->g);
    return ERR_OK;
}

enum err grammar_new(struct grammar **out, const char *text, const char *root, const struct llama_vocab *vocab) {
    if (!text || !root) return err_set(ERR_INVALID, "grammar: the %s is NULL", text ? "root" : "grammar");
    size_t len = strlen(text);
    struct grammar *g = calloc(1, sizeof *g);
    struct parser *s = calloc(1, sizeof *s);
    enum err e = g && s ? ERR_OK : err_set(ERR_NOMEM, "grammar: no memory");
    if (e == ERR_OK) {
        atomic_init(&g->refs, 1);
        *s = (struct parser){.g = g, .vocab = vocab, .text = text, .at = text, .end = text + len};
        e = parse(s, root);
        free(s->names);
        free(s->slots);
        free(s->pending);
        free(s->alts);
        free(s->ranges);
    }
    free(s);
    if (e == ERR_OK) {
        *out = g;
    } else if (g) {
        atomic_store(&g->refs, 1);
        grammar_free(g);
    }
    return e;
}

struct grammar *grammar_ref(struct grammar *g) {
    atomic_fetch_add(&g->refs, 1);
    return g;
}

void grammar_free(struct grammar *g) {
    if (!g || atomic_fetch_sub(&g->refs, 1) > 1) return;
    free(g->elems);
    free(g->alts);
    free(g->rules);
    free(g->sets);
    free(g);
}
