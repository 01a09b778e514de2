// Shared by the files that turn JSON schemas into grammars.
#pragma once

#include "base/str.h"
#include "grammar/schema.h"

#include <jansson.h>
#include <stdint.h>

#define SCHEMA_MAX_DEPTH 64
#define SCHEMA_MAX_RULES 20000

struct schema {
    json_t *root;
    json_t *made;      // merged schemas, kept to the end
    json_t *refs;      // "#/..." -> [name of its rule, inside while it is being made, else -1]
    int inside;        // objects and arrays around the present place
    struct str rules;  // whole rules, a line each
    int n_rules, depth;
    char at[512];  // the place being read, "#/properties/a"
    size_t n_at;
};

// ERR_FORMAT with the place, "schema: #/properties/a: what".
enum err schema_fail(const struct schema *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// One step into the schema; give the result back to schema_leave.
size_t schema_enter(struct schema *c, const char *key, int64_t index);
void schema_leave(struct schema *c, size_t before);
// A rule of its own for expression e (which is emptied); its name is appended to out.
MUST_USE enum err schema_rule(struct schema *c, struct str *e, struct str *out);

// Appends text [n] as a quoted literal of GBNF.
void schema_literal(struct str *out, const char *text, size_t n);
// A character as JSON strings spell it, as a literal; false for controls without a short escape, which get \u00XX.
void schema_json_char(struct str *out, uint32_t cp);
// One member of a GBNF set of characters, escaped.
void schema_set_char(struct str *out, uint32_t cp);

// Both schemas at once, as far as keywords tell. *out is kept by c. Errors: what both say cannot hold together, or has no form here.
MUST_USE enum err schema_merge(struct schema *c, json_t *a, json_t *b, json_t **out);
// Strings that a regular expression finds something in, without the quotes around them.
MUST_USE enum err schema_pattern(struct schema *c, const char *pattern, struct str *out);
// Whole numbers from lo to hi (INT64_MIN and INT64_MAX: no bound), and decimal ones with bounds that are whole.
void schema_integers(int64_t lo, int64_t hi, struct str *out);
MUST_USE enum err schema_numbers(struct schema *c, json_t *s, struct str *out);
// The bounds that a schema gives whole numbers.
MUST_USE enum err schema_bounds(struct schema *c, json_t *s, int64_t *lo, int64_t *hi);
