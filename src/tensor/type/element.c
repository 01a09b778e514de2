// See element.h. Compiled once: there is nothing to vectorize about one element.
#include "type/element.h"

#include <string.h>

bool type_is_plain(enum ggml_type type) {
    const struct type *t = type_get(type);
    return t && t->block == 1 && !t->quantized;
}

double type_load(enum ggml_type type, const void *p) {
    switch (type) {
        case GGML_TYPE_F64: {
            double v;
            memcpy(&v, p, 8);
            return v;
        }
        case GGML_TYPE_I8: {
            int8_t v;
            memcpy(&v, p, 1);
            return v;
        }
        case GGML_TYPE_I16: {
            int16_t v;
            memcpy(&v, p, 2);
            return v;
        }
        case GGML_TYPE_I32: {
            int32_t v;
            memcpy(&v, p, 4);
            return v;
        }
        case GGML_TYPE_I64: {
            int64_t v;
            memcpy(&v, p, 8);
            return (double) v;
        }
        default: {
            _Alignas(16) char aligned[16];
            float v;
            memcpy(aligned, p, type_get(type)->size);
            type_get(type)->decode(aligned, &v, 1);
            return (double) v;
        }
    }
}

void type_store(enum ggml_type type, void *p, double x) {
    const int64_t whole = type >= GGML_TYPE_I8 && type <= GGML_TYPE_I64 ? (int64_t) x : 0;
    switch (type) {
        case GGML_TYPE_F64: memcpy(p, &x, 8); return;
        case GGML_TYPE_I8: memcpy(p, &(int8_t){(int8_t) whole}, 1); return;
        case GGML_TYPE_I16: memcpy(p, &(int16_t){(int16_t) whole}, 2); return;
        case GGML_TYPE_I32: memcpy(p, &(int32_t){(int32_t) whole}, 4); return;
        case GGML_TYPE_I64: memcpy(p, &whole, 8); return;
        default: {
            _Alignas(16) char aligned[16];
            type_get(type)->encode(&(float){(float) x}, aligned, 1);
            memcpy(p, aligned, type_get(type)->size);
            return;
        }
    }
}
