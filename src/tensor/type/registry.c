// The table of all types at all ISA levels, and the public tables of traits made from it. Built once, at the first use of
// any of them, from the constant tables that the type files export; never changed afterwards. Compiled once.
#include "ggml-cpu.h"
#include "type/type.h"

#include <pthread.h>

// Levels at which the folder is compiled (TYPE_LEVELS in cmake/isa.cmake). Higher ones of the same processor take the last:
// what gains from them are the tile kernels in kern/.
#if defined(__x86_64__) && !defined(LAMINA_SCALAR)
#define EACH_LEVEL(X, ID, name) X(scalar, ID, name) X(avx2, ID, name) X(avx512, ID, name)
enum { N_LEVEL = ISA_avx512 + 1 };
#elif defined(__aarch64__) && !defined(LAMINA_SCALAR)
#define EACH_LEVEL(X, ID, name) X(scalar, ID, name) X(neon, ID, name)
enum { N_LEVEL = ISA_neon + 1 };
#else
#define EACH_LEVEL(X, ID, name) X(scalar, ID, name)
enum { N_LEVEL = 1 };
#endif

#define DECLARE(level, ID, name) extern const struct type type_##name##_##level;
#define TYPE(ID, name) EACH_LEVEL(DECLARE, ID, name)
#include "type/type.def"
#undef TYPE

#define ENTRY(level, ID, name) [ISA_##level][GGML_TYPE_##ID] = &type_##name##_##level,
#define TYPE(ID, name) EACH_LEVEL(ENTRY, ID, name)
static const struct type *const source[N_LEVEL][GGML_TYPE_COUNT] = {
#include "type/type.def"
};
#undef TYPE

const struct type *const type_table[GGML_TYPE_COUNT] = {
#define TYPE(ID, name) [GGML_TYPE_##ID] = &type_##name##_scalar,
#include "type/type.def"
#undef TYPE
};

// ggml_vec_dot_t carries no type, so each type needs a function of its own. One product per call: nrc above 1 is for
// kernels that announce it in nrows, none here does; bs, bx and by matter only there.
#define TYPE(ID, name)                                                                                                      \
    static void vec_dot_##name(int n, float *s, size_t bs, const void *x, size_t bx, const void *y, size_t by, int nrc) {   \
        (void) bs, (void) bx, (void) by, (void) nrc;                                                                        \
        type_get(GGML_TYPE_##ID)->dot(n, s, x, y);                                                                          \
    }
#include "type/type.def"
#undef TYPE

static const ggml_vec_dot_t vec_dots[GGML_TYPE_COUNT] = {
#define TYPE(ID, name) [GGML_TYPE_##ID] = vec_dot_##name,
#include "type/type.def"
#undef TYPE
};

static struct type types[N_LEVEL][GGML_TYPE_COUNT];
static struct ggml_type_traits traits[GGML_TYPE_COUNT];
static struct ggml_type_traits_cpu traits_cpu[GGML_TYPE_COUNT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct type with_scalar(const struct type *at, const struct type *scalar) {
    struct type t = *at;
    if (!t.decode) t.decode = scalar->decode;
    if (!t.encode) t.encode = scalar->encode;
    if (!t.quantize) t.quantize = scalar->quantize;
    if (!t.dot) t.dot = scalar->dot;
    if (!t.check) t.check = scalar->check;
    return t;
}

static void fill(void) {
    const int active = (int) isa_active(), best = active < N_LEVEL ? active : N_LEVEL - 1;
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        traits[i].type_name = "NONE";
        if (!source[ISA_scalar][i]) continue;
        for (int level = 0; level < N_LEVEL; level++) types[level][i] = with_scalar(source[level][i], source[ISA_scalar][i]);
        const struct type *t = &types[best][i];
        const ggml_from_float_t from_float = t->search_only || t->integer ? NULL : t->encode;
        traits[i] = (struct ggml_type_traits){t->name,   t->block, 0, t->size, t->quantized, t->integer ? NULL : t->decode,
                                              from_float};
        traits_cpu[i] = (struct ggml_type_traits_cpu){from_float, t->integer ? NULL : vec_dots[i], t->dot_type, 1};
    }
}

const struct type *type_get_at(enum ggml_type id, enum isa level) {
    if ((unsigned) id >= GGML_TYPE_COUNT || !source[ISA_scalar][id] || (unsigned) level >= ISA_COUNT) return NULL;
    pthread_once(&once, fill);
    return &types[(int) level < N_LEVEL ? (int) level : N_LEVEL - 1][id];
}

const struct type *type_get(enum ggml_type id) { return type_get_at(id, isa_active()); }

const struct ggml_type_traits *ggml_get_type_traits(enum ggml_type type) {
    if ((unsigned) type >= GGML_TYPE_COUNT) return NULL;
    pthread_once(&once, fill);
    return &traits[type];
}

const struct ggml_type_traits_cpu *ggml_get_type_traits_cpu(enum ggml_type type) {
    if ((unsigned) type >= GGML_TYPE_COUNT) return NULL;
    pthread_once(&once, fill);
    return &traits_cpu[type];
}
