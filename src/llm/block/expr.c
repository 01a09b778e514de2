// Expressions of the architecture tables ("E,H*D+2*K*D", "i<lead", "1.4/sqrt(layers)"): shapes, defaults and conditions
// stay readable beside the fact sheets, and one evaluator serves loader, planner, quantizer and converter.
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "block/hparams.h"

struct parser {
    const char *text, *p;
    const struct hparams *hp;
    int il, depth;
    bool bad, by_layer;
};

static double parse_or(struct parser *s);

static void skip_space(struct parser *s) {
    while (*s->p == ' ') s->p++;
}

// tok: one character or two.
static bool take(struct parser *s, const char *tok) {
    skip_space(s);
    if (s->p[0] != tok[0] || (tok[1] && s->p[1] != tok[1])) return false;
    s->p += tok[1] ? 2 : 1;
    return true;
}

static double call(struct parser *s, const char *name, size_t n) {
    const double a = parse_or(s);
    double b = 0;
    const bool two = take(s, ",");
    if (two) b = parse_or(s);
    if (!take(s, ")")) s->bad = true;
    if (n == 4 && !strncmp(name, "sqrt", 4)) return sqrt(a);
    if (n == 5 && !strncmp(name, "floor", 5)) return floor(a);
    if (n == 3 && !strncmp(name, "max", 3) && two) return a > b ? a : b;
    if (n == 3 && !strncmp(name, "min", 3) && two) return a < b ? a : b;
    s->bad = true;
    return 0;
}

static double symbol(struct parser *s, const char *name, size_t n) {
    if (n == 1 && *name == 'i') {
        s->by_layer = true;
        return s->il < 0 ? 0 : s->il;
    }
    for (int f = 0; f < HP_COUNT; f++) {
        const struct hp_info *info = hparams_info((enum hp_field) f);
        if (info->symbol[0] != name[0] || strncmp(info->symbol, name, n) != 0 || info->symbol[n]) continue;
        s->by_layer |= info->kind == HP_INTS || info->kind == HP_FLTS;
        return hparams_get(s->hp, (enum hp_field) f, s->il);
    }
    s->bad = true;
    return 0;
}

static double parse_atom(struct parser *s) {
    skip_space(s);
    if (take(s, "(")) {
        const double v = parse_or(s);
        if (!take(s, ")")) s->bad = true;
        return v;
    }
    if (take(s, "-")) return -parse_atom(s);
    if (*s->p == '!' && s->p[1] != '=') {
        s->p++;
        return parse_atom(s) == 0;
    }
    if (isdigit((unsigned char) *s->p) || *s->p == '.') {
        char *end;
        const double v = strtod(s->p, &end);
        s->p = end;
        return v;
    }
    const char *name = s->p;
    while (isalnum((unsigned char) *s->p) || *s->p == '_') s->p++;
    const size_t n = (size_t) (s->p - name);
    if (!n) {
        s->bad = true;
        return 0;
    }
    return take(s, "(") ? call(s, name, n) : symbol(s, name, n);
}

static double parse_product(struct parser *s) {
    double v = parse_atom(s);
    for (;;) {
        if (take(s, "*")) {
            v *= parse_atom(s);
        } else if (take(s, "/")) {
            const double d = parse_atom(s);
            v = d != 0 ? v / d : 0;
        } else if (take(s, "%")) {
            const double d = parse_atom(s);
            v = d != 0 ? fmod(v, d) : 0;
        } else {
            return v;
        }
    }
}

static double parse_sum(struct parser *s) {
    double v = parse_product(s);
    for (;;) {
        if (take(s, "+"))
            v += parse_product(s);
        else if (take(s, "-"))
            v -= parse_product(s);
        else
            return v;
    }
}

static double parse_compare(struct parser *s) {
    double v = parse_sum(s);
    if (take(s, "==")) return v == parse_sum(s);
    if (take(s, "!=")) return v != parse_sum(s);
    if (take(s, "<=")) return v <= parse_sum(s);
    if (take(s, ">=")) return v >= parse_sum(s);
    if (take(s, "<")) return v < parse_sum(s);
    if (take(s, ">")) return v > parse_sum(s);
    return v;
}

static double parse_and(struct parser *s) {
    double v = parse_compare(s);
    while (take(s, "&&")) {
        const double w = parse_compare(s);
        v = v != 0 && w != 0;
    }
    return v;
}

static double parse_or(struct parser *s) {
    if (++s->depth > 32) {
        s->bad = true;
        return 0;
    }
    double v = parse_and(s);
    while (take(s, "||")) {
        const double w = parse_and(s);
        v = v != 0 || w != 0;
    }
    s->depth--;
    return v;
}

enum err expr_eval(const char *expr, const struct hparams *hp, int il, double *out) {
    bool by_layer = false;
    return expr_eval_layer(expr, hp, il, out, &by_layer);
}

enum err expr_eval_layer(const char *expr, const struct hparams *hp, int il, double *out, bool *by_layer) {
    struct parser s = {.text = expr, .p = expr, .hp = hp, .il = il};
    *out = parse_or(&s);
    *by_layer |= s.by_layer;
    skip_space(&s);
    if (s.bad || *s.p)
        return err_set(ERR_FAILED, "expression '%s' of an architecture's table can't be read at offset %d", expr,
                       (int) (s.p - expr));
    return ERR_OK;
}

bool expr_part(const char *list, int i, char *buf, int n_buf) {
    int depth = 0, part = 0, n = 0;
    if (!*list) return false;
    for (const char *p = list;; p++) {
        if (*p == '(') depth++;
        if (*p == ')') depth--;
        if (!*p || (*p == ',' && depth == 0)) {
            if (part == i) {
                buf[n] = 0;
                return true;
            }
            if (!*p) return false;
            part++;
            continue;
        }
        if (part == i && n < n_buf - 1) buf[n++] = *p;
    }
}
