// Two schemas that must both hold as one, keyword by keyword.
#include "grammar/schema_int.h"

#include <stdlib.h>

static json_t *kept(struct schema *c, json_t *v) { return v && json_array_append_new(c->made, v) == 0 ? v : NULL; }

static enum err no_memory(void) { return err_set(ERR_NOMEM, "no memory for a schema"); }

// Values of both lists (or a single one as a list). "integer" is a "number".
static enum err common(struct schema *c, const char *key, json_t *a, json_t *b, json_t **out) {
    json_t *la = json_is_array(a) ? json_incref(a) : json_pack("[O]", a),
           *lb = json_is_array(b) ? json_incref(b) : json_pack("[O]", b), *x, *y;
    size_t i, j;
    *out = kept(c, json_array());
    const bool ok = la && lb && *out;
    json_array_foreach(ok ? la : NULL, i, x) {
        json_array_foreach(lb, j, y) {
            const char *s = json_string_value(x), *t = json_string_value(y);
            const bool type = strcmp(key, "type") == 0 && s && t;
            if (json_equal(x, y) || (type && strcmp(s, "integer") == 0 && strcmp(t, "number") == 0))
                json_array_append(*out, x);
            else if (type && strcmp(s, "number") == 0 && strcmp(t, "integer") == 0)
                json_array_append(*out, y);
        }
    }
    json_decref(la);
    json_decref(lb);
    if (!ok) return no_memory();
    return json_array_size(*out) ? ERR_OK : schema_fail(c, "no '%s' is common to what must hold together", key);
}

// Names of both: those of one alone keep to what the other says of additional ones.
static enum err properties(struct schema *c, json_t *a, json_t *b, json_t **out) {
    json_t *pa = json_object_get(a, "properties"), *pb = json_object_get(b, "properties"), *v, *both;
    const char *key;
    *out = kept(c, json_object());
    if (!*out) return no_memory();
    json_object_foreach(pa, key, v) {
        json_t *other = json_object_get(pb, key);
        if (!other) other = json_object_get(b, "additionalProperties");
        both = v;
        if (other && !json_is_boolean(other)) TRY(schema_merge(c, v, other, &both));
        if (!json_is_false(other)) json_object_set(*out, key, both);
    }
    json_object_foreach(pb, key, v) {
        if (json_object_get(pa, key)) continue;
        json_t *other = json_object_get(a, "additionalProperties");
        both = v;
        if (other && !json_is_boolean(other)) TRY(schema_merge(c, v, other, &both));
        if (!json_is_false(other)) json_object_set(*out, key, both);
    }
    return ERR_OK;
}

static bool among(const char *key, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(key, list[i]) == 0) return true;
    return false;
}

// What key says where both say something.
static enum err both_of(struct schema *c, const char *key, json_t *x, json_t *y, json_t **out) {
    static const char *const least[] = {"minimum", "exclusiveMinimum", "minLength", "minItems"},
                             *const most[] = {"maximum", "exclusiveMaximum", "maxLength", "maxItems"},
                             *const either[] = {"title",    "description", "default",      "examples",    "$schema",
                                                "$id",      "$comment",    "$defs",        "definitions", "deprecated",
                                                "readOnly", "writeOnly",   "discriminator"},
                             *const schemas[] = {"items", "additionalProperties"};
    *out = x;
    if (json_equal(x, y) || among(key, either, sizeof(either) / sizeof(either[0]))) return ERR_OK;
    const double a = json_number_value(x), b = json_number_value(y);
    if (among(key, least, 4))
        *out = a > b ? x : y;
    else if (among(key, most, 4))
        *out = a < b ? x : y;
    else if (strcmp(key, "type") == 0 || strcmp(key, "enum") == 0)
        return common(c, key, x, y, out);
    else if (strcmp(key, "nullable") == 0)
        *out = kept(c, json_false());
    else if (strcmp(key, "required") == 0) {
        size_t i;
        json_t *v;
        *out = kept(c, json_copy(x));
        if (!*out) return no_memory();
        json_array_foreach(y, i, v) { json_array_append(*out, v); }
    } else if (strcmp(key, "allOf") == 0) {
        *out = kept(c, json_copy(x));
        if (!*out || json_array_extend(*out, y)) return no_memory();
    } else if (among(key, schemas, 2))
        return schema_merge(c, x, y, out);
    else
        return schema_fail(c, "two different '%s' cannot both be kept to", key);
    return ERR_OK;
}

static enum err merge(struct schema *c, json_t *a, json_t *b, json_t **out) {
    if (json_is_true(a) || json_is_false(b)) return *out = b, ERR_OK;
    if (json_is_true(b) || json_is_false(a)) return *out = a, ERR_OK;
    if (!json_is_object(a) || !json_is_object(b)) return schema_fail(c, "it is neither an object nor true or false");
    // references and choices of both must be seen before anything can be said: they go on as parts of allOf, which are merged one by one
    *out = kept(c, json_copy(a));
    if (!*out) return no_memory();
    const char *key;
    json_t *y, *v;
    json_object_foreach(b, key, y) {
        json_t *x = json_object_get(a, key);
        if (strcmp(key, "properties") == 0) continue;
        v = y;
        if (x) TRY(both_of(c, key, x, y, &v));
        if (json_object_set(*out, key, v)) return no_memory();
    }
    if (json_object_get(a, "properties") || json_object_get(b, "properties")) {
        TRY(properties(c, a, b, &v));
        if (json_object_set(*out, "properties", v)) return no_memory();
    }
    return ERR_OK;
}

enum err schema_merge(struct schema *c, json_t *a, json_t *b, json_t **out) {
    if (c->depth >= SCHEMA_MAX_DEPTH || json_array_size(c->made) > SCHEMA_MAX_RULES)
        return schema_fail(c, "what must hold together nests deeper than %d schemas", SCHEMA_MAX_DEPTH);
    c->depth++;
    const enum err e = merge(c, a, b, out);
    c->depth--;
    return e;
}
