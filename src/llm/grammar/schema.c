// From a JSON schema to GBNF: walks the schema once, a rule for whatever may be needed twice.
#include "grammar/schema_int.h"

#include "llama/ext.h"

#include <inttypes.h>
#include <stdlib.h>

static const char builtin[] =
    "ws ::= | \" \" | \"\\n\" [ \\t]{0,20}\n"
    "hex ::= [0-9a-fA-F]\n"
    "char ::= [^\"\\\\\\x00-\\x1f] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" ([0-9a-cA-CefEF] hex hex hex | [dD] [0-7] hex hex))\n"
    "keychar ::= [^\"\\\\\\x00-\\x1f] | \"\\\\\" [\"\\\\bfnrt]\n"
    "string ::= \"\\\"\" char* \"\\\"\"\n"
    "integer ::= \"-\"? (\"0\" | [1-9] [0-9]{0,15})\n"
    "number ::= integer (\".\" [0-9]{1,16})? ([eE] [-+]? ([0-9]{1,2} | [12] [0-9] [0-9]))?\n"
    "boolean ::= \"true\" | \"false\"\n"
    "null ::= \"null\"\n"
    "value ::= object | array | string | number | boolean | null\n"
    "member ::= string \":\" ws value\n"
    "object ::= \"{\" ws (member (\",\" ws member)* ws)? \"}\"\n"
    "array ::= \"[\" ws (value (\",\" ws value)* ws)? \"]\"\n"
    "year ::= [1-9] [0-9]{3} | \"0\" [1-9] [0-9]{2} | \"00\" [1-9] [0-9] | \"000\" [1-9]\n"
    "leap ::= [0-9]{2} (\"0\" [48] | [2468] [048] | [13579] [26]) | (\"0\" [48] | [2468] [048] | [13579] [26]) \"00\"\n"
    "date ::= year \"-\" ((\"0\" [13578] | \"1\" [02]) \"-\" (\"0\" [1-9] | [12] [0-9] | \"3\" [01]) | (\"0\" [469] | "
    "\"11\") \"-\" (\"0\" [1-9] | "
    "[12] [0-9] | \"30\") | \"02-\" (\"0\" [1-9] | \"1\" [0-9] | \"2\" [0-8])) | leap \"-02-29\"\n"
    "clock ::= ([01] [0-9] | \"2\" [0-3]) \":\" [0-5] [0-9]\n"
    "time ::= clock \":\" [0-5] [0-9] (\".\" [0-9]{1,6})? (\"Z\" | [-+] clock)\n"
    "uuid ::= hex{8} \"-\" hex{4} \"-\" hex{4} \"-\" hex{4} \"-\" hex{12}\n";

// ---- places and small pieces -------------------------------------------------------------------------------------------

enum err schema_fail(const struct schema *c, const char *fmt, ...) {
    char what[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    // Of a long way down its beginning is enough: the sentence must have room.
    enum { SHOWN = 200 };
    return err_set(ERR_FORMAT, "schema: %.*s%s: %s", SHOWN, c->at, c->n_at > SHOWN ? "..." : "", what);
}

size_t schema_enter(struct schema *c, const char *key, int64_t index) {
    const size_t before = c->n_at;
    const int n = key ? snprintf(c->at + c->n_at, sizeof(c->at) - c->n_at, "/%s", key)
                      : snprintf(c->at + c->n_at, sizeof(c->at) - c->n_at, "/%" PRId64, index);
    if (n > 0) c->n_at = c->n_at + (size_t) n < sizeof(c->at) ? c->n_at + (size_t) n : sizeof(c->at) - 1;
    return before;
}

void schema_leave(struct schema *c, size_t before) {
    c->n_at = before;
    c->at[before] = '\0';
}

enum err schema_rule(struct schema *c, struct str *e, struct str *out) {
    if (c->n_rules >= SCHEMA_MAX_RULES) return schema_fail(c, "it becomes more than %d rules", SCHEMA_MAX_RULES);
    const int n = c->n_rules++;
    str_printf(&c->rules, "r%d ::= %s\n", n, str_text(e));
    str_printf(out, "r%d", n);
    c->rules.failed |= e->failed;
    str_free(e);
    return ERR_OK;
}

void schema_literal(struct str *out, const char *text, size_t n) {
    str_putc(out, '"');
    for (size_t i = 0; i < n; i++) {
        const unsigned char ch = (unsigned char) text[i];
        if (ch == '"' || ch == '\\')
            str_printf(out, "\\%c", ch);
        else if (ch < 32 || ch == 127)
            str_printf(out, "\\x%02x", ch);
        else
            str_putc(out, (char) ch);
    }
    str_putc(out, '"');
}

static void utf8(uint32_t cp, char out[5]) {
    int n = 0;
    if (cp < 0x80)
        out[n++] = (char) cp;
    else {
        if (cp < 0x800)
            out[n++] = (char) (0xc0 | cp >> 6);
        else {
            if (cp < 0x10000)
                out[n++] = (char) (0xe0 | cp >> 12);
            else {
                out[n++] = (char) (0xf0 | cp >> 18);
                out[n++] = (char) (0x80 | (cp >> 12 & 63));
            }
            out[n++] = (char) (0x80 | (cp >> 6 & 63));
        }
        out[n++] = (char) (0x80 | (cp & 63));
    }
    out[n] = '\0';
}

void schema_json_char(struct str *out, uint32_t cp) {
    static const char short_of[] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r', ['"'] = '"', ['\\'] = '\\'};
    char text[8];
    if (cp < sizeof(short_of) && short_of[cp])
        snprintf(text, sizeof(text), "\\%c", short_of[cp]);
    else if (cp < 32)
        snprintf(text, sizeof(text), "\\u%04x", cp);
    else
        utf8(cp, text);
    schema_literal(out, text, strlen(text));
}

void schema_set_char(struct str *out, uint32_t cp) {
    char text[5];
    utf8(cp, text);
    if (cp < 32 || cp == 127)
        str_printf(out, "\\x%02x", cp);
    else if (cp < 128 && strchr("\"\\]^-[", (int) cp))
        str_printf(out, "\\x%02x", cp);
    else
        str_puts(out, text);
}

// ---- constants -----------------------------------------------------------------------------------------------------------

static void constant(struct str *out, json_t *v) {
    size_t i;
    json_t *part;
    const char *key;
    bool first = true;
    if (json_is_object(v)) {
        str_puts(out, "\"{\" ws ");
        json_object_foreach(v, key, part) {
            if (!first) str_puts(out, "\",\" ws ");
            first = false;
            json_t *name = json_string(key);
            constant(out, name);
            json_decref(name);
            str_puts(out, "\":\" ws ");
            constant(out, part);
        }
        str_puts(out, first ? "\"}\" " : "ws \"}\" ");
        return;
    }
    if (json_is_array(v)) {
        str_puts(out, "\"[\" ws ");
        json_array_foreach(v, i, part) {
            if (i) str_puts(out, "\",\" ws ");
            constant(out, part);
        }
        str_puts(out, json_array_size(v) ? "ws \"]\" " : "\"]\" ");
        return;
    }
    char real[64];
    if (json_is_real(v)) {  // the shortest form that is the same number
        for (int digits = 1; digits <= 17; digits++) {
            snprintf(real, sizeof(real), "%.*g", digits, json_real_value(v));
            if (strtod(real, NULL) == json_real_value(v)) break;
        }
        if (!strpbrk(real, ".eE")) strcat(real, ".0");
        schema_literal(out, real, strlen(real));
    } else {
        char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
        if (text)
            schema_literal(out, text, strlen(text));
        else
            out->failed = true;
        free(text);
    }
    str_putc(out, ' ');
}

static bool is_type(json_t *v, const char *type) {
    switch (json_typeof(v)) {
        case JSON_OBJECT: return strcmp(type, "object") == 0;
        case JSON_ARRAY: return strcmp(type, "array") == 0;
        case JSON_STRING: return strcmp(type, "string") == 0;
        case JSON_INTEGER: return strcmp(type, "integer") == 0 || strcmp(type, "number") == 0;
        case JSON_REAL: return strcmp(type, "number") == 0;
        case JSON_NULL: return strcmp(type, "null") == 0;
        default: return strcmp(type, "boolean") == 0;
    }
}

static size_t characters(const char *text) {
    size_t n = 0;
    for (; *text; text++) n += (*text & 0xc0) != 0x80;
    return n;
}

// Whether a value of enum or const keeps to what else the schema says of numbers, lengths and types.
static bool fits(json_t *s, json_t *v) {
    json_t *type = json_object_get(s, "type"), *one;
    size_t i;
    bool ok = !type || (json_is_string(type) && is_type(v, json_string_value(type)));
    json_array_foreach(type, i, one) { ok |= json_is_string(one) && is_type(v, json_string_value(one)); }
    if (json_is_null(v) && json_is_true(json_object_get(s, "nullable"))) ok = true;
    json_t *lo = json_object_get(s, "minimum"), *hi = json_object_get(s, "maximum"),
           *above = json_object_get(s, "exclusiveMinimum"), *below = json_object_get(s, "exclusiveMaximum"),
           *from = json_object_get(s, "minLength"), *to = json_object_get(s, "maxLength");
    const double x = json_number_value(v);
    if (json_is_number(v)) {
        ok &= !json_is_number(lo) || x >= json_number_value(lo);
        ok &= !json_is_number(hi) || x <= json_number_value(hi);
        ok &= !json_is_number(above) || x > json_number_value(above);
        ok &= !json_is_number(below) || x < json_number_value(below);
    }
    if (json_is_string(v)) {
        const double n = (double) characters(json_string_value(v));
        ok &= !json_is_number(from) || n >= json_number_value(from);
        ok &= !json_is_number(to) || n <= json_number_value(to);
    }
    return ok;
}

static enum err visit_enum(struct schema *c, json_t *s, json_t *values, struct str *out) {
    size_t i;
    json_t *v, *only = json_object_get(s, "const");
    bool any = false;
    str_putc(out, '(');
    json_array_foreach(values, i, v) {
        if (!fits(s, v) || (only && !json_equal(only, v))) continue;
        if (any) str_puts(out, "| ");
        any = true;
        constant(out, v);
    }
    str_putc(out, ')');
    return any ? ERR_OK : schema_fail(c, "no value of enum or const fits the rest of it");
}

// ---- objects -------------------------------------------------------------------------------------------------------------

static enum err visit(struct schema *c, json_t *s, struct str *out);

// A schema that lies under key (and index) of the present one.
static enum err visit_at(struct schema *c, const char *key, int64_t index, json_t *s, struct str *out) {
    const size_t before = schema_enter(c, key, 0), inner = index >= 0 ? schema_enter(c, NULL, index) : c->n_at;
    const enum err e = visit(c, s, out);
    (void) inner;
    schema_leave(c, before);
    return e;
}

struct name {
    const char *text;
};

static uint32_t next_char(const char **p) {
    const unsigned char *s = (const unsigned char *) *p;
    const int n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    uint32_t cp = n == 1 ? s[0] : n == 2 ? s[0] & 31 : n == 3 ? s[0] & 15 : s[0] & 7;
    for (int i = 1; i < n; i++) cp = cp << 6 | (s[i] & 63);
    *p += n;
    return cp;
}

// Ends of names that are none of names [n], which all begin alike and go on at these places.
static enum err other_names(struct schema *c, const struct name *names, size_t n, struct str *out) {
    bool ends = false;
    struct str set = {0}, escapes = {0};
    struct name *same = malloc((n + 1) * sizeof(*same));
    if (!same) return err_set(ERR_NOMEM, "no memory for %zu names of a schema", n);
    enum err e = ERR_OK;
    str_putc(out, '(');
    static const char short_from[] = "\"\\\b\f\n\r\t", short_to[] = "\"\\bfnrt";
    str_puts(&escapes, "");
    bool taken[8] = {false};
    for (size_t i = 0; i < n && e == ERR_OK; i++) {
        const char *p = names[i].text;
        ends |= !*p;
        if (!*p) continue;
        const uint32_t cp = next_char(&p);
        size_t k = 0;
        bool seen = false;
        for (size_t j = 0; j < n; j++) {
            const char *q = names[j].text;
            if (!*q || next_char(&q) != cp) continue;
            seen |= j < i;
            same[k++].text = q;
        }
        const char *esc = cp < 128 ? strchr(short_from, (int) cp) : NULL;
        if (seen || (cp < 32 && !esc)) continue;
        if (esc)
            taken[esc - short_from] = true;
        else
            schema_set_char(&set, cp);
        schema_json_char(out, cp);
        str_putc(out, ' ');
        struct str inner = {0};
        if (++c->depth > 256) e = schema_fail(c, "a name has more than 256 characters");
        if (e == ERR_OK) e = other_names(c, same, k, &inner);
        c->depth--;
        if (e == ERR_OK) e = schema_rule(c, &inner, out);
        str_free(&inner);
        str_puts(out, " | ");
    }
    for (size_t i = 0; i < 7; i++)
        if (!taken[i]) str_printf(&escapes, "%s%c", short_to[i] == '"' || short_to[i] == '\\' ? "\\" : "", short_to[i]);
    str_printf(out, "([^\"\\\\\\x00-\\x1f%s]%s%s%s) keychar*", str_text(&set), escapes.n ? " | \"\\\\\" [" : "",
               str_text(&escapes), escapes.n ? "]" : "");
    str_puts(out, ends ? ")" : " | \"\")");
    free(same);
    str_free(&set);
    str_free(&escapes);
    return e;
}

static bool listed(json_t *list, const char *name) {
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v) {
        if (json_is_string(v) && strcmp(json_string_value(v), name) == 0) return true;
    }
    return false;
}

// "name": value of one more than those named. out stays empty if there may be none.
static enum err additional(struct schema *c, json_t *props, json_t *s, struct str *out) {
    const size_t n = json_object_size(props);
    json_t *more = json_object_get(s, "additionalProperties");
    if (json_is_false(more) || (!more && n > 0)) return ERR_OK;
    struct name *names = malloc((n + 1) * sizeof(*names));
    if (!names) return err_set(ERR_NOMEM, "no memory for %zu names of a schema", n);
    const char *key;
    json_t *v;
    size_t i = 0;
    json_object_foreach(props, key, v) { names[i++].text = key; }
    struct str e = {0}, name = {0};
    enum err err = other_names(c, names, n, &name);
    free(names);
    if (err == ERR_OK) {
        str_puts(&e, "\"\\\"\" ");
        err = schema_rule(c, &name, &e);
        str_puts(&e, " \"\\\"\" \":\" ws ");
    }
    json_t *any = json_true();
    if (err == ERR_OK) err = visit_at(c, "additionalProperties", -1, more ? more : any, &e);
    if (err == ERR_OK) err = schema_rule(c, &e, out);
    str_free(&e);
    str_free(&name);
    return err;
}

// Properties named, and those required without being named, which are whatever others may be.
static enum err all_properties(struct schema *c, json_t *s, json_t **out) {
    json_t *props = json_object_get(s, "properties"), *required = json_object_get(s, "required"), *name, *more;
    if (props && !json_is_object(props)) return schema_fail(c, "'properties' is not an object");
    if (required && !json_is_array(required)) return schema_fail(c, "'required' is not an array");
    *out = props ? json_copy(props) : json_object();
    if (!*out || json_array_append_new(c->made, *out)) return err_set(ERR_NOMEM, "no memory for a schema");
    size_t i;
    json_array_foreach(required, i, name) {
        if (!json_is_string(name)) return schema_fail(c, "'required' holds something that is no string");
        if (json_object_get(*out, json_string_value(name))) continue;
        more = json_object_get(s, "additionalProperties");
        if (json_is_false(more)) return schema_fail(c, "'%s' is required, but not allowed", json_string_value(name));
        json_object_set_new(*out, json_string_value(name), more ? json_incref(more) : json_true());
    }
    return ERR_OK;
}

static enum err visit_object(struct schema *c, json_t *s, struct str *out) {
    json_t *props = NULL, *required = json_object_get(s, "required"), *v;
    const char *key;
    TRY(all_properties(c, s, &props));
    const size_t n = json_object_size(props);
    struct str more = {0}, *member = calloc(n + 1, sizeof(*member)), first = {0}, rest = {0}, e = {0};
    enum err err = member ? additional(c, props, s, &more) : err_set(ERR_NOMEM, "no memory for %zu properties", n);
    size_t i = 0;
    if (err == ERR_OK) json_object_foreach(props, key, v) {
            json_t *name = json_string(key);
            if (!name) err = err_set(ERR_NOMEM, "no memory for a name");
            if (err == ERR_OK) constant(&e, name);
            json_decref(name);
            str_puts(&e, "\":\" ws ");
            if (err == ERR_OK) {
                const size_t before = schema_enter(c, "properties", 0);
                err = visit_at(c, key, -1, v, &e);
                schema_leave(c, before);
            }
            if (err == ERR_OK) err = schema_rule(c, &e, &member[i++]);
            if (err != ERR_OK) break;
        }
    // from the last one on: what may follow after some, and after none
    if (err == ERR_OK && more.n) {
        str_printf(&rest, "(\",\" ws %s)*", str_text(&more));
        str_printf(&first, "(%s (\",\" ws %s)*)?", str_text(&more), str_text(&more));
    }
    void *it = NULL;
    for (i = n; i-- > 0 && err == ERR_OK;) {
        it = json_object_iter(props);
        for (size_t k = 0; k < i; k++) it = json_object_iter_next(props, it);
        const bool must = listed(required, json_object_iter_key(it));
        struct str after = {0}, a = {0}, b = {0};
        if (rest.n) err = schema_rule(c, &rest, &after);
        str_printf(&a, "%s\",\" ws %s%s %s", must ? "" : "(", str_text(&member[i]), must ? "" : ")?", str_text(&after));
        if (must)
            str_printf(&b, "%s %s", str_text(&member[i]), str_text(&after));
        else {
            struct str skipped = {0};
            if (first.n && err == ERR_OK) err = schema_rule(c, &first, &skipped);
            str_printf(&b, "%s %s | %s", str_text(&member[i]), str_text(&after), skipped.n ? str_text(&skipped) : "\"\"");
            str_free(&skipped);
        }
        str_free(&rest);
        str_free(&first);
        str_free(&after);
        rest = a;
        first = b;
    }
    if (err == ERR_OK) {
        str_puts(&e, "\"{\" ws ");
        if (first.n) {
            str_putc(&e, '(');
            err = schema_rule(c, &first, &e);
            str_puts(&e, ") ws ");
        }
        str_puts(&e, "\"}\"");
        if (err == ERR_OK) err = schema_rule(c, &e, out);
    }
    for (i = 0; member && i < n; i++) str_free(&member[i]);
    free(member);
    str_free(&more);
    str_free(&first);
    str_free(&rest);
    str_free(&e);
    return err;
}

// ---- arrays ------------------------------------------------------------------------------------------------------------

static enum err count_of(struct schema *c, json_t *s, const char *key, int64_t def, int64_t *out) {
    json_t *v = json_object_get(s, key);
    *out = def;
    if (!v) return ERR_OK;
    const double x = json_number_value(v);
    if (!json_is_number(v) || x < 0 || x != (double) (int64_t) x)
        return schema_fail(c, "'%s' is not a whole number from 0 on", key);
    if (x > 100000) return schema_fail(c, "'%s' is more than 100000", key);
    *out = (int64_t) x;
    return ERR_OK;
}

static void repeat(struct str *out, int64_t from, int64_t to) {
    if (to < 0)
        str_printf(out, "{%" PRId64 ",}", from);
    else
        str_printf(out, "{%" PRId64 ",%" PRId64 "}", from, to);
}

static enum err visit_array(struct schema *c, json_t *s, struct str *out) {
    json_t *items = json_object_get(s, "items"), *prefix = json_object_get(s, "prefixItems"), *rest = items, *v;
    if (json_is_array(items)) prefix = items, rest = json_object_get(s, "additionalItems");  // as drafts before 2020 say it
    if (prefix && !json_is_array(prefix)) return schema_fail(c, "'prefixItems' is not an array");
    int64_t from, to;
    TRY(count_of(c, s, "minItems", 0, &from));
    TRY(count_of(c, s, "maxItems", -1, &to));
    const int64_t n = (int64_t) json_array_size(prefix);
    if (json_is_false(rest) && (to < 0 || to > n)) to = n;
    if (to >= 0 && from > to)
        return schema_fail(c, "it must have at least %" PRId64 " items, and at most %" PRId64, from, to);
    struct str e = {0}, tail = {0}, one = {0};
    enum err err = ERR_OK;
    if (!json_is_false(rest) && (to < 0 || to > n)) {
        json_t *any = json_true();
        err = visit_at(c, "items", -1, rest ? rest : any, &e);
        if (err == ERR_OK) err = schema_rule(c, &e, &one);
    }
    const int64_t first_rest = n > 0 ? n : 1;  // items printed before the repeated ones
    if (err == ERR_OK && one.n && (to < 0 || to > first_rest)) {
        str_printf(&tail, "(\",\" ws %s)", str_text(&one));
        repeat(&tail, from > first_rest ? from - first_rest : 0, to < 0 ? -1 : to - first_rest);
    }
    for (int64_t i = n - 1; i >= 0 && err == ERR_OK; i--) {  // from the last one given on
        if (to >= 0 && i >= to) continue;
        v = json_array_get(prefix, (size_t) i);
        struct str item = {0};
        err = visit_at(c, prefix == items ? "items" : "prefixItems", i, v, &e);
        if (err == ERR_OK) err = schema_rule(c, &e, &item);
        struct str now = {0};
        const bool may_end = i >= from && i > 0;
        str_printf(&now, "%s%s%s %s%s", may_end ? "(" : "", i > 0 ? "\",\" ws " : "", str_text(&item), str_text(&tail),
                   may_end ? ")?" : "");
        str_free(&tail);
        str_free(&item);
        if (err == ERR_OK) err = schema_rule(c, &now, &tail);
        str_free(&now);
    }
    if (err == ERR_OK && n == 0 && one.n) {
        struct str now = {0};
        str_printf(&now, "%s %s", str_text(&one), str_text(&tail));
        str_free(&tail);
        tail = now;
    }
    if (err == ERR_OK) {
        const bool none = to == 0 || (n == 0 && !one.n);
        str_free(&e);
        str_printf(&e,
                   none        ? "\"[\" ws \"]\"%s"
                   : from == 0 ? "\"[\" ws (%s ws)? \"]\""
                               : "\"[\" ws %s ws \"]\"",
                   none ? "" : str_text(&tail));
        err = schema_rule(c, &e, out);
    }
    str_free(&e);
    str_free(&tail);
    str_free(&one);
    return err;
}

// ---- strings and the rest ------------------------------------------------------------------------------------------------

static enum err visit_string(struct schema *c, json_t *s, struct str *out) {
    static const char *const formats[] = {"date", "time", "uuid"};
    json_t *pattern = json_object_get(s, "pattern"), *format = json_object_get(s, "format");
    const char *kind = json_string_value(format);
    int64_t from, to;
    TRY(count_of(c, s, "minLength", 0, &from));
    TRY(count_of(c, s, "maxLength", -1, &to));
    if (to >= 0 && from > to) return schema_fail(c, "its length is at least %" PRId64 " and at most %" PRId64, from, to);
    if (pattern && !json_is_string(pattern)) return schema_fail(c, "'pattern' is not a string");
    if (pattern) {
        if (from > 0 || to >= 0)
            return schema_fail(c, "a pattern and lengths together cannot be said; write the lengths into the pattern");
        const size_t before = schema_enter(c, "pattern", 0);
        struct str e = {0};
        str_puts(&e, "\"\\\"\" ");
        enum err err = schema_pattern(c, json_string_value(pattern), &e);
        str_puts(&e, " \"\\\"\"");
        schema_leave(c, before);
        if (err == ERR_OK) err = schema_rule(c, &e, out);
        str_free(&e);
        return err;
    }
    if (kind && strcmp(kind, "date-time") == 0) {
        str_puts(out, "(\"\\\"\" date \"T\" time \"\\\"\")");
        return ERR_OK;
    }
    for (size_t i = 0; kind && i < sizeof(formats) / sizeof(formats[0]); i++)
        if (strcmp(kind, formats[i]) == 0) {
            str_printf(out, "(\"\\\"\" %s \"\\\"\")", kind);
            return ERR_OK;
        }
    if (from == 0 && to < 0) {
        str_puts(out, "string");
        return ERR_OK;
    }
    str_puts(out, "(\"\\\"\" char");
    repeat(out, from, to);
    str_puts(out, " \"\\\"\")");
    return ERR_OK;
}

static enum err visit_type(struct schema *c, json_t *s, const char *type, struct str *out) {
    const bool object = strcmp(type, "object") == 0;
    if (object && !json_object_get(s, "properties") && !json_object_get(s, "required") &&
        !json_object_get(s, "additionalProperties")) {
        str_puts(out, "object");
        return ERR_OK;
    }
    if (object || strcmp(type, "array") == 0) {
        c->inside++;
        const enum err e = object ? visit_object(c, s, out) : visit_array(c, s, out);
        c->inside--;
        return e;
    }
    if (strcmp(type, "string") == 0) return visit_string(c, s, out);
    if (strcmp(type, "number") == 0) return schema_numbers(c, s, out);
    if (strcmp(type, "integer") == 0) {
        int64_t lo, hi;
        TRY(schema_bounds(c, s, &lo, &hi));
        if (lo == INT64_MIN && hi == INT64_MAX)
            str_puts(out, "integer");
        else
            schema_integers(lo, hi, out);
        return ERR_OK;
    }
    if (strcmp(type, "boolean") != 0 && strcmp(type, "null") != 0) return schema_fail(c, "'%.40s' is no type", type);
    str_puts(out, type);
    return ERR_OK;
}

// The types that a schema without "type" speaks of.
static const char *const *implied(json_t *s, const char *list[5]) {
    static const struct {
        const char *key, *type;
    } of[] = {{"properties", "object"}, {"required", "object"},         {"additionalProperties", "object"},
              {"items", "array"},       {"prefixItems", "array"},       {"minItems", "array"},
              {"maxItems", "array"},    {"pattern", "string"},          {"minLength", "string"},
              {"maxLength", "string"},  {"format", "string"},           {"minimum", "number"},
              {"maximum", "number"},    {"exclusiveMinimum", "number"}, {"exclusiveMaximum", "number"}};
    int n = 0;
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
        if (json_object_get(s, of[i].key) && (n == 0 || strcmp(list[n - 1], of[i].type) != 0)) list[n++] = of[i].type;
    list[n] = NULL;
    return list;
}

static enum err visit_types(struct schema *c, json_t *s, struct str *out) {
    json_t *type = json_object_get(s, "type"), *one;
    const char *list[5] = {0};
    size_t i;
    bool any = false, null = json_is_true(json_object_get(s, "nullable"));
    enum err e = ERR_OK;
    str_putc(out, '(');
    if (json_is_string(type)) {
        e = visit_type(c, s, json_string_value(type), out);
        any = true;
    } else if (json_is_array(type)) {
        json_array_foreach(type, i, one) {
            if (!json_is_string(one)) return schema_fail(c, "'type' holds something that is no string");
            if (strcmp(json_string_value(one), "null") == 0)
                null = true;
            else {
                if (any) str_puts(out, " | ");
                any = true;
                TRY(visit_type(c, s, json_string_value(one), out));
            }
        }
    } else if (type)
        return schema_fail(c, "'type' is neither a string nor an array");
    else
        for (const char *const *t = implied(s, list); *t && e == ERR_OK; t++) {
            if (any) str_puts(out, " | ");
            any = true;
            e = visit_type(c, s, *t, out);
        }
    if (!any && !null) str_puts(out, "value");
    if (null && type)
        str_puts(out, any ? " | null" : "null");
    else if (null && any)
        str_puts(out, " | null");
    else if (null)
        str_puts(out, "value");
    str_putc(out, ')');
    return e;
}

// ---- combinations --------------------------------------------------------------------------------------------------------

static enum err resolve(struct schema *c, const char *ref, json_t **out) {
    if (ref[0] != '#') return schema_fail(c, "'%.80s' lies outside the schema", ref);
    *out = c->root;
    for (const char *p = ref + 1; *p;) {
        char key[256];
        size_t n = 0;
        if (*p != '/') return schema_fail(c, "'%.80s' is no path in the schema", ref);
        for (p++; *p && *p != '/' && n + 1 < sizeof(key); p++) {
            unsigned hex;
            if (*p == '~' && (p[1] == '0' || p[1] == '1'))
                key[n++] = *++p == '0' ? '~' : '/';
            else if (*p == '%' && sscanf(p + 1, "%2x", &hex) == 1)
                key[n++] = (char) hex, p += 2;
            else
                key[n++] = *p;
        }
        key[n] = '\0';
        *out = json_is_array(*out) ? json_array_get(*out, strtoul(key, NULL, 10)) : json_object_get(*out, key);
        if (!*out) return schema_fail(c, "'%.80s' is not there", ref);
    }
    return ERR_OK;
}

// What a reference stands for is a rule of its own, made once: so schemas may contain themselves.
static enum err visit_ref(struct schema *c, const char *ref, struct str *out) {
    json_t *known = json_object_get(c->refs, ref);
    if (known) {
        if (json_integer_value(json_array_get(known, 1)) == c->inside)
            return schema_fail(c, "'%.80s' stands for itself", ref);
        str_puts(out, json_string_value(json_array_get(known, 0)));
        return ERR_OK;
    }
    json_t *s;
    char name[32];
    TRY(resolve(c, ref, &s));
    if (c->n_rules >= SCHEMA_MAX_RULES) return schema_fail(c, "it becomes more than %d rules", SCHEMA_MAX_RULES);
    snprintf(name, sizeof(name), "ref%d", c->n_rules++);
    if (json_object_set_new(c->refs, ref, json_pack("[s,i]", name, c->inside)))
        return err_set(ERR_NOMEM, "no memory for a schema");
    char before[sizeof(c->at)];
    const size_t n_before = c->n_at;
    memcpy(before, c->at, sizeof(before));
    c->n_at = (size_t) snprintf(c->at, sizeof(c->at), "%.500s", ref);
    struct str e = {0};
    const enum err err = visit(c, s, &e);
    memcpy(c->at, before, sizeof(before));
    c->n_at = n_before;
    if (err == ERR_OK) str_printf(&c->rules, "%s ::= %s\n", name, str_text(&e));
    json_array_set_new(json_object_get(c->refs, ref), 1, json_integer(-1));
    str_free(&e);
    str_puts(out, name);
    return err;
}

// The schema without one of its keywords.
static enum err without(struct schema *c, json_t *s, const char *key, json_t **out) {
    *out = json_copy(s);
    if (!*out || json_array_append_new(c->made, *out)) return err_set(ERR_NOMEM, "no memory for a schema");
    json_object_del(*out, key);
    return ERR_OK;
}

static bool says_something(json_t *s) {
    static const char *const quiet[] = {"$schema",  "$id",         "$defs",        "definitions", "$comment",
                                        "title",    "description", "default",      "examples",    "deprecated",
                                        "readOnly", "writeOnly",   "discriminator"};
    const char *key;
    json_t *v;
    json_object_foreach(s, key, v) {
        bool is_quiet = false;
        for (size_t i = 0; i < sizeof(quiet) / sizeof(quiet[0]); i++) is_quiet |= strcmp(key, quiet[i]) == 0;
        if (!is_quiet) return true;
    }
    return false;
}

static enum err visit_any(struct schema *c, json_t *s, const char *key, struct str *out) {
    json_t *list = json_object_get(s, key), *base, *one;
    if (!json_is_array(list) || json_array_size(list) == 0) return schema_fail(c, "'%s' is not an array with schemas", key);
    TRY(without(c, s, key, &base));
    size_t i;
    str_putc(out, '(');
    json_array_foreach(list, i, one) {
        if (i) str_puts(out, " | ");
        json_t *both = one;
        if (says_something(base)) TRY(schema_merge(c, base, one, &both));
        TRY(visit_at(c, key, (int64_t) i, both, out));
    }
    str_putc(out, ')');
    return ERR_OK;
}

static enum err visit_all(struct schema *c, json_t *s, struct str *out) {
    json_t *list = json_object_get(s, "allOf"), *base, *one;
    if (!json_is_array(list)) return schema_fail(c, "'allOf' is not an array");
    TRY(without(c, s, "allOf", &base));
    size_t i;
    json_array_foreach(list, i, one) { TRY(schema_merge(c, base, one, &base)); }
    return visit(c, base, out);
}

static enum err refuse_unknown(struct schema *c, json_t *s) {
    static const char *const cannot[] = {"not",
                                         "if",
                                         "then",
                                         "else",
                                         "patternProperties",
                                         "propertyNames",
                                         "minProperties",
                                         "maxProperties",
                                         "dependentRequired",
                                         "dependentSchemas",
                                         "dependencies",
                                         "contains",
                                         "minContains",
                                         "maxContains",
                                         "uniqueItems",
                                         "multipleOf",
                                         "unevaluatedItems",
                                         "unevaluatedProperties",
                                         "$dynamicRef",
                                         "$recursiveRef"};
    for (size_t i = 0; i < sizeof(cannot) / sizeof(cannot[0]); i++) {
        json_t *v = json_object_get(s, cannot[i]);
        if (v && !json_is_false(v)) return schema_fail(c, "'%s' cannot be kept to by a grammar", cannot[i]);
    }
    return ERR_OK;
}

static enum err visit_inner(struct schema *c, json_t *s, struct str *out) {
    if (json_is_true(s)) {
        str_puts(out, "value");
        return ERR_OK;
    }
    if (json_is_false(s)) return schema_fail(c, "no value fits 'false'");
    if (!json_is_object(s)) return schema_fail(c, "it is neither an object nor true or false");
    TRY(refuse_unknown(c, s));
    json_t *ref = json_object_get(s, "$ref"), *values = json_object_get(s, "enum"), *only = json_object_get(s, "const");
    if (ref) {
        if (!json_is_string(ref)) return schema_fail(c, "'$ref' is not a string");
        json_t *base, *target;
        TRY(without(c, s, "$ref", &base));
        if (!says_something(base)) return visit_ref(c, json_string_value(ref), out);
        TRY(resolve(c, json_string_value(ref), &target));
        TRY(schema_merge(c, base, target, &base));
        return visit(c, base, out);
    }
    if (json_object_get(s, "allOf")) return visit_all(c, s, out);
    if (json_object_get(s, "anyOf")) return visit_any(c, s, "anyOf", out);
    if (json_object_get(s, "oneOf")) return visit_any(c, s, "oneOf", out);
    if (values && !json_is_array(values)) return schema_fail(c, "'enum' is not an array");
    if (values) return visit_enum(c, s, values, out);
    if (only) {
        json_t *list = json_array();
        if (!list || json_array_append(list, only)) return err_set(ERR_NOMEM, "no memory for a schema");
        const enum err e = visit_enum(c, s, list, out);
        json_decref(list);
        return e;
    }
    return visit_types(c, s, out);
}

static enum err visit(struct schema *c, json_t *s, struct str *out) {
    if (c->depth >= SCHEMA_MAX_DEPTH) return schema_fail(c, "it nests deeper than %d schemas", SCHEMA_MAX_DEPTH);
    if (c->rules.n + out->n > ((size_t) 8 << 20)) return schema_fail(c, "its grammar is larger than 8 MB");
    c->depth++;
    const enum err e = visit_inner(c, s, out);
    c->depth--;
    return e;
}

enum err schema_to_gbnf(const char *json, struct str *out) {
    json_error_t why;
    struct schema c = {.root = json_loads(json, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &why), .at = "#", .n_at = 1};
    if (!c.root) return err_set(ERR_FORMAT, "schema: line %d, column %d: %s", why.line, why.column, why.text);
    c.made = json_array();
    c.refs = json_object();
    struct str e = {0};
    enum err err = c.made && c.refs ? visit(&c, c.root, &e) : err_set(ERR_NOMEM, "no memory for a schema");
    if (err == ERR_OK) {
        str_printf(out, "root ::= %s\n%s%s", str_text(&e), builtin, str_text(&c.rules));
        if (!str_ok(out) || !str_ok(&e) || !str_ok(&c.rules))
            err = err_set(ERR_NOMEM, "no memory for the grammar of a schema");
    }
    str_free(&e);
    str_free(&c.rules);
    json_decref(c.made);
    json_decref(c.refs);
    json_decref(c.root);
    return err;
}

int32_t llama_json_schema_to_grammar(const char *schema, char *buf, int32_t length) {
    struct str out = {0};
    enum err e = schema && length >= 0 && (buf || !length)
                     ? schema_to_gbnf(schema, &out)
                     : err_set(ERR_INVALID, "llama_json_schema_to_grammar: an argument is NULL or negative");
    if (e == ERR_OK && out.n > INT32_MAX) e = err_set(ERR_FORMAT, "schema: #: its grammar is too large");
    const int32_t n = e == ERR_OK ? (int32_t) out.n : -1;
    if (e == ERR_OK && length > 0) snprintf(buf, (size_t) length, "%s", str_text(&out));
    str_free(&out);
    return n;
}
