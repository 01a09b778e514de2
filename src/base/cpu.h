// What the processor can do, and how many threads suit it.
#pragma once

#include <stdbool.h>

enum cpu_feature {
    CPU_SSE3,
    CPU_SSSE3,
    CPU_AVX,
    CPU_AVX_VNNI,
    CPU_AVX2,
    CPU_BMI2,
    CPU_F16C,
    CPU_FMA,
    CPU_AVX512,
    CPU_AVX512_VBMI,
    CPU_AVX512_VNNI,
    CPU_AVX512_BF16,
    CPU_AMX_INT8,
    CPU_NEON,
    CPU_DOTPROD,
    CPU_I8MM,
    CPU_SVE,
    CPU_FEATURE_COUNT
};

bool cpu_has(enum cpu_feature f);
// Whether this processor and its operating system can run an ISA level of kern/isa.def.
bool cpu_has_level(const char *level);

// Default thread count from a description of the machine; a pure function, so that it can be tested with made-up machines.
struct cpu_topology {
    int n_logical;   // logical processors in the affinity mask
    int n_physical;  // physical cores among them; performance cores only where cores differ
    double quota;    // cgroup quota in processors, <= 0: none
};
int cpu_threads_for(const struct cpu_topology *t);
// The same for the tree under root (normally "/", tests give a made-up one with sys/ and proc/).
int cpu_default_threads(const char *root);
