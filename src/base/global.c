// The definition of everything mutable that outlives a call. Nothing else in the libraries may be a mutable global
// (thread-local error records, tables filled once at first use and the device registry apart).
#include "base/global.h"

struct globals global = {.error_mode = -1, .isa_level = -1};
