// Version, time, log and abort callbacks.
#pragma once

#include "ggml/types.h"

#ifdef __cplusplus
extern "C" {
#endif

GGML_API ggml_abort_callback_t ggml_set_abort_callback(ggml_abort_callback_t callback);
GGML_API const char *ggml_status_to_string(enum ggml_status status);
GGML_API bool ggml_guid_matches(ggml_guid_t guid_a, ggml_guid_t guid_b);
GGML_API const char *ggml_version(void);
GGML_API const char *ggml_commit(void);
GGML_API void ggml_time_init(void);
GGML_API int64_t ggml_time_ms(void);
GGML_API int64_t ggml_time_us(void);
GGML_API int64_t ggml_cycles(void);
GGML_API int64_t ggml_cycles_per_ms(void);
GGML_API FILE *ggml_fopen(const char *fname, const char *mode);
GGML_API void ggml_log_get(ggml_log_callback *log_callback, void **user_data);
GGML_API void ggml_log_set(ggml_log_callback log_callback, void *user_data);

#ifdef __cplusplus
}
#endif
