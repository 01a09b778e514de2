// The only place that reads the environment, so that what can change behaviour from outside is found by one grep.
#include "base/env.h"

#include <stdlib.h>

const char *env_get(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}
