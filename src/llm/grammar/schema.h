// JSON schemas as grammars: text that follows the grammar is JSON that fits the schema. Source: json-schema.org, draft 2020-12.
#pragma once

#include "base/err.h"
#include "base/str.h"

// Appends GBNF with the rule "root" for a schema given as JSON text.
// Types, enum, const, properties, required, additionalProperties, items, prefixItems, lengths, patterns, formats date, time, date-time and uuid,
// bounds of numbers, anyOf, oneOf (as anyOf), allOf, $ref within the schema, recursive ones too, and nullable. Properties come in the
// schema's order; where some are named, others come only where additionalProperties allows them by name or by "true".
// Keywords that only say something about a value (title, default, other formats) have no effect; those that would constrain it in a way that has no
// form here (not, if, patternProperties, uniqueItems, multipleOf ...) are refused.
// Errors: ERR_FORMAT with the place ("#/properties/a"), also for schemas that nest or grow without end.
MUST_USE enum err schema_to_gbnf(const char *json, struct str *out);
