// Regular expressions of schemas as GBNF: alternatives, groups, sets, repetitions, ^ and $ at the ends; characters as JSON strings spell them.
#include "grammar/schema_int.h"

#include <ctype.h>
#include <stdlib.h>

#define MAX_RANGES 64
#define LAST_CHAR 0x10ffffu

struct set {
    struct {
        uint32_t from, to;
    } r[MAX_RANGES];
    int n;
    bool negated;
};

struct regex {
    struct schema *c;
    const char *text, *p;
    int depth;
};

static enum err bad(const struct regex *x, const char *what) {
    return schema_fail(x->c, "at offset %d: %s", (int) (x->p - x->text), what);
}

static enum err add(const struct regex *x, struct set *s, uint32_t from, uint32_t to) {
    if (s->n == MAX_RANGES) return bad(x, "a set of too many ranges");
    s->r[s->n].from = from;
    s->r[s->n++].to = to;
    return ERR_OK;
}

static bool has(const struct set *s, uint32_t cp) {
    for (int i = 0; i < s->n; i++)
        if (cp >= s->r[i].from && cp <= s->r[i].to) return !s->negated;
    return s->negated;
}

// A set as JSON strings spell it: what stands for itself as one set of characters, the rest by escapes.
static void emit_set(const struct set *s, struct str *out) {
    bool any = false;
    str_putc(out, '(');
    for (uint32_t cp = 0; cp < 0x5d; cp++) {
        if ((cp >= 32 && cp != '"' && cp != '\\') || !has(s, cp)) continue;
        if (any) str_puts(out, " | ");
        schema_json_char(out, cp);
        any = true;
    }
    struct str plain = {0};
    if (s->negated) {
        for (int i = 0; i < s->n; i++) {
            schema_set_char(&plain, s->r[i].from);
            str_putc(&plain, '-');
            schema_set_char(&plain, s->r[i].to);
        }
        str_printf(out, "%s[^\\x00-\\x1f\\x22\\x5c%s]", any ? " | " : "", str_text(&plain));
    } else {
        for (int i = 0; i < s->n; i++)
            for (uint32_t from = s->r[i].from; from <= s->r[i].to;) {  // without the three gaps
                if (from < 32) from = 32;
                if (from == '"' || from == '\\') from++;
                uint32_t to = s->r[i].to;
                if (from > to) break;
                if (from < '"' && to >= '"')
                    to = '"' - 1;
                else if (from < '\\' && to >= '\\')
                    to = '\\' - 1;
                schema_set_char(&plain, from);
                str_putc(&plain, '-');
                schema_set_char(&plain, to);
                from = to + 1;
            }
        if (plain.n)
            str_printf(out, "%s[%s]", any ? " | " : "", str_text(&plain));
        else if (!any)
            str_puts(out, "[^\\x00-\\U0010ffff]");
    }
    out->failed |= plain.failed;
    str_free(&plain);
    str_putc(out, ')');
}

static uint32_t take_char(struct regex *x) {
    const unsigned char *s = (const unsigned char *) x->p;
    const int n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    uint32_t cp = n == 1 ? s[0] : n == 2 ? s[0] & 31 : n == 3 ? s[0] & 15 : s[0] & 7;
    for (int i = 1; i < n; i++) cp = cp << 6 | (s[i] & 63);
    x->p += n;
    return cp;
}

static enum err take_hex(struct regex *x, int n, uint32_t *cp) {
    *cp = 0;
    for (int i = 0; i < n; i++, x->p++) {
        if (!isxdigit((unsigned char) *x->p)) return bad(x, "hexadecimal digits are missing");
        *cp = *cp * 16 + (uint32_t) (isdigit((unsigned char) *x->p) ? *x->p - '0' : tolower(*x->p) - 'a' + 10);
    }
    return *cp >= 0xd800 && *cp < 0xe000 ? bad(x, "half of a surrogate pair") : ERR_OK;
}

// Behind a backslash: one character (true in *one), or a class added to s. Classes and their opposites are those of ASCII.
static enum err take_escape(struct regex *x, struct set *s, bool *one, uint32_t *cp) {
    static const struct {
        char name;
        const char *ranges;  // pairs
    } classes[] = {{'d', "09"},     {'D', "\x01/:\x7e"}, {'w', "09AZ__az"}, {'W', "\x01/:@[^``{\x7e"},
                   {'s', "\t\r  "}, {'S', "!\x7e"}};
    const char ch = *x->p;
    *one = false;
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
        if (classes[i].name == ch) {
            x->p++;
            for (const char *r = classes[i].ranges; *r; r += 2) TRY(add(x, s, (unsigned char) r[0], (unsigned char) r[1]));
            return ERR_OK;
        }
    *one = true;
    static const char letters[] = "nrtfv", values[] = "\n\r\t\f\v";
    const char *l = ch ? strchr(letters, ch) : NULL;
    if (!ch) return bad(x, "a backslash at the end");
    if (l) {
        *cp = (unsigned char) values[l - letters];
        x->p++;
    } else if (ch == 'x' || ch == 'u') {
        x->p++;
        return take_hex(x, ch == 'x' ? 2 : 4, cp);
    } else if (isalnum((unsigned char) ch))
        return bad(x, "an escape that has no form here (\\b, back references, properties)");
    else
        *cp = take_char(x);
    return ERR_OK;
}

static enum err take_set(struct regex *x, struct str *out) {
    struct set s = {.n = 0};
    if (*x->p == '^') s.negated = true, x->p++;
    while (*x->p != ']') {
        uint32_t from, to;
        bool one = true;
        if (!*x->p) return bad(x, "a set without its end");
        if (*x->p == '\\') {
            x->p++;
            TRY(take_escape(x, &s, &one, &from));
        } else
            from = take_char(x);
        if (!one) continue;
        to = from;
        if (*x->p == '-' && x->p[1] && x->p[1] != ']') {
            x->p++;
            bool end_one = true;
            if (*x->p == '\\') {
                x->p++;
                TRY(take_escape(x, &s, &end_one, &to));
            } else
                to = take_char(x);
            if (!end_one || to < from) return bad(x, "a range that ends before it begins");
        }
        TRY(add(x, &s, from, to));
    }
    x->p++;
    if (s.n == 0 && !s.negated) return bad(x, "an empty set");
    emit_set(&s, out);
    return ERR_OK;
}

static enum err take_alternatives(struct regex *x, bool top, struct str *out);

static enum err take_group(struct regex *x, struct str *out) {
    if (*x->p == '?') {
        if (x->p[1] == ':')
            x->p += 2;
        else if (x->p[1] == '<' && isalpha((unsigned char) x->p[2])) {
            x->p += strcspn(x->p, ">");
            if (*x->p) x->p++;
        } else
            return bad(x, "looking ahead or behind has no form here");
    }
    if (++x->depth > SCHEMA_MAX_DEPTH) return bad(x, "parentheses nest too deep");
    str_putc(out, '(');
    TRY(take_alternatives(x, false, out));
    str_putc(out, ')');
    x->depth--;
    if (*x->p != ')') return bad(x, "a parenthesis without its end");
    x->p++;
    return ERR_OK;
}

static enum err take_atom(struct regex *x, struct str *out) {
    struct set s = {.n = 0};
    bool one = true;
    uint32_t cp;
    switch (*x->p) {
        case '(': x->p++; return take_group(x, out);
        case '[': x->p++; return take_set(x, out);
        case '.':
            x->p++;
            s.negated = true;
            TRY(add(x, &s, '\n', '\n'));
            TRY(add(x, &s, '\r', '\r'));
            TRY(add(x, &s, 0x2028, 0x2029));
            emit_set(&s, out);
            return ERR_OK;
        case '\\':
            x->p++;
            TRY(take_escape(x, &s, &one, &cp));
            if (!one)
                emit_set(&s, out);
            else
                schema_json_char(out, cp);
            return ERR_OK;
        case '*':
        case '+':
        case '?': return bad(x, "nothing to repeat");
        case '^':
        case '$': return bad(x, "^ and $ have a form only at the ends of the whole");
        default: schema_json_char(out, take_char(x)); return ERR_OK;
    }
}

static enum err take_repeat(struct regex *x, struct str *out) {
    if (*x->p == '*' || *x->p == '+' || *x->p == '?')
        str_putc(out, *x->p++);
    else if (*x->p == '{' && isdigit((unsigned char) x->p[1])) {
        char *end;
        const unsigned long from = strtoul(x->p + 1, &end, 10);
        unsigned long to = from;
        bool open = false;
        if (*end == ',') {
            open = !isdigit((unsigned char) end[1]);
            to = open ? 0 : strtoul(end + 1, &end, 10);
            if (open) end++;
        }
        if (*end != '}' || from > 10000 || to > 10000 || (!open && to < from))
            return bad(x, "a repetition that can't be read, or of more than 10000");
        if (open)
            str_printf(out, "{%lu,}", from);
        else
            str_printf(out, "{%lu,%lu}", from, to);
        x->p = end + 1;
    } else
        return ERR_OK;
    if (*x->p == '?') x->p++;  // sparing ones match the same texts
    if (*x->p == '*' || *x->p == '+' || *x->p == '{') return bad(x, "a repetition of a repetition");
    return ERR_OK;
}

// Alternatives up to the end or a closing parenthesis. At the top each may begin with ^ and end with $; where it doesn't, anything may stand there.
static enum err take_alternatives(struct regex *x, bool top, struct str *out) {
    for (bool first = true;; first = false) {
        if (!first) str_puts(out, " | ");
        bool closed = false;
        if (top && *x->p == '^')
            x->p++;
        else if (top)
            str_puts(out, "char* ");
        size_t n = 0;
        while (*x->p && *x->p != '|' && *x->p != ')') {
            if (top && *x->p == '$' && (!x->p[1] || x->p[1] == '|')) {
                closed = true;
                x->p++;
                break;
            }
            TRY(take_atom(x, out));
            TRY(take_repeat(x, out));
            str_putc(out, ' ');
            n++;
        }
        if (n == 0) str_puts(out, "\"\"");
        if (top && !closed) str_puts(out, " char*");
        if (*x->p != '|') return ERR_OK;
        x->p++;
    }
}

enum err schema_pattern(struct schema *c, const char *pattern, struct str *out) {
    struct regex x = {.c = c, .text = pattern, .p = pattern};
    str_putc(out, '(');
    // ^(...)$ around alternatives belongs to all of them, ^a|b$ to the outer two: read as written
    TRY(take_alternatives(&x, true, out));
    if (*x.p) return bad(&x, "a parenthesis that nothing opened");
    str_putc(out, ')');
    return ERR_OK;
}
