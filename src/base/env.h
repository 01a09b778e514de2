// The only place that reads the environment.
#pragma once

// Value of an environment variable; NULL if unset or empty.
const char *env_get(const char *name);
