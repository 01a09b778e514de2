// The patterns of pre-tokenizers, matched without recursion and without memory that grows with the text.
//
// A pattern is a list of alternatives; an alternative is a list of items (a set of characters, how often) that match
// greedily and give back one character at a time, as in PCRE. Runs of one set need no memory of their steps, so a match
// costs a few integers whatever the length of the text. Most patterns of pre.def can be read this way, far faster than by
// a general engine; the rest goes through PCRE2. A test compares both on random text.
#pragma once

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>

struct pattern;

// Errors: no memory, or a pattern that neither we nor PCRE2 can read.
enum err pattern_new(struct pattern **out, const char *text) MUST_USE;
// The same through PCRE2 whatever the pattern, for tests.
enum err pattern_new_general(struct pattern **out, const char *text) MUST_USE;
bool pattern_is_general(const struct pattern *p);
void pattern_free(struct pattern *p);
// Bytes that it takes before the first text; what PCRE2 allocates for the patterns of its own is not counted.
size_t pattern_memory(const struct pattern *p);

// First match at or after `from` in the subject [start, end): *at and *to. False: none. An empty match is possible only
// behind `from`. Thread: any number at a time.
bool pattern_find(const struct pattern *p, const char *start, const char *from, const char *end, const char **at,
                  const char **to);

// Cuts a text by several patterns in turn.
#define PATTERN_MAX_LEVELS 8
struct pattern_cut {
    struct pattern *const *patterns;
    int n;
    struct {
        const char *start, *pos, *end;    // what this level cuts, and how far it has come
        const char *match_at, *match_to;  // a match found ahead; NULL if none is known
    } level[PATTERN_MAX_LEVELS];
    int depth;
};
void pattern_cut_begin(struct pattern_cut *cut, struct pattern *const *patterns, int n, const char *text, const char *end);
// The next piece, never empty; false at the end.
bool pattern_cut_next(struct pattern_cut *cut, const char **piece, const char **piece_end);
