// A growable string. Appending to it never needs a check: the first failure sticks, and str_ok tells at the end.
// Stateless; both libraries use it.
#pragma once

#include "base/array.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct str {
    char *items;  // terminated by a zero that n does not count; NULL while empty
    size_t n, cap;
    bool failed;  // memory ran out; what is there is incomplete
};

static inline void str_add(struct str *s, const char *data, size_t n) {
    if (s->failed || n > PTRDIFF_MAX - s->n - 1 || !array_reserve(s, s->n + n + 1)) {
        s->failed = true;
        return;
    }
    if (n) memcpy(s->items + s->n, data, n);
    s->n += n;
    s->items[s->n] = '\0';
}

static inline void str_puts(struct str *s, const char *text) { str_add(s, text, strlen(text)); }

static inline void str_putc(struct str *s, char c) { str_add(s, &c, 1); }

__attribute__((format(printf, 2, 3))) static inline void str_printf(struct str *s, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (s->failed || n < 0 || !array_reserve(s, s->n + (size_t) n + 1)) {
        s->failed = true;
        return;
    }
    va_start(args, fmt);
    vsnprintf(s->items + s->n, (size_t) n + 1, fmt, args);
    va_end(args);
    s->n += (size_t) n;
}

static inline const char *str_text(const struct str *s) { return s->items ? s->items : ""; }
static inline bool str_ok(const struct str *s) { return !s->failed; }

static inline void str_free(struct str *s) {
    array_free(s);
    s->failed = false;
}
