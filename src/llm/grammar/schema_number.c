// Numbers between bounds, digit by digit.
#include "grammar/schema_int.h"

#include <inttypes.h>
#include <math.h>

#define MOST INT64_C(9999999999999999)  // 16 digits, as many as numbers without bounds have

// Strings of n digits from a to b.
static void digits(const char *a, const char *b, int n, struct str *out) {
    if (n == 0) {
        str_puts(out, "\"\"");
        return;
    }
    bool zeros = true, nines = true;
    for (int i = 0; i < n; i++) zeros &= a[i] == '0', nines &= b[i] == '9';
    if (zeros && nines) {
        str_printf(out, "[0-9]{%d}", n);
        return;
    }
    if (a[0] == b[0]) {
        str_printf(out, "\"%c\" ", a[0]);
        if (n > 1) digits(a + 1, b + 1, n - 1, out);
        return;
    }
    char low[24], high[24];
    memset(low, '0', sizeof(low));
    memset(high, '9', sizeof(high));
    char from = a[0], to = b[0];
    bool any = false;
    str_putc(out, '(');
    if (!zeros && n > 1) {
        str_printf(out, "\"%c\" ", from++);
        digits(a + 1, high, n - 1, out);
        any = true;
    }
    const bool last = !nines && n > 1;
    if (last) to--;
    if (from <= to) {
        str_printf(out, "%s[%c-%c]", any ? " | " : "", from, to);
        if (n > 1) str_printf(out, " [0-9]{%d}", n - 1);
        any = true;
    }
    if (last) {
        str_printf(out, "%s\"%c\" ", any ? " | " : "", b[0]);
        digits(low, b + 1, n - 1, out);
    }
    str_putc(out, ')');
}

// 0 <= lo <= hi <= MOST.
static void naturals(int64_t lo, int64_t hi, struct str *out) {
    bool any = false;
    str_putc(out, '(');
    for (int64_t from = lo; from <= hi;) {
        char a[24], b[24];
        const int n = snprintf(a, sizeof(a), "%" PRId64, from);
        int64_t end = 1;
        for (int i = 0; i < n; i++) end *= 10;
        const int64_t to = end - 1 < hi ? end - 1 : hi;
        snprintf(b, sizeof(b), "%" PRId64, to);
        if (any) str_puts(out, " | ");
        digits(a, b, n, out);
        any = true;
        from = to + 1;
    }
    str_putc(out, ')');
}

void schema_integers(int64_t lo, int64_t hi, struct str *out) {
    if (lo < -MOST) lo = -MOST;
    if (hi > MOST) hi = MOST;
    bool any = false;
    str_putc(out, '(');
    if (lo < 0) {
        str_puts(out, "\"-\" ");
        naturals(hi < 0 ? -hi : 1, -lo, out);
        any = true;
    }
    if (hi >= 0) {
        if (any) str_puts(out, " | ");
        naturals(lo > 0 ? lo : 0, hi, out);
    }
    str_putc(out, ')');
}

enum err schema_bounds(struct schema *c, json_t *s, int64_t *lo, int64_t *hi) {
    static const struct {
        const char *key;
        bool low, open;
    } of[] = {{"minimum", true, false},
              {"exclusiveMinimum", true, true},
              {"maximum", false, false},
              {"exclusiveMaximum", false, true}};
    *lo = INT64_MIN;
    *hi = INT64_MAX;
    for (size_t i = 0; i < 4; i++) {
        json_t *v = json_object_get(s, of[i].key);
        if (!v) continue;
        if (!json_is_number(v)) return schema_fail(c, "'%s' is no number", of[i].key);
        const double x = json_number_value(v);
        if (!(fabs(x) <= (double) MOST)) return schema_fail(c, "'%s' has more than 16 digits", of[i].key);
        if (of[i].low) {
            const int64_t n = of[i].open ? (int64_t) floor(x) + 1 : (int64_t) ceil(x);
            if (n > *lo) *lo = n;
        } else {
            const int64_t n = of[i].open ? (int64_t) ceil(x) - 1 : (int64_t) floor(x);
            if (n < *hi) *hi = n;
        }
    }
    return *lo <= *hi ? ERR_OK : schema_fail(c, "no whole number lies between its bounds");
}

#define FRACTION "(\".\" [0-9]{1,16})?"
#define SOME_FRACTION "\".\" \"0\"{0,9} [1-9] [0-9]{0,6}"
#define NO_FRACTION "(\".\" \"0\"{1,16})?"

// Numbers without a sign from lo to hi (whole; hi < 0: no end), their ends in or not.
static void decimals(int64_t lo, bool lo_open, int64_t hi, bool hi_open, struct str *out) {
    bool any = false;
    str_putc(out, '(');
    const int64_t last = hi < 0 ? MOST : hi - 1;  // the last whole number with anything behind it
    int64_t from = lo;
    if (lo_open && from <= last) {
        naturals(from, from, out);
        str_puts(out, " " SOME_FRACTION);
        from++;
        any = true;
    }
    if (from <= last) {
        if (any) str_puts(out, " | ");
        naturals(from, last, out);
        str_puts(out, " " FRACTION);
        any = true;
    }
    if (hi >= 0 && !hi_open && !(lo_open && lo == hi)) {
        if (any) str_puts(out, " | ");
        naturals(hi, hi, out);
        str_puts(out, " " NO_FRACTION);
    }
    str_putc(out, ')');
}

// One end: the stricter of two keywords.
static enum err end_of(struct schema *c, json_t *s, const char *closed, const char *open, double sign, double *at,
                       bool *is_open, bool *given) {
    json_t *a = json_object_get(s, closed), *b = json_object_get(s, open);
    *given = a || b;
    if ((a && !json_is_number(a)) || (b && !json_is_number(b)))
        return schema_fail(c, "'%s' or '%s' is no number", closed, open);
    const double x = json_number_value(a), y = json_number_value(b);
    *is_open = b && (!a || y * sign >= x * sign);
    *at = *is_open ? y : x;
    if (!*given) return ERR_OK;
    if (*at != floor(*at) || fabs(*at) > (double) MOST)
        return schema_fail(c, "bounds of numbers must be whole and have at most 16 digits; %g is not", *at);
    return ERR_OK;
}

enum err schema_numbers(struct schema *c, json_t *s, struct str *out) {
    double lo, hi;
    bool lo_open, hi_open, has_lo, has_hi, any = false;
    TRY(end_of(c, s, "minimum", "exclusiveMinimum", 1, &lo, &lo_open, &has_lo));
    TRY(end_of(c, s, "maximum", "exclusiveMaximum", -1, &hi, &hi_open, &has_hi));
    if (!has_lo && !has_hi) {
        str_puts(out, "number");
        return ERR_OK;
    }
    if (has_lo && has_hi && (lo > hi || (lo == hi && (lo_open || hi_open))))
        return schema_fail(c, "no number lies between its bounds");
    str_putc(out, '(');
    if (!has_lo || lo < 0) {  // those with a sign, from the other end
        str_puts(out, "\"-\" ");
        const bool below = has_hi && hi < 0;
        decimals(below ? (int64_t) -hi : 0, below ? hi_open : true, has_lo ? (int64_t) -lo : -1, lo_open, out);
        any = true;
    }
    if (!has_hi || hi >= 0) {
        const bool above = has_lo && lo >= 0;
        if (!(has_hi && hi == 0 && hi_open)) {
            if (any) str_puts(out, " | ");
            decimals(above ? (int64_t) lo : 0, above && lo_open, has_hi ? (int64_t) hi : -1, hi_open, out);
        }
    }
    str_putc(out, ')');
    return ERR_OK;
}
