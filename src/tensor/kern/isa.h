// One source, many ISA levels. The build compiles every file of kern/ and type/ once per level of isa.def with
// -DISA=<level> and that level's compiler flags; each compilation exports one table, named <table>_<level>.
#pragma once

#define ISA_CAT_(a, b) a##_##b
#define ISA_CAT(a, b) ISA_CAT_(a, b)
// Name of a symbol of the level being compiled: ISA_SYM(kern_norm) is kern_norm_avx2 when ISA is avx2.
#define ISA_SYM(name) ISA_CAT(name, ISA)

enum isa {
#define ISA_LEVEL(name) ISA_##name,
#include "kern/isa.def"
#undef ISA_LEVEL
    ISA_COUNT
};

// The level in use: the best this processor has, or the one named by the environment variable GGML_ISA. Settled once.
enum isa isa_active(void);
// Name of a level ("avx2"), and whether this processor (and this build) has it.
const char *isa_name(enum isa level);
int isa_available(enum isa level);
// For tests: pin the level; returns 0 if the processor lacks it. Not while a graph runs.
int isa_pin(enum isa level);
// For this thread alone, until it is called with -1: what a graph that asks for the reference is computed with.
void isa_here(int level);
