// i64: signed integers of 64 bits.
#define INT int64_t
#define INT_LO INT64_MIN
#define INT_HI INT64_MAX
#define INT_LIMIT 9223372036854775808.0f
#define INT_ID GGML_TYPE_I64
#define INT_NAME "i64"
#define INT_SYMBOL type_i64
#include "type/integer_int.h"
