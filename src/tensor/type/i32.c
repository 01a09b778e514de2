// i32: signed integers of 32 bits.
#define INT int32_t
#define INT_LO INT32_MIN
#define INT_HI INT32_MAX
#define INT_LIMIT 2147483648.0f
#define INT_ID GGML_TYPE_I32
#define INT_NAME "i32"
#define INT_SYMBOL type_i32
#include "type/integer_int.h"
