// i16: signed integers of 16 bits.
#define INT int16_t
#define INT_LO INT16_MIN
#define INT_HI INT16_MAX
#define INT_LIMIT 32768.0f
#define INT_ID GGML_TYPE_I16
#define INT_NAME "i16"
#define INT_SYMBOL type_i16
#include "type/integer_int.h"
