// Chooses the ISA level once: the best one the processor has, or the one GGML_ISA names.
#include "kern/isa.h"
#include "base/cpu.h"
#include "base/env.h"
#include "base/log.h"
#include "base/global.h"

#include <stdatomic.h>
#include <string.h>

static const char *const names[ISA_COUNT] = {
#define ISA_LEVEL(name) #name,
#include "kern/isa.def"
#undef ISA_LEVEL
};

const char *isa_name(enum isa level) { return (unsigned) level < ISA_COUNT ? names[level] : "unknown"; }

int isa_available(enum isa level) { return (unsigned) level < ISA_COUNT && cpu_has_level(names[level]); }

int isa_pin(enum isa level) {
    if (!isa_available(level)) return 0;
    atomic_store(&global.isa_level, (int) level);
    return 1;
}

static int choose(void) {
    const char *want = env_get("GGML_ISA");
    int best = ISA_scalar;
    for (int i = 0; i < ISA_COUNT; i++) {
        if (!isa_available((enum isa) i)) continue;
        best = i;
        if (want && strcmp(want, names[i]) == 0) return best;
    }
    if (want) log_warn("GGML_ISA=%s names no level that this processor has; using %s\n", want, names[best]);
    return best;
}

// A thread that computes with the reference kernels only: 0 or 1 + the level. Initial-exec: one load, also in a shared library.
static _Thread_local __attribute__((tls_model("initial-exec"))) int here;

void isa_here(int level) { here = level < 0 ? 0 : level + 1; }

enum isa isa_active(void) {
    if (here) return (enum isa)(here - 1);
    int level = atomic_load_explicit(&global.isa_level, memory_order_relaxed);
    if (level < 0) {
        level = choose();
        atomic_store(&global.isa_level, level);
    }
    return (enum isa) level;
}
