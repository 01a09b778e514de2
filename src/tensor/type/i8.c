// i8: signed integers of 8 bits.
#define INT int8_t
#define INT_LO INT8_MIN
#define INT_HI INT8_MAX
#define INT_LIMIT 128.0f
#define INT_ID GGML_TYPE_I8
#define INT_NAME "i8"
#define INT_SYMBOL type_i8
#include "type/integer_int.h"
