// Time, version and other small public calls that belong to no other file.
#include "ggml/util.h"
#include "ggml/enums.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#ifndef LAMINA_VERSION
#define LAMINA_VERSION "0.0.0"
#endif
#ifndef LAMINA_COMMIT
#define LAMINA_COMMIT "unknown"
#endif

const char *ggml_version(void) { return LAMINA_VERSION; }

const char *ggml_commit(void) { return LAMINA_COMMIT; }

const char *ggml_status_to_string(enum ggml_status status) {
    switch (status) {
        case GGML_STATUS_ALLOC_FAILED: return "GGML status: error (failed to allocate memory)";
        case GGML_STATUS_FAILED: return "GGML status: error (operation failed)";
        case GGML_STATUS_SUCCESS: return "GGML status: success";
        case GGML_STATUS_ABORTED: return "GGML status: warning (operation aborted)";
    }
    return "GGML status: unknown";
}

bool ggml_guid_matches(ggml_guid_t guid_a, ggml_guid_t guid_b) {
    if (!guid_a || !guid_b) return guid_a == guid_b;
    return memcmp(guid_a, guid_b, sizeof(ggml_guid)) == 0;
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t) t.tv_sec * 1000000000 + t.tv_nsec;
}

// The monotonic clock needs no preparation.
void ggml_time_init(void) {}

int64_t ggml_time_ms(void) { return now_ns() / 1000000; }

int64_t ggml_time_us(void) { return now_ns() / 1000; }

// A "cycle" is a nanosecond: the clock is as fine and, unlike a cycle counter, steady and portable.
int64_t ggml_cycles(void) { return now_ns(); }

int64_t ggml_cycles_per_ms(void) { return 1000000; }

FILE *ggml_fopen(const char *fname, const char *mode) {
    if (!fname || !mode) errno = EINVAL;
    return fname && mode ? fopen(fname, mode) : NULL;
}
