// Memory nodes. Weights are mapped from files and each page lands on the node of the thread that touches it first, so a
// strategy changes where threads run, not where memory is asked for.
#include "backend/cpu/cpu.h"
#include "base/global.h"

#include <stdio.h>
#include <unistd.h>

static int count_nodes(void) {
    int n = 0;
    char path[64];
    do snprintf(path, sizeof path, "/sys/devices/system/node/node%d", n);
    while (access(path, F_OK) == 0 && ++n < 1024);
    return n;
}

void ggml_numa_init(enum ggml_numa_strategy numa) {
    if ((unsigned) numa >= GGML_NUMA_STRATEGY_COUNT) {
        (void) err_set(ERR_INVALID, "ggml_numa_init: there is no strategy %d", (int) numa);
        return;
    }
    atomic_store(&global.numa_strategy, count_nodes() > 1 ? (int) numa : GGML_NUMA_STRATEGY_DISABLED);
}

// Whether memory nodes are taken into account: there are several, and a strategy was chosen.
bool ggml_is_numa(void) { return atomic_load(&global.numa_strategy) != GGML_NUMA_STRATEGY_DISABLED; }
