// Single elements of the plain types, those whose elements stand alone.
#pragma once

#include "type/type.h"

#include <stdbool.h>

// F64 F32 F16 BF16 I8 .. I64.
bool type_is_plain(enum ggml_type type);
// The element at p (any alignment) as a double: exact but for I64 beyond 2^53. type: plain.
double type_load(enum ggml_type type, const void *p);
// The same, written: rounded to nearest for floats, towards zero for integers.
void type_store(enum ggml_type type, void *p, double x);
