// Kernel families. A family is one source file of this folder (name.c) that ends in
//     const struct kern_<name> ISA_SYM(kern_<name>) = { ... };
// its struct declared in kern/<name>.h, and one line in kern.def. kern_<name>() gives the table of the
// active ISA level. All levels of a family give results within its stated tolerance of the scalar level; at any one
// level a result depends on nothing but the operands (DESIGN rule 7).
#pragma once

#include "kern/isa.h"

#define KERN(name)                                                                                                          \
    struct kern_##name;                                                                                                     \
    const struct kern_##name *kern_##name(void);
#define KERN_ALL(name) KERN(name)
#include "kern/kern.def"
#undef KERN
#undef KERN_ALL
