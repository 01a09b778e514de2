// Gives each kernel family's table for the active ISA level. Compiled once, unlike the rest of this folder.
#include "kern/kern.h"

#define TABLE(name, level) extern const struct kern_##name kern_##name##_##level;
#define CHOOSE(name, ...)                                                                                                   \
    const struct kern_##name *kern_##name(void) {                                                                           \
        static const struct kern_##name *const table[ISA_COUNT] = {__VA_ARGS__};                                            \
        return table[isa_active()];                                                                                         \
    }
#define T(name, level) &kern_##name##_##level

// A level without a table of its own takes the next lower one. Builds with sanitizers leave out the levels that differ from avx512 (or
// neon) by a few instructions only.
#if defined(__x86_64__) && !defined(LAMINA_SCALAR)
#define KERN(name)                                                                                                          \
    TABLE(name, scalar)                                                                                                     \
    TABLE(name, avx2)                                                                                                       \
    TABLE(name, avx512)                                                                                                     \
    CHOOSE(name, T(name, scalar), T(name, avx2), T(name, avx512), T(name, avx512), T(name, avx512), T(name, avx512))
#define KERN_ALL(name)                                                                                                      \
    TABLE(name, scalar)                                                                                                     \
    TABLE(name, avx2)                                                                                                       \
    TABLE(name, avx512)                                                                                                     \
    TABLE(name, avx512vnni)                                                                                                 \
    TABLE(name, avx512bf16)                                                                                                 \
    CHOOSE(name, T(name, scalar), T(name, avx2), T(name, avx512), T(name, avx512vnni), T(name, avx512bf16),                 \
           T(name, avx512bf16))
#elif defined(__aarch64__) && !defined(LAMINA_SCALAR)
#define KERN(name)                                                                                                          \
    TABLE(name, scalar) TABLE(name, neon) CHOOSE(name, T(name, scalar), T(name, neon), T(name, neon), T(name, neon))
#define KERN_ALL(name)                                                                                                      \
    TABLE(name, scalar)                                                                                                     \
    TABLE(name, neon)                                                                                                       \
    TABLE(name, dotprod) TABLE(name, i8mm) CHOOSE(name, T(name, scalar), T(name, neon), T(name, dotprod), T(name, i8mm))
#else
#define KERN(name) TABLE(name, scalar) CHOOSE(name, T(name, scalar))
#define KERN_ALL(name) KERN(name)
#endif
#ifdef LAMINA_BASE_LEVELS
#undef KERN_ALL
#define KERN_ALL(name) KERN(name)
#endif
#include "kern/kern.def"
