// Helpers of the type tests: random numbers, the shared tables, lists of types and levels.
#pragma once

#include "base/half.h"
#include "type/blocks.h"
#include "type/type.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const enum ggml_type all_types[] = {
#define TYPE(ID, name) GGML_TYPE_##ID,
#include "type/type.def"
#undef TYPE
};
enum { N_TYPES = sizeof(all_types) / sizeof(all_types[0]) };

static inline uint64_t random_u64(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// Uniform in [-1, 1).
static inline float random_unit(uint64_t *state) { return (float) (random_u64(state) >> 40) * 0x1p-23f - 1.0f; }

static inline bool is_integer(const struct type *t) { return !t->quantized && t->tolerance == INFINITY; }

// A file of the shared tables; NULL, with a note, where they are not.
static inline void *shared_read(const char *name, size_t *bytes) {
    const char *root = getenv("LAMINA_SHARED");
    char path[512];
    snprintf(path, sizeof(path), "%s/tables/types/%s", root ? root : "../shared", name);
    FILE *f = fopen(path, "rb");
    if (!f) {
        printf("skipped: no %s\n", path);
        return NULL;
    }
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    *bytes = (size_t) ftell(f);
    rewind(f);
    char *data = malloc(*bytes + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *bytes, f), *bytes);
    fclose(f);
    data[*bytes] = 0;
    return data;
}

// Sum of squared differences, weighted, over the sum of squares.
static inline double nmse(const float *x, const float *y, int64_t n) {
    double e = 0.0, s = 0.0;
    for (int64_t i = 0; i < n; i++) {
        e += ((double) x[i] - y[i]) * ((double) x[i] - y[i]);
        s += (double) x[i] * x[i];
    }
    return s > 0.0 ? e / s : e;
}
