// The list of architectures.
#include <string.h>

#include "arch/arch.h"

#define ARCH(id) extern const struct arch arch_##id;
#include "arch/arch.def"
#undef ARCH

static const struct arch *const all[] = {
#define ARCH(id) &arch_##id,
#include "arch/arch.def"
#undef ARCH
};

int arch_count(void) { return (int) (sizeof all / sizeof *all); }

const struct arch *arch_at(int i) { return i >= 0 && i < arch_count() ? all[i] : NULL; }

const struct arch *arch_by_name(const char *name) {
    for (int i = 0; i < arch_count(); i++)
        if (!strcmp(all[i]->name, name)) return all[i];
    return NULL;
}
