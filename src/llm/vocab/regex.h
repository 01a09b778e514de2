// Patterns through PCRE2, for those that pattern.c does not read itself.
#pragma once

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>

struct regex;
enum err regex_new(struct regex **out, const char *text) MUST_USE;
void regex_free(struct regex *re);
size_t regex_bytes(void);  // of one, beside what PCRE2 allocates for it
// As pattern_find.
bool regex_find(const struct regex *re, const char *start, const char *from, const char *end, const char **at,
                const char **to);
