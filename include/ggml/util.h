// Version, time, log and abort callbacks.
#pragma once

#include "ggml/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Called instead of printing to stderr when ggml_abort is about to end the process; NULL restores that. Returns the callback
// that was set before. Thread: any.
GGML_API ggml_abort_callback_t ggml_set_abort_callback(ggml_abort_callback_t callback);
// A text for a status; never NULL.
GGML_API const char *ggml_status_to_string(enum ggml_status status);
GGML_API bool ggml_guid_matches(ggml_guid_t guid_a, ggml_guid_t guid_b);
// Version and commit of the library. Owner: library, static.
GGML_API const char *ggml_version(void);
GGML_API const char *ggml_commit(void);

// A clock that never goes back, from an arbitrary start: milliseconds, microseconds. ggml_cycles counts nanoseconds.
// ggml_time_init does nothing here; programs call it.
GGML_API void ggml_time_init(void);
GGML_API int64_t ggml_time_ms(void);
GGML_API int64_t ggml_time_us(void);
GGML_API int64_t ggml_cycles(void);
GGML_API int64_t ggml_cycles_per_ms(void);

// fopen with a path in UTF-8.
GGML_API FILE *ggml_fopen(const char *fname, const char *mode);

// All that the library says goes to log_callback with user_data; NULL: to stderr from GGML_LOG_LEVEL_WARN on. Process-wide.
// Thread: set it before other threads use the library; the callback may be called from any thread that does.
GGML_API void ggml_log_get(ggml_log_callback *log_callback, void **user_data);
GGML_API void ggml_log_set(ggml_log_callback log_callback, void *user_data);

#ifdef __cplusplus
}
#endif
