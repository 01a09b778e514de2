// Gives each kernel family's table for the active ISA level. Compiled once, unlike the rest of this folder.
#include "kern/kern.h"

#define TABLES(name)                                     \
    extern const struct kern_##name kern_##name##_scalar;
#define KERN(name) TABLES(name)
#include "kern/kern.def"
#undef KERN


#if defined(__x86_64__)
#define KERN(name)                                                                                              \
    extern const struct kern_##name kern_##name##_avx2, kern_##name##_avx512, kern_##name##_avx512vnni,          \
        kern_##name##_avx512bf16;                                                                                \
    const struct kern_##name *kern_##name(void) {                                                                \
        static const struct kern_##name *const table[ISA_COUNT] = {                                              \
            &kern_##name##_scalar, &kern_##name##_avx2, &kern_##name##_avx512, &kern_##name##_avx512vnni,        \
            &kern_##name##_avx512bf16, &kern_##name##_avx512bf16};                                                                        \
        return table[isa_active()];                                                                              \
    }
#elif defined(__aarch64__)
#define KERN(name)                                                                                              \
    extern const struct kern_##name kern_##name##_neon, kern_##name##_dotprod, kern_##name##_i8mm;               \
    const struct kern_##name *kern_##name(void) {                                                                \
        static const struct kern_##name *const table[ISA_COUNT] = {&kern_##name##_scalar, &kern_##name##_neon,   \
                                                                   &kern_##name##_dotprod, &kern_##name##_i8mm}; \
        return table[isa_active()];                                                                              \
    }
#else
#define KERN(name)                                   \
    const struct kern_##name *kern_##name(void) {    \
        return &kern_##name##_scalar;                \
    }
#endif
#include "kern/kern.def"
#undef KERN
