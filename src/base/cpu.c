// Processor features, asked once: cpuid and xgetbv on x86-64 (a feature counts only if the operating system saves its
// registers too), the auxiliary vector on AArch64.
#include "base/cpu.h"
#include "base/global.h"

#include <assert.h>
#include <string.h>

#define DETECTED (1u << 31)
static_assert(CPU_FEATURE_COUNT < 31, "features must fit the mask");

#if defined(__x86_64__)
#include <cpuid.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

static uint64_t xgetbv(void) {
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t) hi << 32 | lo;
}

// Tile registers are large, so Linux hands them out only to processes that ask.
static bool amx_permitted(void) {
#ifdef __linux__
    enum { ARCH_REQ_XCOMP_PERM_ = 0x1023, XFEATURE_XTILEDATA_ = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM_, XFEATURE_XTILEDATA_) == 0;
#else
    return false;
#endif
}

static uint32_t detect(void) {
    unsigned a, b1, c1 = 0, d1, a7 = 0, b7 = 0, c7 = 0, d7 = 0, a71 = 0, b71, c71, d71;
    if (!__get_cpuid(1, &a, &b1, &c1, &d1)) return 0;
    if (__get_cpuid_count(7, 0, &a7, &b7, &c7, &d7) && a7 >= 1) __get_cpuid_count(7, 1, &a71, &b71, &c71, &d71);
    const uint64_t saved = c1 >> 27 & 1 ? xgetbv() : 0;
    const bool ymm = (saved & 0x6) == 0x6, zmm = (saved & 0xe6) == 0xe6, tiles = (saved & 0x60000) == 0x60000;
    const bool avx512 = zmm && (b7 >> 16 & 1) && (b7 >> 17 & 1) && (b7 >> 28 & 1) && (b7 >> 30 & 1) && (b7 >> 31 & 1);

    uint32_t f = 0;
#define HAS(feature, condition) f |= (condition) ? 1u << (feature) : 0
    HAS(CPU_SSE3, c1 & 1);
    HAS(CPU_SSSE3, c1 >> 9 & 1);
    HAS(CPU_AVX, ymm && (c1 >> 28 & 1));
    HAS(CPU_FMA, ymm && (c1 >> 12 & 1));
    HAS(CPU_F16C, ymm && (c1 >> 29 & 1));
    HAS(CPU_AVX2, ymm && (b7 >> 5 & 1));
    HAS(CPU_BMI2, b7 >> 8 & 1);
    HAS(CPU_AVX_VNNI, ymm && (a71 >> 4 & 1));
    HAS(CPU_AVX512, avx512);
    HAS(CPU_AVX512_VBMI, avx512 && (c7 >> 1 & 1));
    HAS(CPU_AVX512_VNNI, avx512 && (c7 >> 11 & 1));
    HAS(CPU_AVX512_BF16, avx512 && (a71 >> 5 & 1));
    HAS(CPU_AMX_INT8, tiles && (d7 >> 22 & 1) && (d7 >> 24 & 1) && (d7 >> 25 & 1) && amx_permitted());
#undef HAS
    return f;
}

#elif defined(__aarch64__)
#ifdef __linux__
#include <sys/auxv.h>
#endif

static uint32_t detect(void) {
    uint32_t f = 1u << CPU_NEON;
#ifdef __linux__
    const unsigned long cap = getauxval(AT_HWCAP), cap2 = getauxval(AT_HWCAP2);
    if (cap >> 20 & 1) f |= 1u << CPU_DOTPROD;
    if (cap >> 22 & 1) f |= 1u << CPU_SVE;
    if (cap2 >> 13 & 1) f |= 1u << CPU_I8MM;
#endif
    return f;
}

#else
static uint32_t detect(void) { return 0; }
#endif

bool cpu_has(enum cpu_feature f) {
    uint32_t mask = atomic_load_explicit(&global.cpu_features, memory_order_relaxed);
    if (!mask) {
        mask = detect() | DETECTED;
        atomic_store(&global.cpu_features, mask);
    }
    return (unsigned) f < CPU_FEATURE_COUNT && (mask >> f & 1);
}

bool cpu_has_level(const char *level) {
    static const struct {
        const char *name;
        enum cpu_feature needs[9];
        int n;
    } levels[] = {
        {"scalar", {0}, 0},
        {"avx2", {CPU_AVX, CPU_AVX2, CPU_FMA, CPU_F16C, CPU_BMI2}, 5},
        {"avx512", {CPU_AVX2, CPU_FMA, CPU_F16C, CPU_BMI2, CPU_AVX512}, 5},
        {"avx512vnni", {CPU_AVX2, CPU_FMA, CPU_F16C, CPU_BMI2, CPU_AVX512, CPU_AVX512_VNNI, CPU_AVX512_VBMI}, 7},
        {"avx512bf16",
         {CPU_AVX2, CPU_FMA, CPU_F16C, CPU_BMI2, CPU_AVX512, CPU_AVX512_VNNI, CPU_AVX512_VBMI, CPU_AVX512_BF16},
         8},
        {"avx512amx",
         {CPU_AVX2, CPU_FMA, CPU_F16C, CPU_BMI2, CPU_AVX512, CPU_AVX512_VNNI, CPU_AVX512_VBMI, CPU_AVX512_BF16,
          CPU_AMX_INT8},
         9},
        {"neon", {CPU_NEON}, 1},
        {"dotprod", {CPU_NEON, CPU_DOTPROD}, 2},
        {"i8mm", {CPU_NEON, CPU_DOTPROD, CPU_I8MM}, 3},
    };
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (strcmp(level, levels[i].name) != 0) continue;
        for (int k = 0; k < levels[i].n; k++) {
            if (!cpu_has(levels[i].needs[k])) return false;
        }
        return true;
    }
    return false;
}
